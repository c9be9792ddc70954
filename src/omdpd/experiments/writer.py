"""Rows of a run on their way to disk: gathered, and committed together with the state every few seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omdpd.experiments.snapshots import Snapshots
from omdpd.learners.protocol import Learner, restored, shown_of, stored_classes
from omdpd.play.judging import Totals
from omdpd.play.ledger import Ledger
from omdpd.play.loop import Progress
from omdpd.play.rows import COLUMNS, LABELS, Row, Rows
from omdpd.play.scene import Metric, Scene
from omdpd.problem.arrays import InvalidInputError
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
