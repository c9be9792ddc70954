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

from omdpd.experiments.one_run import measures_of
from omdpd.experiments.registry import PlainRun, Registry, UnknownNameError
from omdpd.experiments.spec import Kind, LearnerSpec, NatureSpec, RunSpec, WorldSpec, label_of
from omdpd.experiments.writer import as_written_now
from omdpd.play.judging import EXPONENT_START
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.report.statistics import Growth, half_width
from omdpd.report.units import cost_unit
from omdpd.storage.atomic import RecordError
from omdpd.storage.run_folder import RunFolder

KEYS = ("world", "nature", "learner")
# What tables show of a summary.
NUMBERS = (
    "regret", "violation", "weak_violation", "lagrangian_regret", "regret_exponent", "violation_exponent", "failures",
    "seconds", "comparator_value",
)  # fmt: skip
# What a summary says of the user's units.
MEASURES = ("budget", "cost_scale", "reward_range")


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run as its folder tells it: what ran, its state in a word, how far it came, and its scores once it is finished.

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
    summary: dict[str, Any] | None

    def cmdp(self) -> CMDP | None:
        """The world that it is played in; None where that cannot be built here."""
        if self.spec is None:
            return None
        try:
            return self.spec.world.build(np.random.default_rng(self.spec.stream(0)))
        except Exception:  # a stranger's world may raise anything
            return None

    def measures(self) -> dict[str, Any]:
        """Budget, scales of costs and range of rewards, as a summary has them.

        Before there is one the world is built for it, unless nothing was played or the run failed, perhaps because of
        its world: then nothing.
        """
        if self.summary is not None:
            return {key: self.summary[key] for key in MEASURES if key in self.summary}
        cmdp = self.cmdp() if self.state == "unfinished" and self.episodes else None
        return {} if cmdp is None else measures_of(cmdp)


@dataclass(frozen=True)
class Mean:
    """A mean over runs and the half-width of its 95 % interval (None for too few runs)."""

    mean: float
    half: float | None

    def __str__(self) -> str:
        return f"{self.mean:.4g}" + ("" if self.half is None else f" ± {self.half:.2g}")


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
            tables.append(_labelled(as_written_now(rows), run))
    if not tables:
        raise InvalidInputError(f"{folder} holds no rows yet")
    return pa.concat_tables(tables, promote_options="default")


def summaries(folder: Path) -> list[dict[str, Any]]:
    """The summaries of the finished runs."""
    return [with_early(run.summary, run.folder) for run in stored_runs(folder) if run.summary is not None]


def with_early(summary: dict[str, Any], record: RunFolder) -> dict[str, Any]:
    """A summary with the sums where exponents start to be measured; those of 0.1 did not hold them, but their rows do.

    (What a summary lacks for another reason stays missing: a run of three episodes has no such start.)
    """
    if "early_episode" in summary:
        return summary
    k, rows = summary["episodes"] // EXPONENT_START, record.rows()
    early: dict[str, Any] = {"early_episode": None, "early_regret": None, "early_violation": None}
    if rows is not None and k in (episodes := rows["episode"].to_numpy()):
        place, best = int(np.searchsorted(episodes, k)), summary["comparator_value"]
        early["early_episode"] = k
        early["early_violation"] = float(rows["violation_sum"][place].as_py())
        early["early_regret"] = None if best is None else k * best - float(rows["value_sum"][place].as_py())
    return summary | early


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
    half = half_width(np.array(values, dtype=np.float64))
    return Mean(float(np.mean(values)), None if half is None else float(half))


def growth_of(records: Sequence[Mapping[str, Any]], key: str) -> Growth | None:
    """How the mean of `regret` or `violation` over runs grows; None where some run has no such number."""
    lengths = {(record["early_episode"], record["episodes"]) for record in records}
    values = [(record[f"early_{key}"], record[key]) for record in records]
    if len(lengths) > 1 or any(None in pair for pair in values):
        return None
    early, late = np.array(values, dtype=np.float64).T
    return Growth(*lengths.pop(), early, late)


def budget_text(group: Sequence[Mapping[str, Any]]) -> str:
    """The budgets of some runs, one number per constraint; a range where they differ, nothing where they are unknown.

    >>> budget_text([{"budget": [2.0]}, {"budget": [2.5]}])
    '2..2.5'
    """
    return _ranges([record.get("budget") for record in group])


def budget_note(group: Sequence[Mapping[str, Any]]) -> str:
    """The budgets in the user's units, and by what costs are divided in a table where they cannot be shown so.

    >>> budget_note([{"budget": [66.5, 2.0], "cost_scale": [13.7, 1.0]}])
    '66.5, 2; here costs ÷ 13.7, 1'
    """
    budget = budget_text(group)
    divided = divided_text(group)
    if not budget or not divided:
        return budget
    return f"{budget}; here costs ÷ {divided}"


def divided_text(group: Sequence[Mapping[str, Any]]) -> str:
    """By what costs are divided where every constraint has a scale of its own, one number each; else nothing."""
    if all(cost_unit(record) is not None for record in group):
        return ""
    return _ranges([record.get("cost_scale") for record in group])


def _ranges(lists: Sequence[Sequence[float] | None]) -> str:
    """Numbers of several runs, place by place; a range where they differ, nothing where some run has none."""
    if any(numbers is None for numbers in lists):
        return ""
    pairs = ((min(column), max(column)) for column in zip(*(numbers or () for numbers in lists), strict=True))
    return ", ".join(f"{low:.4g}" if low == high else f"{low:.4g}..{high:.4g}" for low, high in pairs)


def _holds_run(path: Path) -> bool:
    """Whether a path is a folder with a run; links are refused, because results never hold any."""
    if path.is_symlink():
        raise RecordError(f"{path} is a link, and links are not followed")
    return path.is_dir() and os.path.lexists(path / "spec.toml")


def _stored(folder: RunFolder) -> StoredRun:
    checked = folder.check()
    asked = stored_spec(folder.path / "spec.toml", checked.spec)
    summary = checked.summary
    if summary is not None:
        _check_summary(folder.path / "summary.json", summary)
    state = "finished" if summary is not None else "failed" if checked.error is not None else "unfinished"
    done = asked.plain.episodes if summary is not None else checked.episodes
    plain, spec = asked.plain, asked.run
    return StoredRun(*asked.labels, plain.seed, plain.episodes, spec, folder, state, done, summary)


@dataclass(frozen=True)
class StoredSpec:
    """What a stored run was asked: as its file says it, and its world, nature and learner as far as they are known.

    `parts` has None where nothing here knows the name; `labels` has words for it all the same.
    """

    plain: PlainRun
    parts: tuple[WorldSpec | None, NatureSpec | None, LearnerSpec | None]
    labels: tuple[str, str, str]

    @property
    def run(self) -> RunSpec | None:
        """The run, if all its names are known here."""
        world, nature, learner = self.parts
        if world is None or nature is None or learner is None:
            return None
        return self.plain.run(world, nature, learner)


def stored_spec(file: Path, content: Mapping[str, Any]) -> StoredSpec:
    """What the spec of a stored run says; the file is named where it says no run."""
    try:
        plain = msgspec.convert(content, PlainRun)
        (world, one), (nature, two), (learner, three) = (_known_part(kind, table) for kind, table in plain.parts)
        return StoredSpec(plain, (world, nature, learner), (one, two, three))
    except (msgspec.ValidationError, InvalidInputError) as error:
        raise RecordError(f"{file} does not hold a run of this version: {error}") from None


def _known_part(kind: Kind, table: Mapping[str, Any]) -> tuple[Any, str]:
    """A part's spec (None where nothing here knows its name) and its label."""
    try:
        spec = Registry.installed().parse(kind, table)
    except UnknownNameError:
        settings = {key: value for key, value in table.items() if key != "name"}
        return None, label_of(str(table.get("name", "?")), settings)
    return spec, spec.label


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
