"""Experiments from end to end: run what is not finished, on any executor; then tabulate and draw.

An experiment's folder holds `experiment.toml`, `runs/<id>/` (see `records`), `summary.json`, `summary.csv` and the
figure in three formats.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from omdpd.arrays import InvalidInputError
from omdpd.curves import load_curves
from omdpd.figures import draw, save
from omdpd.natures.independent import violation_floor
from omdpd.play import Metric
from omdpd.records import RunFolder, write_atomically
from omdpd.runner import run_all
from omdpd.runs import scene_of
from omdpd.specs import Experiment, RunSpec, toml_of
from omdpd.specs.worlds import RandomDirichletSpec


def run_experiment(
    experiment: Experiment,
    folder: Path,
    executor: Executor,
    watch: Callable[[Sequence[RunSpec]], None] = lambda done: None,
    metrics: Mapping[str, Metric] | None = None,
    shared_disk: bool = True,
    runs: Sequence[RunSpec] | None = None,
) -> list[dict[str, Any]]:
    """Play every run that is not finished yet, then write summaries and figure; returns the summaries.

    Without a shared disk workers play in temporary folders, and their files are written into `folder` here.  `runs`
    are those of the grid that are wanted, all if None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "experiment.toml", toml_of(experiment).encode())
    summaries = run_all(
        experiment.runs() if runs is None else runs, folder / "runs", executor, watch, metrics, shared_disk
    )
    write_summaries(summaries, folder)
    draw_experiment(experiment, folder, summaries)
    return summaries


def suitable_runs(experiment: Experiment) -> tuple[list[RunSpec], list[str]]:
    """The runs of a grid whose parts fit together, and a sentence for every combination that does not.

    A learner may need another feedback, or know something that the world does not grant; a nature may need a world
    with scenarios of its own, or leave no policy safe.
    """
    refusals: dict[tuple[Any, ...], str | None] = {}
    kept = []
    for spec in experiment.runs():
        parts = (spec.world, spec.nature, spec.learner)
        if parts not in refusals:
            refusals[parts] = _refusal(spec)
        if refusals[parts] is None:
            kept.append(spec)
    return kept, [why for why in refusals.values() if why is not None]


def _refusal(spec: RunSpec) -> str | None:
    """Why a run's parts do not fit together, or None."""
    try:
        scene = scene_of(spec)
        scene.learner.init(scene.cmdp.setting(spec.episodes, scene.nature.feedback))
    except InvalidInputError as error:
        return f"{spec.learner.label} on {spec.world.label}, {spec.nature.label}: {error}"
    safety = scene.nature.safety()
    return None if safety.exists else f"{spec.nature.label} on {spec.world.label}: {safety.why}"


def forget(runs: Sequence[RunSpec], folder: Path, failed_only: bool) -> None:
    """Remove what runs left behind: everything, or the errors of failed ones."""
    for spec in runs:
        run = folder / "runs" / spec.id
        if failed_only:
            (run / "error.json").unlink(missing_ok=True)
        else:
            shutil.rmtree(run, ignore_errors=True)


def failed_runs(experiment: Experiment, folder: Path) -> list[RunSpec]:
    """The runs that failed and were not asked to be tried again."""
    return [spec for spec in experiment.runs() if RunFolder(folder / "runs" / spec.id).error is not None]


def draw_experiment(experiment: Experiment, folder: Path, summaries: Sequence[Mapping[str, Any]]) -> list[Path]:
    """The figure of an experiment."""
    title = f"mean and 95 % band over {experiment.seeds} seeds, K = {experiment.episodes}"
    return save(draw(load_curves(folder / "runs", summaries), title, floors_of(experiment)), folder)


def floors_of(experiment: Experiment) -> dict[str, float]:
    """What nobody can go below, for natures that draw every entry afresh (known for worlds with given sizes)."""
    world = experiment.worlds[0]
    if not isinstance(world, RandomDirichletSpec):
        return {}
    return {"independent": violation_floor(world.horizon, world.n_states, world.n_actions)}


def write_summaries(summaries: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """summary.json and summary.csv: one record per run; undefined numbers are null and empty."""
    write_atomically(folder / "summary.json", json.dumps(list(summaries), indent=1, allow_nan=False).encode())
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(summaries[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(summaries)
    write_atomically(folder / "summary.csv", text.getvalue().encode())
