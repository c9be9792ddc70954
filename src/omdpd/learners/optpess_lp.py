"""OptPess-LP: optimistic about the reward, pessimistic about the cost, with a strictly safe policy to fall back on.

    beta   = sqrt(Z / (n v 1)),   Z = ln(16 S^2 A H K / delta)
    r_bar  = r_hat + (1 + S H + 4 H (1 + S H) / room) beta
    d_und  = d_hat + (1 + H S) beta
    play the safe policy if V(d_und, p_hat) of it is at least -room / 2, else the best policy of
    max r_bar.q  subject to  d_und.q <= 0  under p_hat

Certain: all of this, with room = -V(d, safe policy).  Ours: the parts of the bonuses are scaled on their own (the ones
by `reward_scale` and `cost_scale`, everything that pays for the kernel by `transition_scale`; 1 is the paper), several
constraints (each with its own room, the reward's with the least), and the safe policy where the program is infeasible.
The cost is estimated here and the promise of no violation rests on its pessimism, so `cost_scale` is not zero.
Source: Liu, Zhou, Kalathil, Kumar, Tian (NeurIPS 2021), OptPess-LP.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from omdpd.beliefs.confidence import SAFE_COST_SCALE
from omdpd.learners.factors import WIDTHS, margin
from omdpd.learners.needs import Needs, SafeChoice, SafePolicy
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, State, unplanned
from omdpd.learners.settings import ONES, Preset, Scaled, given, nonnegative
from omdpd.learners.widths import uniform_width
from omdpd.solvers.compiled.flow import value_of_policy
from omdpd.solvers.regions import Box


@dataclass(frozen=True)
class OptPessLP(Scaled, Replanned[State]):
    """Optimistic reward, pessimistic cost, a known safe policy."""

    cost_scale: float = nonnegative(SAFE_COST_SCALE)
    safe_policy: SafeChoice = "least-cost"
    _: KW_ONLY
    safe: SafePolicy | None = given(None)

    card = Card(
        "optimistic reward, pessimistic cost, linear program under the empirical kernel",
        ("bandit",),
        "O~(sqrt K) regret, no violation, for stochastic costs",
        "Liu, Zhou, Kalathil, Kumar, Tian (NeurIPS 2021)",
        "a strictly safe policy and its cost are known",
    )
    needs = Needs(safe=True)
    factors = (*WIDTHS, margin("cost_scale"))
    start = unplanned
    theory = Preset(
        "The published bonuses, with which the safe policy alone is played at usual numbers of episodes.",
        "safe", **ONES,
    )  # fmt: skip

    def program(self, state: State) -> Program | None:
        """max r_bar.q subject to d_und.q <= 0 under p_hat, once the safe policy is known to be safe."""
        setting, counts, safe = state.setting, self.pooled(state.counts), self.known(state.setting)
        (H, S, _), p = setting.shape, counts.transition_mean()
        beta = uniform_width(setting, counts, state.k, self.delta)
        for_kernel = S * H + 4.0 * H * (1.0 + S * H) / safe.room
        reward = counts.reward_mean() + (self.reward_scale + self.transition_scale * for_kernel) * beta
        cost = counts.cost_mean() + (self.cost_scale + self.transition_scale * H * S) * beta
        known = np.array([value_of_policy(safe.policy, p, setting.mu, d) for d in cost])
        return None if np.any(known >= safe.cost / 2.0) else Program(Box(p, p), reward, cost)
