"""Records to curves: numbers that a figure or a page can draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.arrays import Floats
from omdpd.evaluation import bootstrap_band, growth_exponent
from omdpd.records import RunFolder

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
    for summary in summaries:
        groups.setdefault((summary["learner"], summary["nature"]), []).append(summary)
    return [_curves(folder, learner, nature, group) for (learner, nature), group in groups.items()]


def cumulative(folder: Path, summary: Mapping[str, Any]) -> tuple[Floats, Floats | None]:
    """Cumulative strong violation and cumulative regret of one run, per episode."""
    rows = RunFolder(folder / summary["run"]).rows()
    assert rows is not None, "a finished run has rows"
    excess = np.stack(rows["excess"].to_numpy())
    violation = np.cumsum(np.maximum(excess.max(axis=1), 0.0))
    best = summary["comparator_value"]
    return violation, None if best is None else np.cumsum(best - rows["value"].to_numpy())


def band(curves: Floats) -> Band:
    """The band of equally long curves (runs, K), thinned to a few hundred points."""
    K = curves.shape[1]
    places = np.unique(np.linspace(0, K - 1, min(POINTS, K)).astype(np.int64))
    low, high = bootstrap_band(curves[:, places], np.random.default_rng(0))
    mean: Floats = curves.mean(axis=0)
    return Band(places.astype(np.float64) + 1.0, mean[places], low, high, growth_exponent(mean), len(curves))


def _curves(folder: Path, learner: str, nature: str, group: Sequence[Mapping[str, Any]]) -> Curves:
    pairs = [cumulative(folder, summary) for summary in group]
    regrets = [regret for _, regret in pairs if regret is not None]
    violation = band(np.stack([violation for violation, _ in pairs]))
    return Curves(learner, nature, violation, band(np.stack(regrets)) if len(regrets) == len(pairs) else None)
