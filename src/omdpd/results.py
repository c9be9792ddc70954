"""Reading results: the runs of a folder, their rows as one table, and means with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omdpd.arrays import InvalidInputError
from omdpd.records import RecordError, RunFolder
from omdpd.specs import RunSpec

KEYS = ("world", "nature", "learner")


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run as its folder tells it: its spec, its state in a word, and how far it came."""

    spec: RunSpec
    folder: RunFolder
    state: str
    episodes: int


@dataclass(frozen=True)
class Mean:
    """A mean over runs and the half-width of its 95 % interval (normal approximation); None where undefined."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half:.2g}"


def stored_runs(folder: Path) -> list[StoredRun]:
    """The runs under a folder of results, in a fixed order."""
    runs = folder / "runs"
    if not runs.is_dir():
        raise InvalidInputError(f"{folder} holds no results: there is no folder {runs}")
    found = [_stored(RunFolder(path)) for path in sorted(runs.iterdir()) if (path / "spec.toml").is_file()]
    return sorted(
        found, key=lambda run: (run.spec.world.name, run.spec.nature.name, run.spec.learner.name, run.spec.seed)
    )


def load_runs(folder: str | Path) -> pa.Table:
    """Every recorded episode of every run as one Arrow table, with the run's names, seed and settings as columns.

    ``load_runs(folder).to_pandas()`` and ``polars.from_arrow(load_runs(folder))`` work as they are.
    """
    tables = []
    for run in stored_runs(Path(folder)):
        rows = run.folder.rows()
        if rows is not None:
            tables.append(_labelled(rows, run))
    if not tables:
        raise InvalidInputError(f"{folder} holds no rows yet")
    return pa.concat_tables(tables, promote_options="default")


def summaries(folder: Path) -> list[dict[str, Any]]:
    """The summaries of the finished runs."""
    found = [run.folder.summary for run in stored_runs(folder)]
    return [summary for summary in found if summary is not None]


def grouped(records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """Summaries by world, nature and learner (with its settings), in the order of the records."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in KEYS), []).append(record)
    return groups


def mean_of(records: Sequence[Mapping[str, Any]], key: str) -> Mean | None:
    """The mean of a column over runs; None where some run has no such number."""
    values = [record[key] for record in records]
    if any(value is None for value in values):
        return None
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Mean(float(np.mean(values)), 1.96 * spread / float(np.sqrt(len(values))))


def _stored(folder: RunFolder) -> StoredRun:
    file = folder.path / "spec.toml"
    try:
        spec = msgspec.toml.decode(file.read_bytes(), type=RunSpec)
    except (msgspec.MsgspecError, ValueError) as error:
        raise RecordError(f"{file} does not hold a run of this version: {error}") from None
    if folder.summary is not None:
        return StoredRun(spec, folder, "finished", spec.episodes)
    done = folder.episodes
    return StoredRun(spec, folder, "failed" if folder.error is not None else "unfinished", done)


def _labelled(rows: pa.Table, run: StoredRun) -> pa.Table:
    """The rows with columns that say whose they are."""
    spec = run.spec
    labels = {
        "run": spec.id, "world": spec.world.label, "nature": spec.nature.label, "learner": spec.learner.label,
        "seed": spec.seed,
    }  # fmt: skip
    best = (run.folder.summary or {}).get("comparator_value")
    regret = None if best is None else rows["episode"].to_numpy() * best - rows["value_sum"].to_numpy()
    table = rows.append_column("regret", pa.array([None] * rows.num_rows if regret is None else regret, pa.float64()))
    for place, (name, value) in enumerate(labels.items()):
        table = table.add_column(place, name, pa.array([value] * rows.num_rows))
    return table
