"""Seeds of one learner in one place: curves with bands, bursts, health and final points, as values for a page.

The mean and its band are over the finished runs; while none is finished, over the episodes that all runs which began
have in common.  So a mean never changes who is in it along the curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omdpd.experiments.writer import ROW_SCHEMA
from omdpd.problem.arrays import Floats, Integers
from omdpd.report.curves import Band, band
from omdpd.report.health import health_of
from omdpd.report.results import mean_of
from omdpd.report.stored import StoredRun
from omdpd.report.thinning import bucket_maxima, kept_places, written
from omdpd.report.units import Multiples, in_user_units

# Stretches of episodes in the strip of violations.
STRIP = 240
# A final number, or a share of it as a spread, this small is what sums over episodes leave of zero.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RunCurves:
    """A run's curves over its recorded episodes, in the user's units; `regret` is None where no comparator is known."""

    view: StoredRun
    units: Multiples
    seed: int
    episodes: Floats
    regret: Floats | None
    violation: Floats
    weak: Floats | None
    burst: Floats

    def cut(self, n: int) -> RunCurves:
        """The first `n` recorded episodes."""
        short = [None if c is None else c[:n] for c in (self.regret, self.weak)]
        return RunCurves(
            self.view, self.units, self.seed, self.episodes[:n], short[0], self.violation[:n], short[1], self.burst[:n]
        )


def run_curves(view: StoredRun, best: float | None, units: Multiples) -> RunCurves | None:
    """The curves of a run that has rows, against the value of its comparator."""
    columns = view.columns
    if not columns or view.asked is None:
        return None
    k, violation = columns["episode"], columns["violation_sum"] * units.cost
    regret = None if best is None else (k * best - columns["value_sum"]) * units.reward
    excess = np.maximum(columns["excess"].max(axis=1), 0.0) * units.cost
    steps = np.diff(k, prepend=0.0)
    # Between two recorded episodes of a thinned run only the sum is known: its mean per episode counts too.
    burst = np.maximum(excess, np.diff(violation, prepend=0.0) / steps)
    weak = None
    if len(k) == int(k[-1]):
        weak = np.maximum(np.cumsum(columns["excess"], axis=0), 0.0).max(axis=1) * units.cost
    return RunCurves(view, units, view.asked.seed, k, regret, violation, weak, burst)


def group_value(runs: Sequence[RunCurves], n_episodes: int, points: int, why: str) -> dict[str, Any]:
    """The value of a group for the page; `why` says why there is no regret, where there is none."""
    finished = [run for run in runs if run.view.state == "finished"]
    basis = _alike(finished) or _common(runs)
    value: dict[str, Any] = {
        "n_finished": len(finished), "n_mean": len(basis), "why": why,
        "strip": {"n": min(STRIP, n_episodes), "K": n_episodes, "rows": [_strip(run, n_episodes) for run in runs]},
    }  # fmt: skip
    if basis:
        places = _places(basis, points)
        value["x"] = basis[0].episodes[places].astype(np.int64).tolist()
        value["violation"] = _statistics(band(basis[0].episodes, np.stack([run.violation for run in basis]), places))
        value["regret"] = _known(basis, "regret", places)
        value["weak"] = _known(basis, "weak", places)
        value["health"] = health_of([run.view for run in basis], places)
        value["recorded"] = _recorded(basis, places)
    value["runs"] = [_single(run, basis, value.get("x"), points) for run in runs]
    value["end"] = {
        key: _end(finished, key) for key in ("regret", "violation", "weak_violation", "lagrangian_regret")
    }  # fmt: skip
    return value


def _alike(runs: Sequence[RunCurves]) -> list[RunCurves]:
    """The runs that recorded the same episodes as the longest one: there is no mean of others."""
    longest = max(runs, key=lambda run: (run.episodes[-1], len(run.episodes)), default=None)
    return [run for run in runs if longest is not None and np.array_equal(run.episodes, longest.episodes)]


def _common(runs: Sequence[RunCurves]) -> list[RunCurves]:
    """Runs that are not finished, cut to the episodes that all of them have."""
    n = min((len(run.episodes) for run in runs), default=0)
    return _alike([run.cut(n) for run in runs]) if n else []


def _places(runs: Sequence[RunCurves], points: int) -> Integers:
    """The places that are kept of all curves of a group."""
    stacks = [np.stack([run.violation for run in runs])]
    regrets = [run.regret for run in runs if run.regret is not None]
    if len(regrets) == len(runs):
        stacks.append(np.stack(regrets))
    share = points // len(stacks)
    return np.unique(np.concatenate([kept_places(runs[0].episodes, stack, share) for stack in stacks]))


def _known(runs: Sequence[RunCurves], name: str, places: Integers) -> Any:
    """Statistics of a curve that all runs have, or None."""
    curves = [getattr(run, name) for run in runs]
    if any(c is None for c in curves):
        return None
    return _statistics(band(runs[0].episodes, np.stack(curves), places))


def _statistics(made: Band) -> dict[str, Any]:
    """A band as a page takes it; of a single run only its mean, which it is."""
    growth = made.growth
    value = {
        "mean": written(made.mean), "exponent": None if growth.exponent is None else float(f"{growth.exponent:.4g}"),
        "interval": None if growth.interval is None else written(growth.interval),
    }  # fmt: skip
    if made.half is not None:
        value |= {"low": written(made.low), "high": written(made.high)}
    if made.n_runs > 1:
        value["quantiles"] = written(made.quantiles)
    return value


def _single(run: RunCurves, basis: Sequence[RunCurves], x: Any, points: int) -> dict[str, Any]:
    """One seed's curves: on the group's episodes where it is part of the mean, else on its own."""
    shared = any(run.view is other.view and len(run.episodes) == len(other.episodes) for other in basis)
    if shared:
        places = np.searchsorted(run.episodes, x)
    else:
        places = kept_places(run.episodes, run.violation[None], max(points // 2, 40))
    value = {"seed": run.seed, "run": run.view.id, "x": None if shared else written(run.episodes[places])}
    alone = shared and len(basis) == 1  # then the mean is the curve
    for name in ("regret", "violation", "weak"):
        curve = getattr(run, name)
        value[name] = None if curve is None or alone else written(curve[places])
    return value | {"alone": alone}


def _strip(run: RunCurves, n_episodes: int) -> dict[str, Any]:
    """The largest violation of an episode in every stretch of episodes."""
    n = min(STRIP, n_episodes)
    return {"seed": run.seed, "run": run.view.id, "largest": bucket_maxima(run.episodes, run.burst, n, n_episodes)}


def _recorded(runs: Sequence[RunCurves], places: Integers) -> list[dict[str, Any]]:
    """Further columns that the runs recorded, as means: certificates, the good event, a user's own metrics."""
    first = runs[0].view.columns
    names = [
        "certified_regret",
        "certified_violation",
        "optimism",
        "good_event",
        *(n for n in first if n not in ROW_SCHEMA.names),
    ]
    made = []
    for name in names:
        columns = [run.view.columns.get(name) for run in runs]
        full = [
            c[: len(run.episodes)] * _unit(name, run.units)
            for c, run in zip(columns, runs, strict=True)
            if c is not None
        ]
        if len(full) == len(runs) and not all(np.isnan(c).all() for c in full):
            made.append({"name": name, "mean": written(np.stack(full).mean(axis=0)[places])})
    return made


def _unit(name: str, units: Multiples) -> float:
    """What 1 of a recorded column is to the user; a metric of the user's own is as it is."""
    return {"certified_regret": units.reward, "certified_violation": units.cost}.get(name, 1.0)


def _end(runs: Sequence[RunCurves], key: str) -> list[float | None] | None:
    """Mean and half-width of a final number over finished runs; too few runs have no half-width."""
    records = [in_user_units(run.view.summary) for run in runs if run.view.summary is not None]
    if not records or any(key not in record for record in records):
        return None
    mean = mean_of(records, key)
    return None if mean is None else written(_without_rounding(mean.mean, mean.half))


def _without_rounding(mean: float, half: float | None) -> tuple[float, float]:
    """A mean and its half-width (nan: none), each 0 where it is what rounding left.

    >>> _without_rounding(12.5, 5.53e-12), _without_rounding(-2e-12, 1e-3), _without_rounding(1.0, None)
    ((12.5, 0.0), (0.0, 0.001), (1.0, nan))
    """
    shown = 0.0 if abs(mean) <= ROUNDING else mean
    if half is None:
        return shown, np.nan
    return shown, 0.0 if half <= ROUNDING * max(abs(mean), 1.0) else half
