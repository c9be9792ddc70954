"""Rows of a run on their way to disk: gathered, and committed together with the state every few seconds.

Beside them goes a thin sequence of the run's policies and of its inner numbers, so that a report can show how they
moved.  They are taken on a logarithmic grid of episodes and are at most `MAX_SNAPSHOT_BYTES` per run, however long it
is: 40 policies of single precision, fewer in a world where 40 would not fit, and none where two would not.  A policy is
the one that is played next, after so many episodes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omdpd.learners.masked import MaskedState
from omdpd.learners.protocol import Learner, restored, shown_of, stored_classes
from omdpd.play.judging import Totals
from omdpd.play.ledger import Ledger
from omdpd.play.loop import Progress
from omdpd.play.rows import COLUMNS, LABELS, Row, Rows
from omdpd.play.scene import Metric, Scene
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.solvers.compiled.flow import value_of_policy
from omdpd.solvers.regions import Kernel
from omdpd.solvers.sweeps import value_under
from omdpd.storage.atomic import RecordError
from omdpd.storage.manifest import Commit
from omdpd.storage.npz import Arrays
from omdpd.storage.packing import classes_of, pack, unpack
from omdpd.storage.run_folder import RunFolder

# How often a run commits, in seconds: what a kill can cost.  The environment variable of this name changes it.
COMMIT_SECONDS = 3.0
COMMIT_VARIABLE = "OMDPD_COMMIT_SECONDS"
# Values of episodes that wait for a commit take memory: beyond this many they are committed early.
MAX_WAITING = 50_000

# How columns are kept: what is undefined is nan, a truth is 1, 0 or nan.
TYPES = {"whole": np.int64, "number": np.float64, "numbers": np.float64, "truth": np.float64}
MAX_SNAPSHOT_BYTES = 4 * 2**20
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
    n = min(MAX_POLICIES, MAX_SNAPSHOT_BYTES // (policy_size * np.dtype(POLICY_DTYPE).itemsize))
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


@dataclass
class Writer:
    """Rows and values since the last commit, and the clock that says when to commit."""

    record: RunFolder
    scene: Scene
    rng: np.random.Generator
    every: float
    kept: Snapshots | None = None
    rows: Rows = field(default_factory=Rows)
    values: list[float] = field(default_factory=list)
    committed: float = field(default_factory=time.perf_counter)

    def add(self, values: Sequence[float], rows: Sequence[Row], now: Progress) -> None:
        """The next episodes, up to `now`; commits if it is time."""
        self.values.extend(values)
        self.rows.extend(rows)
        if self.kept is not None:
            self.kept.look(now, self.scene)
        waited = time.perf_counter() - self.committed > self.every
        if now.k == self.scene.episodes or waited or len(self.values) >= MAX_WAITING:
            self.commit(now)

    def commit(self, now: Progress) -> None:
        """Make everything up to `now` durable."""
        if not self.values:
            return
        shown = shown_of(self.scene.learner, now.learner_state)
        tree, arrays = pack((now.learner_state, now.totals, now.keys, now.seconds, now.ledger, now.weights, shown))
        done = Commit(now.k, {"progress": tree, "rng": self.rng.bit_generator.state}, arrays)
        fresh = None if self.kept is None else self.kept.unwritten()
        rows = as_begun(columns_of_rows(self.rows, list(self.scene.metrics)), self.record.columns)
        self.record.commit(rows, np.array(self.values, dtype=np.float64), done, fresh)
        self.rows, self.values, self.committed = Rows(), [], time.perf_counter()


def resumed(record: RunFolder, learner: Learner[Any], start: Progress, rng: np.random.Generator) -> Progress:
    """Where the run stopped, with the random numbers set to go on from there; `start` if it did not begin yet."""
    last = record.last_commit()
    if last is None:
        return start
    file = record.path / "commit.json"
    try:
        rng.bit_generator.state = last.tree["rng"]
        stored_state, *stored = last.tree["progress"]
        state = restored(learner, unpack(stored_state, last.arrays, stored_classes(learner)))
        known = {Totals.__name__: Totals, **classes_of(Ledger, "a run's ledger")}
        totals, keys, seconds, *rest = unpack(stored[:5], last.arrays, known)  # what follows is for pages
        if not isinstance(totals, Totals) or totals.episodes != last.episodes:
            raise TypeError("its totals are of other episodes than its rows")
        if type(state) is not type(start.learner_state):
            raise TypeError("it is the state of another learner")
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"{file} is damaged: the state in it cannot be used ({error})") from None
    ledger, weights = (*rest, None, None)[:2]  # what a later version added was not kept before
    return Progress(state, totals, keys, seconds, ledger, weights)


def columns_of_rows(rows: Rows, metrics: Sequence[str]) -> Arrays:
    """Rows as columns, one per field and per metric."""
    own = np.array(rows.column("metrics"), dtype=np.float64).reshape(len(rows), len(metrics))
    columns = {name: np.array(rows.column(name), TYPES[column.kind]) for name, column in COLUMNS.items()}
    return columns | {name: own[:, i] for i, name in enumerate(metrics)}


def as_written_now(rows: Arrays) -> Arrays:
    """Rows of any version with today's names: up to 0.1 `good_event` was what is called `optimism` since."""
    if "optimism" in rows or "good_event" not in rows:
        return rows
    return {"optimism" if name == "good_event" else name: column for name, column in rows.items()}


def as_begun(rows: Arrays, stored: Sequence[str] | None) -> Arrays:
    """Rows with the columns that a run began with, metrics included; `stored` is None if it begins now."""
    if stored is None:
        return rows
    if "optimism" not in stored:
        rows = rows | {"good_event": rows["optimism"]}
    return {name: column for name, column in rows.items() if name in stored or name not in COLUMNS}


def commit_seconds() -> float:
    """Seconds between commits: the constant, or what the environment says."""
    text = os.environ.get(COMMIT_VARIABLE)
    if text is None:
        return COMMIT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise InvalidInputError(f"{COMMIT_VARIABLE} is {text!r}, but must be a number of seconds")
    return seconds


def check_metrics(record: RunFolder, metrics: Mapping[str, Metric] | None, finished: bool) -> None:
    """Refuse metrics that a run already has rows without, or rows with, or that are named like other columns."""
    names = tuple(metrics or {})
    for name in names:
        if not isinstance(name, str) or not name or name in COLUMNS or name in LABELS:
            raise InvalidInputError(f"a metric cannot be named {name!r}: rows have a column of that name already")
        if not name.isprintable():
            raise InvalidInputError(f"a metric cannot be named {name!r}: its name must be printable")
    if finished and not names:
        return
    stored = record.columns
    if stored is None:
        return
    had = tuple(name for name in stored if name not in COLUMNS)
    if set(names) <= set(had) if finished else names == had:
        return
    raise RecordError(
        f"{record.path} has rows with {_listed(had)}, but {_listed(names)} is asked for: use the same metrics, "
        "or another folder"
    )


def _listed(names: Sequence[Any]) -> str:
    return f"the metrics {', '.join(map(str, names))}" if names else "no metrics"
