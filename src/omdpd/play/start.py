"""Where a session starts: from episodes that were logged before it, and each episode from a start of its own.

**Logged episodes**, whoever played them, tell what the world is like.  A learner that keeps counts has them counted;
the last one it learns from as if it had played it, so that its first policy is planned with all of them.  (Multipliers
and steps are about its own play, and begin anew.)  A learner without counts learns from all of them in turn.

**A start that carries over** is the law of the next episode's first state.  Learners plan the next episode in `update`,
with the law that their state's setting holds, so it is put there before.  Guarantees are stated for one law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from functools import reduce
from typing import Any

import numpy.typing as npt

from omdpd.beliefs.counts import Counts
from omdpd.learners.protocol import Learner
from omdpd.problem.arrays import Floats, InvalidInputError, as_law
from omdpd.problem.setting import Feedback, Setting


def started(learner: Learner[Any], setting: Setting, logged: Sequence[Feedback]) -> Any:
    """The state before the first episode, with what logged episodes tell."""
    state = learner.init(setting)
    if not logged:
        return state
    *before, last = logged
    if hasattr(learner, "counted"):
        state = learner.counted(state, before)
    elif isinstance(getattr(state, "counts", None), Counts):
        state = replace(state, counts=reduce(Counts.add, before, state.counts))
    else:
        for feedback in before:
            state = learner.update(state, feedback)
    return learner.update(state, last)


def with_next_start(learner: Learner[Any], state: Any, initial: Floats) -> Any:
    """The state with the law of the next episode's first state."""
    if hasattr(state, "with_start"):
        return state.with_start(initial)
    setting = getattr(state, "setting", None)
    if not is_dataclass(state) or isinstance(state, type) or not isinstance(setting, Setting):
        raise InvalidInputError(
            f"{type(learner).__name__} does not keep its setting in its state, so an episode cannot start otherwise"
        )
    return replace(state, setting=replace(setting, initial=initial))


def as_start(initial: npt.ArrayLike, setting: Setting) -> Floats:
    """The law of a first state."""
    return as_law("initial", initial, ["state"], [setting.n_states])
