"""Curves to axes: the figure of an experiment, readable in greyscale and by colour-blind readers.

Above, learners in the order of their violation, with the regret they pay for it; below, the curves behind it.  Figures
are made without pyplot: they touch no backend, open figure or setting of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, cast

import numpy as np

from omdpd.experiments.spec import Experiment
from omdpd.learners import NON_LEARNERS
from omdpd.natures.revealed import violation_floor
from omdpd.play.curve import Curve
from omdpd.play.history import History
from omdpd.play.policy import Policy
from omdpd.problem.arrays import InvalidInputError, named
from omdpd.problem.cmdp import CMDP
from omdpd.report.canvas import Axes, Figure, content_of, looking, new_figure, plain_ticks
from omdpd.report.curves import Band, Curves, curves_of, load_curves
from omdpd.report.episodes import draw_episodes
from omdpd.report.monitors import draw_monitor
from omdpd.report.pictures import draw_played, draw_policy
from omdpd.report.results import seeds_text
from omdpd.report.statistics import MIN_RUNS, power_of
from omdpd.storage.atomic import write_atomically
from omdpd.theory.monitor import Monitor

# Okabe and Ito's colours, which colour-blind readers can tell apart; line styles and markers carry the same
# information for greyscale.
STYLES = (
    ("#000000", "-", "o"),
    ("#0072B2", "-", "s"),
    ("#009E73", "-", "^"),
    ("#D55E00", "--", "v"),
    ("#CC79A7", "--", "D"),
    ("#999999", ":", "x"),
    ("#E69F00", "-.", "P"),
    ("#56B4E9", "-.", "*"),
)
LINES = ("-", "--", ":", "-.")
Style = tuple[str, str, str]
Spread = Literal["interval", "quantiles", "seeds"]
# What may stand around a mean over seeds, in the words of a title.
SPREADS: dict[str, str] = {
    "interval": "mean and 95 % interval over seeds", "quantiles": "median, 10 % and 90 % quantiles over seeds",
    "seeds": "mean and single seeds",
}  # fmt: skip

# Formats, and the time stamps to leave out so that the same run gives the same file.
METADATA: dict[str, dict[str, None] | None] = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# Inches that a line of text takes in a list of learners.
RANKING_LINE = 0.23
# Characters of a name that stand on one line of a ranking.
NAME_WIDTH = 36
# Where the numbers beside a ranking end: violation, its exponent, regret, its exponent, in widths of the panel.
NUMBER_PLACES = (1.11, 1.21, 1.32, 1.42)
# Inches: a figure is shown as wide as a page of the site, so that its text keeps its size.
WIDTH, CURVES_HEIGHT = 8.4, 2.8
LOOK: Any = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
    "lines.markersize": 4, "lines.linewidth": 1.4,
}  # fmt: skip


def draw(
    curves: Sequence[Curves], title: str, floors: dict[str, float] | None = None, spread: Spread = "interval"
) -> Figure:
    """For every nature: who violates least and at what regret; below it, cumulative violation and regret over episodes.

    The list names every learner once, with its marker; curves are means over seeds with what `spread` says
    around them (medians, where that is quantiles).  `floors` gives natures a violation per episode that nobody can go
    below; it is drawn as a line.
    """
    spread_named(spread)
    natures = list(dict.fromkeys(c.nature for c in curves))
    style = styles_by_name(c.learner for c in curves)
    with looking(LOOK):
        lines = max(1 + fill(name, NAME_WIDTH).count("\n") for name in style)
        heights = (RANKING_LINE * (len(style) * lines + 3.5), CURVES_HEIGHT)
        figure = new_figure(WIDTH, sum(heights) * len(natures) + 0.4)
        grid = figure.add_gridspec(2 * len(natures), 6, height_ratios=heights * len(natures))
        for row, nature in enumerate(natures):
            ranking = figure.add_subplot(grid[2 * row, :4])  # its numbers stand at its right
            left, right = (figure.add_subplot(grid[2 * row + 1, side : side + 3]) for side in (0, 3))
            group = [c for c in curves if c.nature == nature]
            floor = (floors or {}).get(nature)
            _ranking(ranking, group, style, nature, floor)
            panels(left, right, group, style, spread)
            left.set(title="cumulative strong violation")
            right.set(title="cumulative regret (0: the best safe policy)")
            if floor is not None:
                _floor(left, floor)
            plain_ticks(left.yaxis, right.yaxis)
            if all(c.regret is None for c in group):
                _nothing_to_regret(right, floor)
        figure.suptitle(title)
    return figure


def spread_named(name: str) -> Spread:
    """What may stand around a mean, by its name; another name is refused with those there are."""
    named(SPREADS, name, "spread")
    return cast(Spread, name)


def styles_by_name(names: Iterable[str]) -> dict[str, Style]:
    """Colour, line and marker of every name: no two alike, up to 32 without colour and 64 with it."""
    return {name: _style(i) for i, name in enumerate(dict.fromkeys(names))}


def _style(i: int) -> Style:
    """`STYLES`, then its colours again with the markers moved on by one, each with the next kind of line, and so on."""
    turn, colour = divmod(i, len(STYLES))
    _, line, marker = STYLES[(colour + turn) % len(STYLES)]
    return STYLES[colour][0], LINES[(LINES.index(line) + turn) % len(LINES)], marker


def save(figure: Figure, folder: Path, name: str = "figure") -> list[Path]:
    """Write NAME.png, NAME.svg and NAME.pdf into a folder."""
    return [write_figure(figure, folder / f"{name}.{kind}") for kind in METADATA]


def write_figure(figure: Figure, file: Path) -> Path:
    """Write a figure whole or not at all; the file's ending chooses its format."""
    kind = file.suffix.lstrip(".").lower()
    if kind not in METADATA:
        raise InvalidInputError(f"{file} should end in one of .{', .'.join(METADATA)}")
    # The same figure gives the same file, and text in it stays text.
    with looking({"svg.hashsalt": "omdpd", "pdf.fonttype": 42}):
        content = content_of(figure, format=kind, dpi=110, metadata=METADATA[kind], bbox_inches="tight")
    write_atomically(file, content)
    return file


def draw_experiment(experiment: Experiment, folder: Path, summaries: Sequence[Mapping[str, Any]]) -> list[Path]:
    """The figure of an experiment."""
    curves = load_curves(folder / "runs", summaries)
    counts = [c.violation.n_runs for c in curves]
    interval = " and 95 % interval" if max(counts) >= MIN_RUNS else ""
    title = f"mean{interval} over {seeds_text(counts)}, K = {experiment.episodes}"
    return save(draw(curves, title, floors_of(experiment)), folder)


def floors_of(experiment: Experiment) -> dict[str, float]:
    """Give the least violation per episode of any learner, for natures that draw every entry afresh."""
    world = experiment.worlds[0]
    if world.name != "random_dirichlet":
        return {}
    sizes = world.settings
    return {"independent": violation_floor(sizes["horizon"], sizes["n_states"], sizes["n_actions"])}


def plot(
    histories: Sequence[History] | History | Policy | Curve | Monitor,
    file: str | Path | None = None,
    title: str = "",
    spread: Spread = "interval",
    by: Literal["sum", "episode"] = "sum",
    world: CMDP | None = None,
) -> Figure:
    """Draw histories, a policy as a heat map, a trade-off curve, or a monitored run.

    With a `world` a policy is drawn as it plays there: on its map, if it has one, and only where it comes.
    The figure is returned.  With a file it is also written; the file's ending chooses the format (png, svg, pdf).
    Histories are drawn as cumulative violation and regret.  With ``by="episode"`` they are drawn as what each episode
    cost beside its budget, and what it earned.
    Histories with one label and nature are seeds of one curve: their mean is drawn, with its 95 % interval from three
    seeds on.  ``spread="seeds"`` draws every seed as a thin line, ``spread="quantiles"`` the median over seeds with the
    10 % and 90 % quantiles.
    """
    if isinstance(histories, Policy | Curve | Monitor):
        figure = _single(histories, world)
        if title:
            figure.suptitle(title)
    elif callable(getattr(histories, "plot", None)):
        raise InvalidInputError(f"{type(histories).__name__} draws itself: call its own plot()")
    else:
        figure = _histories([histories] if isinstance(histories, History) else histories, title, spread, by)
    if file is not None:
        write_figure(figure, Path(file))
    return figure


def _single(shown: Policy | Curve | Monitor, world: CMDP | None) -> Figure:
    """What is no history, drawn."""
    if isinstance(shown, Policy):
        return draw_policy(shown) if world is None else draw_played(world, shown)
    if isinstance(shown, Monitor):
        return draw_monitor(shown)
    with looking(LOOK):
        figure = new_figure(5.0, 3.4)
        shown.plot(axes=figure.add_subplot())
    return figure


def _histories(histories: Sequence[History], title: str, spread: Spread, by: str) -> Figure:
    """Histories grouped into curves, drawn."""
    if not histories:
        raise InvalidInputError("there is nothing to plot: the list of histories is empty")
    if by not in ("sum", "episode"):
        raise InvalidInputError(f"by is {by!r}, but must be 'sum' or 'episode'")
    spread_named(spread)
    groups: dict[tuple[str, str], list[History]] = {}
    for history in histories:
        groups.setdefault((history.label, history.nature), []).append(history)
    if by == "episode":
        with looking(LOOK):
            return draw_episodes(list(groups.values()), [_style(i) for i in range(len(groups))], title, spread)
    drawn = [curves_of(label, nature, group) for (label, nature), group in groups.items()]
    return draw(drawn, title, None, spread)


def panels(violation: Axes, regret: Axes, group: Sequence[Curves], style: Mapping[str, Style], spread: Spread) -> None:
    """What learners violated, and what they regret."""
    _panel(violation, [(c.learner, c.violation) for c in group], style, spread)
    _panel(regret, [(c.learner, c.regret) for c in group if c.regret is not None], style, spread)
    violation.set(yscale="symlog", ylim=(0.0, None))
    regret.set_yscale("symlog", linthresh=10.0)
    if all(c.regret is None or c.regret.low.min() >= -1.0 for c in group):
        regret.set_ylim(0.0, None)


def _panel(axes: Axes, bands: Sequence[tuple[str, Band]], style: Mapping[str, Style], spread: Spread) -> None:
    """Mean lines, what is around them, and a sqrt(K) reference; zero is the best safe policy."""
    for place, (name, band) in enumerate(bands):
        colour, line, marker = style[name]
        band.shade(axes, colour, spread)
        axes.plot(
            band.episodes, band.middle(spread), color=colour, linestyle=line, marker=marker, label=name,
            markevery=(place * 4 % 30, 30),
        )  # fmt: skip
    if bands:
        _reference(axes, [band for _, band in bands])
        axes.axhline(0.0, color="#000000", linewidth=0.8)
    axes.set_xlabel("episode")


def exponent_text(band: Band | None) -> str:
    """How a curve grows, in words of mathematics; nothing where it has no exponent, as where it is negative."""
    base, _, exponent = power_of(None if band is None else band.growth).partition("^")
    return f"${base}^{{{exponent}}}$" if exponent else ""


def _ranking(axes: Axes, group: Sequence[Curves], style: Mapping[str, Style], nature: str, floor: float | None) -> None:
    """From the least violation down, with its 95 % interval, and regret in words.

    The least violation of those that learn is bold, and that number alone: its regret may be anything.
    """
    ranked = sorted(group, key=lambda c: float(c.violation.mean[-1]))
    first = next((place for place, c in enumerate(ranked) if c.learner not in NON_LEARNERS), None)
    for place, c in enumerate(ranked):
        colour, _, marker = style[c.learner]
        mean, low, high = (float(x[-1]) for x in (c.violation.mean, c.violation.low, c.violation.high))
        axes.plot([low, high], [place, place], color=colour, linewidth=1.4)
        axes.plot([mean], [place], color=colour, marker=marker, markersize=6)
        regret = "-" if c.regret is None else _rounded(float(c.regret.mean[-1]))
        cells = (_rounded(mean), exponent_text(c.violation), regret, exponent_text(c.regret))
        _beside(axes, place, cells, bold=0 if place == first else None)
    grows = (
        "grows" * any(map(exponent_text, each)) for each in ([c.violation for c in group], [c.regret for c in group])
    )
    _beside(axes, -0.75, ("violation", next(grows), "regret", next(grows)))
    if floor is not None:
        axes.axvline(floor * float(ranked[0].violation.episodes[-1]), color="#000000", linestyle=(0, (4, 1)))
    axes.set_yticks(range(len(ranked)), [fill(c.learner, NAME_WIDTH) for c in ranked])
    axes.set_ylim(len(ranked) - 0.4, -1.0)
    axes.set_xscale("symlog", linthresh=10.0)
    axes.set_xlim(0.0, 1.2 * axes.get_xlim()[1])
    plain_ticks(axes.xaxis)
    axes.grid(axis="y", color="#e3e3e3", linewidth=0.6)
    budgets = dict.fromkeys(c.budget for c in ranked if c.budget)
    told = f", budget {next(iter(budgets))}" if len(budgets) == 1 else ""
    axes.set_title(f"{nature}: violation after {int(ranked[0].violation.episodes[-1])} episodes{told}", loc="left")


def _beside(axes: Axes, place: float, cells: Sequence[str], bold: int | None = None) -> None:
    """Numbers in columns at the right of a line of the ranking, one of them bold."""
    for column, (x, text) in enumerate(zip(NUMBER_PLACES, cells, strict=True)):
        axes.annotate(
            text, (x, place), xycoords=("axes fraction", "data"), fontsize=8, va="center", ha="right",
            fontweight="bold" if column == bold else "normal", annotation_clip=False,
        ).set_in_layout(False)  # fmt: skip


def _rounded(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def _reference(axes: Axes, bands: Sequence[Band]) -> None:
    """c sqrt(k), through the middle of what the learners reached."""
    episodes = bands[0].episodes
    ends = [band.mean[-1] for band in bands if band.mean[-1] > 0.0]
    if ends:
        c = float(np.median(ends)) / np.sqrt(episodes[-1])
        axes.plot(episodes, c * np.sqrt(episodes), color="#777777", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        middle = len(episodes) // 2
        axes.annotate(
            r"$\sqrt{K}$", (episodes[middle], c * np.sqrt(episodes[middle])), xytext=(0, 4), fontsize="small",
            textcoords="offset points", color="#555555",
        )  # fmt: skip


def _floor(axes: Axes, floor: float) -> None:
    """The least violation that any learner can expect."""
    left, right = axes.get_xlim()
    k = np.linspace(1.0, right, 200)
    axes.plot(
        k, floor * k, color="#000000", linewidth=2.0, linestyle=(0, (4, 1)), label=f"no learner below: {floor:.3f} k"
    )
    axes.text(0.98, 0.04, f"dashed: no learner below {floor:.3f} k", transform=axes.transAxes, ha="right", fontsize=8)
    axes.set_xlim(left, right)


def _nothing_to_regret(axes: Axes, floor: float | None) -> None:
    """Say why there is nothing to draw."""
    text = "No policy is safe in every episode,\nso there is nothing to regret against."
    if floor is not None:
        text += "\n\nThe next table cannot be predicted from the past ones:"
        text += f"\nevery learner pays at least {floor:.3f} per episode,\nand violation grows linearly for everybody."
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()
