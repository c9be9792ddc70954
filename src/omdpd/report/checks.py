"""Checks hold the parts of a stored run to what they must be.

A right checksum says that a file is what was written, not that it says something.  Everything that reads results reads
through here, and what is odd is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np

from omdpd.experiments.writer import TYPES, as_written_now
from omdpd.play.rows import COLUMNS, LABELS, SUMMARY, begun_with
from omdpd.problem.arrays import Floats
from omdpd.storage.atomic import RecordError
from omdpd.storage.manifest import Manifest
from omdpd.storage.npz import Arrays
from omdpd.storage.sealed import converted

# No measured number is larger: in the user's units and squared it still is one.
LARGEST = 1e75
# Sums of the same numbers in another order differ by rounding.
TOLERANCE = 1e-9
# Columns that every row fills with numbers; the others of ours may be empty.
FILLED = tuple(name for name, column in COLUMNS.items() if column.filled and column.kind != "numbers")

Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Name = Annotated[str, msgspec.Meta(max_length=4096)]
Named = TypeVar("Named")


HINTS: dict[str, Any] = {
    "whole": Count,
    "number": Number,
    "numbers": tuple[Number, ...],
    "limits": tuple[Number | None, ...],
    "range": tuple[Number, Number],
    "truth": bool,
    "text": Name,
}
# What tables, figures and pages take from a summary; those of an earlier format lack some of it.
SCORES: Any = msgspec.defstruct(
    "Scores",
    [
        (name, hint, column.before) if column.since > 2 else (name, hint)
        for name, column in SUMMARY.items()
        for hint in [HINTS[column.kind] if column.filled else HINTS[column.kind] | None]
    ],
    kw_only=True,
)


class Shown(msgspec.Struct, frozen=True):
    """What a commit says for pages (`learners.protocol.Shown`); nothing in one of an earlier version."""

    solves: Count = 0
    iterations: Count = 0
    failures: Count = 0
    max_gap: Number = 0.0
    infeasible: Count = 0
    saturations: Count = 0
    visits: Any = None


class Sums(msgspec.Struct, frozen=True):
    """What pages read of the sums of a run (`play.judging.Totals`)."""

    occupancy: Any = None


class Packed(msgspec.Struct, Generic[Named], frozen=True):
    """A value that was packed with the names of its fields."""

    fields: Named


class StoredProgress(msgspec.Struct, array_like=True, frozen=True):
    """What a commit keeps of a run on its way: sums, the tables met as ranges, seconds, and what is for pages.

    The learner's state, which nobody reads here, and what else a run goes on with stand among them.
    """

    state: Any = None
    totals: Packed[Sums] | None = None
    keys: tuple[tuple[Count, Count], ...] = ()
    seconds: Number = 0.0
    ledger: Any = None
    weights: Any = None
    packed: Packed[Shown] | None = None

    @property
    def occupancy(self) -> Any:
        """Where the sum of true occupancies is."""
        return None if self.totals is None else self.totals.fields.occupancy

    @property
    def shown(self) -> Shown:
        """What is for pages."""
        return Shown() if self.packed is None else self.packed.fields


def check_summary(file: Path, summary: Mapping[str, Any], run: str) -> None:
    """Refuse a summary without the names and numbers that tables and figures need, or of another run."""
    scores: Any = converted(summary, SCORES, file)
    if run and scores.run != run:
        raise RecordError(f"{file} is damaged: its run is {scores.run[:80]!r}, no name of its folder")


def progress_of(file: Path, manifest: Manifest) -> StoredProgress:
    """What a commit keeps, as far as pages read it."""
    progress = manifest.tree.get("progress") if isinstance(manifest.tree, dict) else None
    return StoredProgress() if progress is None else converted(progress, StoredProgress, file)


def checked_rows(path: Path, rows: Arrays, values: Floats, summary: Mapping[str, Any] | None) -> Arrays:
    """Rows with today's names; refused unless they are rows, agree with the values and lead to the summary."""
    _check_columns(path, rows)
    episodes = rows["episode"]
    if episodes[0] < 1 or episodes[-1] > len(values) or np.any(np.diff(episodes) <= 0):
        raise RecordError(f"the rows of {path} are of other episodes than its values")
    if not np.array_equal(rows["value"], values[episodes - 1]):
        raise RecordError(f"the rows of {path} have other values than its values")
    total, violation = float(values[: episodes[-1]].sum()), float(rows["violation_sum"][-1])
    if not _close(float(rows["value_sum"][-1]), total, len(values)):
        raise RecordError(f"the values of {path} have another sum than its last row says")
    if summary is not None and not (
        summary["episodes"] == len(values) and _close(summary["violation"], violation, len(values))
    ):
        raise RecordError(f"{path / 'summary.json'} does not sum up the rows of its run")
    return as_written_now(rows)


def checked_policies(path: Path, kept: Arrays, n_episodes: int) -> Arrays:
    """What a run kept on the way; refused unless it is one policy and one number of each kind per kept episode."""
    episodes, policies = kept.get("episodes"), kept.get("policies")
    if episodes is None or policies is None or episodes.dtype.kind != "i" or episodes.ndim != 1 or not len(episodes):
        raise RecordError(f"{path} is damaged: its policies are not those of its episodes")
    if episodes[0] < 1 or episodes[-1] > n_episodes or np.any(np.diff(episodes) <= 0):
        raise RecordError(f"{path} is damaged: its policies are of other episodes than were played")
    if any(array.dtype.kind not in "if" or array.shape[:1] != episodes.shape for array in kept.values()):
        raise RecordError(f"{path} is damaged: what it kept with its policies is not one number for each")
    if policies.ndim != 4 or not (policies.min(initial=0.0) >= 0.0 and abs(policies.sum(-1) - 1.0).max() < 1e-3):
        raise RecordError(f"{path} is damaged: its policies are no probabilities")
    return kept


def stored_table(reference: Any, arrays: Arrays, shape: tuple[int, ...]) -> Any:
    """The numbers of this shape that a packed value refers to; None if there are none."""
    known = reference.get("array") if isinstance(reference, dict) else None
    array = arrays.get(known) if isinstance(known, str) else None
    if array is None or array.shape != shape or array.dtype.kind not in "if":
        return None
    return array if np.abs(array).max(initial=0.0) <= 2**53 else None


def _check_columns(path: Path, rows: Arrays) -> None:
    """Refuse all but our columns with their types, each filled as it must be, then metrics of the user's own."""
    names = begun_with(tuple(rows))
    own = tuple(rows)[len(names) :]
    kinds = [COLUMNS[name].kind for name in names] + ["number"] * len(own)
    known = [(np.dtype(TYPES[kind]), 1 + (kind == "numbers")) for kind in kinds]
    found = [(column.dtype, column.ndim) for column in rows.values()]
    if [*names, *own] != [*rows] or known != found or {*own} & {*COLUMNS, *LABELS, ""}:
        raise RecordError(f"{path} is damaged: its rows have other columns than rows have")
    if not rows["excess"].size:
        raise RecordError(f"{path} is damaged: its rows do not have a cost for every constraint")
    truths = [rows[name] for name in names if COLUMNS[name].kind == "truth"]
    wrong = [~((truth == 0) | (truth == 1) | np.isnan(truth)) for truth in truths]
    wrong += [~(np.abs(rows[name]) <= LARGEST) for name in (*FILLED, "excess")]
    if any(each.any() for each in wrong):
        raise RecordError(f"{path} is damaged: a number of its rows is missing or invalid")


def _close(stated: float, found: float, n_episodes: int) -> bool:
    return abs(stated - found) <= TOLERANCE * max(1.0, abs(found), n_episodes)
