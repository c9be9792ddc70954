"""Reading results: the runs of a folder, their rows as one table, and means with intervals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omdpd.experiments.registry import PlainRun, Registry, UnknownNameError, run_of
from omdpd.experiments.spec import RunSpec, label_of
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import RecordError
from omdpd.storage.run_folder import RunFolder

KEYS = ("world", "nature", "learner")
# What tables show of a summary.
NUMBERS = (
    "regret", "violation", "weak_violation", "lagrangian_regret", "regret_exponent", "violation_exponent", "failures",
    "seconds", "comparator_value",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run as its folder tells it: what ran, its state in a word, and how far it came.

    `spec` is None where a part has a name that nothing here knows: reading results needs no code of anybody's.
    """

    world: str
    nature: str
    learner: str
    seed: int
    n_episodes: int
    spec: RunSpec | None
    folder: RunFolder
    state: str
    episodes: int


@dataclass(frozen=True)
class Mean:
    """A mean over runs and the half-width of its 95 % interval (Student's; 0 for a single run)."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half:.2g}"


def stored_runs(folder: Path) -> list[StoredRun]:
    """The runs under a folder of results, in a fixed order."""
    runs = folder / "runs"
    if not runs.is_dir():
        raise InvalidInputError(f"{folder} holds no results: there is no folder {runs}")
    found = [_stored(RunFolder(path, path.name)) for path in sorted(runs.iterdir()) if _holds_run(path)]
    return sorted(found, key=lambda run: (run.world, run.nature, run.learner, run.seed))


def stored_run(path: Path) -> StoredRun:
    """The run that one folder holds."""
    return _stored(RunFolder(path, path.absolute().name))


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
    n = len(values)
    if any(value is None for value in values):
        return None
    if n == 1:
        return Mean(float(values[0]), 0.0)
    from scipy.special import stdtrit  # the quantile of Student's law

    half = stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(n)
    return Mean(float(np.mean(values)), float(half))


def _holds_run(path: Path) -> bool:
    """Whether a path is a folder with a run; links are refused, because results never hold any."""
    if path.is_symlink():
        raise RecordError(f"{path} is a link, and links are not followed")
    return path.is_dir() and os.path.lexists(path / "spec.toml")


def _stored(folder: RunFolder) -> StoredRun:
    file = folder.path / "spec.toml"
    folder.check()
    content = folder.spec()
    try:
        plain = msgspec.convert(content, PlainRun)
        spec = _known(content)
    except (msgspec.ValidationError, InvalidInputError) as error:
        raise RecordError(f"{file} does not hold a run of this version: {error}") from None
    if spec is None:
        labels = [label_of(str(table.pop("name", "?")), table) for _, table in plain.parts]
    else:
        labels = [spec.world.label, spec.nature.label, spec.learner.label]
    summary = folder.summary
    if summary is not None:
        _check_summary(folder.path / "summary.json", summary)
    state = "finished" if summary is not None else "failed" if folder.error is not None else "unfinished"
    done = plain.episodes if summary is not None else folder.episodes
    world, nature, learner = labels
    return StoredRun(world, nature, learner, plain.seed, plain.episodes, spec, folder, state, done)


def _known(content: Mapping[str, Any]) -> RunSpec | None:
    """A run whose names are known here; None for another."""
    try:
        return run_of(content, Registry.installed())
    except UnknownNameError:
        return None


def _check_summary(file: Path, summary: Mapping[str, Any]) -> None:
    """Refuse a summary without the names and numbers that tables and figures need."""
    for key in (*KEYS, "run"):
        if not isinstance(summary.get(key), str):
            raise RecordError(f"{file} is damaged: it has no {key}")
    if Path(summary["run"]).name != summary["run"] or summary["run"] in (".", ".."):
        raise RecordError(f"{file} is damaged: its run {summary['run']!r} is no name of a folder")
    for key in NUMBERS:
        value = summary.get(key, "")
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise RecordError(f"{file} is damaged: it has no number {key}")


def _labelled(rows: pa.Table, run: StoredRun) -> pa.Table:
    """The rows with columns that say whose they are."""
    labels = {
        "run": run.folder.path.name, "world": run.world, "nature": run.nature, "learner": run.learner,
        "seed": run.seed,
    }  # fmt: skip
    best = (run.folder.summary or {}).get("comparator_value")
    regret = None if best is None else rows["episode"].to_numpy() * best - rows["value_sum"].to_numpy()
    table = rows.append_column("regret", pa.array([None] * rows.num_rows if regret is None else regret, pa.float64()))
    for place, (name, value) in enumerate(labels.items()):
        table = table.add_column(place, name, pa.array([value] * rows.num_rows))
    return table
