"""The paper's simulation as one command: run it, tabulate it, draw it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.curves import load_curves
from omdpd.executors import local_executor
from omdpd.figures import draw, save
from omdpd.natures.independent import violation_floor
from omdpd.records import write_atomically
from omdpd.runner import run_all
from omdpd.specs import Experiment, RunSpec

TITLE = "OMDPD and rivals on the paper's random CMDPs: mean and 95 % band over {seeds} seeds, K = {episodes}"
NOBODY = (
    "independent: with every entry drawn afresh no policy is safe in every episode, and the next table cannot be "
    "predicted; so every learner pays at least {floor:.3f} per episode in expectation, and violation grows linearly."
)


def run_experiment(
    experiment: Experiment, folder: Path, jobs: int, fresh: bool, watch: Callable[[Sequence[RunSpec]], None]
) -> list[dict[str, Any]]:
    """Play every run that is not finished yet, then write summary and figure; returns the summaries."""
    runs = folder / "runs"
    specs = experiment.runs()
    if fresh:
        for spec in specs:
            shutil.rmtree(runs / spec.id, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    with local_executor(min(jobs, len(specs))) as executor:
        summaries = run_all(specs, runs, executor, watch)
    write_summaries(summaries, folder)
    title = TITLE.format(seeds=experiment.seeds, episodes=experiment.episodes)
    save(draw(load_curves(runs, summaries), title, {"independent": floor_of(experiment)}), folder)
    return summaries


def floor_of(experiment: Experiment) -> float:
    """What nobody can go below when every entry is drawn afresh."""
    world = experiment.worlds[0]
    return violation_floor(world.horizon, world.n_states, world.n_actions)


def write_summaries(summaries: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """summary.json and summary.csv: one record per run; undefined numbers are null and empty."""
    write_atomically(folder / "summary.json", json.dumps(list(summaries), indent=1, allow_nan=False).encode())
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(summaries[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(summaries)
    write_atomically(folder / "summary.csv", text.getvalue().encode())


def mean_of(summaries: Sequence[Mapping[str, Any]], key: str) -> tuple[float, float] | None:
    """Mean and half-width of a 95 % interval over runs (normal approximation); None where some run has no number."""
    values = [summary[key] for summary in summaries]
    if any(value is None for value in values):
        return None
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return float(np.mean(values)), 1.96 * spread / float(np.sqrt(len(values)))
