"""OptPess-PrimalDual: greedy policies of a truncated Lagrangian, and a dual that asks for a little more than needed.

    pi_k         = greedy for V(r~) - (lam_k / eta_k) . V(d~) under p_hat, both values truncated, one backward pass
    lam_{k+1,i}  = [ lam_{k,i} + V^{pi_k}(d~_i, p_hat) + eps_k ]^+
    eta_k        = room H sqrt k,     eps_k = 5 H^2 sqrt(S^3 A) (ln(k/delta) + 1) / sqrt(k ln(k/delta))
    r~, d~       = r_hat + (1 + H S) beta,  d_hat - (1 + H S) beta,     beta = sqrt(ln(16 S^2 A H K / delta) / (n v 1))

Certain: the setting, what is promised, an optimistic primal and a dual that is moved pessimistically.  From memory:
every formula above, the constants in eps_k most of all.  Ours: the ones in (1 + H S) are scaled by `reward_scale` and
`cost_scale`, H S by `transition_scale`, eps_k by `tightening_scale` (1 is the paper, where eps_k exceeds H for the
first million episodes and more; with 1e-4 the dual hardly asks for more than needed, and the promise is lost).
Source: Liu, Zhou, Kalathil, Kumar, Tian (NeurIPS 2021), OptPess-PrimalDual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.needs import Needs, room_of
from omdpd.learners.policy_steps import truncated_greedy
from omdpd.learners.protocol import Card, Report
from omdpd.learners.replanned import Counted, Planning
from omdpd.learners.settings import ONES, Preset, Scaled, nonnegative, positive
from omdpd.learners.start import uniform_policy
from omdpd.learners.widths import uniform_width
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting


@dataclass(frozen=True, eq=False)
class State(Counted):
    """Besides, the truncated costs of the greedy policy in play, and the dual."""

    costs: Floats
    lam: Floats


@dataclass(frozen=True)
class OptPessPrimalDual(Scaled, Planning[State]):
    """Greedy for a truncated Lagrangian; `room` is the Slater gap (None: as the run finds it)."""

    tightening_scale: float = nonnegative(1e-3)
    room: float | None = positive(None)

    card = Card(
        "greedy for a truncated Lagrangian, tightened dual",
        ("bandit",),
        "O~(sqrt K) regret, bounded weak violation, for stochastic costs",
        "Liu, Zhou, Kalathil, Kumar, Tian (NeurIPS 2021)",
        "Slater condition with a known gap",
    )
    needs = Needs(room=True)
    factors = (*WIDTHS, step("tightening_scale"))
    theory = Preset("The published bonuses and tightening.", "room", **ONES, tightening_scale=1.0)

    def start(self, setting: Setting) -> State:
        """A dual of zero."""
        none = np.zeros(setting.n_constraints)
        return State(setting, 0, Counts.empty(setting), uniform_policy(setting), none, none)

    def met(self, state: State, feedback: Feedback) -> State:
        """The dual moves with the costs of the policy just played, and eps_k."""
        (H, S, A), k = state.setting.shape, state.k + 1
        log = np.log(k / self.delta)
        eps = self.tightening_scale * float(5.0 * H**2 * np.sqrt(S**3 * A) * (log + 1.0) / np.sqrt(k * log))
        return replace(state, lam=np.maximum(state.lam + state.costs + eps, 0.0))

    def planned(self, state: State) -> State:
        """The greedy policy of episode k + 1, from the data so far."""
        setting, counts = state.setting, self.pooled(state.counts)
        beta = uniform_width(setting, counts, state.k, self.delta)
        for_kernel = self.transition_scale * setting.horizon * setting.n_states
        reward = counts.reward_mean() + (self.reward_scale + for_kernel) * beta
        cost = counts.cost_mean() - (self.cost_scale + for_kernel) * beta
        prices = state.lam / self._eta(state)
        policy, costs = truncated_greedy(counts.transition_mean(), reward, cost, prices, setting.mu)
        return replace(state, policy=policy, costs=costs)

    def report(self, state: State) -> Report:
        """What a unit of cost weighs against one of reward."""
        return Report(weight=float(state.lam.max()) / self._eta(state))

    def _eta(self, state: State) -> float:
        """eta = room H sqrt k of the coming episode."""
        return room_of(self, self.room) * state.setting.horizon * float(np.sqrt(state.k + 1))
