"""Entries of a session's journal as bytes: a whole episode (arrays in NPZ), or an event of one (JSON)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.setting import BanditFeedback, Feedback, FullFeedback, Trajectory
from omdpd.storage.atomic import RecordError, record_of
from omdpd.storage.npz import Arrays, arrays_of_npz

# An entry that tells of a whole episode begins so; any other is JSON.
NPZ_MARK = b"PK"


class Whole(NamedTuple):
    """A whole episode: its feedback, and the law of the next episode's first state if it was given."""

    feedback: Feedback
    initial: Floats | None


# What one entry says: a whole episode, or an event of one (`play.books`).
Entry = Whole | dict[str, Any]


def tells_an_episode(entry: Entry) -> bool:
    """Whether an entry is the last one of an episode that is learnt from."""
    return isinstance(entry, Whole) or entry.get("do") == "end"


def encoded(entry: Entry) -> bytes:
    """The bytes of an entry."""
    if not isinstance(entry, Whole):
        return msgspec.json.encode(entry)
    feedback, initial = entry
    buffer = io.BytesIO()
    start = {} if initial is None else {"initial": initial}
    np.savez(buffer, allow_pickle=False, **arrays_of(feedback), **start)
    return buffer.getvalue()


def arrays_of(feedback: Feedback) -> Arrays:
    """Feedback as named arrays."""
    trajectory = feedback.trajectory
    costs = {"costs": feedback.costs} if isinstance(feedback, BanditFeedback) else {"cost": feedback.cost}
    return {"states": trajectory.states, "actions": trajectory.actions, "rewards": feedback.rewards} | costs


def stacked(logged: Sequence[Feedback]) -> Arrays:
    """Whole episodes of one kind as arrays with an episode in every row."""
    each = [arrays_of(feedback) for feedback in logged]
    return {name: np.array([arrays[name] for arrays in each]) for name in each[0]}


def decoded(entry: bytes, name: str) -> Entry:
    """Decode an entry; `name` says which one in a refusal."""
    if not entry.startswith(NPZ_MARK):
        return record_of(Path(name), entry)
    stored = arrays_of_npz(entry, name)
    return Whole(feedback_of(stored, name), stored.get("initial"))


def feedback_of(stored: Arrays, name: str) -> Feedback:
    """Feedback from its arrays."""
    try:
        trajectory = Trajectory(stored["states"], stored["actions"])
        if "cost" in stored:
            return FullFeedback(trajectory, stored["rewards"], stored["cost"])
        return BanditFeedback(trajectory, stored["rewards"], stored["costs"])
    except KeyError as error:
        raise RecordError(f"{name} holds no {error.args[0]}, so it is no feedback") from None
