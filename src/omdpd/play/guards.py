"""What is checked before a learner is let loose, and what is checked of it while it plays.  Each fault is one sentence.

A learner's memory and time on a large problem are known before anything is allocated: it is tried on two small problems
of the same kind, where what it keeps, what it takes meanwhile and how long an episode takes are measured.  What it
keeps is fitted by (a S + b S^2) H A, the form of its tables; what it takes is as many times as much as on the larger of
the two problems; an episode's time is that of the small problem per byte, times S / S' as steps factorise matrices of S
rows.  The estimate is rough, and said to be.
"""

from __future__ import annotations

import inspect
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from omdpd.learners.protocol import Learner
from omdpd.play.compiled.episode import are_laws
from omdpd.problem.arrays import ROW_SUM_TOLERANCE, Floats, InvalidInputError, as_policy
from omdpd.problem.memory import GIGABYTE, refuse_beyond_memory
from omdpd.problem.setting import BanditFeedback, Feedback, FullFeedback, Setting, Trajectory
from omdpd.storage.packing import pack

VERBS = ("init", "policy", "update", "report")
# Problems with fewer entries (h, s, a, s') are played without a question: 16 MB per table.
SMALL = 2**21
# The sizes that a learner is tried on, and how many episodes there (the fastest counts: the first may compile).
# (Steps, because a kernel has none at the last: of two, tables that leave it out would seem half as large.)
TRIED_STEPS, TRIED_STATES, TRIED_ACTIONS, TRIED_EPISODES = 4, (8, 48), 2, 3
# Tables (H, S, A) beside a learner that keeps none: its policy, the true occupancy, the sum of them, and a round's
# reward and cost (with the budget taken off, without) while it is judged.
POLICY_TABLES = 6
# An update makes the next state beside the last one, and tables on the way: so many times what is kept, at least, and
# where it cannot be measured because somebody traces memory already.
MIN_COPIES, COPIES = 2.0, 3.0
# Episodes that take longer than this, in seconds, are announced.
LONG_EPISODE = 5.0
ADVICE = (
    "lump states together, shorten the horizon, play closed parts on their own (omdpd.worlds.components.parts_of), "
    "or take a learner that keeps no transitions (TripleQ)"
)


class LargeProblemWarning(UserWarning):
    """A problem on which every episode will take long."""


@dataclass(frozen=True)
class Footprint:
    """What a learner is expected to need on a problem: bytes of memory, and seconds per episode."""

    n_bytes: float
    seconds: float


def as_learner(learner: Any) -> Learner[Any]:
    """The learner as it is, or the sentence that says why it is none."""
    if isinstance(learner, type):
        raise InvalidInputError(
            f"learner is the class {learner.__name__}, but must be an object: {learner.__name__}(), or a preset of it"
        )
    if isinstance(learner, str):
        raise InvalidInputError(
            f"learner is the name {learner!r}, but must be an object, as ProximalOMDPD.standard() is: "
            "names stand in experiment files and in compare"
        )
    if inspect.isroutine(learner):
        name = learner.__qualname__
        raise InvalidInputError(f"learner is the function {name}, but must be what it returns: write {name}()")
    for verb in VERBS:
        if not callable(getattr(learner, verb, None)):
            name = type(learner).__name__
            raise InvalidInputError(f"{name} has no {verb}: a learner has {', '.join(VERBS)} (omdpd.learners.protocol)")
    _check_settings(learner)
    return learner


def played_policy(learner: Learner[Any], state: Any, shape: tuple[int, int, int]) -> Floats:
    """The policy that a learner wants to play: a table (H, S, A) whose rows are laws, or which entry is wrong."""
    policy = learner.policy(state)
    plain = isinstance(policy, np.ndarray) and policy.dtype == np.float64 and policy.shape == shape
    if plain and policy.flags.carray and are_laws(policy, ROW_SUM_TOLERANCE):
        return policy
    return np.require(as_policy(f"the policy of {type(learner).__name__}", policy, shape), requirements=("C", "W"))


def measured(metrics: Mapping[str, Callable[..., Any]], *episode: Any) -> tuple[float, ...]:
    """The numbers that a user's own metrics give of an episode."""
    if not metrics:
        return ()
    return tuple(_number(name, metric(*episode)) for name, metric in metrics.items())


def _number(name: str, value: Any) -> float:
    try:
        return float(value) if not isinstance(value, str | bytes) else _no_number(name, value)
    except TypeError:
        return _no_number(name, value)


def _no_number(name: str, value: Any) -> NoReturn:
    raise InvalidInputError(f"the metric {name!r} gave {value!r}, but must give a number")


def check_footprint(learner: Learner[Any], setting: Setting) -> None:
    """Refuse a problem that is too large for a learner on this machine, and announce one that will take long."""
    H, S, A = setting.shape
    if H * S * A * S < SMALL:
        return
    what = f"{type(learner).__name__} on {S} states, {A} actions and {H} steps"
    keeps_tables = getattr(learner, "keeps_tables", None)
    if callable(keeps_tables) and not keeps_tables(setting):
        # What it keeps grows with what it visits, of which a small problem tells nothing; but its policy is a table.
        refuse_beyond_memory(what, POLICY_TABLES * 8.0 * H * S * A, ADVICE)
        return
    needed = footprint(learner, setting)
    if needed is None:
        return
    refuse_beyond_memory(what, needed.n_bytes, ADVICE)
    if needed.seconds > LONG_EPISODE:
        size = f"about {needed.seconds:.0f} s per episode and {needed.n_bytes / GIGABYTE:.2g} GB"
        warnings.warn(f"{what} will take {size}; to make it lighter: {ADVICE}", LargeProblemWarning, stacklevel=4)


def footprint(learner: Learner[Any], setting: Setting) -> Footprint | None:
    """What a learner is expected to need; None for one that cannot be tried on small problems."""
    try:
        small = [replace(_small(setting), n_states=S, initial=None) for S in TRIED_STATES]
        tried = [_tried(learner, each) for each in small]
        peak = _peak(learner, small[-1])
    except Exception:  # whatever a learner does on a small problem, it is the large one that was asked for
        return None
    (low, fast), (high, slow) = tried
    sizes = np.array(TRIED_STATES, dtype=np.float64)
    linear, square = np.linalg.solve(np.stack([sizes, sizes**2], axis=1), np.array([low, high])).tolist()
    H, S, A = setting.shape
    more = H * A / (TRIED_STEPS * TRIED_ACTIONS)
    kept = more * (max(linear, 0.0) * S + max(square, 0.0) * S**2)
    per_byte = max(slow - fast, 0.0) / max(high - low, 1.0)
    copies = COPIES if peak is None else max(peak / max(high, 1.0), MIN_COPIES)
    return Footprint(copies * kept, kept * per_byte * S / TRIED_STATES[-1])


def _small(setting: Setting) -> Setting:
    return replace(setting.scaled(), horizon=TRIED_STEPS, n_actions=TRIED_ACTIONS)


def _tried(learner: Learner[Any], setting: Setting) -> tuple[float, float]:
    """The bytes that a learner keeps on a small problem, and the seconds of its fastest episode."""
    rng = np.random.default_rng(0)
    state, spent = learner.init(setting), []
    for _ in range(TRIED_EPISODES):
        began = time.process_time()
        learner.policy(state)
        state = learner.update(state, _some_feedback(rng, setting))
        spent.append(time.process_time() - began)
    return float(sum(array.nbytes for array in pack(state)[1].values())), min(spent)


def _peak(learner: Learner[Any], setting: Setting) -> float | None:
    """The most bytes that a learner has at a time in a few episodes, all compiled already; None if it cannot be told.

    In a thread of its own, because solvers keep their working memory by thread and would find it there.
    """
    if tracemalloc.is_tracing():
        return None
    tracemalloc.start()
    try:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(_tried, learner, setting).result()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def _some_feedback(rng: np.random.Generator, setting: Setting) -> Feedback:
    """An episode that means nothing."""
    H, S, A = setting.shape
    path = Trajectory(rng.integers(S, size=H), rng.integers(A, size=H))
    if setting.feedback == "bandit":
        return BanditFeedback(path, rng.random(H), rng.uniform(-1.0, 1.0, (setting.n_constraints, H)))
    return FullFeedback(path, rng.random(H), rng.uniform(-1.0, 1.0, (setting.n_constraints, H, S, A)))


def _check_settings(owner: Any) -> None:
    """Refuse text where a learner, or a dataclass in it, declares a number."""
    if not is_dataclass(owner) or isinstance(owner, type):
        return
    try:
        hints = get_type_hints(type(owner))
    except (NameError, TypeError):  # a stranger's annotations may name what is not there
        return
    for field in fields(owner):
        value = getattr(owner, field.name, None)
        kinds = set(_kinds(hints.get(field.name)))
        if (
            value is not None
            and kinds
            and kinds <= {int, float, bool}
            and not isinstance(value, int | float | np.number | np.bool_)
        ):
            raise InvalidInputError(f"{type(owner).__name__}'s {field.name} is {value!r}, but must be a number")
        _check_settings(value)


def _kinds(hint: Any) -> Iterator[Any]:
    """The types that a hint allows, None left out."""
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _kinds(part)
    elif hint is not NoneType and hint is not None:
        yield hint
