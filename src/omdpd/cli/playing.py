"""What every command that plays runs shares: its options, where runs go, the live view, and how it is stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from omdpd.cli.progress import Watch
from omdpd.experiments.executors import Place, executor
from omdpd.experiments.experiment import forget, run_experiment, suitable_runs, write_experiment
from omdpd.experiments.first_use import compile_for
from omdpd.experiments.interrupts import hearing_terminate
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment, RunSpec
from omdpd.experiments.writer import commit_seconds
from omdpd.problem.arrays import InvalidInputError, named
from omdpd.report.figures import METADATA, draw_experiment
from omdpd.report.results import with_early
from omdpd.report.study import write_report
from omdpd.storage.run_folder import RunFolder

Names = Annotated[str, typer.Option(help="Comma-separated names; all if empty.")]
Jobs = Annotated[int, typer.Option(help="Runs at a time; 0: one per core.")]
On = Annotated[str, typer.Option("--on", help="Where runs go: local, dask or ray.")]
Address = Annotated[
    str | None, typer.Option(help="A Dask scheduler (tcp://...; without one, one is started here) or a Ray cluster.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run again what is already finished.")]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")]
Report = Annotated[bool, typer.Option("--report", help="End with report.html, a page that opens from disk.")]
NoFigures = Annotated[bool, typer.Option("--no-figures", help="Draw nothing: numbers and tables alone.")]
NoSharedDisk = Annotated[
    bool,
    typer.Option(
        "--no-shared-disk",
        help="Workers do not see the folder of results: they play in temporary folders and send their files here. "
        "By default workers write into that folder themselves, under the same path.",
    ),
]

Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="A Python file with learners, worlds or natures of your own; it is run as code."),
]


def registry_of(plugins: list[Path] | None) -> Registry:
    """What names stand for, with those of some plugin files."""
    return Registry.installed().with_plugins(plugins or ())


def names_of(text: str) -> list[str]:
    """The names in a comma-separated list.

    >>> names_of("pool, noisy,")
    ['pool', 'noisy']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def suitable(console: Console, experiments: Sequence[Experiment]) -> list[RunSpec]:
    """The runs whose parts fit together; what does not fit is said."""
    found = []
    for experiment in experiments:
        runs, refused = suitable_runs(experiment)
        found += runs
        for line in refused:
            console.print(f"left out: {line}", highlight=False, soft_wrap=True)
    if not found:
        raise InvalidInputError("no learner suits these worlds and natures")
    return found


@dataclass(frozen=True)
class Plan:
    """Where runs go and what of earlier calls is kept, as the command line says it."""

    on: str = "local"
    jobs: int = 0
    address: str | None = None
    shared_disk: bool = True
    fresh: bool = False
    retry_failed: bool = False
    report: bool = False
    figures: bool = True

    def __post_init__(self) -> None:
        if self.jobs < 0:
            raise InvalidInputError(f"--jobs is {self.jobs}, but must not be negative")
        named(PLACES, self.on, "place")
        commit_seconds()  # refused here rather than in every worker

    def executor(self, n_runs: int) -> Any:
        """The workers, no more than there are runs."""
        return executor(PLACES[self.on], min(self.jobs or os.cpu_count() or 1, n_runs), self.address)


FIGURES = tuple(f"figure.{kind}" for kind in METADATA)
PLACES: dict[str, Place] = {"local": "local", "dask": "dask", "ray": "ray"}


def play_experiment(
    console: Console, experiment: Experiment, folder: Path, plan: Plan, runs: Sequence[RunSpec] | None = None
) -> list[dict[str, Any]]:
    """Play an experiment (or these of its runs), draw its figure and report, and return the summaries.

    The report is written even where runs failed: it shows which ones, and why.
    """
    wanted = experiment.runs() if runs is None else runs
    # Where nothing new comes of it the figure stays as it is: drawing it is most of a call that finds all finished.
    before = _content(folder / "summary.json")
    try:
        with playing(console, wanted, folder, plan) as (workers, watch):
            records = run_experiment(experiment, folder, workers, watch, None, plan.shared_disk, wanted)
        records = [with_early(record, RunFolder(folder / "runs" / record["run"], record["run"])) for record in records]
        drawn = before == _content(folder / "summary.json") and all((folder / name).exists() for name in FIGURES)
        if plan.figures and not drawn:
            draw_experiment(experiment, folder, records)
    finally:
        if plan.report and (folder / "runs").is_dir():
            console.print(f"Report: {write_report(folder)}", highlight=False, soft_wrap=True)
    return records


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def play_runs(
    console: Console, experiment: Experiment, folder: Path, plan: Plan, runs: Sequence[RunSpec]
) -> list[dict[str, Any]]:
    """Play some runs of an experiment into its folder, and sum nothing up: others may be playing the rest."""
    with playing(console, runs, folder, plan) as (workers, watch):
        write_experiment(experiment, folder)
        return run_all(runs, folder / "runs", workers, watch, None, plan.shared_disk)


@contextmanager
def playing(
    console: Console, runs: Sequence[RunSpec], folder: Path, plan: Plan
) -> Iterator[tuple[Executor, Callable[[Sequence[RunSpec]], None]]]:
    """Workers for some runs and a live view of them; Ctrl-C and SIGTERM end it with a sentence, and lose nothing."""
    with hearing_terminate() as stop:
        try:
            if plan.fresh or plan.retry_failed:
                forget(runs, folder, failed_only=not plan.fresh)
            left = [run for run in runs if not RunFolder(folder / "runs" / run.id).finished]
            compile_for(left, lambda line: console.print(line, highlight=False, soft_wrap=True))
            with plan.executor(max(len(left), 1)) as workers, Watch(console, runs, folder / "runs") as watch:
                yield workers, watch
        except KeyboardInterrupt:
            sentence = f"Stopped; what was done is kept in {folder}. The same command goes on from there."
            console.print(sentence, highlight=False, soft_wrap=True)
            raise typer.Exit(143 if stop.terminated else 130) from None
