"""How the solves of a group went: step size, weight and multipliers over time, counts, and warnings in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omdpd.problem.arrays import Integers
from omdpd.report.checks import field_of, is_number
from omdpd.report.stored import StoredRun
from omdpd.report.thinning import written

# A relative duality gap above this is worth a word.
WIDE_GAP = 1e-6
COUNTS = ("solves", "iterations", "failures")


def health_of(views: Sequence[StoredRun], places: Integers) -> dict[str, Any]:
    """The health of some runs with the same recorded episodes; a number that no learner reported is None."""
    logs = [log_of(view) for view in views]
    counts = {name: int(sum(log[name] for log in logs)) for name in (*COUNTS, "saturations", "infeasible")}
    gap = max(log["max_gap"] for log in logs)
    value: dict[str, Any] = {
        "step_size": _mean(views, "step_size", places), "weight": _mean(views, "weight", places),
        "max_gap": float(f"{gap:.3g}"), **counts, "episodes": int(sum(view.episodes for view in views)),
    }  # fmt: skip
    return value | {"warnings": warnings_of(value)}


def log_of(view: StoredRun) -> Mapping[str, Any]:
    """Counts of a run's solves, from its summary or from its stored state."""
    empty: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "max_gap": 0.0, "saturations": 0, "infeasible": 0}
    if view.summary is not None:
        return empty | {key: view.summary[key] for key in empty if key in view.summary}
    found = {key: field_of(view.kept.state, key) for key in empty}
    return empty | {key: value for key, value in found.items() if is_number(value)}


def warnings_of(health: Mapping[str, Any]) -> list[str]:
    """What somebody should know before believing the curves."""
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


def _mean(views: Sequence[StoredRun], name: str, places: Integers) -> list[float | None] | None:
    """The mean of a column over runs; None where no run has it."""
    columns = [view.columns[name] for view in views if name in view.columns]
    if not columns or all(np.isnan(column).all() for column in columns):
        return None
    n = min(len(column) for column in columns)
    stack = np.stack([column[:n] for column in columns])
    mean: list[float | None] = written(stack.mean(axis=0)[places])
    return mean
