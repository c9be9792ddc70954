"""`omdpd lab`: `suite`, `compare`, `bounds` and `monitor`, to study the learners themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from omdpd.beliefs.confidence import DELTA
from omdpd.cli.playing import (
    Names,
    PlayOptions,
    Plugins,
    names_of,
    place_of,
    play_alone,
    play_experiment,
    plays,
    registry_of,
    suitable,
)
from omdpd.cli.screen import Screen, plain_table
from omdpd.experiments.comparing import (
    YARDSTICK,
    comparison_grids,
    longer_runs,
    names_to_show,
    share_of,
    suite_grid,
    without_slow,
    yardstick,
)
from omdpd.experiments.experiment import GridNames, write_summaries
from omdpd.experiments.registry import run_of
from omdpd.experiments.tuning import N_TRIES, tuned
from omdpd.play.units import in_user_units
from omdpd.problem.arrays import positive_integer
from omdpd.problem.setting import Setting
from omdpd.report.comparison import Difference, at_lengths, leaders, tidy_csv
from omdpd.report.planes import draw_comparison, write_comparison, write_tuning
from omdpd.report.results import late_violations
from omdpd.report.stored import load_run
from omdpd.report.tables import print_table
from omdpd.storage.atomic import write_atomically
from omdpd.theory.bounds import Term, theorem_numbers, theorem_terms, total
from omdpd.theory.limits import Limit, limits_of
from omdpd.theory.monitor import HEAD, Monitor, monitor_stored

Places = Annotated[str, typer.Option(help="Comma-separated names; eight worlds with what suits them if empty.")]
Size = Annotated[int, typer.Option(min=1)]
# What may be folded in a narrow terminal; numbers never are, because a number that is cut says something else.
WORDS = ("inequality", "in", "verdict")


@plays()
def suite(
    plan: PlayOptions,
    worlds: Names = "",
    natures: Annotated[str, typer.Option(help="Comma-separated names; those that suit the suite if empty.")] = "",
    learners: Annotated[str, typer.Option(help="Comma-separated names; our presets and Uniform if empty.")] = "",
    episodes: Annotated[int | None, typer.Option(help="Episodes K per run; 1000, or 100 with --large.")] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 2,
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/suite"),
    plugin: Plugins = None,
    large: Annotated[
        bool, typer.Option("--large", help="Worlds of thousands of states, with the default learner.")
    ] = False,
) -> None:
    """Run our learners over all worlds.

    With them the uniform policy; every world has the natures that suit it.
    """
    console, names = Screen(), GridNames(names_of(worlds), names_of(natures), names_of(learners))
    experiment = suite_grid(registry_of(plugin), names, episodes, seeds, large)
    runs = suitable(console, [experiment])
    if not learners:
        runs, slow = without_slow(runs)
        for line in slow:
            console.say(f"left out: {line}")
    records = play_experiment(console, experiment, out, plan, runs)
    print_table(console, records)
    for line in late_violations(records):
        console.print(line)
    console.say(f"{plan.drawn(out)}numbers: {out / 'summary.csv'}")


@plays()
def compare(
    plan: PlayOptions,
    worlds: Places = "",
    natures: Places = "",
    learners: Names = "",
    episodes: Annotated[int, typer.Option(help="Episodes K per run.")] = 3000,
    seeds: Annotated[int, typer.Option(help="How many seeds; half of them where a default world is not random.")] = 24,
    against: Annotated[
        str | None, typer.Option(help=f"The learner that paired differences are taken to ({YARDSTICK}, or the first).")
    ] = None,
    n_tries: Annotated[int, typer.Option("--tries", help="Tries per learner; 1: default settings.")] = N_TRIES,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small comparison of one family: two minutes, not hours.")
    ] = False,
    highlight: Annotated[
        str, typer.Option(help="Learners or classes that the figure names; a plugin's, or the unbeaten ones, if empty.")
    ] = "",
    shard: Annotated[
        str | None,
        typer.Option(help="i/n: tune and play the i-th of n shares of the learners; a call without it sums up."),
    ] = None,
    long: Annotated[bool, typer.Option(help="Play the leaders for other numbers of episodes too.")] = True,
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/compare"),
    plugin: Plugins = None,
) -> None:
    """Compare all learners, each with equal tuning.

    Every learner is tuned with the same number of tries, then all of them meet the same worlds, natures and seeds.
    Three stages, each in a folder of its own and resumable: `training` (the tries), `runs` of the comparison itself,
    and `long` (the leaders at other numbers of episodes).  Tables, differences, ranks and choices stand beside them.
    """
    positive_integer("--tries", n_tries)
    if quick:
        episodes, seeds, n_tries, long = min(episodes, 300), min(seeds, 3), min(n_tries, 4), False
    console, names = Screen(), GridNames(names_of(worlds), names_of(natures), names_of(learners))
    registry = registry_of(plugin)
    grids = comparison_grids(registry, names, episodes, seeds, quick)
    runs = suitable(console, grids)
    plan.check_names(runs)
    against, shown = yardstick(runs, against), names_to_show(registry, runs, names_of(highlight))
    if shard is not None:
        runs = share_of(runs, *place_of(shard))
    found = tuned(runs, n_tries, lambda wanted: play_alone(console, wanted, out / "training", plan))
    if shard is not None:
        play_alone(console, found.runs, out, plan)
        console.print(f"Shard {shard} is finished. When all are, the same command without --shard sums up.")
        return
    write_tuning(found.tries, found.choices, out)
    records = play_experiment(console, found.experiment(episodes, seeds), out, plan, found.runs)
    plain = [{**record, **_settings_apart(record["learner"])} for record in records]
    print_table(console, plain)
    apart, orders = write_comparison(plain, against, out)
    console.print(_differences(apart, against))
    console.print(*orders, sep="\n", soft_wrap=True)
    limits = limits_of(found.runs)
    _show_limits(console, limits, out)
    if plan.figures:
        how = "with its defaults" if n_tries == 1 else f"at the best of up to {n_tries} tries"
        draw_comparison(plain, found.tries, limits, f"each learner {how}: means and 95 % intervals", out, shown)
    console.say(f"{plan.drawn(out)}tables and numbers: {out}; chosen settings: {out / 'table.md'}")
    if long:
        asked = {each.label for each in grids[0].natures}
        first = [r for r in records if r["world"] == runs[0].world.label and r["nature"] in asked]
        played = play_alone(console, longer_runs(found.runs, leaders(first)), out / "long", plan)
        write_summaries(played, out / "long")
        same = {(r["nature"], r["learner"], r["seed"]) for r in played}
        _show_growth(console, [*played, *(r for r in first if (r["nature"], r["learner"], r["seed"]) in same)], out)


def _show_limits(console: Screen, lines: Sequence[Limit], out: Path) -> None:
    """Show what the margin costs a learner that knows all but the costs, on the terminal and in limits.csv."""
    title = "Who knows all but the costs, at z = 1 (`Informed`: all but rewards)"
    shown = plain_table(title, "world, nature", "K", "regret", "violation")
    for each in lines:
        shown.add_row(f"{each.world}, {each.nature}", str(each.episodes), f"{each.regret:.0f}", f"{each.violation:.0f}")
    console.print(shown)
    write_atomically(out / "limits.csv", tidy_csv(lines).encode())


def _settings_apart(label: str) -> dict[str, str]:
    """A learner's name, and the settings that were chosen for it.

    >>> _settings_apart("OptDual(step=0.2, reward_scale=0.1)")
    {'learner': 'OptDual', 'settings': 'step=0.2, reward_scale=0.1'}
    """
    name, _, settings = label.partition("(")
    return {"learner": name, "settings": settings.removesuffix(")")}


def _differences(found: Sequence[Difference], against: str) -> Table:
    """The paired differences as a table: mean, interval, and a star where Holm's p value is below 0.05."""
    shown = plain_table(f"Paired differences to {against} (mean, 95 %)", "learner", "regret", "violation")
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


def _show_growth(console: Screen, records: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Regret and violation of the leaders by the number of episodes, on the terminal and in growth.csv."""
    title = "Growth across runs of different lengths"
    shown = plain_table(title, "world, nature", "learner", "K", "regret", "violation")
    lines = at_lengths([in_user_units(record) for record in records])
    for each in lines:
        regret = "-" if each.regret is None else f"{each.regret:.0f}"
        shown.add_row(f"{each.world}, {each.nature}", each.learner, str(each.episodes), regret, f"{each.violation:.0f}")
    console.print(shown)
    write_atomically(out / "growth.csv", tidy_csv(lines).encode())


def bounds(
    states: Size = 5,
    actions: Size = 3,
    horizon: Size = 5,
    constraints: Size = 1,
    episodes: Annotated[int, typer.Option(min=1, help="K.")] = 3000,
    delta: Annotated[float, typer.Option(help="The probability with which the theorem may fail.")] = DELTA,
    beside: Annotated[Path | None, typer.Option(help="A folder of results, whose curves are drawn with them.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the figure goes (png, svg, pdf).")] = None,
) -> None:
    """Print the paper's theorem as numbers.

    Every term, for the paper's C = SAH/2 and for C = H, which is enough.
    """
    setting = Setting(horizon, states, actions, constraints, n_episodes=episodes)
    loose = theorem_terms(setting, delta, states * actions * horizon / 2.0)
    tight = theorem_terms(setting, delta)
    table = Table(
        Column("term", no_wrap=True), "C = SAH/2", "below HK from K =", "C = H", "below HK from K =", box=None
    )
    for wide, narrow in zip(loose, tight, strict=True):
        table.add_row(_name(wide), f"{wide.value:.4g}", _first(wide), f"{narrow.value:.4g}", _first(narrow))
    for side in ("regret", "violation"):
        table.add_row(f"{side}, sum", f"{total(loose, side):.4g}", "", f"{total(tight, side):.4g}", "")
    console = Screen()
    console.print(table)
    numbers = theorem_numbers(setting, delta)
    console.print(
        f"the trivial bound HK is {numbers.trivial:.4g}; ~ is an order, with constants of one and no logarithms"
    )
    console.print(f"the penalty can reach {numbers.penalty:.3g} if every episode violates by H")
    if out is not None or beside is not None:
        from omdpd.report.bounds import draw_bounds

        file = out or Path("bounds.png")
        draw_bounds(setting, delta, beside, file)
        console.print(f"figure: {file}")


def _name(term: Term) -> str:
    return term.name if term.given else f"~ {term.name}"


def _first(term: Term) -> str:
    return "never" if term.first is None else f"{term.first:.3g}" if term.first > 10**6 else str(term.first)


def monitor(
    folder: Annotated[Path, typer.Argument(help="The folder of a run (results/NAME/runs/ID), finished or not.")],
    out: Annotated[Path | None, typer.Option(help="Where a figure goes (png, svg, pdf).")] = None,
    plugin: Plugins = None,
) -> None:
    """Hold the analysis against a stored run.

    The run is played again beside the truth, and it is said which inequality of its analysis held.  Sums are shown as
    they ended, single episodes at their worst.  Ends with 2 if the run came out otherwise than it was recorded.
    """
    record = load_run(folder).folder
    replay = monitor_stored(run_of(record.spec(), registry_of(plugin)), record)
    console = Screen()
    _show(console, replay.monitor)
    console.say(str(replay))
    if out is not None:
        from omdpd.report.figures import plot

        plot(replay.monitor, out)
        console.say(f"figure: {out}")
    if replay.differs is not None:
        raise typer.Exit(2)


def _show(console: Screen, found: Monitor) -> None:
    """The table, the notes below it, each once, and the split of the losses."""
    columns = [
        Column(title, no_wrap=title not in WORDS, justify="left" if title in WORDS else "right")
        for title in (*HEAD, "note")
    ]
    table = Table(*columns, box=None)
    notes: list[str] = []
    for line, each in zip(found.table, found, strict=True):
        text = each.note or each.reason or ""
        if text and text not in notes:
            notes.append(text)
        table.add_row(*line, f"({notes.index(text) + 1})" if text else "")
    console.say(f"{found!r}")
    console.print(table)
    for number, text in enumerate(notes, 1):
        console.say(f"({number}) {text}")
    console.say(f"{found.losses!r}")
