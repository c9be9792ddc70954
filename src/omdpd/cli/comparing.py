"""`omdpd compare`: all learners side by side, each with the best of its tries, found by the same procedure.

Three stages, each in a folder of its own and resumable: `training` (the tries), `runs` of the comparison itself, and
`long` (the leaders at other numbers of episodes).  Tables, differences, ranks and choices stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

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
    playing,
    registry_of,
    suitable,
)
from omdpd.cli.screen import Screen
from omdpd.experiments.experiment import named_experiment, suitable_runs, write_summaries
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.one_run import scene_of
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment, LearnerSpec, NatureSpec, RunSpec, WorldSpec
from omdpd.experiments.tuning import N_TRIES, Trial, best_trial, judged, training_runs, tries
from omdpd.learners import NON_LEARNERS
from omdpd.problem.arrays import InvalidInputError, positive_integer
from omdpd.report.comparison import Difference, differences, ranks, tidy_csv
from omdpd.report.figures import save
from omdpd.report.frontiers import draw_frontiers
from omdpd.report.planes import draw_plane
from omdpd.report.results import grouped
from omdpd.report.tables import formatted, print_table
from omdpd.report.units import in_user_units
from omdpd.storage.atomic import make_folder, write_atomically

# The learner that paired differences are taken to unless another one is named.
YARDSTICK = "ProximalOMDPD.standard"
# What is compared where nothing else is asked for: random worlds of two families with the natures that suit everybody
# or the revealed costs, and three named worlds.
PLACES = {
    "random_dirichlet": ("noisy", "pool", "adaptive"),
    "garnet": ("noisy", "pool"),
    "streaming": ("noisy",),
    "inventory": ("noisy",),
    "job_queue": ("noisy",),
}
QUICK_PLACES = {"random_dirichlet": ("noisy", "pool")}
# Beyond the first of the default worlds a third of the seeds is played, but no fewer than an interval needs.
FEWER, MIN_SEEDS = 3, 4
# How many of the best learners of the first world are played longer, on how many seeds, and how many times as long.
N_LEADERS, LONG_SEEDS, LONG = 3, 3, (0.25, 4.0, 10.0)

Places = Annotated[str, typer.Option(help="Comma-separated names; five worlds with what suits them if empty.")]


@dataclass(frozen=True)
class Choice:
    """What was chosen for a learner, and where: a line of choices.csv."""

    world: str
    nature: str
    learner: str
    chosen: str
    tries: int
    episodes: int
    criterion: float


@dataclass(frozen=True)
class TryLine:
    """One try: a line of tries.csv."""

    world: str
    nature: str
    learner: str
    settings: str
    regret: float | None
    violation: float
    criterion: float
    on_frontier: bool
    chosen: bool


def compare(
    worlds: Places = "",
    natures: Places = "",
    learners: Names = "",
    episodes: Annotated[int, typer.Option(help="Episodes K per run.")] = 3000,
    seeds: Annotated[int, typer.Option(help="How many seeds, the same for all learners of a world.")] = 12,
    against: Annotated[
        str | None, typer.Option(help=f"The learner that paired differences are taken to ({YARDSTICK}, or the first).")
    ] = None,
    n_tries: Annotated[int, typer.Option("--tries", help="Tries per learner; 1: the settings as they come.")] = N_TRIES,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small comparison of one family: minutes, not half an hour.")
    ] = False,
    long: Annotated[bool, typer.Option(help="Play the leaders for other numbers of episodes too.")] = True,
    jobs: Jobs = 0,
    on: On = "local",
    address: Address = None,
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/compare"),
    fresh: Fresh = False,
    retry_failed: Retry = False,
    no_shared_disk: NoSharedDisk = False,
    report: Report = False,
    no_figures: NoFigures = False,
    plugin: Plugins = None,
) -> None:
    """Tune every learner with the same number of tries, then run all of them on the same worlds, natures and seeds."""
    positive_integer("--tries", n_tries)
    if quick:
        episodes, seeds, n_tries, long = min(episodes, 300), min(seeds, 3), min(n_tries, 4), False
    console = Screen()
    plan = Plan(on, jobs, address, not no_shared_disk, fresh, retry_failed, report, not no_figures)
    registry = registry_of(plugin)
    experiments = _experiments(registry, worlds, natures, learners, episodes, seeds, quick)
    runs = suitable(console, experiments)
    compared = list(dict.fromkeys(run.learner.name for run in runs))
    if against is None:
        against = YARDSTICK if YARDSTICK in compared else compared[0]
    if against not in compared:
        raise InvalidInputError(f"--against is {against!r}, which is none of the learners that are compared")
    kinds = _kinds(runs)
    chosen = _tuned(console, runs, kinds, n_tries, out, plan)
    tuned = [
        msgspec.structs.replace(run, learner=chosen[run.learner, kind]) for run, kind in zip(runs, kinds, strict=True)
    ]  # fmt: skip
    whole = Experiment(*_parts(tuned), episodes, seeds)
    records = play_experiment(console, whole, out, plan, tuned)
    title = "each learner as it comes" if n_tries == 1 else f"each learner with the best of its tries (up to {n_tries})"
    _report(console, records, against, out, f"{title}: means and 95 % intervals" if plan.figures else None)
    if long:
        _play_leaders(console, records, tuned, out, plan)


def _experiments(
    registry: Registry, worlds: str, natures: str, learners: str, episodes: int, seeds: int, quick: bool
) -> list[Experiment]:
    """A grid of what was asked for, or the default places."""
    if worlds or natures:
        grid = names_of(worlds) or list(PLACES), names_of(natures) or ["noisy", "pool", "adaptive"]
        return [named_experiment(registry, *grid, names_of(learners), episodes, seeds)]
    places = QUICK_PLACES if quick else PLACES
    # The first world is what is tested; the others show whether it is alike elsewhere.
    fewer = max(seeds // FEWER, min(seeds, MIN_SEEDS))
    return [
        named_experiment(registry, [world], found, names_of(learners), episodes, fewer if i else seeds)
        for i, (world, found) in enumerate(places.items())
    ]


Parts = tuple[tuple[WorldSpec, ...], tuple[NatureSpec, ...], tuple[LearnerSpec, ...]]
Chosen = Mapping[tuple[LearnerSpec, str], LearnerSpec]


def _parts(runs: Sequence[RunSpec]) -> Parts:
    """The worlds, natures and learners of some runs, once each."""
    worlds, natures, learners = (run.world for run in runs), (run.nature for run in runs), (run.learner for run in runs)
    return tuple(dict.fromkeys(worlds)), tuple(dict.fromkeys(natures)), tuple(dict.fromkeys(learners))


def _tuned(
    console: Console, runs: Sequence[RunSpec], kinds: Sequence[str], n_tries: int, out: Path, plan: Plan
) -> Chosen:
    """Every learner's best try, once for each kind of feedback: on the first place of that kind that it plays."""
    first: dict[tuple[LearnerSpec, str], RunSpec] = {}
    for run, kind in zip(runs, kinds, strict=True):
        first.setdefault((run.learner, kind), run)
    wanted = {key: _training(run, n_tries) for key, run in first.items()}
    flat = [run for tried in wanted.values() if len(tried) > 1 for each in tried.values() for run in each]
    done: dict[str, Mapping[str, Any]] = {}
    if flat:
        with playing(console, flat, out / "training", plan) as (workers, watch):
            folder = out / "training" / "runs"
            done = {s["run"]: s for s in run_all(flat, folder, workers, watch, None, plan.shared_disk)}
    chosen, lines, choices = {}, [], []
    for key, tried in wanted.items():
        run = first[key]
        chosen[key] = run.learner
        if len(tried) > 1:
            trials = judged({learner: [done[each.id] for each in played] for learner, played in tried.items()})
            best = best_trial(trials)
            chosen[key] = best.learner
            lines += [_line(run, trial, best) for trial in trials]
            choices.append(_chosen(run, best, len(tried), next(iter(tried.values()))[0].episodes))
    _write_choices(out, lines, choices, plan.figures)
    return chosen


def _kinds(runs: Sequence[RunSpec]) -> list[str]:
    """How costs reach a learner in every run, asked once for each world and nature: choices are made for each kind."""
    known: dict[tuple[WorldSpec, NatureSpec], str] = {}
    for run in runs:
        if (run.world, run.nature) not in known:
            known[run.world, run.nature] = scene_of(run).nature.feedback
    return [known[run.world, run.nature] for run in runs]


def _training(run: RunSpec, n_tries: int) -> dict[LearnerSpec, list[RunSpec]]:
    """The training runs of a learner's tries; a try that it refuses is none."""
    tried = tries(run.learner, n_tries)
    planned = training_runs(run.world, run.nature, tried, run.episodes)
    return {learner: runs for learner, runs in planned.items() if _plays(runs[0])}


def _plays(run: RunSpec) -> bool:
    alone = Experiment((run.world,), (run.nature,), (run.learner,), run.episodes, 1, run.seed)
    return bool(suitable_runs(alone)[0])


def _line(run: RunSpec, trial: Trial, best: Trial) -> TryLine:
    return TryLine(
        run.world.label, run.nature.label, run.learner.label, trial.learner.label, trial.regret, trial.violation,
        trial.criterion, trial.on_frontier, trial is best,
    )  # fmt: skip


def _chosen(run: RunSpec, best: Trial, n_tries: int, episodes: int) -> Choice:
    return Choice(
        run.world.label, run.nature.label, run.learner.label, best.learner.label, n_tries, episodes, best.criterion
    )  # fmt: skip


def _write_choices(out: Path, lines: Sequence[TryLine], choices: Sequence[Choice], figures: bool) -> None:
    """tries.csv, choices.csv and the figure of the frontiers."""
    if not lines:
        return
    make_folder(out)
    write_atomically(out / "tries.csv", tidy_csv(lines).encode())
    write_atomically(out / "choices.csv", tidy_csv(choices).encode())
    if figures:
        save(draw_frontiers(lines), out, "frontier")


def _report(console: Console, records: Sequence[Mapping[str, Any]], against: str, out: Path, title: str | None) -> None:
    """Tables, paired differences and ranks, on the terminal and as files, in the user's units; and a figure by a title.

    Ranks add regret and violation, which only learners' own units, each between 0 and 1 per step, make comparable.
    """
    plain = [{**record, "learner": record["learner"].split("(")[0]} for record in records]
    print_table(console, plain)
    shown = [in_user_units(record) for record in plain]
    found, places = differences(shown, against), ranks(plain)
    console.print(_shown(found, against))
    for style, ending in (("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
        write_atomically(out / f"table.{ending}", formatted(plain, style).encode())
    write_atomically(out / "differences.csv", tidy_csv(found).encode())
    write_atomically(out / "ranks.csv", tidy_csv(places).encode())
    if title is not None:
        save(draw_plane(shown, title), out, "plane")
    console.print(f"Tables{'' if title is None else ', figures'} and numbers: {out}", highlight=False)


def _shown(found: Sequence[Difference], against: str) -> Table:
    """The paired differences as a table: mean, interval, and a star where Holm's p value is below 0.05."""
    shown = Table(title=f"Paired differences to {against} (mean, 95 %)", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("learner", "regret", "violation"):
        shown.add_column(name, no_wrap=True)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for each in found:
        rows.setdefault((f"{each.world}, {each.nature}", each.learner), {})[each.metric] = _cell(each)
    last = ""
    for (place, learner), cells in rows.items():
        if place != last:
            shown.add_row(f"[bold]{place}[/bold]")
        last = place
        shown.add_row(f" {learner}", cells.get("regret", "-"), cells.get("violation", "-"))
    return shown


def _cell(each: Difference) -> str:
    interval = "" if each.low is None else f" ({each.low:+.0f} .. {each.high:+.0f})"
    return f"{each.mean:+.0f}{interval}" + (" *" if each.p_holm is not None and each.p_holm < 0.05 else "")


def _play_leaders(
    console: Console, records: Sequence[Mapping[str, Any]], runs: Sequence[RunSpec], out: Path, plan: Plan
) -> None:
    """The leaders of each nature of the first world for other numbers of episodes; `growth.csv` has all of it."""
    world = runs[0].world
    wanted = []
    for nature in dict.fromkeys(run.nature for run in runs if run.world == world):
        here = [r for r in records if r["world"] == world.label and r["nature"] == nature.label]
        names = [rank.learner for rank in ranks(here) if rank.learner not in NON_LEARNERS][:N_LEADERS]
        for run in runs:
            fits = run.world == world and run.nature == nature and run.learner.label in names
            if fits and run.seed < runs[0].seed + LONG_SEEDS:
                wanted += [
                    msgspec.structs.replace(run, episodes=max(round(times * run.episodes), 1)) for times in LONG
                ]  # fmt: skip
    make_folder(out / "long")
    with playing(console, wanted, out / "long", plan) as (workers, watch):
        played = run_all(wanted, out / "long" / "runs", workers, watch, None, plan.shared_disk)
    write_summaries(played, out / "long")
    leaders = {(r["nature"], r["learner"], r["seed"]) for r in played}
    same = [r for r in records if r["world"] == world.label and (r["nature"], r["learner"], r["seed"]) in leaders]
    _report_growth(console, [*played, *same], out)


@dataclass(frozen=True)
class Growth:
    """Means over seeds at one number of episodes: a line of growth.csv."""

    world: str
    nature: str
    learner: str
    episodes: int
    runs: int
    regret: float | None
    violation: float


def _report_growth(console: Console, records: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Regret and violation of the leaders by the number of episodes: growth across runs, not within one."""
    shown = Table(title="Growth across runs of different lengths", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("world, nature", "learner", "K", "regret", "violation"):
        shown.add_column(name, no_wrap=True)
    lines = []
    for (world, nature, learner), group in grouped([in_user_units(record) for record in records]).items():
        for episodes in sorted({record["episodes"] for record in group}):
            here = [record for record in group if record["episodes"] == episodes]
            regrets = [record["regret"] for record in here]
            regret = None if None in regrets else sum(regrets) / len(regrets)
            violation = sum(record["violation"] for record in here) / len(here)
            lines.append(Growth(world, nature, learner, episodes, len(here), regret, violation))
            cells = ("-" if regret is None else f"{regret:.0f}", f"{violation:.0f}")
            shown.add_row(f"{world}, {nature}", learner, str(episodes), *cells)
    console.print(shown)
    write_atomically(out / "growth.csv", tidy_csv(lines).encode())
