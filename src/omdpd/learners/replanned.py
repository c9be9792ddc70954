"""Learners that count, and plan again after every episode: the first of the four skeletons.

A learner of this kind is its settings, its card, what it needs, and two methods:

    start(setting) -> state         before anything is planned (`unplanned`, or a state that keeps more)
    program(state) -> Program       the linear program of the next episode; None: play the safe policy

One that plans otherwise has `planned(state) -> state` in the place of `program`.  What else an episode changes, a dual
or tables that are remembered, is `met(state, feedback) -> state`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.memory import TableMemory
from omdpd.learners.factors import WIDTHS
from omdpd.learners.needs import Needs, SafePolicy, check_needs, safe_policy_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import UNCLIPPED, Boxed, Preset
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import Basis, Plan, plan_under, vertex_plan
from omdpd.solvers.regions import Box
from omdpd.storage.packing import WHERE_SET


class Program(NamedTuple):
    """max reward.q subject to cost_i.q <= 0 over the occupancies of the kernels in a box."""

    box: Box
    reward: Floats
    cost: Floats


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts and the policy in play; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats


@dataclass(frozen=True, eq=False)
class State(Counted):
    """Besides, how many programs had no solution, and how many there were (None in states of 0.2: one a plan)."""

    infeasible: int = 0
    solves: int | None = field(default=None, metadata=WHERE_SET)


@dataclass(frozen=True, eq=False, kw_only=True)
class Remembering(State):
    """Besides, the tables seen, (constraint, label) of those that are rows of the program, and where it ended last."""

    memory: tuple[TableMemory, ...]
    rows: tuple[tuple[int, int], ...] = ()
    basis: Basis | None = None

    @staticmethod
    def first(setting: Setting) -> dict[str, Any]:
        """What every first state of this kind has: no table."""
        return before_plans(setting) | {"memory": (TableMemory(None),) * setting.n_constraints}


S = TypeVar("S", bound=Counted)
P = TypeVar("P", bound=State)
M = TypeVar("M", bound=Remembering)


class Planning(Generic[S]):
    """The verbs of a learner that plans again after every episode."""

    card: ClassVar[Card]
    needs: ClassVar[Needs] = Needs()

    def start(self, setting: Setting) -> S:
        """The state before anything is planned."""
        raise NotImplementedError

    def met(self, state: S, feedback: Feedback) -> S:
        """The state with what an episode changes besides the counts."""
        return state

    def planned(self, state: S) -> S:
        """The state with the policy of the next episode."""
        raise NotImplementedError

    def init(self, setting: Setting) -> S:
        """The safe policy where one is known, else the plan with no data."""
        check_needs(self, setting)
        start = self.start(setting)
        return start if self.needs.safe else self.planned(start)

    def policy(self, state: S) -> Floats:
        """The plan's policy."""
        return state.policy.copy()

    def update(self, state: S, feedback: Feedback) -> S:
        """Count and plan again."""
        return self.planned(replace(self.met(state, feedback), k=state.k + 1, counts=state.counts.add(feedback)))


class Replanned(Planning[P]):
    """The verbs of a learner whose plan is a linear program."""

    safe: SafePolicy | None

    def program(self, state: P) -> Program | None:
        """The program of the next episode."""
        raise NotImplementedError

    def planned(self, state: P) -> P:
        """Solve the program; where it has no solution the safe policy is played, or else the least violating one."""
        program = self.program(state)
        if program is None:
            return replace(state, policy=self.known(state.setting).policy)
        box, reward, cost = program
        plan = vertex_plan(box.lower, box.upper, state.setting.mu, reward, cost)
        falls_back = self.needs.safe and not plan.feasible
        policy = self.known(state.setting).policy if falls_back else plan.policy
        return solved(replace(state, policy=policy), 1, plan.feasible)

    def known(self, setting: Setting) -> SafePolicy:
        """The policy that is known to be safe."""
        return safe_policy_of(self, self.safe, setting)

    def report(self, state: P) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves or 0), infeasible=state.infeasible)

    def restored(self, state: P) -> P:
        """Convert a stored state to the form of this version: 0.2 did not count programs where every plan had one."""
        plans = state.k if self.needs.safe else state.k + 1
        return replace(state, solves=plans) if state.solves is None else state


def solved(state: P, solves: int, feasible: bool) -> P:
    """The state with `solves` more programs counted, and one more without a solution unless the last was feasible."""
    return replace(state, solves=(state.solves or 0) + solves, infeasible=state.infeasible + (not feasible))


def before_plans(setting: Setting) -> dict[str, Any]:
    """What every first state of a linear program has: no data, and a policy that knows nothing."""
    uniform = uniform_policy(setting)
    return {"setting": setting, "k": 0, "counts": Counts.empty(setting), "policy": uniform, "solves": 0}


def unplanned(learner: Any, setting: Setting) -> State:
    """The first state of a learner that keeps nothing else: the safe policy where one is known."""
    known = {"policy": learner.known(setting).policy} if learner.needs.safe else {}
    return State(**before_plans(setting) | known)


def remembered(state: M, feedback: Feedback) -> M:
    """The state with the tables that an episode revealed."""
    if not isinstance(feedback, FullFeedback):
        return state
    return replace(
        state, memory=tuple(kept.meet(table) for kept, table in zip(state.memory, feedback.cost, strict=True))
    )


def planned_under(
    state: M, tables: Mapping[tuple[int, int], Floats], solve: Callable[[Floats], Plan]
) -> tuple[M, Plan]:
    """The state with a plan under all the tables, of which violated ones become rows until none is left out."""
    found = plan_under(tables, state.rows, state.setting.shape, solve)
    plan, basis = found.plan, state.basis if found.plan.basis is None else found.plan.basis
    newer = replace(state, policy=plan.policy, rows=found.rows, basis=basis)
    return solved(newer, found.solves, plan.feasible), plan


@dataclass(frozen=True)
class OverBox(Boxed, Replanned[State]):
    """An extended program over all kernels of a box, which is planned before the first episode, too."""

    factors = WIDTHS
    start = unplanned
    theory = Preset("The published confidence widths.", "", **UNCLIPPED)
