"""`omdpd run --dry-run`: the runs that are left, what they will take, and what would keep them from being played."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from omdpd.cli.playing import Plan
from omdpd.experiments.experiment import refusals
from omdpd.experiments.first_use import compile_for
from omdpd.experiments.one_run import RunFailedError, scene_of
from omdpd.experiments.spec import Experiment, RunSpec
from omdpd.play.loop import first, record_grid, stretches
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.strangers import strangers_code
from omdpd.storage.run_folder import RunFolder

# A dry run plays this many episodes of every kind of run to estimate its time.
TRIAL_EPISODES = 20
# What a recorded episode takes on disk, in bytes, measured on runs of the paper's size.
ROW_BYTES = 60
# And the value of an episode, whether or not it is recorded.
VALUE_BYTES = 8
# Rows of a longer run are counted up to here; they grow with the logarithm of its length.
TRIAL_ROWS = 1_000_000


def print_plan(console: Console, experiment: Experiment, runs: Sequence[RunSpec], folder: Path, plan: Plan) -> None:
    """The runs that are left, and how long and large they will be, from a short trial of each kind.

    Runs that would be refused or would fail are counted in the error that it ends with.
    """
    done = {run.id for run in runs if not plan.fresh and RunFolder(folder / "runs" / run.id).finished}
    left = [run for run in runs if run.id not in done]
    refused = {} if plan.fresh else refusals(left, folder, plan.retry_failed)
    compile_for(left, lambda line: console.print(line, highlight=False, soft_wrap=True))
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("world", "nature", "learner", "seeds", "seconds a run"):
        shown.add_column(name)
    total = 0.0
    kinds: dict[Any, list[RunSpec]] = {}
    for run in left:
        kinds.setdefault((run.world, run.nature, run.learner), []).append(run)
    for parts, alike in kinds.items():
        try:
            with strangers_code("its trial raised"):
                seconds = _trial(alike[0])
        except InvalidInputError as error:
            refused = {run.id: str(error) for run in alike} | refused
        else:
            total += seconds * len(alike)
        told = "fails" if all(run.id in refused for run in alike) else f"{seconds:.1f}"
        shown.add_row(*(part.label for part in parts), str(len(alike)), told)
    console.print(shown)
    _print_sum(console, experiment, len(left), len(done), total)
    if refused:
        name, why = next(iter(refused.items()))
        raise RunFailedError(f"{len(refused)} of {len(left)} runs would fail; the first one, {name}: {why}")


def _print_sum(console: Console, experiment: Experiment, n_left: int, n_done: int, total: float) -> None:
    recorded = record_grid(experiment.episodes, experiment.record == "all")
    share = sum(map(recorded, range(1, min(experiment.episodes, TRIAL_ROWS) + 1)))
    n_rows = experiment.episodes if share == experiment.episodes or experiment.record == "all" else share
    disk = n_left * (n_rows * ROW_BYTES + experiment.episodes * VALUE_BYTES) / 1e6
    jobs = os.cpu_count() or 1
    before = f"; {n_done} more are finished" if n_done else ""
    console.print(
        f"{n_left} runs, {experiment.episodes} episodes each: about {total / 60:.1f} minutes of work "
        f"({total / 60 / jobs:.1f} on {jobs} cores) and {disk:.1f} MB on disk{before}",
        highlight=False,
    )


def _trial(spec: RunSpec) -> float:
    """Seconds of processor time a run will take, from its first few episodes (whatever else this machine is doing).

    They are played twice: what is loaded first, machine code above all, is loaded once and not per episode.
    """
    scene = scene_of(spec)
    n = min(TRIAL_EPISODES, spec.episodes)
    for _ in range(2):
        start, began = first(scene), time.process_time()
        for _, _, now in stretches(scene, start, np.random.default_rng(0), lambda k: False, (n,)):
            if now.k == n:
                break
        seconds = time.process_time() - began
    return seconds / n * spec.episodes
