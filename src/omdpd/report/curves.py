"""Records to curves: numbers that a figure or a page can draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.play.history import History
from omdpd.play.judging import EXPONENT_START, growth_exponent
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.report.statistics import bootstrap_band
from omdpd.storage.atomic import RecordError
from omdpd.storage.run_folder import RunFolder

# Points per curve: enough for a wide figure, few enough for a small file.
POINTS = 300


@dataclass(frozen=True, eq=False)
class Band:
    """A mean curve over runs with its 95 % bootstrap band and the exponent of the mean."""

    episodes: Floats
    mean: Floats
    low: Floats
    high: Floats
    exponent: float | None
    n_runs: int


@dataclass(frozen=True, eq=False)
class Curves:
    """One learner under one nature; `regret` is None where no comparator exists."""

    learner: str
    nature: str
    violation: Band
    regret: Band | None


def load_curves(folder: Path, summaries: Sequence[Mapping[str, Any]]) -> list[Curves]:
    """The curves of every (learner, nature), in the order of the summaries."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    several = len({summary["world"] for summary in summaries}) > 1
    for summary in summaries:
        place = f"{summary['world']}, {summary['nature']}" if several else summary["nature"]
        groups.setdefault((summary["learner"], place), []).append(summary)
    return [_curves(folder, learner, nature, group) for (learner, nature), group in groups.items()]


def band(episodes: Floats, curves: Floats) -> Band:
    """The band of curves (runs, points) over `episodes` (points,), thinned to a few hundred points."""
    n = len(episodes)
    places = np.unique(np.linspace(0, n - 1, min(POINTS, n)).astype(np.int64))
    low, high = bootstrap_band(curves[:, places], np.random.default_rng(0))
    mean: Floats = curves.mean(axis=0)
    K = int(episodes[-1])
    early = int(np.searchsorted(episodes, K // EXPONENT_START))
    exponent = growth_exponent(int(episodes[early]), float(mean[early]), K, float(mean[-1]))
    return Band(episodes[places], mean[places], low, high, exponent, len(curves))


def _curves(folder: Path, learner: str, nature: str, group: Sequence[Mapping[str, Any]]) -> Curves:
    violations, regrets = [], []
    episodes = np.zeros(0)
    for summary in group:
        rows = RunFolder(folder / summary["run"], summary["run"]).rows()
        if rows is None:
            raise RecordError(f"{folder / summary['run']} has a summary, but no rows")
        episodes = rows["episode"].to_numpy().astype(np.float64)
        violations.append(rows["violation_sum"].to_numpy())
        if summary["comparator_value"] is not None:
            regrets.append(episodes * summary["comparator_value"] - rows["value_sum"].to_numpy())
    regret = band(episodes, np.stack(regrets)) if len(regrets) == len(group) else None
    return Curves(learner, nature, band(episodes, np.stack(violations)), regret)


def curves_of(label: str, nature: str, group: Sequence[History]) -> Curves:
    """The curves of histories with one label and nature, seeds of one another."""
    lengths = {len(h.rows) for h in group}
    if len(lengths) > 1:
        raise InvalidInputError(f"the runs of {label!r} under {nature!r} have different lengths: {sorted(lengths)}")
    episodes = np.arange(1.0, lengths.pop() + 1.0)
    regrets = [h.regret for h in group if h.regret is not None]
    regret = band(episodes, np.stack(regrets)) if len(regrets) == len(group) else None
    return Curves(label, nature, band(episodes, np.stack([h.violation for h in group])), regret)
