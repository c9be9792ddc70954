"""Experiments from end to end: run what is not finished, on any executor, and sum it up.

An experiment's folder holds `experiment.toml`, `runs/<id>/` (see `storage.run_folder`), `summary.json` and
`summary.csv`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from omdpd.experiments.files import PROBLEM_FILES, overridden, pinned
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.one_run import RunCallback, failed_before, scene_of
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment, RunSpec, WorldSpec, toml_of
from omdpd.play.guards import check_footprint
from omdpd.play.scene import Metric
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import csv_text, make_folder, write_atomically
from omdpd.storage.run_folder import RunFolder
from omdpd.storage.sealed import sealed_toml

# What `omdpd paper` runs: ours, the uniform policy, and two rivals to measure against.
PAPER_LEARNERS = (
    "ProximalOMDPD.standard", "ProximalOMDPD.cautious", "ProximalOMDPD.balanced", "ProximalOMDPD.optimistic",
    "OMDPD.tuned", "OMDPD.theory", "Uniform", "OptCMDP", "SinhaVaze",
)  # fmt: skip
# What a problem file is found by, and no setting.
NOT_SET = ("path", "sha256")
PAPER_NATURES = ("fixed", "noisy", "scaled", "pool", "adaptive", "anchored", "independent")


def run_experiment(
    experiment: Experiment,
    folder: Path,
    executor: Executor,
    watch: Callable[[Sequence[RunSpec]], None] = lambda done: None,
    metrics: Mapping[str, Metric] | None = None,
    shared_disk: bool = True,
    runs: Sequence[RunSpec] | None = None,
    callback: RunCallback | None = None,
) -> list[dict[str, Any]]:
    """Play every run that is not finished yet, then write the summaries; returns the summaries.

    Without a shared disk workers play in temporary folders, and their files are written into `folder` here.  `runs`
    are those of the grid that are wanted, all if None.
    """
    write_experiment(experiment, folder)
    summaries = run_all(
        experiment.runs() if runs is None else runs, folder / "runs", executor, watch, metrics, shared_disk, callback
    )
    write_summaries(summaries, folder)
    return summaries


def write_experiment(experiment: Experiment, folder: Path) -> None:
    """Let a folder of results say what it holds; several processes that say the same may do so at once."""
    make_folder(folder)
    write_atomically(folder / "experiment.toml", sealed_toml("", toml_of(experiment)))


class GridNames(NamedTuple):
    """The names of a grid, all there are where none is given; a world may be a problem file."""

    worlds: Sequence[str] = ()
    natures: Sequence[str] = ()
    learners: Sequence[str] = ()


def named_experiment(
    registry: Registry, names: GridNames, episodes: int, seeds: int, first_seed: int = 0
) -> Experiment:
    """A grid of names at their default settings."""
    return Experiment(
        tuple(world_named(registry, name) for name in names.worlds or registry.complete("worlds")),
        tuple(registry.spec("natures", name) for name in names.natures or registry.complete("natures")),
        tuple(registry.spec("learners", name) for name in names.learners or registry.complete("learners")),
        episodes, seeds, first_seed,
    )  # fmt: skip


def world_named(registry: Registry, name: str, settings: Sequence[str] = ()) -> WorldSpec:
    """A world by its name or its problem file (.npz, .umb), with settings ``key=value``."""
    kind = PROBLEM_FILES.get(Path(name).suffix, name)
    said = overridden({} if kind == name else {"path": name}, settings)
    try:
        return pinned(registry.spec("worlds", kind, said), Path())
    except msgspec.ValidationError as error:
        keys = [key for key in registry.spec_type("worlds", kind).__struct_fields__ if key not in NOT_SET]
        raise InvalidInputError(f"the world {name}: {error}; settings: {', '.join(keys) or 'none'}") from None


def paper_experiment(
    registry: Registry, episodes: int, seeds: int, first_seed: int = 0, any_instance: bool = False,
    learners: Sequence[str] = (), natures: Sequence[str] = (),
) -> Experiment:  # fmt: skip
    """The paper's simulation: its random worlds, all natures that were asked about, our learners and two rivals."""
    names = GridNames(("random_dirichlet",), natures or PAPER_NATURES, learners or PAPER_LEARNERS)
    experiment = named_experiment(registry, names, episodes, seeds, first_seed)
    world = registry.spec("worlds", "random_dirichlet", {"binding": not any_instance})
    return msgspec.structs.replace(experiment, worlds=(world,))


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


def suiting(experiment: Experiment, source: str) -> Experiment:
    """The experiment with those of its learners that suit every world and nature of it."""
    once = msgspec.structs.replace(experiment, seeds=1)
    refused = {run.learner for run in set(once.runs()) - set(suitable_runs(once)[0])}
    kept = tuple(learner for learner in experiment.learners if learner not in refused)
    if not kept:
        raise InvalidInputError(f"{source}: no learner suits all of its worlds and natures")
    return msgspec.structs.replace(experiment, learners=kept)


def _refusal(spec: RunSpec) -> str | None:
    """Why a run's parts do not fit together, or None."""
    try:
        scene = scene_of(spec)
        check_footprint(scene.learner, scene.setting)
        scene.learner.init(scene.setting)
    except InvalidInputError as error:
        return f"{spec.learner.label} on {spec.world.label}, {spec.nature.label}: {error}"
    safety = scene.nature.safety()
    return None if safety.exists else f"{spec.nature.label} on {spec.world.label}: {safety.why}"


def forget(runs: Sequence[RunSpec], folder: Path, failed_only: bool) -> None:
    """Remove the files of runs, or the errors of failed ones; refuse that while a process plays one of them.

    A failed run whose plugin was changed since begins anew: what the old code played is not what the new one would.
    """
    records = [(spec, RunFolder(folder / "runs" / spec.id, spec.id)) for spec in runs]
    present = [(spec, record) for spec, record in records if record.path.is_dir()]
    for _, record in present:
        with record.owned_now():  # all of them are free, before anything is removed
            pass
    for spec, record in present:
        with record.owned_now():
            if not failed_only or (record.failed and record.other_plugins(spec.checksums)):
                record.remove()
            else:
                (record.path / "error.json").unlink(missing_ok=True)


def refusals(runs: Sequence[RunSpec], folder: Path, retry_failed: bool) -> dict[str, str]:
    """Why a call would not play some of these runs into a folder, by their ids: what they left there before."""
    found = {}
    for spec in runs:
        record = RunFolder(folder / "runs" / spec.id, spec.id)
        if record.failed and not retry_failed:
            found[spec.id] = failed_before(record)
    return found


def write_summaries(summaries: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """summary.json and summary.csv: one record per run; undefined numbers are null and empty.

    A run of an earlier version may lack a column; its place is empty too.
    """
    columns = list(dict.fromkeys(key for summary in summaries for key in summary))
    # A line per run: the encoder for people, an entry per line, takes as long as all else that a finished study does.
    lines = ",\n".join(json.dumps(summary, allow_nan=False) for summary in summaries)
    write_atomically(folder / "summary.json", f"[\n{lines}\n]\n".encode())
    rows = ([summary.get(name) for name in columns] for summary in summaries)
    write_atomically(folder / "summary.csv", csv_text([columns, *rows]).encode())
