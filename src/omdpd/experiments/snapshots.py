"""A thin sequence of a run's policies and of its inner numbers, so that a report can show how they moved.

They are taken on a logarithmic grid of episodes and are at most `MAX_BYTES` per run, however long it is: 40 policies
of single precision, fewer in a world where 40 would not fit, and none where two would not.  A policy is the one that
is played next, after so many episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omdpd.learners.masked import MaskedState
from omdpd.play.loop import Progress
from omdpd.play.scene import Scene
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.flow import value_of_policy
from omdpd.solvers.regions import Kernel
from omdpd.solvers.sweeps import value_under
from omdpd.storage.npz import Arrays
from omdpd.storage.run_folder import RunFolder

MAX_BYTES = 4 * 2**20
MAX_POLICIES = 40
POLICY_DTYPE = np.float32


@dataclass
class Snapshots:
    """What was taken so far, by name, and the episodes after which the next ones are taken."""

    wanted: frozenset[int]
    taken: dict[str, list[Any]] = field(default_factory=dict)
    written: int = 0

    @staticmethod
    def resumed(record: RunFolder, scene: Scene, k: int) -> Snapshots:
        """The snapshots of a run that goes on after k episodes."""
        kept = record.policies() or {}
        n = len(kept.get("episodes", ()))
        return Snapshots(snapshot_grid(scene.episodes, scene.cmdp.reward.size), {m: [*a] for m, a in kept.items()}, n)

    def look(self, now: Progress, scene: Scene) -> None:
        """Take a snapshot if it is time for one."""
        if now.k in self.wanted:
            for name, value in _snapshot(now, scene).items():
                self.taken.setdefault(name, []).append(value)

    def unwritten(self) -> Arrays | None:
        """Everything, if there is something new since the last call; else None."""
        n = len(self.taken.get("episodes", ()))
        if n == self.written:
            return None
        self.written = n
        return {name: np.stack(values) for name, values in self.taken.items()}


def snapshot_grid(n_episodes: int, policy_size: int) -> frozenset[int]:
    """After how many episodes a snapshot is taken: a logarithmic grid with both ends, within the bound on bytes.

    >>> sorted(snapshot_grid(5, 75)), len(snapshot_grid(3000, 75)), snapshot_grid(10, 10**7)
    ([1, 2, 3, 4, 5], 40, frozenset())
    """
    n = min(MAX_POLICIES, MAX_BYTES // (policy_size * np.dtype(POLICY_DTYPE).itemsize))
    if n < 2:
        return frozenset()
    if n_episodes <= n:
        return frozenset(range(1, n_episodes + 1))
    # Rounding makes early points of the grid coincide, so it is refined until it has n of them.
    grid = np.array([1, n_episodes])
    for points in range(n, 4 * n):
        finer = np.unique(np.rint(np.geomspace(1, n_episodes, points)).astype(np.int64))
        if len(finer) > n:
            break
        grid = finer
    return frozenset(grid.tolist())


def _snapshot(now: Progress, scene: Scene) -> dict[str, Any]:
    """The policy that is played next, its true and its believed value, multipliers, and counts of the solves."""
    cmdp, state = scene.cmdp, now.learner_state
    policy = scene.learner.policy(state)
    report = scene.learner.report(state)
    believed = report.believed
    believed_value = np.nan
    if believed is not None and isinstance(believed.region, Kernel):
        believed_value = value_of_policy(policy, believed.region.transition, cmdp.initial, believed.reward)
    return {
        "episodes": np.int64(now.k), "policies": policy.astype(POLICY_DTYPE),
        "lam": _multipliers(state, cmdp.n_constraints),
        "value": value_under(cmdp.laws, policy, cmdp.initial, cmdp.reward), "believed_value": believed_value,
        "solves": np.int64(report.log.solves), "iterations": np.int64(report.log.iterations),
        "failures": np.int64(report.log.failures), "max_gap": float(report.log.max_gap),
        "saturations": np.int64(report.saturations),
    }  # fmt: skip


def _multipliers(state: Any, n_constraints: int) -> Floats:
    """What the learner's weights are made of, one number per constraint: `lam` of its state, or `V`; else nan."""
    state = state.inner if isinstance(state, MaskedState) else state
    for name in ("lam", "V"):
        lam = np.asarray(getattr(state, name, np.nan), dtype=np.float64)
        if lam.shape == (n_constraints,):
            return lam
    return np.full(n_constraints, np.nan)
