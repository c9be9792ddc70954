"""A dry run says what the runs of an experiment will take, by a short trial of each kind, and what would stop them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.experiments.experiment import refusals
from omdpd.experiments.first_use import compile_for
from omdpd.experiments.many_runs import refuse_other_code
from omdpd.experiments.one_run import scene_of
from omdpd.experiments.spec import Experiment, RunSpec
from omdpd.jit.announce import Say
from omdpd.play.loop import batches, record_grid, start_of_run
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.strangers import strangers_code
from omdpd.storage.run_folder import RunFolder

# A dry run plays this many episodes of every kind of run to estimate its time.
TRIAL_EPISODES = 20
# What a recorded episode takes on disk, in bytes, measured on runs of the paper's size.
ROW_BYTES = 120
# And the value of an episode, whether or not it is recorded.
VALUE_BYTES = 8
# Rows of a longer run are counted up to here; they grow with the logarithm of its length.
TRIAL_ROWS = 1_000_000


@dataclass(frozen=True)
class TimeEstimate:
    """The kinds of runs that are left, with their number and seconds a run (None: it fails), and what is refused."""

    kinds: tuple[tuple[tuple[str, ...], int, float | None], ...]
    n_left: int
    n_done: int
    seconds: float
    megabytes: float
    refused: dict[str, str]


def forecast(
    experiment: Experiment,
    runs: Sequence[RunSpec],
    folder: Path,
    fresh: Sequence[RunSpec],
    retry_failed: bool,
    say: Say,
) -> TimeEstimate:
    """The runs that a call would play, and how long and large they will be; `say` is told what is compiled first.

    Runs of `fresh` would be played again.  What `run_all` refuses is refused here too.
    """
    kept = [run for run in runs if run not in set(fresh)]
    refuse_other_code(kept, folder / "runs")
    done = {run.id for run in kept if RunFolder(folder / "runs" / run.id).finished}
    left = [run for run in runs if run.id not in done]
    refused = refusals([run for run in left if run in set(kept)], folder, retry_failed)
    compile_for(left, say)
    alike: dict[Any, list[RunSpec]] = {}
    for run in left:
        alike.setdefault((run.world, run.nature, run.learner), []).append(run)
    kinds, total = [], 0.0
    for parts, group in alike.items():
        seconds = None
        try:
            with strangers_code("its trial raised"):
                seconds = _trial(group[0])
            total += seconds * len(group)
        except InvalidInputError as error:
            refused = {run.id: str(error) for run in group} | refused
        fails = all(run.id in refused for run in group)
        kinds.append((tuple(part.label for part in parts), len(group), None if fails else seconds))
    disk = len(left) * _bytes(experiment) / 1e6
    return TimeEstimate(tuple(kinds), len(left), len(done), total, disk, refused)


def _bytes(experiment: Experiment) -> float:
    """What a run takes on disk."""
    K, recorded = experiment.episodes, record_grid(experiment.episodes, experiment.record == "all")
    n_rows = K if experiment.record == "all" else sum(map(recorded, range(1, min(K, TRIAL_ROWS) + 1)))
    return n_rows * ROW_BYTES + K * VALUE_BYTES


def _trial(spec: RunSpec) -> float:
    """Estimate the processor time of a run in seconds, from its first few episodes.

    They are played twice: what is loaded first, machine code above all, is loaded once and not per episode.
    """
    scene = scene_of(spec)
    n = min(TRIAL_EPISODES, spec.episodes)
    for _ in range(2):
        start, began = start_of_run(scene), time.process_time()
        for _, _, now in batches(scene, start, np.random.default_rng(0), lambda k: False, (n,)):
            if now.k == n:
                break
        seconds = time.process_time() - began
    return seconds / n * spec.episodes
