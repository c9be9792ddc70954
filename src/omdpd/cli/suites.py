"""`omdpd suite` and `omdpd compare`: our learners over all worlds; all learners side by side."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from omdpd.cli.playing import (
    Address,
    Fresh,
    Jobs,
    NoSharedDisk,
    On,
    Plan,
    Plugins,
    Report,
    Retry,
    names_of,
    play_experiment,
    playing,
    registry_of,
)
from omdpd.experiments.experiment import named_experiment, suitable_runs
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment, RunSpec
from omdpd.experiments.tuning import best_candidate, training_runs
from omdpd.problem.arrays import InvalidInputError, named
from omdpd.report.figures import save
from omdpd.report.planes import draw_plane
from omdpd.report.results import grouped, growth_of
from omdpd.report.statistics import paired_test
from omdpd.report.tables import formatted, print_table
from omdpd.storage.atomic import write_atomically
from omdpd.worlds.facts import LARGE

SUITE_NATURES = "fixed,noisy,natural,hostile,pool,adaptive"
SUITE_EPISODES = 1000
# On worlds of thousands of states: stochastic costs, the default learner, and as many episodes as take a few minutes.
LARGE_NATURES, LARGE_LEARNERS, LARGE_EPISODES = "fixed,noisy", "ProximalOMDPD.standard,Uniform", 100
SUITE_LEARNERS = "ProximalOMDPD.standard,ProximalOMDPD.cautious,ProximalOMDPD.balanced,ProximalOMDPD.optimistic,Uniform"
# Over the confidence box of a large world a mirror step has hundreds of thousands of unknowns: not by default.
SLOW_LEARNER, MAX_STATES = "ProximalOMDPD.optimistic", 40
# The one learner that paired differences are taken to.
YARDSTICK = "ProximalOMDPD.standard"
Names = Annotated[str, typer.Option(help="Comma-separated names; all if empty.")]


def suite(
    worlds: Names = "",
    natures: Annotated[str, typer.Option(help="Comma-separated names; those that suit the suite if empty.")] = "",
    learners: Annotated[str, typer.Option(help="Comma-separated names; our presets and Uniform if empty.")] = "",
    episodes: Annotated[int | None, typer.Option(help="Episodes K per run; 1000, or 100 with --large.")] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 2,
    jobs: Jobs = 0,
    on: On = "local",
    address: Address = None,
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/suite"),
    fresh: Fresh = False,
    retry_failed: Retry = False,
    no_shared_disk: NoSharedDisk = False,
    report: Report = False,
    plugin: Plugins = None,
    large: Annotated[
        bool, typer.Option("--large", help="Worlds of thousands of states, with the default learner.")
    ] = False,
) -> None:
    """Run our learners and the uniform policy over all worlds and the natures that suit them."""
    console = Console()
    registry = registry_of(plugin)
    if large:
        names = names_of(worlds), names_of(natures or LARGE_NATURES), names_of(learners or LARGE_LEARNERS)
        experiment = large_experiment(registry, *names, episodes or LARGE_EPISODES, seeds)
    else:
        names = names_of(worlds), names_of(natures or SUITE_NATURES), names_of(learners or SUITE_LEARNERS)
        experiment = named_experiment(registry, *names, episodes or SUITE_EPISODES, seeds)
    runs = _suitable(console, experiment)
    if not learners:
        slow = {run.world for run in runs if run.learner.name == SLOW_LEARNER and _n_states(run) > MAX_STATES}
        for world in slow:
            why = f"it takes most of a second per episode; --learners {SLOW_LEARNER} runs it"
            console.print(f"left out: {SLOW_LEARNER} on {world.label}: {why}", highlight=False, soft_wrap=True)
        runs = [run for run in runs if run.learner.name != SLOW_LEARNER or run.world not in slow]
    plan = Plan(on, jobs, address, not no_shared_disk, fresh, retry_failed, report)
    records = play_experiment(console, experiment, out, plan, runs)
    print_table(console, records)
    _print_late(console, records)
    console.print(f"Figure: {out / 'figure.png'}; numbers: {out / 'summary.csv'}", highlight=False)


def large_experiment(
    registry: Registry,
    worlds: Sequence[str],
    natures: Sequence[str],
    learners: Sequence[str],
    episodes: int,
    seeds: int,
) -> Experiment:
    """A grid of names on worlds at their large sizes, all that have one where none is given."""
    specs = [registry.spec("worlds", name, dict(named(LARGE, name, "large world")[0])) for name in worlds or LARGE]
    grid = named_experiment(registry, list(worlds or LARGE), natures, learners, episodes, seeds)
    return msgspec.structs.replace(grid, worlds=tuple(specs))


def compare(
    worlds: Names = "random_dirichlet",
    natures: Names = "noisy,pool,adaptive",
    learners: Names = "",
    episodes: Annotated[int, typer.Option(help="Episodes K per run.")] = 3000,
    seeds: Annotated[int, typer.Option(help="How many seeds, the same for all.")] = 10,
    scales: Annotated[str, typer.Option(help="same (for everybody), own (each learner's best), or both.")] = "both",
    jobs: Jobs = 0,
    on: On = "local",
    address: Address = None,
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/compare"),
    fresh: Fresh = False,
    retry_failed: Retry = False,
    no_shared_disk: NoSharedDisk = False,
    report: Report = False,
    plugin: Plugins = None,
) -> None:
    """Run all learners on the same worlds, natures and seeds, with the same scales and with each one's own."""
    if scales not in ("same", "own", "both"):
        raise InvalidInputError(f"--scales is {scales!r}, but must be same, own or both")
    console = Console()
    plan = Plan(on, jobs, address, not no_shared_disk, fresh, retry_failed, report)
    names = names_of(worlds), names_of(natures), names_of(learners)
    experiment = named_experiment(registry_of(plugin), *names, episodes, seeds)
    if scales in ("same", "both"):
        records = play_experiment(console, experiment, out / "same", plan, _suitable(console, experiment))
        _report(console, "the same scales for everybody", records, out / "same")
    if scales in ("own", "both"):
        tuned = _own_scales(console, experiment, out / "training", plan)
        records = play_experiment(console, experiment, out / "own", plan, tuned)
        _write_scales(records, out / "own")
        records = [record | {"learner": record["learner"].split("(")[0]} for record in records]
        _report(console, "each learner's own best scales", records, out / "own")


def _suitable(console: Console, experiment: Experiment) -> list[RunSpec]:
    """The runs whose parts fit together; what does not fit is said."""
    runs, refused = suitable_runs(experiment)
    for line in refused:
        console.print(f"left out: {line}", highlight=False, soft_wrap=True)
    if not runs:
        raise InvalidInputError("no learner suits these worlds and natures")
    return runs


def _n_states(run: RunSpec) -> int:
    return run.world.build(np.random.default_rng(run.seed)).shape[1]


def _own_scales(console: Console, experiment: Experiment, folder: Path, plan: Plan) -> list[RunSpec]:
    """The runs of a comparison with every learner's best scales on the training instances."""
    runs, _ = suitable_runs(experiment)
    wanted = training_runs(runs, max(experiment.episodes // 4, 1))
    flat = [run for options in wanted.values() if len(options) > 1 for tries in options.values() for run in tries]
    flat = list(dict.fromkeys(flat))
    done: dict[str, Mapping[str, Any]] = {}
    if flat:
        with playing(console, flat, folder, plan) as (workers, watch):
            done = {s["run"]: s for s in run_all(flat, folder / "runs", workers, watch, None, plan.shared_disk)}
    best = {}
    for parts, options in wanted.items():
        trained = (
            {learner: [done[run.id] for run in tries] for learner, tries in options.items()} if len(options) > 1 else {}
        )
        best[parts] = best_candidate(trained) if trained else parts[2]
    return [
        RunSpec(run.world, run.nature, best[run.world, run.nature, run.learner], run.episodes, run.seed, run.record)
        for run in runs
    ]


def _report(console: Console, title: str, records: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """The table of a comparison, on the terminal and as files, with paired differences to our default."""
    console.print(f"[bold]{title}[/bold]")
    print_table(console, records)
    lines = _differences(records)
    shown = Table(title=f"Paired differences to {YARDSTICK} (mean, 95 %)", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("nature", "learner", "regret", "violation"):
        shown.add_column(name, no_wrap=True)
    several = len({line[0] for line in lines}) > 1
    for world, nature, *cells in lines:
        shown.add_row(f"{world}, {nature}" if several else nature, *cells)
    console.print(shown)
    for style, ending in (("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
        write_atomically(folder / f"table.{ending}", formatted(records, style).encode())
    write_atomically(folder / "differences.csv", _csv(lines))
    save(draw_plane(records, f"{title}: means and 95 % intervals"), folder, "plane")
    console.print(f"Tables, figures and numbers: {folder}", highlight=False)


def _write_scales(records: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Which settings each learner was given, by world and nature."""
    chosen = dict.fromkeys((record["world"], record["nature"], record["learner"]) for record in records)
    write_atomically(folder / "scales.csv", _csv([("world", "nature", "learner"), *chosen]))


def _csv(lines: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def _differences(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """What each learner has more than our default on the same seeds."""
    groups = grouped(records)
    lines = []
    for (world, nature, learner), group in groups.items():
        ours = [g for key, g in groups.items() if key[:2] == (world, nature) and key[2].startswith(YARDSTICK)]
        if not ours or learner.startswith(YARDSTICK):
            continue
        cells = (_difference(group, ours[0], key) for key in ("regret", "violation"))
        lines.append((world, nature, learner, *cells))
    return lines


def _difference(theirs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]], key: str) -> str:
    by_seed = {record["seed"]: record[key] for record in ours}
    pairs = [(r[key], by_seed[r["seed"]]) for r in theirs if r["seed"] in by_seed]
    if not pairs or any(None in pair for pair in pairs):
        return "-"
    test = paired_test(np.array([a - b for a, b in pairs]))
    return f"{test.mean:+.0f}" + ("" if test.low is None else f" ({test.low:+.0f} .. {test.high:+.0f})")


def _print_late(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Where a learner of ours still violates at the end, or its violation grows fast."""
    for (world, nature, learner), group in grouped(records).items():
        if learner == "Uniform":
            continue
        found = growth_of(group, "violation")
        growth = 0.0 if found is None or found.exponent is None else found.exponent
        share = float(np.mean([record["late_violation"] / record["horizon"] for record in group]))
        if (growth >= 0.75 and share >= 0.001) or share >= 0.02:
            console.print(
                f"{learner} on {world}, {nature}: violation grows like K^{growth:.2f}; in the last tenth "
                f"{100 * share:.2f} % of H per episode",
                highlight=False,
            )
