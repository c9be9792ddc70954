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

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import (
    DELTA,
    REWARD_SCALE,
    SAFE_COST_SCALE,
    SCALES,
    TRANSITION_SCALE,
    effective_episodes,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import SafeChoice, SafePolicy, require_feedback, safe_policy_of
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.flow import value_of_policy
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import vertex_plan


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the policy in play, programs solved, and how many had no solution."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    solves: int
    infeasible: int


@dataclass(frozen=True)
class OptPessLP:
    """The pessimistic program under the empirical kernel, once the `safe` policy is known well enough."""

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
        reward_scale: float = reward_scale,
        cost_scale: float = cost_scale,
        transition_scale: float = transition_scale,
        stationary: bool = stationary,
        safe_policy: SafeChoice = "least-cost",
        *,
        delta: float = delta,
    ) -> OptPessLP:
        """Optimistic reward, pessimistic cost, a known safe policy."""
        return OptPessLP(safe_policy, reward_scale, cost_scale, transition_scale, stationary, delta)

    @staticmethod
    def theory(safe: SafePolicy) -> OptPessLP:
        """The published bonuses: at usual numbers of episodes nothing but the safe policy is played."""
        return OptPessLP(safe, 1.0, 1.0, 1.0)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "optimistic reward, pessimistic cost, linear program under the empirical kernel",
            ("bandit",),
            "O~(sqrt K) regret, no violation, for stochastic costs",
            "Liu, Zhou, Kalathil, Kumar, Tian (NeurIPS 2021)",
            "a strictly safe policy and its cost are known",
        )

    def init(self, setting: Setting) -> State:
        """The safe policy."""
        require_feedback(self, setting, "bandit")
        safe = safe_policy_of(self, self.safe, setting)
        return State(setting, 0, Counts.empty(setting), safe.policy, 0, 0)

    def policy(self, state: State) -> Floats:
        """The plan's policy, or the safe one."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count and replan."""
        setting = state.setting
        safe = safe_policy_of(self, self.safe, setting)
        state = replace(state, k=state.k + 1, counts=state.counts.add(feedback))
        counts = state.counts.pooled() if self.stationary else state.counts
        p, mu = counts.transition_mean(), setting.mu
        reward, cost = self._tables(setting, counts, state.k, safe.room)
        known = np.array([value_of_policy(safe.policy, p, mu, d) for d in cost])
        if np.any(known >= safe.cost / 2.0):
            return replace(state, policy=safe.policy)
        plan = vertex_plan(p, p, mu, reward, cost)
        return replace(
            state, policy=plan.policy if plan.feasible else safe.policy, solves=state.solves + 1,
            infeasible=state.infeasible + (not plan.feasible),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def _tables(self, setting: Setting, counts: Counts, k: int, room: float) -> tuple[Floats, Floats]:
        """r_bar and d_und."""
        H, S, A = setting.shape
        Z = np.log(16.0 * S**2 * A * H * effective_episodes(setting, k) / self.delta)
        beta = np.sqrt(Z / np.maximum(counts.visits, 1.0))
        for_kernel = S * H + 4.0 * H * (1.0 + S * H) / room
        reward = counts.reward_mean() + (self.reward_scale + self.transition_scale * for_kernel) * beta
        return reward, counts.cost_mean() + (self.cost_scale + self.transition_scale * H * S) * beta
