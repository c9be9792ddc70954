"""OptCMDP-bonus: a linear program under the empirical kernel, its optimism all in the tables.

    max r~.q  subject to  d~_i.q <= 0,  q an occupancy of p_hat,      r~ = r_hat + b,   d~_i = d_hat_i - b

with b = bonus of the mean + H sum_s' radius(s'), the confidence box's half-widths.  Where the program has no solution
the least-violating policy is played, and counted.

Source: Efroni, Mannor, Pirotta (2020), Algorithm 2.  The program and the shape of b are the paper's.  Ours: signed
costs, the scales below one, r~ and d~ cut to what an episode can still bring, and what is played without a solution.
"""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus
from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import vertex_plan


@dataclass(frozen=True, eq=False)
class State:
    """Counts and the plan in play; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    solves: int
    infeasible: int


@dataclass(frozen=True)
class OptCMDPBonus:
    """Optimism by bonuses, planned with under p_hat; `theory` has the paper's scales of one."""

    bonus: Bonus = BernsteinBonus()

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        *,
        delta: float = DELTA,
    ) -> OptCMDPBonus:
        """The same under the empirical kernel, optimism in the tables."""
        bonus = BernsteinBonus(reward_scale, cost_scale, transition_scale, stationary, delta)
        return OptCMDPBonus(bonus)

    @staticmethod
    def theory() -> OptCMDPBonus:
        """The paper's widths."""
        return OptCMDPBonus(BernsteinBonus.theory())

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "linear program under the empirical kernel with bonuses, replanned every episode",
            ("bandit",),
            "O~(sqrt K) strong regret and violation",
            "Efroni, Mannor, Pirotta (2020), Algorithm 2",
            "stochastic costs",
        )

    def init(self, setting: Setting) -> State:
        """Plan with no data: everything looks good."""
        require_feedback(self, setting, "bandit")
        self.bonus.check(setting)
        return self._replan(setting, 0, Counts.empty(setting), 0, 0)

    def policy(self, state: State) -> Floats:
        """The plan's policy; uniform where it has no mass."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count and replan."""
        return self._replan(
            state.setting, state.k + 1, state.counts.add(feedback), state.solves, state.infeasible
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def _replan(self, setting: Setting, k: int, counts: Counts, solves: int, infeasible: int) -> State:
        believed = self.bonus.estimate(setting, counts, k)
        p = believed.transition
        plan = vertex_plan(p, p, setting.mu, believed.reward, believed.cost)
        return State(setting, k, counts, plan.policy, solves + 1, infeasible + (not plan.feasible))
