"""OptCMDP: replan every episode with an optimistic linear program; the cautious program when costs are revealed.

    max r~.q  subject to  d_j.q <= 0,  q in Q_k

with d~_k under bandit feedback, and with every distinct table revealed so far under full feedback (rows are put into
the program as they are found violated).  Where the program has no solution the least-violating policy is played, and
counted.  Source: Efroni, Mannor, Pirotta (2020), Algorithm 1.  The program and its optimism are the paper's; the scales
below one, what is played where it has no solution, and the cautious form for revealed costs are ours.

With `hoeffding` and `epochs` it is UCRL-CMDP of Singh, Gupta, Shroff (2020) made episodic: a box of Hoeffding's width,
and a plan that is kept until the visits of some (h,s,a) have doubled.  (Theirs is about average cost, and knows the
costs.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import (
    COST_SCALE,
    DELTA,
    REWARD_SCALE,
    TRANSITION_SCALE,
    BoxEstimator,
    Estimate,
    log_term_transition,
)
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.memory import TableMemory, labelled
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.compiled.related import has_doubled
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import Basis, Plan, plan_under, vertex_plan
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the tables seen, (constraint, label) of those that are rows of the program, and the plan in play."""

    setting: Setting
    k: int
    counts: Counts
    memory: tuple[TableMemory, ...]
    rows: tuple[tuple[int, int], ...]
    policy: Floats
    basis: Basis | None
    solves: int
    infeasible: int
    renewed_at: Floats | None = None


@dataclass(frozen=True)
class OptCMDP:
    """Optimism by the extended linear program over the confidence box; `theory` has the paper's scales of one."""

    estimator: BoxEstimator = BoxEstimator.practical()
    epochs: bool = False
    hoeffding: bool = False

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
        epochs: bool = False,
        hoeffding: bool = False,
    ) -> OptCMDP:
        """Optimistic linear program every episode; the cautious program when costs are revealed."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return OptCMDP(box, epochs, hoeffding)

    @staticmethod
    def theory() -> OptCMDP:
        """The paper's confidence widths."""
        return OptCMDP(BoxEstimator())

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "extended linear program, replanned every episode",
            ("bandit", "full"),
            "O~(sqrt K) strong regret and violation for stochastic costs, no Slater condition",
            "Efroni, Mannor, Pirotta (2020), Algorithm 1",
        )

    def init(self, setting: Setting) -> State:
        """Plan with no data: everything looks good."""
        self.estimator.check(setting)
        seen = (TableMemory(None),) * setting.n_constraints
        uniform = uniform_policy(setting)
        return self._replan(State(setting, 0, Counts.empty(setting), seen, (), uniform, None, 0, 0))

    def policy(self, state: State) -> Floats:
        """The plan's policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count, remember a revealed table, replan."""
        memory = state.memory
        if isinstance(feedback, FullFeedback):
            memory = tuple(kept.meet(table) for kept, table in zip(memory, feedback.cost, strict=True))
        newer = replace(state, k=state.k + 1, counts=state.counts.add(feedback), memory=memory)
        if self.epochs and state.renewed_at is not None and not has_doubled(newer.counts.visits, state.renewed_at):
            return newer
        return self._replan(newer)

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def _replan(self, state: State) -> State:
        """Solve the program, adding violated tables until none is left out."""
        if self.epochs:
            state = replace(state, renewed_at=state.counts.visits)
        believed = self._believed(state)
        box = believed.region
        if state.setting.feedback == "bandit":
            return self._planned(state, self._plan(state, box, believed.reward, believed.cost), (), 1)
        planned = plan_under(
            labelled(state.memory), state.rows, state.setting.shape,
            lambda tables: self._plan(state, box, believed.reward, tables),
        )  # fmt: skip
        return self._planned(state, planned.plan, planned.rows, planned.solves)

    def _believed(self, state: State) -> Estimate[Box]:
        """The tables and the box; with `hoeffding` its half-width is scale sqrt(2 Lp / n) whatever p_hat is."""
        setting, counts, k = state.setting, state.counts, state.k
        if not self.hoeffding:
            return self.estimator.estimate(setting, counts, k)
        shared = counts.pooled() if self.estimator.stationary else counts
        n, p_hat = shared.departures[..., None], shared.transition_mean()
        Lp = log_term_transition(setting, k, self.estimator.delta)
        reach = self.estimator.transition_scale * np.sqrt(2.0 * Lp / np.maximum(n, 1.0))
        lower = np.where(n > 0.0, np.maximum(p_hat - reach, 0.0), 0.0)
        box = Box(*tighten(lower, np.where(n > 0.0, np.minimum(p_hat + reach, 1.0), 1.0)))
        return self.estimator.estimate_with(box, setting, counts, k)

    def _plan(self, state: State, box: Box, reward: Floats, tables: Floats) -> Plan:
        return vertex_plan(box.lower, box.upper, state.setting.mu, reward, tables, state.basis)

    def _planned(self, state: State, plan: Plan, rows: tuple[tuple[int, int], ...], solves: int) -> State:
        basis = plan.basis if plan.basis is not None else state.basis
        return replace(
            state, policy=plan.policy, rows=rows, basis=basis, solves=state.solves + solves,
            infeasible=state.infeasible + (not plan.feasible),
        )  # fmt: skip
