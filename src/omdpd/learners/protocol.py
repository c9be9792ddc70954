"""Every learner has three verbs on explicit state, and a report for the record.

    state = learner.init(setting)
    policy = learner.policy(state)
    state = learner.update(state, feedback)

A learner is a frozen value of settings; it owns no environment, path, clock, logger or seed.  One that draws random
numbers says so with a class attribute ``draws = True``, and takes those of episode k from (seed of the setting, k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.problem.records import fast_init
from omdpd.problem.setting import Feedback, FeedbackKind, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.regions import Region
from omdpd.storage.packing import classes_of, hints_of, pack, unpack


@fast_init
@dataclass(frozen=True)
class Certificate:
    """Bounds a learner can state while it runs (where its region contains the truth and costs are met by q*).

    `bound` is (C + C') / eta_{k+1} plus what inexact solves can add; `regret` bounds sum_j r~_j.(q* - q_j) and
    `violation` bounds the cumulative violation of each constraint under the learner's own occupancies, if there is a
    policy that was believed safe in every episode: nobody can check that while a run goes on.
    """

    bound: float
    regret: float
    violation: float


@dataclass(frozen=True, eq=False)
class PlanInputs:
    """What the next policy was planned with: r~ (H, S, A), d~ (I, H, S, A) and the learner's own occupancy q."""

    reward: Floats
    cost: Floats
    occupancy: Floats


@fast_init
@dataclass(frozen=True)
class Promise:
    """What the plans of all episodes so far promised: sum_k r~_k.q_k, and sum_k max_i [d_{k,i}.q_k]^+."""

    value: float
    violation: float


@fast_init
@dataclass(frozen=True)
class Report:
    """What a learner tells the record after an episode; a number that does not apply is None.

    `believed` is what the learner plans the next episode with; the evaluation compares it with the truth.  A learner
    that also reports its `plan`, or keeps the sums of a `promise`, has its losses split into estimation and
    optimisation error (`play/ledger.py`).  `loss` is what the policy in play can lose at most against the best safe
    one, as the data see it (docs/theory.md, 11); it may be some episodes old.
    """

    log: SolveLog = SolveLog()
    step_size: float | None = None
    weight: float | None = None
    infeasible: int = 0
    saturations: int = 0
    ignored: float = 0.0
    certificate: Certificate | None = None
    believed: Estimate[Region] | None = None
    plan: PlanInputs | None = None
    promise: Promise | None = None
    loss: float | None = None


@dataclass(frozen=True, eq=False)
class Shown:
    """What a page may show of a learner beside its rows, kept with every commit of a run.

    `visits` (H, S, A) are those of the `counts` of a state, where it has such a table.
    """

    solves: int
    iterations: int
    failures: int
    max_gap: float
    infeasible: int
    saturations: int
    visits: Floats | None


@dataclass(frozen=True)
class Card:
    """One line about a learner for tables: what it needs, what it promises, where it is from.

    `assumptions` are what the guarantee (or the learner itself) needs beyond the feedback.
    """

    summary: str
    feedback: tuple[FeedbackKind, ...]
    guarantee: str
    source: str
    assumptions: str = "none"


class Told(NamedTuple):
    """Which of the first numbers of a compiled state are what a row of a run tells; what is not a number is untold."""

    step_size: int
    weight: int
    certified_regret: int
    certified_violation: int
    planned_value_sum: int
    planned_violation_sum: int
    loss_bound: int


class Compiled(NamedTuple):
    """A learner whose update is compiled, for a loop that plays many episodes in one call.

    ``step(dials, at, vector, states, actions, rewards, costs, tables)`` changes the vector in place by one episode and
    answers 1, or something else if it cannot be learnt so (then nothing was changed, and the verbs have to).  It is
    shown what `Feedback` holds, and nothing else.  `places` are where policy, r~, p~ and d~ lie in the vector (d~ at -1
    where costs are revealed); `state` is the state as a value, and holds the vector.
    """

    step: Callable[..., Any]
    dials: Floats
    at: Integers
    vector: Floats
    places: Integers
    told: Told
    state: Any


State = TypeVar("State")


class Learner(Protocol[State]):
    """The protocol; see the module's docstring."""

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        ...

    def init(self, setting: Setting) -> State:
        """The state before the first episode."""
        ...

    def policy(self, state: State) -> Floats:
        """The policy (H, S, A) to play next: a new, writable array that the caller may keep and change.

        It shares no memory with the state: whatever is done with it, the state stays what it was.
        """
        ...

    def update(self, state: State, feedback: Feedback) -> State:
        """The state after one more episode."""
        ...

    def report(self, state: State) -> Report:
        """Numbers for the record."""
        ...


def shown_of(learner: Learner[Any], state: Any) -> Shown:
    """What a page may show of a learner with this state, by its report."""
    told, counts = learner.report(state), getattr(state, "counts", None)
    log, visits = told.log, counts.visits if isinstance(counts, Counts) else None
    if hasattr(learner, "visits"):
        visits = learner.visits(state)
    return Shown(log.solves, log.iterations, log.failures, log.max_gap, told.infeasible, told.saturations, visits)


def check_storable(learner: Learner[Any], state: Any) -> None:
    """Refuse a learner whose state would not come back from a file as what it is, before anything is learnt."""
    try:
        classes = stored_classes(learner)
        unpack(*pack(state), classes)
    except (InvalidInputError, TypeError) as error:
        raise InvalidInputError(f"{type(learner).__name__} cannot be kept on disk: {error}") from None


def restored(learner: Learner[Any], state: Any) -> Any:
    """A state that came back from a file as the learner keeps it now; an earlier version may have kept it otherwise."""
    mended = getattr(learner, "restored", None)
    return state if mended is None else mended(state)


def stored_classes(learner: Learner[Any]) -> dict[str, type]:
    """The classes that this learner's stored state may hold, from the type that its `init` promises to return."""
    if hasattr(learner, "stored_classes"):
        own: dict[str, type] = learner.stored_classes()
        return own
    name = type(learner).__name__
    kind = hints_of(learner.init, f"{name}.init").get("return")
    if isinstance(kind, TypeVar):  # the `init` of a skeleton, whose state is what the learner starts with
        kind = hints_of(learner.start, f"{name}.start").get("return")  # type: ignore[attr-defined]
    if kind is None:
        raise InvalidInputError(f"{name}.init does not say what it returns: annotate it with the type of the state")
    return classes_of(kind, f"the state of {name}")
