"""`omdpd suite`: our learners over all worlds and the natures that suit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from rich.console import Console

from omdpd.cli.playing import (
    Address,
    Fresh,
    Jobs,
    Names,
    NoFigures,
    NoSharedDisk,
    On,
    Plan,
    Plugins,
    Report,
    Retry,
    names_of,
    play_experiment,
    registry_of,
    suitable,
)
from omdpd.cli.screen import Screen
from omdpd.experiments.experiment import named_experiment
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment, RunSpec
from omdpd.learners import NON_LEARNERS
from omdpd.problem.arrays import named
from omdpd.report.results import grouped, growth_of
from omdpd.report.statistics import power_of
from omdpd.report.tables import print_table
from omdpd.worlds.facts import LARGE

SUITE_NATURES = "fixed,noisy,natural,hostile,pool,adaptive"
SUITE_EPISODES = 1000
# On worlds of thousands of states: stochastic costs, the default learner, and as many episodes as take a few minutes.
LARGE_NATURES, LARGE_LEARNERS, LARGE_EPISODES = "fixed,noisy", "ProximalOMDPD.standard,Uniform", 100
SUITE_LEARNERS = "ProximalOMDPD.standard,ProximalOMDPD.cautious,ProximalOMDPD.balanced,ProximalOMDPD.optimistic,Uniform"
# Over the confidence box of a large world a mirror step has hundreds of thousands of unknowns: not by default.
SLOW_LEARNER, MAX_STATES = "ProximalOMDPD.optimistic", 40


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
    no_figures: NoFigures = False,
    plugin: Plugins = None,
    large: Annotated[
        bool, typer.Option("--large", help="Worlds of thousands of states, with the default learner.")
    ] = False,
) -> None:
    """Run our learners and the uniform policy over all worlds and the natures that suit them."""
    console = Screen()
    registry = registry_of(plugin)
    if large:
        names = names_of(worlds), names_of(natures or LARGE_NATURES), names_of(learners or LARGE_LEARNERS)
        experiment = large_experiment(registry, *names, episodes or LARGE_EPISODES, seeds)
    else:
        names = names_of(worlds), names_of(natures or SUITE_NATURES), names_of(learners or SUITE_LEARNERS)
        experiment = named_experiment(registry, *names, episodes or SUITE_EPISODES, seeds)
    runs = suitable(console, [experiment])
    if not learners:
        slow = {run.world for run in runs if run.learner.name == SLOW_LEARNER and _n_states(run) > MAX_STATES}
        for world in slow:
            why = f"it takes most of a second per episode; --learners {SLOW_LEARNER} runs it"
            console.print(f"left out: {SLOW_LEARNER} on {world.label}: {why}", highlight=False, soft_wrap=True)
        runs = [run for run in runs if run.learner.name != SLOW_LEARNER or run.world not in slow]
    plan = Plan(on, jobs, address, not no_shared_disk, fresh, retry_failed, report, not no_figures)
    records = play_experiment(console, experiment, out, plan, runs)
    print_table(console, records)
    _print_late(console, records)
    figure = "" if no_figures else f"Figure: {out / 'figure.png'}; "
    console.print(f"{figure}numbers: {out / 'summary.csv'}", highlight=False)


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


def _n_states(run: RunSpec) -> int:
    return run.world.build(np.random.default_rng(run.seed)).shape[1]


def _print_late(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Where a learner of ours still violates at the end, or its violation grows fast."""
    for (world, nature, learner), group in grouped(records).items():
        if learner in NON_LEARNERS:
            continue
        found = growth_of(group, "violation")
        growth = 0.0 if found is None or found.slope is None else found.slope
        share = float(np.mean([record["late_violation"] / record["horizon"] for record in group]))
        if (growth >= 0.75 and share >= 0.001) or share >= 0.02:
            grows = "" if (power := power_of(found)) == "-" else f" grows like {power};"
            end = f" in the last tenth {100 * share:.2f} % of H per episode"
            console.print(f"{learner} on {world}, {nature}: violation{grows}{end}", highlight=False)
