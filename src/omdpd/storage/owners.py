"""Whose session a folder holds: its name, its learner and setting in words, and the episodes that it started from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omdpd.problem.setting import Feedback
from omdpd.storage.atomic import RecordError, read_noted
from omdpd.storage.entries import feedback_of
from omdpd.storage.npz import arrays_of_npz
from omdpd.storage.sealed import SEALED, converted, read_sealed

# The layout of a journal: what is written, and what can still be read.
JOURNAL, READABLE = 2, (1, 2)

# A learner and a setting in words: every entry by its name.
Facts = Mapping[str, str]
Arrays = Mapping[str, np.ndarray[Any, Any]]

# The episodes that a session started from, and what its words say where there were none.
LOGGED, NOTHING = "logged.npz", "nothing"
# The arrays of its learner and setting; their tree is in session.json.
OWNER = "owner.npz"


@dataclass(frozen=True)
class Owner:
    """Whose session it is: fingerprints with and without what was logged, in words; what was logged, its use, names.

    `packed` are learner and setting (`storage.packing`).
    """

    fingerprint: str
    without_logs: str
    facts: Facts
    logged: Sequence[Feedback] = ()
    start: str = ""
    names: tuple[str, ...] = ()
    packed: tuple[Any, Arrays] = (None, {})


class Claim(msgspec.Struct, forbid_unknown_fields=True):
    """What session.json says."""

    run: str
    fingerprint: str
    facts: dict[str, str] = {}  # sessions up to 0.2 have none
    journal: int = 1
    without_logs: str = ""  # where there were logs; so is the checksum of their file, and what was done with them
    logged_sha256: str = ""
    start: str = ""
    names: tuple[str, ...] = ()  # of the costs in the logs
    packed: Any = None  # learner and setting; older sessions have none
    packed_sha256: str = ""

    def __post_init__(self) -> None:
        if self.journal not in READABLE:
            raise ValueError(f"its journal is of layout {self.journal}: go on with the version that wrote it")
        if not re.fullmatch("[0-9a-f]{32}", self.run):
            raise ValueError("it does not name its session")


def logs_of_session(path: Path) -> tuple[tuple[Feedback, ...], Any, tuple[str, ...]] | None:
    """The episodes that a session started from, as its learner saw them, how it did, and names; None if from none."""
    found = claim_of(path)
    if found is None or not found.logged_sha256:
        return None
    file = path / LOGGED
    stored = arrays_of_npz(read_noted(file, found.logged_sha256), str(file))
    rows = zip(*stored.values(), strict=True)
    return tuple(feedback_of(dict(zip(stored, row, strict=True)), str(file)) for row in rows), found.start, found.names


def packed_owner(path: Path) -> tuple[Any, Arrays]:
    """Learner and setting of the session in a folder, packed; a tree of None where it does not say them."""
    found = claim_of(path)
    if found is None or found.packed is None:
        return None, {}
    file = path / OWNER
    return found.packed, arrays_of_npz(read_noted(file, found.packed_sha256), str(file))


def claim_of(path: Path) -> Claim | None:
    """Whose session a folder holds; None if it holds none."""
    file = path / "session.json"
    content = read_sealed(file)
    if content is None:
        return None
    if content.get("format") != SEALED:
        raise RecordError(
            f"{file} has format {content.get('format')!r}, but this version reads format {SEALED}: go on with the "
            "version that wrote it, or begin a session in a new folder"
        )
    return converted({key: value for key, value in content.items() if key != "format"}, Claim, file)


def difference(there: Facts, here: Facts) -> str:
    """What two sessions do not have in common, in words."""
    names = [name for name in [*there, *(here.keys() - there.keys())] if there.get(name) != here.get(name)]
    if not there or not names:
        return "the version that began it kept no words of what differs; compare learner, setting and what was `logged`"
    told = [f"{name} is {there.get(name, 'not there')}, not {here.get(name, 'there')}" for name in sorted(names)]
    return "; ".join(told[:3]) + (f"; and {len(told) - 3} more" if len(told) > 3 else "")
