"""Play runs: one episode after another, judged by the truth, committed to disk, on any executor.

A run's result depends on its spec alone: not on the number of jobs, not on other runs, not on interruptions.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import tomli_w

from omdpd import confidence, estimates, memory, mirror, potential, problem, programs
from omdpd.arrays import Floats
from omdpd.cmdp import CMDP
from omdpd.evaluation import Comparator, assess, comparator, scores
from omdpd.kernels.flow import occupancy_of_policy
from omdpd.learners import omdpd, optcmdp, proximal, sinha_vaze
from omdpd.learners.protocol import Learner
from omdpd.natures.protocol import Nature
from omdpd.packing import class_name, pack, unpack
from omdpd.records import Commit, RunFolder
from omdpd.simulate import play_episode
from omdpd.specs import RunSpec

# How often a run commits, in seconds: what a kill can cost.
COMMIT_SECONDS = 3.0

# The classes a stored state may hold.
STATE_CLASSES = {
    class_name(cls): cls
    for cls in (
        problem.Setting, estimates.Counts, confidence.Box, confidence.Kernel, confidence.Estimate, mirror.Hinges,
        mirror.SolveLog, memory.TableMemory, potential.Potential, programs.Basis, omdpd.State, proximal.State,
        proximal.Surrogate, optcmdp.State, sinha_vaze.State,
    )
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scene:
    """What a spec stands for: the truth, nature, and the learner."""

    cmdp: CMDP
    nature: Nature
    learner: Learner[Any]
    episodes: int

    @staticmethod
    def of(spec: RunSpec) -> Scene:
        """Build the parts, each from its own stream of random numbers."""
        cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
        nature_seed = seed_of(spec.stream(1))
        return Scene(cmdp, spec.nature.build(cmdp, nature_seed), spec.learner.build(), spec.episodes)


def seed_of(stream: np.random.SeedSequence) -> int:
    """A stream as one whole number, for parts that draw every episode from (number, k)."""
    return int(stream.generate_state(1, np.uint64)[0] >> 1)


@dataclass(frozen=True, eq=False)
class Progress:
    """A run between two episodes: everything that is needed to go on.

    `keys` are the tables met, for a nature that repeats them (otherwise every episode has its own).
    """

    k: int
    learner_state: Any
    occupancy_sum: Floats
    keys: frozenset[int]
    seconds: float


@dataclass(frozen=True)
class Row:
    """One episode, judged; `certificate` columns are None where no certificate applies."""

    episode: int
    value: float
    excess: tuple[float, ...]
    step_size: float | None
    weight: float | None
    certified_regret: float | None
    certified_violation: float | None


def play(scene: Scene, start: Progress, rng: np.random.Generator) -> Iterator[tuple[Row, Progress]]:
    """The episodes from `start` on, one at a time."""
    cmdp, nature, learner = scene.cmdp, scene.nature, scene.learner
    now = start
    for k in range(start.k, scene.episodes):
        began = time.perf_counter()
        policy = learner.policy(now.learner_state)
        occupancy = occupancy_of_policy(policy, cmdp.transition, cmdp.initial)
        round_ = nature.draw(k, occupancy)
        feedback = play_episode(cmdp, round_, policy, nature.feedback, rng)
        state = learner.update(now.learner_state, feedback)
        judged, said = assess(round_, occupancy), learner.report(state)
        certificate = said.certificate
        row = Row(
            k + 1, judged.value, tuple(judged.excess.tolist()), said.step_size, said.weight,
            None if certificate is None else certificate.regret,
            None if certificate is None else certificate.violation,
        )  # fmt: skip
        seen = not nature.repeats or round_.key in now.keys
        keys = now.keys if seen else now.keys | {round_.key}
        spent = now.seconds + time.perf_counter() - began
        now = Progress(k + 1, state, now.occupancy_sum + occupancy, keys, spent)
        yield row, now


def first(scene: Scene) -> Progress:
    """Before the first episode."""
    state = scene.learner.init(scene.cmdp.setting(scene.episodes, scene.nature.feedback))
    return Progress(0, state, np.zeros(scene.cmdp.shape), frozenset(), 0.0)


def run(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """Play a run to its end in its folder (going on where it stopped) and return its summary."""
    record = RunFolder(folder)
    done = record.summary
    if done is not None:
        return done
    record.create(toml_of(spec))
    scene = Scene.of(spec)
    rng = np.random.default_rng(spec.stream(2))
    now = start = _resumed(record, rng) or first(scene)
    rows: list[Row] = []
    committed = time.perf_counter()
    for row, now in play(scene, start, rng):
        rows.append(row)
        if time.perf_counter() - committed > COMMIT_SECONDS and now.k < spec.episodes:
            record.commit(table_of_rows(rows), _commit(now, rng))
            rows, committed = [], time.perf_counter()
    if rows:
        record.commit(table_of_rows(rows), _commit(now, rng))
    summary = summarise(scene, spec, now, record.rows())
    record.finish(summary)
    return summary


def summarise(scene: Scene, spec: RunSpec, end: Progress, rows: pa.Table) -> dict[str, Any]:
    """One record per run: the scores, the comparator, and how the solves went."""
    best = met_comparator(scene, end)
    values = rows["value"].to_numpy()
    excess = np.stack(rows["excess"].to_numpy())
    result = scores(values, excess, end.occupancy_sum, best)
    said = scene.learner.report(end.learner_state)
    return {
        "learner": spec.learner.name,
        "nature": spec.nature.name,
        "world": spec.world.name,
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


def met_comparator(scene: Scene, end: Progress) -> Comparator:
    """The comparator over the tables that the run met."""
    return comparator(scene.cmdp, scene.nature, sorted(end.keys) if scene.nature.repeats else range(end.k))


def run_all(
    specs: Sequence[RunSpec], folder: Path, executor: Executor, finished: Callable[[RunSpec], None]
) -> list[dict[str, Any]]:
    """Every run on the executor; calls `finished` after each; summaries in the order of the specs."""
    futures = {executor.submit(run_safely, spec, folder / spec.id): spec for spec in specs}
    summaries: dict[str, dict[str, Any]] = {}
    for future in as_completed(futures):
        spec = futures[future]
        summaries[spec.id] = future.result()
        finished(spec)
    return [summaries[spec.id] for spec in specs]


def run_safely(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """`run`, with a failure written into the run's folder instead of lost."""
    try:
        return run(spec, folder)
    except Exception as error:
        RunFolder(folder).fail({"error": str(error), "traceback": traceback.format_exc()})
        raise


def table_of_rows(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table, one column per field."""
    return pa.Table.from_pylist([asdict(row) | {"excess": list(row.excess)} for row in rows], schema=ROW_SCHEMA)


ROW_SCHEMA = pa.schema(
    [
        ("episode", pa.int64()),
        ("value", pa.float64()),
        ("excess", pa.list_(pa.float64())),
        ("step_size", pa.float64()),
        ("weight", pa.float64()),
        ("certified_regret", pa.float64()),
        ("certified_violation", pa.float64()),
    ]
)


def toml_of(spec: RunSpec) -> str:
    """The spec as a TOML file."""
    return tomli_w.dumps(msgspec.to_builtins(spec))


def _commit(now: Progress, rng: np.random.Generator) -> Commit:
    tree, arrays = pack((now.learner_state, now.occupancy_sum, tuple(sorted(now.keys)), now.seconds))
    return Commit(now.k, {"progress": tree, "rng": rng.bit_generator.state}, arrays)


def _resumed(record: RunFolder, rng: np.random.Generator) -> Progress | None:
    last = record.last_commit()
    if last is None:
        return None
    rng.bit_generator.state = last.tree["rng"]
    state, occupancy_sum, keys, seconds = unpack(last.tree["progress"], last.arrays, STATE_CLASSES)
    return Progress(last.episodes, state, occupancy_sum, frozenset(keys), seconds)
