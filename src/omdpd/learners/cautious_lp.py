"""The cautious linear program: replan every episode under every cost table that was ever revealed.

    max r~.q  subject to  d.q + b <= 0 for every table d seen so far,   q an occupancy of the region

The region is the empirical kernel (default) or a confidence box, by the estimator; b = (margin . q_k) max|d| is what
the cautious estimator adds for what is not known yet, with the occupancy of the plan in play (0 for a box).  Tables
become rows of the program as they are found violated.  Where no point satisfies them all, the one whose largest excess
is least is played, and counted.  A reference of ours, without a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import DELTA, BoxEstimator, EmpiricalEstimator, Estimate, Estimator
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.memory import TableMemory, labelled
from omdpd.learners.needs import require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import FEW_TABLES, Basis, Plan, best_policy, plan_under, vertex_plan
from omdpd.solvers.regions import Box, Region, bounds_of


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the tables seen, (constraint, label) of those that are rows of the program, and the plan in play."""

    setting: Setting
    k: int
    counts: Counts
    memory: tuple[TableMemory, ...]
    rows: tuple[tuple[int, int], ...]
    q: Floats
    policy: Floats
    basis: Basis | None
    solves: int
    infeasible: int


@dataclass(frozen=True)
class CautiousLP:
    """Safe, as far as the estimates go, for everything that was seen."""

    estimator: Estimator = EmpiricalEstimator()

    @staticmethod
    def practical(
        kappa: float = EmpiricalEstimator.kappa,
        box: bool = False,
        stationary: bool = False,
        *,
        reward_scale: float = EmpiricalEstimator.reward_scale,
        one_over_n: float = EmpiricalEstimator.one_over_n,
        pseudo_observations: float = EmpiricalEstimator.pseudo_observations,
        delta: float = DELTA,
    ) -> CautiousLP:
        """A linear program with every table seen so far; `kappa` is the margin on the empirical kernel, unless `box`.

        With `box` the plan is over the confidence box that the learners of a comparison share, at its scales.
        """
        if box:
            return CautiousLP(BoxEstimator.practical(stationary=stationary, delta=delta))
        empirical = EmpiricalEstimator(kappa, reward_scale, one_over_n, pseudo_observations, stationary, delta)
        return CautiousLP(empirical)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "linear program with every cost table seen so far",
            ("full",),
            "none",
            "a reference",
        )

    def init(self, setting: Setting) -> State:
        """Plan with no data and no table."""
        self.estimator.check(setting)
        require_feedback(self, setting, "full")
        seen = (TableMemory(None),) * setting.n_constraints
        none = np.zeros(setting.shape)
        return self._replan(State(setting, 0, Counts.empty(setting), seen, (), none, none, None, 0, 0))

    def policy(self, state: State) -> Floats:
        """The plan's policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count, remember the revealed tables, replan."""
        assert isinstance(feedback, FullFeedback)
        memory = tuple(kept.meet(table) for kept, table in zip(state.memory, feedback.cost, strict=True))
        return self._replan(replace(state, k=state.k + 1, counts=state.counts.add(feedback), memory=memory))

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def _replan(self, state: State) -> State:
        """Solve the program, adding violated tables until none is left out."""
        believed = self.estimator.estimate(state.setting, state.counts, state.k)
        planned = plan_under(
            self._tables(state, believed), state.rows, state.setting.shape,
            lambda tables: self._plan(state, believed, tables),
        )  # fmt: skip
        plan = planned.plan
        return replace(
            state, q=plan.occupancy, policy=plan.policy, rows=planned.rows, solves=state.solves + planned.solves,
            basis=plan.basis if plan.basis is not None else state.basis,
            infeasible=state.infeasible + (not plan.feasible),
        )  # fmt: skip

    def _tables(self, state: State, believed: Estimate[Region]) -> dict[tuple[int, int], Floats]:
        """Every table seen, lifted by the margin."""
        lift = float(np.vdot(state.q, believed.margin)) / state.setting.horizon
        return {row: table + lift * float(np.abs(table).max()) for row, table in labelled(state.memory).items()}

    def _plan(self, state: State, believed: Estimate[Region], tables: Floats) -> Plan:
        """The best plan in the region under the chosen tables."""
        region, mu = believed.region, state.setting.mu
        if isinstance(region, Box):
            return vertex_plan(region.lower, region.upper, mu, believed.reward, tables, state.basis)
        p, _ = bounds_of(region)
        if len(tables) <= FEW_TABLES:
            return vertex_plan(p, p, mu, believed.reward, tables)
        return best_policy(p, mu, believed.reward, tables)
