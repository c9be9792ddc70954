"""Seeds of one learner in one place: curves with bands, bursts, health and final points, as values for a page.

The mean and its band are over the finished runs; while none is finished, over the episodes that all runs which began
have in common.  So a mean never changes who is in it along the curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omdpd.play.judging import LATE_SHARE
from omdpd.play.rows import COLUMNS, SUMMARY, Column
from omdpd.play.units import Units, in_user_units
from omdpd.problem.arrays import Floats, Integers
from omdpd.report.curves import Band, band, sums_of
from omdpd.report.results import mean_of
from omdpd.report.stored import StoredRun
from omdpd.report.thinning import bucket_maxima, kept_places, rounded_for_json

# Stretches of episodes in the strip of violations.
STRIP = 240
# A final number, or a share of it as a spread, this small is what sums over episodes leave of zero.
ROUNDING = 1e-9
# An episode is over its budget if it is by more than this share of the largest cost of an episode.
NEGLIGIBLE = 1e-3
# A relative duality gap above this is worth a word.
WIDE_GAP = 1e-6
COUNTS = ("solves", "iterations", "failures")


@dataclass(frozen=True, eq=False)
class RunCurves:
    """A run's curves over its recorded episodes, in the user's units; `regret` is None where no comparator is known."""

    view: StoredRun
    units: Units
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


def run_curves(view: StoredRun, best: float | None, units: Units) -> RunCurves | None:
    """The curves of a run that has rows, against the value of its comparator."""
    columns = view.columns
    if not columns:
        return None
    k, cost = columns["episode"], units.multiple(COLUMNS["violation_sum"])
    regret, violation = sums_of(columns, best, units)
    excess = np.maximum(columns["excess"].max(axis=1), 0.0) * cost
    steps = np.diff(k, prepend=0.0)
    # Between two recorded episodes of a thinned run only the sum is known: its mean per episode counts too.
    burst = np.maximum(excess, np.diff(violation, prepend=0.0) / steps)
    weak = None
    if len(k) == int(k[-1]):
        weak = np.maximum(np.cumsum(columns["excess"], axis=0), 0.0).max(axis=1) * cost
    return RunCurves(view, units, view.label.seed, k, regret, violation, weak, burst)


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
        value["glance"] = at_a_glance(basis)
    value["runs"] = [_single(run, basis, value.get("x"), points) for run in runs]
    value["end"] = {name: _end(finished, name) for name, column in SUMMARY.items() if column.head and column.unit}
    return value


def at_a_glance(runs: Sequence[RunCurves]) -> dict[str, Any]:
    """What an episode of the last tenth exceeds its budget by, earns, and could earn safely: means over runs.

    `since` has for each run the episode from which on none was over its budget, None if one of the last tenth was.
    """
    means = np.zeros(3)
    since: list[int | None] = []
    for run in runs:
        k, units = run.episodes, run.units
        earned = units.values(np.array(_late(k, run.view.columns["value_sum"][: len(k)])))
        lost = np.nan if run.regret is None else _late(k, run.regret)
        means += np.array([_late(k, run.violation), earned, earned + lost]) / len(runs)
        above = k[run.burst > NEGLIGIBLE * units.horizon * (units.common_scale or 1.0)]
        last = int(above[-1]) if len(above) else 0
        since.append(last + 1 if last <= k[-1] - max(k[-1] // LATE_SHARE, 1) else None)
    return {**dict(zip(("over", "earned", "best"), rounded_for_json(means), strict=True)), "since": since}


def _late(k: Floats, sums: Floats) -> float:
    """The mean of an episode of the last tenth, from sums after episodes `k`.

    >>> _late(np.array([1.0, 90.0, 100.0]), np.array([5.0, 20.0, 50.0]))
    3.0
    """
    k, sums = np.append(0.0, k), np.append(0.0, sums)
    start = min(int(np.searchsorted(k, k[-1] - k[-1] // LATE_SHARE, side="right")), len(k) - 1) - 1
    return float((sums[-1] - sums[start]) / (k[-1] - k[start]))


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
        "mean": rounded_for_json(made.mean),
        "exponent": None if growth.exponent is None else float(f"{growth.exponent:.4g}"),
        "interval": None if growth.interval is None else rounded_for_json(growth.interval),
    }  # fmt: skip
    if made.half is not None:
        value |= {"low": rounded_for_json(made.low), "high": rounded_for_json(made.high)}
    if made.n_runs > 1:
        value["quantiles"] = rounded_for_json(made.quantiles)
    return value


def _single(run: RunCurves, basis: Sequence[RunCurves], x: Any, points: int) -> dict[str, Any]:
    """One seed's curves: on the group's episodes where it is part of the mean, else on its own."""
    shared = any(run.view is other.view and len(run.episodes) == len(other.episodes) for other in basis)
    if shared:
        places = np.searchsorted(run.episodes, x)
    else:
        places = kept_places(run.episodes, run.violation[None], max(points // 2, 40))
    value = {"seed": run.seed, "run": run.view.id, "x": None if shared else rounded_for_json(run.episodes[places])}
    alone = shared and len(basis) == 1  # then the mean is the curve
    for name in ("regret", "violation", "weak"):
        curve = getattr(run, name)
        value[name] = None if curve is None or alone else rounded_for_json(curve[places])
    return value | {"alone": alone}


def _strip(run: RunCurves, n_episodes: int) -> dict[str, Any]:
    """The largest violation of an episode in every stretch of episodes."""
    n = min(STRIP, n_episodes)
    return {"seed": run.seed, "run": run.view.id, "largest": bucket_maxima(run.episodes, run.burst, n, n_episodes)}


def _recorded(runs: Sequence[RunCurves], places: Integers) -> list[dict[str, Any]]:
    """Further columns that the runs recorded, as means: certificates, the good event, a user's own metrics."""
    drawn = [name for name, column in COLUMNS.items() if column.title]
    made = []
    for name in (*drawn, *(name for name in runs[0].view.columns if name not in COLUMNS)):
        column = COLUMNS.get(name, Column("mean over seeds", title=name))
        found = [run.view.columns.get(name) for run in runs]
        full = [
            each[: len(run.episodes)] * run.units.multiple(column)
            for each, run in zip(found, runs, strict=True)
            if each is not None
        ]
        if len(full) == len(runs) and not all(np.isnan(each).all() for each in full):
            share = column.kind == "truth"
            words = {"name": name, "title": column.title, "note": column.meaning if share else "mean over seeds"}
            made.append({**words, "share": share, "mean": rounded_for_json(np.stack(full).mean(axis=0)[places])})
    return made


def _end(runs: Sequence[RunCurves], key: str) -> list[float | None] | None:
    """Mean and half-width of a final number over finished runs; too few runs have no half-width."""
    records = [in_user_units(run.view.summary) for run in runs if run.view.summary is not None]
    if not records or any(key not in record for record in records):
        return None
    mean = mean_of(records, key)
    return None if mean is None else rounded_for_json(_without_rounding(mean.mean, mean.half))


def _without_rounding(mean: float, half: float | None) -> tuple[float, float]:
    """A mean and its half-width (nan: none), each 0 where it is what rounding left.

    >>> _without_rounding(12.5, 5.53e-12), _without_rounding(-2e-12, 1e-3), _without_rounding(1.0, None)
    ((12.5, 0.0), (0.0, 0.001), (1.0, nan))
    """
    shown = 0.0 if abs(mean) <= ROUNDING else mean
    if half is None:
        return shown, np.nan
    return shown, 0.0 if half <= ROUNDING * max(abs(mean), 1.0) else half


def health_of(views: Sequence[StoredRun], places: Integers) -> dict[str, Any]:
    """The health of some runs with the same recorded episodes; a number that no learner reported is None."""
    logs = [log_of(view) for view in views]
    counts = {name: int(sum(log[name] for log in logs)) for name in (*COUNTS, "saturations", "infeasible")}
    gap = max(log["max_gap"] for log in logs)
    value: dict[str, Any] = {
        "step_size": _column_mean(views, "step_size", places), "weight": _column_mean(views, "weight", places),
        "max_gap": float(f"{gap:.3g}"), **counts, "episodes": int(sum(view.episodes for view in views)),
    }  # fmt: skip
    return value | {"warnings": warnings_of(value)}


def log_of(view: StoredRun) -> Mapping[str, Any]:
    """Counts of a run's solves: from its summary, else from its last commit, or the last snapshot of an old run."""
    empty: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "max_gap": 0.0, "saturations": 0, "infeasible": 0}
    if view.summary is not None:
        return empty | {key: view.summary[key] for key in empty if key in view.summary}
    kept = {} if view.kept.shown.solves else view.tried(view.snapshots) or {}
    found = {key: kept[key][-1] if key in kept else getattr(view.kept.shown, key) for key in empty}
    return {key: value if key == "max_gap" else int(value) for key, value in found.items()}


def warnings_of(health: Mapping[str, Any]) -> list[str]:
    """Sentences to read before the curves are believed."""
    warnings = []
    if health["failures"]:
        warnings.append(
            f"{health['failures']} of {health['solves']} mirror steps did not reach their accuracy; the best certified "
            "point was played instead."
        )
    if health["saturations"]:
        warnings.append(
            f"The penalty weight was saturated in {health['saturations']} of {health['episodes']} episodes: beyond its "
            "cap more violation is not punished harder, and the guarantee does not speak about such a run."
        )
    if health["infeasible"]:
        warnings.append(
            f"In {health['infeasible']} episodes no policy seemed safe to the learner; it played its fallback."
        )
    if health["max_gap"] > WIDE_GAP:
        warnings.append(f"The largest relative duality gap of a solve is {health['max_gap']:.1e}, which is wide.")
    return warnings


def _column_mean(views: Sequence[StoredRun], name: str, places: Integers) -> list[float | None] | None:
    """The mean of a column over runs; None where no run has it."""
    columns = [view.columns[name] for view in views if name in view.columns]
    if not columns or all(np.isnan(column).all() for column in columns):
        return None
    n = min(len(column) for column in columns)
    stack = np.stack([column[:n] for column in columns])
    mean: list[float | None] = rounded_for_json(stack.mean(axis=0)[places])
    return mean
