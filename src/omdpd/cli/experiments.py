"""`omdpd paper`, `run`, `new`, `schema`, `ls`, `table`, `plot`: run experiments and read their results."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from omdpd.cli.playing import PlayOptions, Plugins, names_of, place_of, play_alone, play_experiment, plays, registry_of
from omdpd.cli.screen import Screen, refuse_all, warn
from omdpd.experiments.dry_run import forecast
from omdpd.experiments.experiment import paper_experiment
from omdpd.experiments.files import STARTER, load_experiment, stored_experiment
from omdpd.experiments.one_run import RunFailedError
from omdpd.experiments.registry import check_sources
from omdpd.experiments.schema import experiment_schema
from omdpd.experiments.spec import Experiment, RunSpec, shard_of
from omdpd.play.rows import COLUMNS
from omdpd.play.units import Units, in_user_units
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.markup import printable
from omdpd.report.canvas import drawn
from omdpd.report.curves import load_curves
from omdpd.report.figures import SPREADS, draw, floors_of, save, spread_named
from omdpd.report.publication import write_paper
from omdpd.report.results import budget_text, seeds_text, summaries
from omdpd.report.stored import StoredRun, all_runs, mixed_code
from omdpd.report.tables import SHOWN, STYLES, aligned, columns_named, formatted, print_table
from omdpd.storage.atomic import save_file, write_atomically
from omdpd.storage.run_folder import RunFolder

QUICK_EPISODES, QUICK_SEEDS = 500, 2


@plays()
def paper(
    plan: PlayOptions,
    episodes: Annotated[int | None, typer.Option(help="Episodes K per run (3000).")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds, each a world of its own (5).")] = None,
    first_seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/paper"),
    learners: Annotated[str, typer.Option(help="Comma-separated learners; nine if empty.")] = "",
    natures: Annotated[str, typer.Option(help="Comma-separated natures; seven if empty.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="2 seeds, K = 500: the same page in a minute or two.")] = False,
    any_instance: Annotated[
        bool, typer.Option("--any-instance", help="Also draw worlds whose constraint does not bind.")
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Run the paper's simulation.

    Ends with a table here and a figure on disk.
    """
    K = episodes if episodes is not None else QUICK_EPISODES if quick else 3000
    n = seeds if seeds is not None else QUICK_SEEDS if quick else 5
    named = names_of(learners), names_of(natures)
    experiment = paper_experiment(registry_of(plugin), K, n, first_seed, any_instance, *named)
    console = Screen()
    _play_and_print(console, experiment, out, plan)
    if "independent" not in {nature.name for nature in experiment.natures}:
        return
    floor = floors_of(experiment)["independent"]
    console.print(
        "independent: with every entry drawn afresh no policy is safe in every episode, and the next table cannot be "
        f"predicted; so every learner pays at least {floor:.3f} per episode in expectation, and violation grows "
        "linearly for everybody."
    )


@plays()
def run(
    plan: PlayOptions,
    file: Annotated[Path, typer.Argument(help="An experiment in TOML (`omdpd new` writes one), or a problem file.")],
    out: Annotated[Path | None, typer.Option(help="Where results go (results/<name of the file>).")] = None,
    plugin: Plugins = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Replace a setting: episodes=100, or learners[0].z=1.0; a list is a grid."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="i/n: play the i-th of n shares of the runs, for the jobs of a cluster.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the runs and an estimate, and stop.")] = False,
) -> None:
    """Run an experiment from a file.

    The same command again resumes it.  Of a problem file (.npz, or .umb with --set) the default learner plays it.
    """
    experiment = load_experiment(file, plugin or (), set_ or ())
    folder = out if out is not None else Path("results") / file.stem
    runs = experiment.runs() if shard is None else shard_of(experiment.runs(), *place_of(shard))
    plan.check_names(experiment.runs())
    if dry_run:
        _print_forecast(Screen(), experiment, runs, folder, plan)
        return
    if shard is None:
        _play_and_print(Screen(), experiment, folder, plan)
    else:
        _play_shard(Screen(), experiment, folder, plan, runs)


def schema(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write (the terminal).")] = None,
    plugin: Plugins = None,
) -> None:
    """Print the JSON schema of experiment files.

    Editors complete and check TOML with it.
    """
    text = json.dumps(experiment_schema(registry_of(plugin)), indent=1) + "\n"
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text.encode())


def new(file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("experiment.toml")) -> None:
    """Write a commented experiment to start from."""
    if file.exists():
        raise InvalidInputError(f"{file} is there already; choose another name")
    save_file(file, STARTER.format(file=file).encode())
    print(f"wrote {file}; run it with: omdpd run {file}")


def ls(folder: Annotated[Path, typer.Argument(help="A folder of results.")]) -> None:
    """List the runs of a folder.

    State, progress and last numbers of each.  Ends with 2 if one of them is damaged.
    """
    rows, failed, damaged, runs = [], [], [], all_runs(folder)
    for stored in runs:
        measures = stored.measures()
        numbers = stored.tried(partial(_last_numbers, stored, measures)) or (None, None)
        asked = stored.asked
        seed, n = ("-", "-") if asked is None else (asked.seed, asked.episodes)
        rows.append((
            stored.id, *stored.labels, str(seed), budget_text([measures]) or "-", stored.state,
            f"{stored.episodes}/{n}", *("-" if x is None else f"{x:.1f}" for x in numbers),
        ))  # fmt: skip
        failed += [f"{stored.id} failed: {stored.told}"] * (stored.state == "failed")
        damaged += [stored.told] * (stored.state == "damaged")
    head = ("run", "world", "nature", "learner", "seed", "budget", "state", "episodes", "regret", "violation")
    print("\n".join([*aligned(head, rows), *map(printable, failed)]))
    for line in mixed_code(runs):
        warn(line)
    refuse_all(damaged)


def table(
    folder: Annotated[Path, typer.Argument(help="A folder of results.")],
    style: Annotated[str, typer.Option("--format", help=f"One of {', '.join(STYLES)}.")] = "terminal",
    columns: Annotated[
        str, typer.Option(help=f"Comma-separated, some of: {', '.join(each.head for each in SHOWN.values())}.")
    ] = "",
) -> None:
    """Print the means of the finished runs.

    With their intervals, and how regret and violation grow.  The LaTeX table has a caption that says what its numbers
    are.
    """
    records, names = _finished(folder), columns_named(columns)
    if style == "terminal":
        print_table(Screen(), records, names)
    else:
        print(formatted(records, style, names), end="")


def plot(
    folder: Annotated[Path, typer.Argument(help="A folder of results.")],
    out: Annotated[Path | None, typer.Option(help="Where figure.png, .svg and .pdf go (the same folder).")] = None,
    style: Annotated[
        str, typer.Option(help="screen; or paper: one and two columns wide, with a table of exponents beside.")
    ] = "screen",
    spread: Annotated[
        str, typer.Option(help="What stands around a mean: interval (95 %), quantiles (10 % and 90 %), or seeds.")
    ] = "interval",
) -> None:
    """Draw the finished runs of a folder."""
    around = spread_named(spread)
    if style not in ("screen", "paper"):
        raise InvalidInputError(f"--style is {style!r}, but must be screen or paper")
    records = _finished(folder)
    target = folder if out is None else out
    target.mkdir(parents=True, exist_ok=True)
    curves = load_curves(folder / "runs", records)
    if style == "paper":
        for file in write_paper(curves, records, target, around):
            print(f"wrote {file}")
        return
    spelled = folder / "experiment.toml"
    experiment = stored_experiment(spelled) if spelled.exists() else None
    floors = None if experiment is None else floors_of(experiment)
    seeds = seeds_text(c.violation.n_runs for c in curves)
    figure = draw(curves, f"{drawn(folder.name)}: {SPREADS[around]}, {seeds}", floors, around)
    for file in save(figure, target):
        print(f"wrote {file}")


def _play_and_print(console: Screen, experiment: Experiment, folder: Path, plan: PlayOptions) -> None:
    """Play an experiment and print its table."""
    print_table(console, play_experiment(console, experiment, folder, plan))
    console.say(f"{plan.drawn(folder)}numbers: {folder / 'summary.csv'}, summary.json")


def _play_shard(
    console: Screen, experiment: Experiment, folder: Path, plan: PlayOptions, runs: Sequence[RunSpec]
) -> None:
    """Play a share of the runs.  The last share to end sums the experiment up, as a call without --shard would."""
    records = [RunFolder(folder / "runs" / spec.id, spec.id) for spec in experiment.runs()]
    check_sources(records)
    if runs:
        play_alone(console, runs, folder, plan, experiment)
    left = sum(record.summary is None for record in records)
    if not left:
        _play_and_print(console, experiment, folder, replace(plan, fresh=None, retry_failed=False))
        return
    console.say(
        f"The {len(runs)} runs of this shard are finished; {left} of all {len(records)} are not. The last shard sums "
        "up, and so does the same command without --shard."
    )


def _print_forecast(
    console: Screen, experiment: Experiment, runs: Sequence[RunSpec], folder: Path, plan: PlayOptions
) -> None:
    """Print what is left and what it will take; runs that would fail are counted in the error that it ends with."""
    found = forecast(experiment, runs, folder, plan.again(runs), plan.retry_failed, console.say)
    shown = Table("world", "nature", "learner", "seeds", "seconds a run", box=box.SIMPLE_HEAD, pad_edge=False)
    for labels, n, seconds in found.kinds:
        shown.add_row(*labels, str(n), "fails" if seconds is None else f"{seconds:.1f}")
    console.print(shown)
    minutes, jobs = found.seconds / 60, os.cpu_count() or 1
    before = f"; {found.n_done} more are finished" if found.n_done else ""
    console.print(
        f"{found.n_left} runs, {experiment.episodes} episodes each: about {minutes:.1f} minutes of work "
        f"({minutes / jobs:.1f} on {jobs} cores) and {found.megabytes:.1f} MB on disk{before}"
    )
    if found.refused:
        name, why = next(iter(found.refused.items()))
        raise RunFailedError(f"{len(found.refused)} of {found.n_left} runs would fail; the first one, {name}: {why}")


def _finished(folder: Path) -> list[dict[str, Any]]:
    """The summaries of the finished runs."""
    records = summaries(folder, warn)
    if not records:
        raise InvalidInputError(f"no run under {folder} is finished yet")
    return records


def _last_numbers(run: StoredRun, measures: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Regret and violation in the user's units; before the end the violation so far, while regret is known then."""
    if run.summary is not None:
        summary = in_user_units(run.summary)
        return summary["regret"], summary["violation"]
    violation = run.read_columns().get("violation_sum")
    multiple = Units.of_record(measures).multiple(COLUMNS["violation_sum"])
    return None, None if violation is None else multiple * float(violation[-1])
