"""The command line: parse words, call the library.  Errors are one sentence and exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from omdpd import __version__, specs
from omdpd.arrays import InvalidInputError
from omdpd.paper import NOBODY, floor_of, mean_of, run_experiment

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Online learning in constrained Markov decision processes.",
)

QUICK_EPISODES, QUICK_SEEDS = 500, 2


def main() -> None:
    """Entry point: every expected error ends in one sentence and exit code 2."""
    try:
        app()
    except InvalidInputError as error:
        print(f"omdpd: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"omdpd: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("omdpd: stopped; the same command goes on from the finished episodes", file=sys.stderr)
        sys.exit(130)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"omdpd {__version__}")
        raise typer.Exit


@app.callback()
def omdpd(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Online learning in constrained Markov decision processes."""


@app.command()
def paper(
    episodes: Annotated[int | None, typer.Option(help="Episodes K per run (3000).")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds, each a world of its own (5).")] = None,
    first_seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Runs at a time; 0: one per core.")] = 0,
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/paper"),
    learners: Annotated[str, typer.Option(help="Comma-separated learners; all if empty.")] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="2 seeds, K = 500: the same page in under two minutes.")
    ] = False,
    any_instance: Annotated[
        bool, typer.Option("--any-instance", help="Also draw worlds whose constraint does not bind.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what is already finished.")] = False,
) -> None:
    """Run the paper's simulation; ends with a table here and a figure on disk."""
    console = Console()
    K = episodes if episodes is not None else QUICK_EPISODES if quick else 3000
    n = seeds if seeds is not None else QUICK_SEEDS if quick else 5
    chosen = [name.strip() for name in learners.split(",") if name.strip()] or None
    for name, value in (("--episodes", K), ("--seeds", n), ("--jobs", jobs + 1), ("--first-seed", first_seed + 1)):
        if value < 1:
            raise InvalidInputError(f"{name} is too small")
    experiment = specs.paper(K, n, first_seed, any_instance, chosen)
    with _progress(console) as progress:
        total = experiment.runs()
        task = progress.add_task("runs", total=len(total))
        summaries = run_experiment(
            experiment, out, jobs or os.cpu_count() or 1, fresh, lambda done: progress.advance(task, len(done))
        )
    _print_table(console, summaries)
    console.print(NOBODY.format(floor=floor_of(experiment)), highlight=False)
    console.print(f"Figure: {out / 'figure.png'} (also svg, pdf); numbers: {out / 'summary.csv'}", highlight=False)


@app.command("list")
def list_() -> None:
    """List learners, natures and worlds, one line each."""
    console = Console()
    for title, table in (("Learners", specs.LEARNERS), ("Natures", specs.NATURES), ("Worlds", specs.WORLDS)):
        shown = Table(title=title, title_justify="left", box=None, show_header=False)
        for name, spec in table.items():
            shown.add_row(str(name), (spec.__doc__ or "").split("\n")[0])
        console.print(shown)


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console)


def _print_table(console: Console, summaries: Sequence[Mapping[str, Any]]) -> None:
    """Means over seeds, one block per nature and one row per learner."""
    shown = Table(title="Means over seeds (± 95 %)", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("nature, learner", no_wrap=True)
    for name in ("regret", "violation", "weak", "exp. r", "exp. v", "fail", "s/run"):
        shown.add_column(name, justify="right", no_wrap=True)
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for summary in summaries:
        groups.setdefault((summary["nature"], summary["learner"]), []).append(summary)
    last = ""
    for (nature, learner), group in groups.items():
        if nature != last:
            shown.add_row(f"[bold]{nature}[/bold]")
        last = nature
        shown.add_row(
            f" {learner}",
            _interval(mean_of(group, "regret")),
            _interval(mean_of(group, "violation")),
            _number(mean_of(group, "weak_violation"), 0),
            _number(mean_of(group, "regret_exponent"), 2),
            _number(mean_of(group, "violation_exponent"), 2),
            str(sum(summary["failures"] for summary in group)),
            _number(mean_of(group, "seconds"), 1),
        )
    console.print(shown)


def _interval(mean: tuple[float, float] | None) -> str:
    return "-" if mean is None else f"{mean[0]:.0f} ± {mean[1]:.0f}"


def _number(mean: tuple[float, float] | None, digits: int) -> str:
    return "-" if mean is None else f"{mean[0]:.{digits}f}"
