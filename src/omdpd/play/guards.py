"""Guards check a learner before it plays and while it plays.  Each fault is one sentence.

A learner's memory and time on a large problem are known before anything is allocated.  It keeps (a S + b S^2) H A
bytes, the form of its tables, with a and b from its states before the first episode on two small problems; what it
takes is a multiple of that, and so is an episode's time, times S, as steps factorise matrices of S rows.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from omdpd.learners.masked import name_of
from omdpd.learners.protocol import Learner
from omdpd.play.compiled.episode import are_laws
from omdpd.problem.arrays import ROW_SUM_TOLERANCE, Floats, InvalidInputError, as_policy
from omdpd.problem.machine_memory import GIGABYTE, refuse_beyond_memory
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box
from omdpd.storage.packing import pack

VERBS = ("init", "policy", "update", "report")
# Problems with fewer entries (h, s, a, s') are played without a question: 16 MB per table.
SMALL = 2**21
# The small problems whose states are measured.  (Four steps, because a kernel has none at the last: of two, tables that
# leave it out would seem half as large.)
TRIED_STEPS, TRIED_STATES, TRIED_ACTIONS = 4, (8, 48), 2
# Tables (H, S, A) beside a learner that keeps none, as was measured: its policy, as it is made and as it is played; and
# where it is judged the true occupancy, the sum of them, a round's reward, and two of costs for every constraint.
PLAYED_TABLES, JUDGED_TABLES, COST_TABLES = 2.5, 5.0, 2.0
# An update makes the next state beside the last one, and tables on the way: so many times what is kept, as was measured
# (2.5 to 3.4), and 22 to 24 times with a step over a confidence box.
COPIES, BOX_COPIES = 3.0, 24.0
# Seconds of an episode per number that is kept and per state (measured at S = 96: 1.2e-10, and 0.5 to 1.2e-9).
SECONDS, BOX_SECONDS = 1e-10, 1e-9
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
    """Return a learner unchanged, or refuse an object that cannot be one."""
    if isinstance(learner, type):
        raise InvalidInputError(
            f"learner is the class {learner.__name__}, but must be an object: {learner.__name__}(), or a preset of it"
        )
    if isinstance(learner, str):
        raise InvalidInputError(
            f"learner is the name {learner!r}, but must be an object, as OptCMDP() is after "
            "`from omdpd.learners import OptCMDP`: names stand in experiment files, in run and in compare"
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
    return np.require(as_policy(f"the policy of {name_of(learner)}", policy, shape), requirements=("C", "W"))


def measured(metrics: Mapping[str, Callable[..., Any]], *episode: Any) -> tuple[float, ...]:
    """The numbers that a user's own metrics give of an episode."""
    if not metrics:
        return ()
    return tuple(_number(name, metric(*episode)) for name, metric in metrics.items())


def _number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except TypeError:
        pass
    raise InvalidInputError(f"the metric {name!r} gave {value!r}, but must give a number")


def check_footprint(learner: Learner[Any], setting: Setting, judged: bool = True) -> None:
    """Refuse a problem that is too large for a learner on this machine, and announce one that will take long.

    A session plays without being `judged`, and needs less.
    """
    H, S, A = setting.shape
    if H * S * A * S < SMALL:
        return
    what = f"{name_of(learner)} on {S} states, {A} actions and {H} steps"
    keeps_tables = getattr(learner, "keeps_tables", None)
    if callable(keeps_tables) and not keeps_tables(setting):
        # What it keeps grows with what it visits, of which a small problem tells nothing; but its policy is a table.
        tables = JUDGED_TABLES + COST_TABLES * setting.n_constraints if judged else PLAYED_TABLES
        refuse_beyond_memory(what, tables * 8.0 * H * S * A, ADVICE)
        return
    needed = footprint(learner, setting)
    if needed is None:
        return
    refuse_beyond_memory(what, needed.n_bytes, ADVICE)
    if needed.seconds > LONG_EPISODE:
        size = f"about {needed.seconds:.0f} s per episode and {needed.n_bytes / GIGABYTE:.2g} GB"
        warnings.warn(f"{what} will take {size}; to make it lighter: {ADVICE}", LargeProblemWarning, stacklevel=4)


def footprint(learner: Learner[Any], setting: Setting) -> Footprint | None:
    """What a learner is expected to need; None for one that takes no small problems."""
    small = replace(setting.scaled(), horizon=TRIED_STEPS, n_actions=TRIED_ACTIONS, allowed=None)
    try:
        states = [learner.init(replace(small, n_states=S, initial=None)) for S in TRIED_STATES]
        low, high = (sum(array.nbytes for array in pack(state)[1].values()) for state in states)
        believed = learner.report(states[0]).believed
    except Exception:  # whatever a learner does on a small problem, it is the large one that was asked for
        return None
    sizes = np.array(TRIED_STATES, dtype=np.float64)
    linear, square = np.linalg.solve(np.stack([sizes, sizes**2], axis=1), np.array([low, high])).tolist()
    H, S, A = setting.shape
    kept = H * A / (TRIED_STEPS * TRIED_ACTIONS) * (max(linear, 0.0) * S + max(square, 0.0) * S**2)
    boxed = believed is not None and isinstance(believed.region, Box)
    copies, seconds = (BOX_COPIES, BOX_SECONDS) if boxed else (COPIES, SECONDS)
    return Footprint(copies * kept, seconds * kept / 8.0 * S)


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
