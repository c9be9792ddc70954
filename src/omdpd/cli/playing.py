"""Commands that play runs share these: options, where runs go, the live view, and how it is stopped."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from omdpd.cli.live_view import LiveView
from omdpd.cli.screen import Screen
from omdpd.experiments.executors import Backend, executor
from omdpd.experiments.experiment import forget, run_experiment, suitable_runs, write_experiment
from omdpd.experiments.first_use import compile_for
from omdpd.experiments.interrupts import hearing_terminate
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment, RunSpec
from omdpd.experiments.writer import commit_seconds
from omdpd.problem.arrays import InvalidInputError, named, shown
from omdpd.report.canvas import can_draw, no_figures
from omdpd.report.figures import METADATA, draw_experiment
from omdpd.report.results import with_early
from omdpd.report.study import write_report
from omdpd.storage.atomic import make_folder
from omdpd.storage.run_folder import RunFolder

# No i/n is longer.
MAX_SHARD = 20
Address = Annotated[str, typer.Option(help="Where to listen; another than this machine's own needs --public.")]
FurtherNames = Annotated[
    list[str] | None, typer.Option("--name", help="A further name under which this machine is asked.")
]
Names = Annotated[str, typer.Option(help="Comma-separated names; all if empty.")]
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


def place_of(shard: str) -> tuple[int, int]:
    """The place and the number of shards that i/n says.

    >>> place_of("3/30")
    (3, 30)
    """
    place, slash, n = shard.partition("/")
    if len(shard) > MAX_SHARD or not (slash and place.isascii() and place.isdigit() and n.isascii() and n.isdigit()):
        raise InvalidInputError(f"--shard is {shown(shard)}, but must be i/n, as in 3/30")
    return int(place), int(n)


def suitable(console: Screen, experiments: Sequence[Experiment]) -> list[RunSpec]:
    """The runs whose parts fit together; what does not fit is said."""
    found = []
    for experiment in experiments:
        runs, refused = suitable_runs(experiment)
        found += runs
        for line in refused:
            console.say(f"left out: {line}")
    if not found:
        raise InvalidInputError("no learner suits these worlds and natures")
    return found


@dataclass(frozen=True)
class PlayOptions:
    """Where runs go and what of earlier calls is kept, as the options of these names say it."""

    jobs: int = 0
    on: str = "local"
    address: str | None = None
    fresh: str | None = None
    retry_failed: bool = False
    no_shared_disk: bool = False
    report: bool = False
    no_figures: bool = False

    def __post_init__(self) -> None:
        if self.jobs < 0:
            raise InvalidInputError(f"--jobs is {self.jobs}, but must not be negative")
        named(PLACES, self.on, "place")
        commit_seconds()  # refused here rather than in every worker

    @property
    def figures(self) -> bool:
        """Whether to draw: not where that is not wanted, or not possible."""
        return not self.no_figures and can_draw()

    def drawn(self, folder: Path) -> str:
        """Where the figure is, or how to get one, for the last line of a command."""
        if self.figures:
            return f"Figure: {folder / 'figure.png'} (also svg, pdf); "
        return "" if self.no_figures else f"No figure: {no_figures()}; "

    def again(self, runs: Sequence[RunSpec]) -> list[RunSpec]:
        """The runs that --fresh plays again: those of the learners that it names, all where it names none."""
        names = names_of(self.fresh or "")
        return [run for run in runs if self.fresh == "" or run.learner.name in names]

    def check_names(self, runs: Sequence[RunSpec]) -> None:
        """Refuse a name in --fresh that is no learner's of these runs."""
        there = {run.learner.name: run for run in runs}
        for name in names_of(self.fresh or ""):
            named(there, name, "learner here for --fresh, by the name")

    def executor(self, n_runs: int) -> Any:
        """The workers, no more than there are runs."""
        return executor(PLACES[self.on], min(self.jobs or os.cpu_count() or 1, n_runs), self.address)


OPTIONS: dict[str, Any] = {
    "jobs": Annotated[int, typer.Option(help="Runs at a time; 0: one per core.")],
    "on": Annotated[str, typer.Option("--on", help="Where runs go: local or dask.")],
    "address": Annotated[
        str | None, typer.Option(help="A Dask scheduler (tcp://...); without one, one is started here.")
    ],
    "fresh": Annotated[
        str | None,
        typer.Option(
            "--fresh", metavar="[NAMES]", help="Run again what is finished: all of it, or that of these learners."
        ),
    ],
    "retry_failed": Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")],
    "no_shared_disk": Annotated[
        bool,
        typer.Option(
            "--no-shared-disk",
            help="Workers do not see the folder of results: they play in temporary folders and send their files here. "
            "By default workers write into that folder themselves, under the same path.",
        ),
    ],
    "report": Annotated[bool, typer.Option("--report", help="End with report.html, a page that opens from disk.")],
    "no_figures": Annotated[bool, typer.Option("--no-figures", help="Draw nothing: numbers and tables alone.")],
}


def plays(*options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options, all if none is named, and let it have them as its argument `plan`."""

    def parsing(command: Callable[..., None]) -> Callable[..., None]:
        names, usual = options or tuple(OPTIONS), PlayOptions()

        @wraps(command)
        def parsed(**words: Any) -> None:
            command(plan=PlayOptions(**{name: words.pop(name) for name in names}), **words)

        signature, keyword = inspect.signature(command, eval_str=True), inspect.Parameter.KEYWORD_ONLY
        own = [each.replace(kind=keyword) for each in signature.parameters.values() if each.name != "plan"]
        more = [
            inspect.Parameter(name, keyword, default=getattr(usual, name), annotation=OPTIONS[name]) for name in names
        ]
        parsed.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return parsed

    return parsing


FIGURES = tuple(f"figure.{kind}" for kind in METADATA)
PLACES: dict[str, Backend] = {"local": "local", "dask": "dask"}


def play_experiment(
    console: Screen, experiment: Experiment, folder: Path, plan: PlayOptions, runs: Sequence[RunSpec] | None = None
) -> list[dict[str, Any]]:
    """Play an experiment (or these of its runs), draw its figure and report, and return the summaries.

    The report is written even where runs failed: it shows which ones, and why.
    """
    wanted = experiment.runs() if runs is None else runs
    plan.check_names(wanted)
    # Where nothing new comes of it the figure stays as it is: drawing it is most of a call that finds all finished.
    before = _content(folder / "summary.json")
    try:
        with playing(console, wanted, folder, plan) as (workers, watch):
            records = run_experiment(experiment, folder, workers, watch, None, not plan.no_shared_disk, wanted)
        records = [with_early(record, RunFolder(folder / "runs" / record["run"], record["run"])) for record in records]
        drawn = before == _content(folder / "summary.json") and all((folder / name).exists() for name in FIGURES)
        if plan.figures and not drawn:
            draw_experiment(experiment, folder, records)
    finally:
        if plan.report and (folder / "runs").is_dir():
            console.say(f"Report: {write_report(folder)}")
    return records


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def play_alone(
    console: Screen, runs: Sequence[RunSpec], folder: Path, plan: PlayOptions, of: Experiment | None = None
) -> list[dict[str, Any]]:
    """Play runs into a folder, and sum nothing up; they may be some `of` an experiment whose rest others play."""
    make_folder(folder)
    with playing(console, runs, folder, plan) as (workers, watch):
        if of is not None:
            write_experiment(of, folder)
        return run_all(runs, folder / "runs", workers, watch, None, not plan.no_shared_disk)


@contextmanager
def playing(
    console: Screen, runs: Sequence[RunSpec], folder: Path, plan: PlayOptions
) -> Iterator[tuple[Executor, Callable[[Sequence[RunSpec]], None]]]:
    """Workers for some runs and a live view of them; Ctrl-C and SIGTERM end it with a sentence, and lose nothing."""
    with hearing_terminate() as stop:
        try:
            forget(plan.again(runs), folder, failed_only=False)
            if plan.retry_failed:
                forget(runs, folder, failed_only=True)
            left = [run for run in runs if not RunFolder(folder / "runs" / run.id).finished]
            compile_for(left, console.say)
            with plan.executor(max(len(left), 1)) as workers, LiveView(console, runs, folder / "runs") as watch:
                yield workers, watch
        except KeyboardInterrupt:
            console.say(f"Stopped; what was done is kept in {folder}. The same command resumes it.")
            raise typer.Exit(143 if stop.terminated else 130) from None
