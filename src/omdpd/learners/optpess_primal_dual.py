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

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import (
    COST_SCALE,
    DELTA,
    REWARD_SCALE,
    SCALES,
    TRANSITION_SCALE,
    effective_episodes,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import require_feedback, room_of
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.related import truncated_greedy


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the greedy policy in play, its truncated costs and the dual."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    costs: Floats
    lam: Floats


@dataclass(frozen=True)
class OptPessPrimalDual:
    """Greedy for a truncated Lagrangian; `room` is the Slater gap (None: as the run finds it)."""

    reward_scale: float = REWARD_SCALE
    cost_scale: float = COST_SCALE
    transition_scale: float = TRANSITION_SCALE
    stationary: bool = False
    tightening_scale: float = 1e-3
    room: float | None = None
    _: KW_ONLY
    delta: float = DELTA

    def __post_init__(self) -> None:
        check_settings(self, positive=("room",), nonnegative=(*SCALES, "tightening_scale"), shares=("delta",))

    @staticmethod
    def theory(room: float) -> OptPessPrimalDual:
        """The published bonuses and tightening."""
        return OptPessPrimalDual(1.0, 1.0, 1.0, tightening_scale=1.0, room=room)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "greedy for a truncated Lagrangian, tightened dual",
            ("bandit",),
            "O~(sqrt K) regret, bounded weak violation, for stochastic costs",
            "Liu, Zhou, Kalathil, Kumar, Tian (NeurIPS 2021)",
            "Slater condition with a known gap",
        )

    def init(self, setting: Setting) -> State:
        """Plan with no data and a dual of zero."""
        require_feedback(self, setting, "bandit")
        room_of(self, self.room)
        none = np.zeros(setting.n_constraints)
        return self._planned(State(setting, 0, Counts.empty(setting), np.zeros(setting.shape), none, none))

    def policy(self, state: State) -> Floats:
        """The greedy policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """The dual moves with the costs of the policy just played; then the next plan."""
        lam = np.maximum(state.lam + state.costs + self._tightening(state.setting, state.k + 1), 0.0)
        return self._planned(replace(state, k=state.k + 1, counts=state.counts.add(feedback), lam=lam))

    def report(self, state: State) -> Report:
        """What a unit of cost weighs against one of reward."""
        return Report(weight=float(state.lam.max()) / self._eta(state))

    def _planned(self, state: State) -> State:
        """The greedy policy of episode k + 1, from the data so far."""
        H, S, A = state.setting.shape
        counts = state.counts.pooled() if self.stationary else state.counts
        Z = np.log(16.0 * S**2 * A * H * effective_episodes(state.setting, state.k) / self.delta)
        beta = np.sqrt(Z / np.maximum(counts.visits, 1.0))
        reward = counts.reward_mean() + (self.reward_scale + self.transition_scale * H * S) * beta
        cost = counts.cost_mean() - (self.cost_scale + self.transition_scale * H * S) * beta
        prices = state.lam / self._eta(state)
        policy, costs = truncated_greedy(counts.transition_mean(), reward, cost, prices, state.setting.mu)
        return replace(state, policy=policy, costs=costs)

    def _eta(self, state: State) -> float:
        """eta = room H sqrt k of the coming episode."""
        room = room_of(self, self.room)
        return room * state.setting.horizon * float(np.sqrt(state.k + 1))

    def _tightening(self, setting: Setting, k: int) -> float:
        """eps_k, times `tightening_scale`."""
        H, S, A = setting.shape
        log = np.log(k / self.delta)
        return self.tightening_scale * float(5.0 * H**2 * np.sqrt(S**3 * A) * (log + 1.0) / np.sqrt(k * log))
