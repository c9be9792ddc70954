"""The greedy linear program: replan every episode under the running mean of the costs, as if it were the truth.

    max r~.q  subject to  dbar_i.q <= 0,   q an occupancy of the region

dbar is the mean of the tables revealed so far, or the estimate of what was met under bandit feedback.  No caution: with
tables that change, the mean allows what single tables forbid.  A reference of ours, without a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import DELTA, EmpiricalEstimator, Estimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import vertex_plan
from omdpd.solvers.regions import bounds_of


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the sum of the tables revealed so far (I, H, S, A), and the plan in play."""

    setting: Setting
    k: int
    counts: Counts
    shown: Floats
    policy: Floats
    solves: int
    infeasible: int


@dataclass(frozen=True)
class GreedyLP:
    """Certainty equivalence in the cost."""

    estimator: Estimator = EmpiricalEstimator(kappa=0.0)

    @staticmethod
    def practical(
        stationary: bool = False,
        *,
        kappa: float = 0.0,
        reward_scale: float = EmpiricalEstimator.reward_scale,
        one_over_n: float = EmpiricalEstimator.one_over_n,
        pseudo_observations: float = EmpiricalEstimator.pseudo_observations,
        delta: float = DELTA,
    ) -> GreedyLP:
        """A linear program under the running mean of the costs."""
        return GreedyLP(EmpiricalEstimator(kappa, reward_scale, one_over_n, pseudo_observations, stationary, delta))

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card("linear program under the running mean of the costs", ("bandit", "full"), "none", "a reference")

    def init(self, setting: Setting) -> State:
        """Plan with no data."""
        self.estimator.check(setting)
        none = np.zeros((setting.n_constraints, *setting.shape))
        return self._replan(State(setting, 0, Counts.empty(setting), none, none[0], 0, 0))

    def policy(self, state: State) -> Floats:
        """The plan's policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count, add up a revealed table, replan."""
        shown = state.shown + feedback.cost if isinstance(feedback, FullFeedback) else state.shown
        return self._replan(replace(state, k=state.k + 1, counts=state.counts.add(feedback), shown=shown))

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def _replan(self, state: State) -> State:
        """The best plan under the mean."""
        setting = state.setting
        believed = self.estimator.estimate(setting, state.counts, state.k)
        mean = believed.cost if setting.feedback == "bandit" else state.shown / max(state.k, 1)
        plan = vertex_plan(*bounds_of(believed.region), setting.mu, believed.reward, mean)
        failed = state.infeasible + (not plan.feasible)
        return replace(state, policy=plan.policy, solves=state.solves + 1, infeasible=failed)
