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

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import (
    DELTA,
    REWARD_SCALE,
    SAFE_COST_SCALE,
    SCALES,
    TRANSITION_SCALE,
    confidence_box,
    log_term,
    log_term_transition,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import SafeChoice, SafePolicy, require_feedback, safe_policy_of
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import vertex_plan


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the policy in play, and how many programs had no solution; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    infeasible: int


@dataclass(frozen=True)
class DOPEPlus:
    """The extended program with an episode's error of the kernel on both sides; `safe` is the baseline."""

    safe: SafePolicy | SafeChoice = "least-cost"
    reward_scale: float = REWARD_SCALE
    cost_scale: float = SAFE_COST_SCALE
    transition_scale: float = TRANSITION_SCALE
    stationary: bool = False
    delta: float = DELTA

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=SCALES, shares=("delta",))

    @staticmethod
    def practical(
        *,
        reward_scale: float = reward_scale,
        cost_scale: float = cost_scale,
        transition_scale: float = transition_scale,
        stationary: bool = stationary,
        safe_policy: SafeChoice = "least-cost",
        delta: float = delta,
    ) -> DOPEPlus:
        """DOPE's program with bonuses from the variance of an episode, around a known baseline."""
        return DOPEPlus(safe_policy, reward_scale, cost_scale, transition_scale, stationary, delta)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "extended linear program, bonuses from the variance of an episode, baseline policy",
            ("bandit",),
            "O~(H^2.5 S sqrt(AK) / room) regret, no violation in any episode (as its abstract says)",
            "Yu, D. Lee, Overman, D. Lee (RLC 2025)",
            "a strictly safe policy and its cost are known; stochastic costs",
        )

    def init(self, setting: Setting) -> State:
        """The baseline."""
        require_feedback(self, setting, "bandit")
        return State(setting, 0, Counts.empty(setting), safe_policy_of(self, self.safe, setting).policy, 0)

    def policy(self, state: State) -> Floats:
        """The plan's policy, or the baseline."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count and replan."""
        setting, safe, k = state.setting, safe_policy_of(self, self.safe, state.setting), state.k + 1
        seen = state.counts.add(feedback)
        counts = seen.pooled() if self.stationary else seen
        error = self.error_table(setting, counts, k, state.policy)
        width = np.sqrt(log_term(setting, k, self.delta) / np.maximum(counts.visits, 1.0))
        reward = counts.reward_mean() + self.reward_scale * width + (setting.horizon / safe.room) * error
        cost = counts.cost_mean() + self.cost_scale * width + error
        box = confidence_box(counts, self.transition_scale, log_term_transition(setting, k, self.delta))
        plan = vertex_plan(box.lower, box.upper, setting.mu, reward, cost)
        return replace(
            state, k=k, counts=seen, policy=plan.policy if plan.feasible else safe.policy,
            infeasible=state.infeasible + (not plan.feasible),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.k), infeasible=state.infeasible)

    def error_table(self, setting: Setting, counts: Counts, k: int, policy: Floats) -> Floats:
        """b: the tangent of the scaled E at the occupancy of `policy` under p_hat, its constant shared by the steps."""
        H, S, _ = setting.shape
        Lp, p = log_term_transition(setting, k, self.delta), counts.transition_mean()
        share = 1.0 / np.maximum(counts.departures, 1.0)
        share[-1] = 0.0  # nothing follows the last step
        spread = (np.count_nonzero(p, axis=-1) - 1.0) * share
        # One visit shows one successor: without the floor a plan through such rows would forbid every other row.
        here = max(float(np.vdot(spread, occupancy_of_policy(policy, p, setting.mu))), 1.0 / k)
        slope = self.transition_scale * H * (np.sqrt(Lp / here) * spread + (14.0 / 3.0) * S * Lp * share)
        return np.minimum(slope, 2.0 * H) + self.transition_scale * np.sqrt(Lp * here)
