"""Policies over time, occupancies, visits and widths of single runs, against the best policy: values for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from omdpd.beliefs.confidence import DELTA, log_term
from omdpd.play.units import Units
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.cmdp import CMDP
from omdpd.report.checks import stored_table
from omdpd.report.stored import StoredRun
from omdpd.report.thinning import rounded_for_json, shares
from omdpd.report.truth import Truths
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.programs import Plan
from omdpd.solvers.sweeps import occupancy_under
from omdpd.storage.atomic import RecordError
from omdpd.storage.npz import Arrays

# Bytes that the policies of one run, and of a whole study, may take on a page.
MAX_RUN_BYTES, MAX_STUDY_BYTES = 200_000, 1_000_000
# Two bytes for a share, and a third more in base64.
SHARE_BYTES = 8.0 / 3.0


def cost_of(n_kept: int, cmdp: CMDP) -> int:
    """Estimate the bytes that `run_policies` takes of a run that kept `n_kept` policies."""
    H, S, A = cmdp.shape
    return int(min(_most(cmdp), 1 + n_kept) * H * S * (A + 1) * SHARE_BYTES) + 8 * H * S * A


def _most(cmdp: CMDP) -> int:
    """How many policies of a run fit on a page: two at least."""
    H, S, A = cmdp.shape
    return max(int(MAX_RUN_BYTES / (H * S * (A + 1) * SHARE_BYTES)), 2)


def run_policies(view: StoredRun, cmdp: CMDP) -> dict[str, Any] | None:
    """What a run played: policies on a logarithmic grid of episodes, if it kept them, and its average play."""
    arrays = view.arrays()
    occupancy = stored_table(view.kept.occupancy, arrays, cmdp.shape)
    if occupancy is None or not view.episodes:
        return None
    average = np.asarray(occupancy, dtype=np.float64) / view.episodes
    value: dict[str, Any] = {
        "run": view.id, "episodes": [], "policies": "", "states": "", "average": shares(average.sum(axis=2)),
        "average_policy": shares(policy_of_occupancy(average)), "k": view.episodes,
    }  # fmt: skip
    kept = view.snapshots()
    if kept:
        places = _affordable(kept["episodes"], cmdp)
        if kept["policies"].shape[1:] != cmdp.shape:
            raise RecordError(f"{view.path} is damaged: its policies are those of another world")
        policies = kept["policies"][places].astype(np.float64)
        policies /= policies.sum(axis=-1, keepdims=True)
        masses = np.stack([occupancy_under(cmdp.laws, pi, cmdp.initial).sum(axis=2) for pi in policies])
        value |= {
            "episodes": kept["episodes"][places].astype(int).tolist(), "policies": shares(policies),
            "states": shares(masses),
        }  # fmt: skip
    return value | _visits(view, cmdp, arrays)


def snapshot_series(view: StoredRun, best: float | None, units: Units) -> dict[str, Any] | None:
    """Multipliers, solver counts and the two parts of regret at the kept episodes, where a run kept them.

    V* - V(pi) = (V* - V~(pi)) + (V~(pi) - V(pi)): what the learner's own belief says is still to be gained, and by
    how much the belief flatters the policy in play, both in the user's units.
    """
    kept = view.snapshots()
    if not kept:
        return None
    value: dict[str, Any] = {"x": kept["episodes"].astype(int).tolist()}
    for name in ("lam", "iterations", "solves", "failures", "saturations", "max_gap"):
        if name in kept and not np.isnan(kept[name]).all():
            column = kept[name].astype(np.float64)
            value[name] = rounded_for_json(column.T if column.ndim > 1 else column)
    believed, true = kept.get("believed_value"), kept.get("value")
    if best is not None and believed is not None and true is not None and not np.isnan(believed).all():
        value["optimisation"] = rounded_for_json((best - believed) * units.span)
        value["estimation"] = rounded_for_json((believed - true) * units.span)
    return value


def optimum(plan: Plan) -> dict[str, Any]:
    """The best policy and where it goes."""
    return {"policy": shares(plan.policy), "states": shares(plan.occupancy.sum(axis=2)), "feasible": plan.feasible}


def affordable_runs(views: Sequence[StoredRun], truths: Truths) -> list[StoredRun]:
    """Choose the runs whose policies fit on the page: the first seed of every group, then the second, and so on."""
    left = MAX_STUDY_BYTES
    chosen = []
    turn: dict[Any, int] = {}
    ranked: list[tuple[int, int, StoredRun]] = []
    for view in views:
        if view.episodes:
            group = view.label.group
            turn[group] = turn.get(group, -1) + 1
            ranked.append((turn[group], len(ranked), view))
    for _, _, view in sorted(ranked, key=lambda item: item[:2]):
        cmdp = truths.of(view.label).cmdp
        kept = None if cmdp is None else view.tried(view.snapshots)
        if cmdp is not None and kept is not None and (cost := cost_of(len(kept.get("episodes", ())), cmdp)) <= left:
            left -= cost
            chosen.append(view)
    return chosen


def _visits(view: StoredRun, cmdp: CMDP, arrays: Arrays) -> dict[str, Any]:
    """How often every (step, state, action) was visited, as the learner counted, and sqrt(L / n)."""
    visits = stored_table(view.kept.shown.visits, arrays, cmdp.shape)
    if visits is None:
        return {}
    # Widths on the page are those of scale one; learners multiply them by a scale of their own.
    L = log_term(cmdp.setting(view.label.episodes, "bandit"), 0, DELTA)
    return {"visits": visits.astype(int).ravel().tolist(), "log_term": round(L, 4)}


def _affordable(episodes: Floats, cmdp: CMDP) -> Integers:
    """Choose the snapshots that fit: all of them, or evenly spread ones with both ends."""
    return np.unique(np.linspace(0, len(episodes) - 1, min(_most(cmdp), len(episodes))).round().astype(np.int64))
