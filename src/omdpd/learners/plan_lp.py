"""PlanLP: the beliefs of `ProximalOMDPD.settling`, planned with by a linear program.

    max r~.q  subject to  d.q <= 0 for every believed or remembered table d with its margin,   q an occupancy of p~

Shared estimates, bonus and margin are those of the default of 0.2; only the mirror step is gone, and with it the
penalty: the shadow prices of the program take the place of the multipliers in the bonus (uncut, where the standard
learner cuts its own at w0 while all revealed tables are met).  Where no plan meets all tables the one whose largest
excess is least is played, and every table has the price at which the standard learner starts.  A reference of ours, to
tell what the mirror step is worth; without a guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Evidence, counted
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.standard import Prices
from omdpd.learners.factors import margin, reward_width
from omdpd.learners.protocol import Card, Report
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.stored import believed_by
from omdpd.problem.arrays import Floats, check_settings, positive_integer
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import plan_in_kernel

# The price of a table that no plan meets: w0 of the standard learner.
UNMET = 10.0


@dataclass(frozen=True, eq=False)
class State:
    """Counts, evidence, what margins depend on, the tables seen, and the plan in play with its prices."""

    setting: Setting
    k: int
    counts: Counts
    evidence: Evidence
    caution: Caution
    memory: tuple[TableMemory, ...]
    q: Floats
    policy: Floats
    prices: Prices
    excess: float
    solves: int
    infeasible: int


@dataclass(frozen=True)
class PlanLP:
    """A linear program with the beliefs of `ProximalOMDPD.settling`; `z` standard errors of safety on every cost."""

    z: float = 1.0
    exploration: float = 1.0
    stationary: bool = False
    memory: int = 8

    factors = (reward_width("exploration"), margin("z"))

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=("z", "exploration"))
        positive_integer("memory", self.memory)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "linear program with the estimates, the bonus and the margin of ProximalOMDPD.settling",
            ("bandit", "full"),
            "none",
            "a reference",
        )

    def init(self, setting: Setting) -> State:
        """Plan with no data, no table and no margin."""
        none = np.zeros(setting.shape)
        return self._replan(
            State(
                setting, 0, Counts.empty(setting), Evidence.empty(setting), Caution(),
                (TableMemory(self.memory),) * setting.n_constraints, none, none,
                Prices(np.zeros(0), np.zeros((0, *setting.shape))), 0.0, 0, 0,
            )
        )  # fmt: skip

    def policy(self, state: State) -> Floats:
        """The plan's policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count, score, remember what was revealed, replan."""
        revealed, memory = isinstance(feedback, FullFeedback), state.memory
        caution = state.caution.after_plan(state.q, state.excess, state.setting.horizon, revealed)
        if isinstance(feedback, FullFeedback):
            caution = caution.after_tables(memory, feedback.cost)
            memory = tuple(kept.meet(table) for kept, table in zip(memory, feedback.cost, strict=True))
        counts, evidence = counted(state.counts, state.evidence, [feedback])
        return self._replan(
            replace(state, k=state.k + 1, caution=caution, memory=memory, counts=counts, evidence=evidence)
        )

    def counted(self, state: State, logged: Sequence[Feedback]) -> State:
        """A state that has counted logged episodes, and learnt nothing else from them."""
        counts, evidence = counted(state.counts, state.evidence, logged)
        return replace(state, counts=counts, evidence=evidence)

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def _replan(self, state: State) -> State:
        """Solve the program under the newest beliefs."""
        setting = state.setting
        dials = Dials(
            setting.feedback == "bandit", 0.0, self.z, self.exploration, self.stationary, UNMET, 1.0, UNMET, True, 1.0,
            True, self.memory,
        )  # fmt: skip
        believed, tables = believed_by(
            dials, setting, state.counts, state.evidence, state.caution, state.memory, state.policy, state.prices
        )
        plan = plan_in_kernel(believed.region.transition, setting.mu, believed.reward, tables)
        each = plan.multipliers if plan.feasible else np.full(len(tables), UNMET)
        return replace(
            state, q=plan.occupancy, policy=plan.policy, prices=Prices(each, tables), excess=max(plan.violation, 0.0),
            solves=state.solves + 1, infeasible=state.infeasible + (not plan.feasible),
        )  # fmt: skip
