"""DOPE+: the program of DOPE with a bound on the kernel's error that adds up variances over the episode.

    spread(h,s,a) = (successors seen - 1) / n,   u(h,s,a) = S / n               zero at the last step
    E(q)          = 2 H sqrt(Lp spread.q) + (14/3) H Lp u.q                     the error of an episode's value
    b             = the tangent of E at the plan in play, so that b.q >= E(q) for every q
    max (r + (H / room) b).q   subject to   (d + b).q <= 0,   q in Q(box);      the baseline if infeasible

DOPE sums the errors of all rows, H radius.q.  The root terms of a row's radii, times the distance of the next value
from its mean, are at most 2 sqrt(Lp spread Var); with Cauchy and Schwarz over the episode and the law of total variance
(sum q Var <= H^2) their sum is the first term of E, a factor sqrt(H) less where pairs are equally known.

Source: Yu, D. Lee, Overman, D. Lee (RLC 2025; arXiv 2410.10158), known here from its abstract.  Certain: an unknown
kernel, stochastic rewards and costs; tighter optimism and pessimism than DOPE's from a law of total variance, the bound
being a function of the kernel that the program chooses; no violation in any episode; a regret of
O~(H^2.5 S sqrt(AK) / room).  Ours: all formulas above.  E is concave, so its tangent, taken at the occupancy of the
plan in play under p_hat (spread.q at least 1/k), is nowhere below it; what a row adds is at most 2 H, the distance of
two values; in the second term of E values are taken to be within H of their mean, where signed costs may be 2 H away;
variances under two kernels of the box are taken for one another; there is no first phase, since a program
without a solution plays the baseline; E is multiplied by `transition_scale`, as the box is; rewards and costs as in
`DOPE`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from omdpd.beliefs.confidence import (
    DELTA,
    REWARD_SCALE,
    SAFE_COST_SCALE,
    TRANSITION_SCALE,
    confidence_box,
    log_term_transition,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import WIDTHS, margin
from omdpd.learners.needs import Needs, SafeChoice, SafePolicy
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, State, unplanned
from omdpd.learners.settings import Settings, given, nonnegative, share
from omdpd.learners.widths import mean_width
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.flow import occupancy_of_policy


@dataclass(frozen=True)
class DOPEPlus(Settings, Replanned[State]):
    """DOPE's program with bonuses from the variance of an episode, around a known baseline."""

    _: KW_ONLY
    reward_scale: float = nonnegative(REWARD_SCALE)
    cost_scale: float = nonnegative(SAFE_COST_SCALE)
    transition_scale: float = nonnegative(TRANSITION_SCALE)
    stationary: bool = False
    safe_policy: SafeChoice = "least-cost"
    delta: float = share(DELTA)
    safe: SafePolicy | None = given(None)

    card = Card(
        "extended linear program, bonuses from the variance of an episode, baseline policy",
        ("bandit",),
        "O~(H^2.5 S sqrt(AK) / room) regret, no violation in any episode (as its abstract says)",
        "Yu, D. Lee, Overman, D. Lee (RLC 2025)",
        "a strictly safe policy and its cost are known; stochastic costs",
    )
    needs = Needs(safe=True)
    factors = (*WIDTHS, margin("cost_scale"))
    start = unplanned

    def program(self, state: State) -> Program:
        """The extended program, with the error of the kernel around the policy in play on both sides."""
        setting, k, counts = state.setting, state.k, self.pooled(state.counts)
        error = self.error_table(setting, counts, k, state.policy)
        width = mean_width(setting, counts, k, self.delta)
        box = confidence_box(counts, self.transition_scale, log_term_transition(setting, k, self.delta))
        price = setting.horizon / self.known(setting).room
        reward = counts.reward_mean() + self.reward_scale * width + price * error
        return Program(box, reward, counts.cost_mean() + self.cost_scale * width + error)

    def error_table(self, setting: Setting, counts: Counts, k: int, policy: Floats) -> Floats:
        """b: the tangent of the scaled E at the occupancy of `policy` under p_hat, its constant shared by the steps."""
        H, S, _ = setting.shape
        Lp, p = log_term_transition(setting, k, self.delta), counts.transition_mean()
        seen = 1.0 / np.maximum(counts.departures, 1.0)
        seen[-1] = 0.0  # nothing follows the last step
        spread = (np.count_nonzero(p, axis=-1) - 1.0) * seen
        # One visit shows one successor: without the floor a plan through such rows would forbid every other row.
        here = max(float(np.vdot(spread, occupancy_of_policy(policy, p, setting.mu))), 1.0 / k)
        slope = self.transition_scale * H * (np.sqrt(Lp / here) * spread + (14.0 / 3.0) * S * Lp * seen)
        return np.minimum(slope, 2.0 * H) + self.transition_scale * np.sqrt(Lp * here)
