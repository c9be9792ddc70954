"""Rows of a run on their way to disk: gathered, and committed together with the state every few seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omdpd.experiments.snapshots import Snapshots
from omdpd.learners.protocol import Learner, restored, stored_classes
from omdpd.play.judging import Totals
from omdpd.play.ledger import Ledger
from omdpd.play.loop import Progress
from omdpd.play.rows import Row, Rows
from omdpd.play.scene import Metric, Scene
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import RecordError
from omdpd.storage.manifest import Commit
from omdpd.storage.packing import classes_of, pack, unpack
from omdpd.storage.run_folder import RunFolder

# How often a run commits, in seconds: what a kill can cost.  The environment variable of this name changes it.
COMMIT_SECONDS = 3.0
COMMIT_VARIABLE = "OMDPD_COMMIT_SECONDS"
# Values of episodes that wait for a commit take memory: beyond this many they are committed early.
MAX_WAITING = 50_000

ROW_SCHEMA = pa.schema(
    [
        ("episode", pa.int64()),
        ("value", pa.float64()),
        ("excess", pa.list_(pa.float64())),
        ("value_sum", pa.float64()),
        ("violation_sum", pa.float64()),
        ("step_size", pa.float64()),
        ("weight", pa.float64()),
        ("certified_regret", pa.float64()),
        ("certified_violation", pa.float64()),
        ("good_event", pa.bool_()),
        ("optimism", pa.bool_()),
        ("planned_value_sum", pa.float64()),
        ("planned_violation_sum", pa.float64()),
    ]
)
# What rows had up to 0.1; their `good_event` is what is called `optimism` since.
FIRST_COLUMNS = tuple(ROW_SCHEMA.names[:10])
# Columns that reading adds; a metric cannot have such a name either.
LABELS = ("run", "world", "nature", "learner", "seed", "regret")


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
        for row in rows:
            self.rows.add(row)
        if self.kept is not None:
            self.kept.look(now, self.scene)
        waited = time.perf_counter() - self.committed > self.every
        if now.k == self.scene.episodes or waited or len(self.values) >= MAX_WAITING:
            self.commit(now)

    def commit(self, now: Progress) -> None:
        """Make everything up to `now` durable."""
        if not self.values:
            return
        tree, arrays = pack((now.learner_state, now.totals, now.keys, now.seconds, now.ledger, now.weights))
        done = Commit(now.k, {"progress": tree, "rng": self.rng.bit_generator.state}, arrays)
        values = pa.table({"value": pa.array(self.values, pa.float64())})
        fresh = None if self.kept is None else self.kept.unwritten()
        rows = table_of_rows(self.rows, list(self.scene.metrics))
        stored = self.record.columns
        if stored is not None and "optimism" not in stored:
            rows = _as_first_written(rows)  # a run keeps the columns that it began with
        self.record.commit(rows, values, done, fresh)
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
        totals, keys, seconds, *rest = unpack(stored, last.arrays, known)
        if not isinstance(totals, Totals) or totals.episodes != last.episodes:
            raise TypeError("its totals are of other episodes than its rows")
        if type(state) is not type(start.learner_state):
            raise TypeError("it is the state of another learner")
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"{file} is damaged: the state in it cannot be used ({error})") from None
    ledger, weights = (*rest, None, None)[:2]  # what a later version added was not kept before
    return Progress(state, totals, keys, seconds, ledger, weights)


def table_of_rows(rows: Rows, metrics: Sequence[str]) -> pa.Table:
    """Rows as a table, one column per field and per metric."""
    table = pa.table({name: rows.column(name) for name in ROW_SCHEMA.names}, schema=ROW_SCHEMA)
    for i, name in enumerate(metrics):
        table = table.append_column(name, pa.array([each[i] for each in rows.column("metrics")], pa.float64()))
    return table


def as_written_now(rows: pa.Table) -> pa.Table:
    """Rows of any version with today's names: up to 0.1 `good_event` was what is called `optimism` since."""
    if "optimism" in rows.column_names or "good_event" not in rows.column_names:
        return rows
    return rows.rename_columns(["optimism" if name == "good_event" else name for name in rows.column_names])


def _as_first_written(rows: pa.Table) -> pa.Table:
    """Rows with the columns of 0.1, metrics included."""
    place = rows.column_names.index("good_event")
    rows = rows.set_column(place, "good_event", rows["optimism"])
    return rows.select([*FIRST_COLUMNS, *(name for name in rows.column_names if name not in ROW_SCHEMA.names)])


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
        if not isinstance(name, str) or not name or name in ROW_SCHEMA.names or name in LABELS:
            raise InvalidInputError(f"a metric cannot be named {name!r}: rows have a column of that name already")
    if finished and not names:
        return
    stored = record.columns
    if stored is None:
        return
    had = tuple(name for name in stored if name not in ROW_SCHEMA.names)
    if set(names) <= set(had) if finished else names == had:
        return
    raise RecordError(
        f"{record.path} has rows with {_listed(had)}, but {_listed(names)} is asked for: use the same metrics, "
        "or another folder"
    )


def _listed(names: Sequence[Any]) -> str:
    return f"the metrics {', '.join(map(str, names))}" if names else "no metrics"
