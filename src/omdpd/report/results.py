"""Reading results: the runs of a folder, their rows as one table, and means with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.learners import NON_LEARNERS
from omdpd.play.judging import EXPONENT_START
from omdpd.play.rows import regret_curve
from omdpd.play.units import Units
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.tables import NO_LIMIT
from omdpd.report.columns import Columns, stacked
from omdpd.report.labels import KEYS
from omdpd.report.statistics import Growth, half_width, power_of
from omdpd.report.stored import StoredRun, mixed_code, stored_runs
from omdpd.storage.run_folder import RunFolder


class MixedCodeWarning(UserWarning):
    """Runs of one learner come from different contents of a plugin file."""


@dataclass(frozen=True)
class Mean:
    """A mean over runs and the half-width of its 95 % interval (None for too few runs)."""

    mean: float
    half: float | None

    def __str__(self) -> str:
        return f"{self.mean:.4g}" + ("" if self.half is None else f" ± {self.half:.2g}")


def load_runs(folder: str | Path) -> Columns:
    """Every recorded episode of every run as one table of NumPy columns, with the run's names and seed among them.

    ``load_runs(folder)["regret"]`` is an array; ``.to_frame()`` is a frame of pandas and ``.to_arrow()`` a table of
    Arrow, where those are installed.
    """
    tables, runs = [], stored_runs(Path(folder))
    for line in mixed_code(runs):
        warnings.warn(line, MixedCodeWarning, stacklevel=2)
    for run in runs:
        rows = run.committed_rows()
        if rows is not None:
            tables.append(_labelled(rows, run))
    if not tables:
        raise InvalidInputError(f"{folder} holds no rows yet")
    return stacked(tables)


def summaries(folder: Path, warn: Callable[[str], None] = lambda line: None) -> list[dict[str, Any]]:
    """The summaries of the finished runs; `warn` is told what is wrong with a mean over them."""
    finished = [(run, run.summary) for run in stored_runs(folder) if run.summary is not None]
    for line in mixed_code(run for run, _ in finished):
        warn(line)
    return [with_early(summary, run.folder) for run, summary in finished]


def with_early(summary: dict[str, Any], record: RunFolder) -> dict[str, Any]:
    """A summary with the sums where exponents start to be measured; those of 0.1 did not hold them, but their rows do.

    (What a summary lacks for another reason stays missing: a run of three episodes has no such start.)
    """
    if "early_episode" in summary:
        return summary
    k, rows = summary["episodes"] // EXPONENT_START, StoredRun(record.path, record.run, summary=summary).rows
    early: dict[str, Any] = {"early_episode": None, "early_regret": None, "early_violation": None}
    if k in (episodes := rows["episode"]):
        place, best = int(np.searchsorted(episodes, k)), summary["comparator_value"]
        early["early_episode"] = k
        early["early_violation"] = float(rows["violation_sum"][place])
        early["early_regret"] = regret_curve(best, k, float(rows["value_sum"][place]))
    return summary | early


def grouped(records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """Summaries by world, nature and learner (with its settings), in the order of the records."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in KEYS), []).append(record)
    return groups


def mean_of(records: Sequence[Mapping[str, Any]], key: str) -> Mean | None:
    """The mean of a column over runs; None where some run has no such number."""
    values: list[Any] = [record.get(key) for record in records]
    if any(value is None for value in values):
        return None
    half = half_width(np.array(values, dtype=np.float64))
    return Mean(float(np.mean(values)), None if half is None else float(half))


def seeds_text(counts: Iterable[int]) -> str:
    """Over how many seeds some means are.

    >>> seeds_text([1]), seeds_text([3, 2, 3])
    ('1 seed', '2 to 3 seeds')
    """
    known = {*counts}
    low, high = min(known), max(known)
    return f"{high} seed{'s' * (high > 1)}" if low == high else f"{low} to {high} seeds"


def growth_of(records: Sequence[Mapping[str, Any]], key: str) -> Growth | None:
    """How the mean of `regret` or `violation` over runs grows; None where some run has no such number."""
    lengths: set[tuple[Any, Any]] = {(record.get("early_episode"), record["episodes"]) for record in records}
    values = [(record.get(f"early_{key}"), record[key]) for record in records]
    if len(lengths) > 1 or any(None in pair for pair in (*lengths, *values)):
        return None
    early, late = np.array(values, dtype=np.float64).T
    return Growth(*lengths.pop(), early, late)


def late_violations(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence wherever a learner still violates at the end, or its violation grows fast."""
    found = []
    for (world, nature, learner), group in grouped(records).items():
        growth = growth_of(group, "violation")
        slope = 0.0 if growth is None or growth.slope is None else growth.slope
        share = float(np.mean([record["late_violation"] / record["horizon"] for record in group]))
        if learner not in NON_LEARNERS and ((slope >= 0.75 and share >= 0.001) or share >= 0.02):
            grows = "" if (power := power_of(growth)) == "-" else f" grows like {power};"
            end = f" in the last tenth {100 * share:.2f} % of H per episode"
            found.append(f"{learner} on {world}, {nature}: violation{grows}{end}")
    return found


def budget_text(group: Sequence[Mapping[str, Any]]) -> str:
    """The budgets of some runs, one number per constraint; a range where they differ, nothing where they are unknown.

    >>> budget_text([{"budget": [2.0, None]}, {"budget": [2.5, None]}])
    '2..2.5, no limit'
    """
    budgets = [record.get("budget") for record in group]
    return _ranges([each if each is None else [inf if b is None else b for b in each] for each in budgets])


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
    if all(Units.of_record(record).common_scale is not None for record in group):
        return ""
    return _ranges([record.get("cost_scale") for record in group])


def _ranges(lists: Sequence[Sequence[float] | None]) -> str:
    """Numbers of several runs, place by place; a range where they differ, nothing where some run has none."""
    if any(numbers is None for numbers in lists) or len({len(numbers or ()) for numbers in lists}) > 1:
        return ""
    pairs = ((min(column), max(column)) for column in zip(*(numbers or () for numbers in lists), strict=True))
    each = (
        (NO_LIMIT if low == inf else f"{low:.4g}", NO_LIMIT if high == inf else f"{high:.4g}") for low, high in pairs
    )
    return ", ".join(low if low == high else f"{low}..{high}" for low, high in each)


def _labelled(rows: Columns, run: StoredRun) -> Columns:
    """The rows with columns that say whose they are."""
    world, nature, learner = run.labels
    names = {"run": run.id, "world": world, "nature": nature, "learner": learner}
    labels = {key: np.full(rows.n_rows, name, dtype=object) for key, name in names.items()}
    best = (run.summary or {}).get("comparator_value")
    regret = regret_curve(np.nan if best is None else best, rows["episode"], rows["value_sum"])
    return Columns(labels | {"seed": np.full(rows.n_rows, run.label.seed)} | rows | {"regret": regret})
