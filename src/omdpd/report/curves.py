"""Records to curves: the numbers that figures and the page draw, worked out here for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.play.history import History
from omdpd.play.judging import EXPONENT_START
from omdpd.play.rows import COLUMNS, regret_curve
from omdpd.play.units import Units
from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.report.canvas import Axes, drawn
from omdpd.report.results import budget_note
from omdpd.report.statistics import Growth, half_width
from omdpd.report.stored import StoredRun
from omdpd.report.thinning import kept_places

# Points per curve: enough for a wide figure, few enough for a small file.
POINTS = 300
# Which quantiles over runs a band has, in per cent.
QUANTILES = (10, 50, 90)


@dataclass(frozen=True, eq=False)
class Band:
    """A mean curve over runs, what lies around it, and how it grows.

    `half` (points,) is half of the mean's 95 % interval, None for too few runs: the number that tables print after a
    mean; `quantiles` is (3, points), see `QUANTILES`; `runs` (n, points) are the curves of the single runs.
    """

    episodes: Floats
    mean: Floats
    half: Floats | None
    quantiles: Floats
    runs: Floats
    growth: Growth

    @property
    def n_runs(self) -> int:
        """How many runs the mean is over."""
        return len(self.runs)

    @property
    def low(self) -> Floats:
        """The lower end of the 95 % interval; the mean itself where there are too few runs."""
        return self.mean if self.half is None else self.mean - self.half

    @property
    def high(self) -> Floats:
        """The upper end of the 95 % interval."""
        return self.mean if self.half is None else self.mean + self.half

    def middle(self, spread: str) -> Floats:
        """The curve in the middle: the median where quantiles are around it, else the mean."""
        return self.quantiles[1] if spread == "quantiles" else self.mean

    def shade(self, axes: Axes, colour: str, spread: str) -> None:
        """Draw what lies around it: the single runs, quantiles, or the interval of the mean."""
        if spread == "seeds":
            axes.plot(self.episodes, self.runs.T, color=colour, linewidth=0.5, alpha=0.5)
            return
        low, high = (self.quantiles[0], self.quantiles[2]) if spread == "quantiles" else (self.low, self.high)
        axes.fill_between(self.episodes, low, high, color=colour, alpha=0.15, linewidth=0)


@dataclass(frozen=True, eq=False)
class Curves:
    """One learner under one nature; `regret` is None where no comparator exists, `budget` empty where it is unknown."""

    learner: str
    nature: str
    violation: Band
    regret: Band | None
    budget: str = ""


def load_curves(folder: Path, summaries: Sequence[Mapping[str, Any]], as_learnt: bool = False) -> list[Curves]:
    """The curves of every (learner, nature), in the order of the summaries, in the user's units or a learner's."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    several = len({summary["world"] for summary in summaries}) > 1
    for summary in summaries:
        place = f"{summary['world']}, {summary['nature']}" if several else summary["nature"]
        groups.setdefault((summary["learner"], place), []).append(summary)
    return [_curves(folder, learner, nature, group, as_learnt) for (learner, nature), group in groups.items()]


def band(episodes: Floats, curves: Floats, places: Integers | None = None) -> Band:
    """The band of curves (runs, points) over `episodes` (points,), at `places` or thinned with its extremes kept."""
    if places is None:
        places = kept_places(episodes, curves, POINTS)
    kept = curves[:, places]
    K = int(episodes[-1])
    early = int(np.searchsorted(episodes, K // EXPONENT_START))
    # (A curve of fewer than four episodes starts nowhere, and has no exponent.)
    start = int(episodes[early]) if K >= EXPONENT_START else 0
    growth = Growth(start, K, curves[:, early], curves[:, -1])
    quantiles = np.percentile(kept, QUANTILES, axis=0)
    return Band(episodes[places], kept.mean(axis=0), half_width(kept), quantiles, kept, growth)


def _curves(folder: Path, learner: str, nature: str, group: Sequence[Mapping[str, Any]], as_learnt: bool) -> Curves:
    violations: list[Floats] = []
    regrets: list[Floats] = []
    episodes = np.zeros(0)
    for summary in group:
        rows = StoredRun(folder / summary["run"], summary["run"], summary=dict(summary)).rows
        before, episodes = episodes, rows["episode"].astype(np.float64)
        if violations and not np.array_equal(before, episodes):
            raise InvalidInputError(f"the runs of {learner} under {nature} have rows of different episodes: no mean")
        regret, violation = sums_of(rows, summary["comparator_value"], Units.of_record({} if as_learnt else summary))
        violations.append(violation)
        regrets += [] if regret is None else [regret]
    mean = band(episodes, np.stack(regrets)) if len(regrets) == len(group) else None
    return Curves(drawn(learner), drawn(nature), band(episodes, np.stack(violations)), mean, budget_note(group))


def sums_of(rows: Mapping[str, Floats], best: float | None, units: Units) -> tuple[Floats | None, Floats]:
    """Regret against a comparator of this value (None without one) and violation over the rows, in the user's units."""
    regret = regret_curve(best, rows["episode"], rows["value_sum"])
    violation = units.multiple(COLUMNS["violation_sum"]) * rows["violation_sum"]
    return None if regret is None else units.span * regret, violation


def episodes_of(group: Sequence[History]) -> Floats:
    """The episodes, counted from 1, of histories that are seeds of one another."""
    lengths = {len(h.rows) for h in group}
    if len(lengths) > 1:
        first = group[0]
        raise InvalidInputError(
            f"the runs of {first.label!r} under {first.nature!r} have different lengths: {sorted(lengths)}"
        )
    return np.arange(1.0, lengths.pop() + 1.0)


def curves_of(label: str, nature: str, group: Sequence[History]) -> Curves:
    """The curves of histories with one label and nature, seeds of one another."""
    episodes = episodes_of(group)
    regrets = [h.regret for h in group if h.regret is not None]
    regret = band(episodes, np.stack(regrets)) if len(regrets) == len(group) else None
    return Curves(label, nature, band(episodes, np.stack([h.violation for h in group])), regret)
