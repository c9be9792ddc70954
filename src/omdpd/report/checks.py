"""What the parts of a stored run must be, whoever wrote them.

A right checksum says that a file is what was written, not that it says something.  Everything that reads results reads
through here, and what is odd is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omdpd.experiments.writer import FIRST_COLUMNS, LABELS, ROW_SCHEMA, as_written_now
from omdpd.problem.arrays import Floats
from omdpd.storage.atomic import RecordError
from omdpd.storage.manifest import Manifest
from omdpd.storage.npz import Arrays

# No measured number is larger: in the user's units and squared it still is one.
LARGEST = 1e75
# Sums of the same numbers in another order differ by rounding.
TOLERANCE = 1e-9
# Columns that every row fills with numbers; the others of ours may be empty.
FILLED = ("episode", "value", "value_sum", "violation_sum")

Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Name = Annotated[str, msgspec.Meta(max_length=4096)]
Named = TypeVar("Named")


class Scores(msgspec.Struct):
    """What tables, figures and pages take from a summary; those of 0.1 lack what has a default."""

    world: Name
    nature: Name
    learner: Name
    run: Name
    seed: Count
    episodes: Count
    regret: Number | None
    violation: Number
    weak_violation: Number
    lagrangian_regret: Number | None
    regret_exponent: Number | None
    violation_exponent: Number | None
    failures: Count
    solves: Count
    max_gap: Number
    seconds: Number
    comparator_value: Number | None
    comparator_exists: bool = True
    iterations: Count = 0
    infeasible: Count = 0
    saturations: Count = 0
    regret_positive: Number | None = None
    late_violation: Number | None = None
    early_episode: Count | None = None
    early_regret: Number | None = None
    early_violation: Number | None = None
    budget: list[Number] = []
    cost_scale: list[Number] = []
    reward_range: tuple[Number, Number] = (0.0, 1.0)


class Kept(msgspec.Struct, array_like=True, frozen=True):
    """What a commit keeps of a run on its way: the learner's state, sums, the tables met as ranges, and seconds."""

    state: Any = None
    totals: Any = None
    keys: tuple[tuple[Count, Count], ...] = ()
    seconds: Number = 0.0


def check_summary(file: Path, summary: Mapping[str, Any], run: str) -> None:
    """Refuse a summary without the names and numbers that tables and figures need, or of another run."""
    scores = _converted(file, summary, Scores)
    if run and scores.run != run:
        raise RecordError(f"{file} is damaged: its run is {scores.run[:80]!r}, no name of its folder")


def kept_of(file: Path, manifest: Manifest) -> Kept:
    """What a commit keeps, as far as pages read it."""
    progress = manifest.tree.get("progress") if isinstance(manifest.tree, dict) else None
    return Kept() if progress is None else _converted(file, progress, Kept)


def checked_rows(path: Path, rows: pa.Table, values: Floats, summary: Mapping[str, Any] | None) -> pa.Table:
    """Rows with today's names; refused unless they are rows, agree with the values and lead to the summary."""
    _check_columns(path, rows)
    episodes = rows["episode"].to_numpy()
    if episodes[0] < 1 or episodes[-1] > len(values) or np.any(np.diff(episodes) <= 0):
        raise RecordError(f"the rows of {path} are of other episodes than its values")
    if not np.array_equal(rows["value"].to_numpy(), values[episodes - 1]):
        raise RecordError(f"the rows of {path} have other values than its values")
    total, violation = float(values[: episodes[-1]].sum()), float(rows["violation_sum"][-1].as_py())
    if not _close(float(rows["value_sum"][-1].as_py()), total, len(values)):
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


def is_number(value: Any) -> bool:
    """Whether a value of a stored state is a number that can be shown."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def field_of(tree: Any, name: str) -> Any:
    """The first field of this name in a stored state, however deep; None without one."""
    waiting = [tree]
    for item in waiting:  # which grows meanwhile
        fields = item.get("fields") if isinstance(item, dict) else None
        if isinstance(fields, dict):
            if name in fields:
                return fields[name]
            waiting += fields.values()
    return None


def array_of(tree: Any, name: str, arrays: Arrays, shape: tuple[int, ...]) -> Any:
    """The numbers of this shape that a stored state has under this name; None without any."""
    found = field_of(tree, name)
    known = found.get("array") if isinstance(found, dict) else None
    array = arrays.get(known) if isinstance(known, str) else None
    if array is None or array.shape != shape or array.dtype.kind not in "if":
        return None
    return array if np.abs(array).max(initial=0.0) <= 2**53 else None


def float_columns(rows: pa.Table) -> dict[str, Floats]:
    """Checked rows as arrays; `excess` becomes (rows, constraints), what is undefined becomes nan."""
    made: dict[str, Floats] = {}
    for name in rows.column_names:
        column = rows[name].combine_chunks()
        if name == "excess":
            made[name] = column.flatten().to_numpy().reshape(rows.num_rows, -1)
        else:
            made[name] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return made


def _check_columns(path: Path, rows: pa.Table) -> None:
    """Our columns with their types, each filled as it must be, then metrics of the user's own."""
    names = ROW_SCHEMA.names if "optimism" in rows.column_names else FIRST_COLUMNS
    own = rows.schema.names[len(names) :]
    wanted = [ROW_SCHEMA.field(name).type for name in names] + [pa.float64()] * len(own)
    taken = {*ROW_SCHEMA.names, *LABELS, ""}
    if [*names, *own] != rows.column_names or wanted != rows.schema.types or len({*own} - taken) < len(own):
        raise RecordError(f"{path} is damaged: its rows have other columns than rows have")
    flat = rows["excess"].combine_chunks().flatten()
    lengths = pc.min_max(pc.list_value_length(rows["excess"])).as_py()
    if not rows.num_rows or lengths["min"] != lengths["max"] or not lengths["min"] or rows["excess"].null_count:
        raise RecordError(f"{path} is damaged: its rows do not have a cost for every constraint")
    for column in (*(rows[name] for name in FILLED), flat):
        bounds = pc.min_max(column, skip_nulls=False).as_py()
        if column.null_count or not (bounds["min"] >= -LARGEST and bounds["max"] <= LARGEST) or _has_nan(column):
            raise RecordError(f"{path} is damaged: a number of its rows is missing, or is none")


def _has_nan(column: Any) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def _close(stated: float, found: float, n_episodes: int) -> bool:
    return abs(stated - found) <= TOLERANCE * max(1.0, abs(found), n_episodes)


def _converted(file: Path, content: Any, kind: type[Named]) -> Named:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"{file} is damaged: {str(error)[:300]}") from None
