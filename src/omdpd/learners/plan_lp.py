"""PlanLP: the beliefs of `ProximalOMDPD.standard`, planned with by a linear program.

    max r~.q  subject to  d.q <= 0 for every believed or remembered table d with its margin,   q an occupancy of p~

Shared estimates, bonus and margin are those of the standard learner; only the mirror step is gone, and with it the
penalty: the shadow prices of the program take the place of the multipliers in the bonus (uncut, where the standard
learner cuts its own at w0 while all revealed tables are met).  Where no plan meets all tables the one whose largest
excess is least is played, and every table has the price at which the standard learner starts.  A reference of ours, to
tell what the mirror step is worth; without a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs import learning
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.revealed import TableMemory
from omdpd.beliefs.sharing import Evidence
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings, positive_integer
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import FEW_TABLES, Plan, best_policy, vertex_plan

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
    """A linear program with the standard learner's beliefs; `z` standard errors of safety on every cost."""

    z: float = 1.0
    exploration: float = 1.0
    stationary: bool = False
    memory: int = 8

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=("z", "exploration"))
        positive_integer("memory", self.memory)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "linear program with the estimates, the bonus and the margin of ProximalOMDPD.standard",
            ("bandit", "full"),
            "none",
            "a reference",
        )

    @property
    def estimator(self) -> SharingEstimator:
        """What is believed."""
        return SharingEstimator(self.z, self.exploration, self.stationary)

    def init(self, setting: Setting) -> State:
        """Plan with no data, no table and no margin."""
        self.estimator.check(setting)
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
        return self._replan(
            replace(
                state, k=state.k + 1, caution=caution, memory=memory,
                counts=learning.counts_after(state.counts, feedback),
                evidence=learning.evidence_after(state.evidence, state.counts, feedback),
            )
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def _replan(self, state: State) -> State:
        """Solve the program under the newest beliefs."""
        setting, caution, estimator = state.setting, state.caution, self.estimator
        beliefs = estimator.beliefs(setting, state.counts, state.evidence)
        believed = estimator.estimate(setting, state.counts, beliefs, state.prices, caution)
        tables = believed.cost
        if setting.feedback == "full":
            kept = [d for held in state.memory for d in held.by_label()]
            raised = [d + estimator.revealed_lift(setting, beliefs, caution, state.memory, d) for d in kept]
            tables = np.array(raised).reshape(-1, *setting.shape)
        plan = _plan(setting, beliefs.kernel, believed.reward, tables)
        each = plan.multipliers if plan.feasible else np.full(len(tables), UNMET)
        return replace(
            state, q=plan.occupancy, policy=plan.policy, prices=Prices(each, tables), excess=max(plan.violation, 0.0),
            solves=state.solves + 1, infeasible=state.infeasible + (not plan.feasible),
        )  # fmt: skip


def _plan(setting: Setting, p: Floats, reward: Floats, tables: Floats) -> Plan:
    """The best plan under p that meets the tables."""
    if len(tables) <= FEW_TABLES:
        return vertex_plan(p, p, setting.mu, reward, tables)
    return best_policy(p, setting.mu, reward, tables)
