"""Runs that last: played into a folder, committed as they go, resumed where they stopped, on any executor."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omdpd.arrays import InvalidInputError
from omdpd.evaluation import Totals, scores
from omdpd.packing import class_name, pack, unpack
from omdpd.play import Metric, Progress, Row, Scene, first, met_comparator, play, record_grid, seed_of
from omdpd.records import Commit, RunFolder
from omdpd.specs import RunSpec, toml_of
from omdpd.states import STATE_CLASSES

# How often a run commits, in seconds: what a kill can cost.
COMMIT_SECONDS = 3.0

# The classes a stored run may hold.
RUN_CLASSES = STATE_CLASSES | {class_name(Totals): Totals}


class RunFailedError(InvalidInputError):
    """Some runs failed; the message names the first one and where its error is kept."""


def scene_of(spec: RunSpec, metrics: Mapping[str, Metric] | None = None) -> Scene:
    """What a spec stands for, each part from its own stream of random numbers."""
    cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
    nature = spec.nature.build(cmdp, seed_of(spec.stream(1)))
    return Scene(cmdp, nature, spec.learner.build(), spec.episodes, metrics or {})


@dataclass
class _Writer:
    """Rows and values since the last commit, and the clock that says when to commit."""

    record: RunFolder
    scene: Scene
    rng: np.random.Generator
    rows: list[Row] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    committed: float = field(default_factory=time.perf_counter)

    def add(self, value: float, row: Row | None, now: Progress) -> None:
        self.values.append(value)
        if row is not None:
            self.rows.append(row)
        if now.k == self.scene.episodes or time.perf_counter() - self.committed > COMMIT_SECONDS:
            self.commit(now)

    def commit(self, now: Progress) -> None:
        tree, arrays = pack((now.learner_state, now.totals, now.keys, now.seconds))
        done = Commit(now.k, {"progress": tree, "rng": self.rng.bit_generator.state}, arrays)
        values = pa.table({"value": pa.array(self.values, pa.float64())})
        self.record.commit(table_of_rows(self.rows, list(self.scene.metrics)), values, done)
        self.rows, self.values, self.committed = [], [], time.perf_counter()


def run(spec: RunSpec, folder: Path, metrics: Mapping[str, Metric] | None = None) -> dict[str, Any]:
    """Play a run to its end in its folder (going on where it stopped) and return its summary."""
    record = RunFolder(folder)
    done = record.summary
    if done is not None:
        return done
    record.create(toml_of(spec))
    scene = scene_of(spec, metrics)
    rng = np.random.default_rng(spec.stream(2))
    now = start = _resumed(record, rng) or first(scene)
    writer = _Writer(record, scene, rng)
    for value, row, now in play(scene, start, rng, record_grid(spec.episodes, spec.record == "all")):
        writer.add(value, row, now)
    summary = summarise(scene, spec, now, record)
    record.finish(summary)
    return summary


def summarise(scene: Scene, spec: RunSpec, end: Progress, record: RunFolder) -> dict[str, Any]:
    """One record per run: the scores, the comparator, and how the solves went."""
    best = met_comparator(scene, end)
    result = scores(record.values(), end.totals, best)
    said = scene.learner.report(end.learner_state)
    return {
        "learner": spec.learner.label,
        "nature": spec.nature.label,
        "world": spec.world.label,
        "seed": spec.seed,
        "episodes": spec.episodes,
        **asdict(result),
        "comparator_value": best.value,
        "comparator_exists": best.exists,
        "hindsight_violation": best.hindsight_violation,
        "solves": said.log.solves,
        "iterations": said.log.iterations,
        "failures": said.log.failures,
        "max_gap": said.log.max_gap,
        "max_residual": said.log.max_residual,
        "infeasible": said.infeasible,
        "saturations": said.saturations,
        "ignored_violation": said.ignored,
        "certified_regret": None if said.certificate is None else said.certificate.regret,
        "certified_violation": None if said.certificate is None else said.certificate.violation,
        "seconds": end.seconds,
        "run": spec.id,
    }


def run_all(
    specs: Sequence[RunSpec],
    folder: Path,
    executor: Executor,
    watch: Callable[[Sequence[RunSpec]], None],
    metrics: Mapping[str, Metric] | None = None,
) -> list[dict[str, Any]]:
    """Every run on the executor; `watch` is told the finished ones now and then; summaries in the order of the specs.

    A run that fails keeps its error in its folder and the others go on; at the end the failure is raised.  A run that
    failed before is not tried again until its error is removed.
    """
    futures = {executor.submit(run_safely, spec, folder / spec.id, metrics): spec for spec in specs}
    pending: set[Future[dict[str, Any]]] = set(futures)
    try:
        while pending:
            done, pending = wait(pending, timeout=0.5)
            watch([futures[future] for future in done])
    except KeyboardInterrupt:
        for future in pending:
            future.cancel()
        raise
    failed = [(futures[future], future.exception()) for future in futures if future.exception() is not None]
    if failed:
        spec, error = failed[0]
        where = folder / spec.id / "error.json"
        raise RunFailedError(f"{len(failed)} of {len(specs)} runs failed; the first one with: {error} (see {where})")
    return [future.result() for future in futures]


def run_safely(spec: RunSpec, folder: Path, metrics: Mapping[str, Metric] | None = None) -> dict[str, Any]:
    """`run`, with a failure written into the run's folder instead of lost."""
    before = RunFolder(folder).error
    if before is not None:
        raise RunFailedError(f"it failed before, and was not asked to be tried again: {before.get('error')}")
    try:
        return run(spec, folder, metrics)
    except InterruptedError:
        raise
    except Exception as error:
        folder.mkdir(parents=True, exist_ok=True)
        RunFolder(folder).fail({"error": str(error), "traceback": traceback.format_exc()})
        raise


def table_of_rows(rows: Sequence[Row], metrics: Sequence[str]) -> pa.Table:
    """Rows as a table, one column per field and per metric."""
    columns = {name: [getattr(row, name) for row in rows] for name in ROW_SCHEMA.names}
    table = pa.table(columns, schema=ROW_SCHEMA)
    for i, name in enumerate(metrics):
        table = table.append_column(name, pa.array([row.metrics[i] for row in rows], pa.float64()))
    return table


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
    ]
)


def _resumed(record: RunFolder, rng: np.random.Generator) -> Progress | None:
    last = record.last_commit()
    if last is None:
        return None
    rng.bit_generator.state = last.tree["rng"]
    state, totals, keys, seconds = unpack(last.tree["progress"], last.arrays, RUN_CLASSES)
    return Progress(state, totals, keys, seconds)
