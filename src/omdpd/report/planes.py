"""Regret against violation: the figures of a comparison and its files.  Everybody wants to be in the lower left corner.

A plane has a point for every learner; a frontier is a line through those tries of one that no other try of it beats.
Where there are more learners than an eye can tell apart, some have a colour, a number and a name, presets of one class
the same colour, and the rest is grey.  Stars are references that a learner may come near: what keeping a distance costs
somebody who knows all but the costs (`theory/limits.py`), and `Informed`, who is told all but the rewards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from omdpd.learners import NON_LEARNERS
from omdpd.play.units import in_user_units
from omdpd.report.canvas import Axes, Figure, looking, new_panels
from omdpd.report.comparison import Difference, Order, differences, orders, ranks, tidy_csv
from omdpd.report.figures import STYLES, WIDTH, save, styles_by_name
from omdpd.report.results import grouped, mean_of
from omdpd.report.tables import formatted
from omdpd.storage.atomic import make_folder, write_atomically

# Where the number of a point may stand, in points of text from its middle: the first place that is free.
AROUND = [
    8.0 * ring * np.array([np.cos(turn), np.sin(turn)]) for ring in (1, 2, 3) for turn in np.arange(0.0, 6.2, 0.6)
]
# What the lines of all but the best learners of a panel look like: there are more of them than colours to tell apart.
REST = "#bbbbbb"
# The learner that is told all but the rewards, and what the other reference is called.
INFORMED, BOUNDARY = "Informed", "boundary"
# Points of all text: at the width of a page of the site they are more than eight.
TEXT = 9
LOOK = {"font.size": TEXT, "axes.spines.top": False, "axes.spines.right": False}


class Reference(NamedTuple):
    """A point of a panel that is no learner's."""

    world: str
    nature: str
    name: str
    regret: float
    violation: float


def references(shown: Sequence[Mapping[str, Any]], limits: Sequence[Any]) -> list[Reference]:
    """The references of every place, in the user's units; `limits` have world, nature, regret and violation."""
    found = [Reference(each.world, each.nature, BOUNDARY, each.regret, each.violation) for each in limits]
    for (world, nature, name), group in grouped(shown).items():
        regret, violation = mean_of(group, "regret"), mean_of(group, "violation")
        if name == INFORMED and regret is not None and violation is not None:
            found.append(Reference(world, nature, name, regret.mean, violation.mean))
    return found


def _stars(axes: Axes, stars: Sequence[Reference], place: tuple[str, ...]) -> None:
    """The references of a panel, whose names stand above and below, so that they keep apart."""
    for each in stars:
        if (each.world, each.nature) == place:
            at = (-4, 7) if each.name == BOUNDARY else (4, -13)
            point = each.regret, each.violation
            axes.plot(*point, color="#000000", marker="*", markersize=9, linestyle="", zorder=3)
            axes.annotate(each.name, point, xytext=at, textcoords="offset points", fontsize=TEXT)


def draw_plane(
    records: Sequence[Mapping[str, Any]], title: str, highlight: Collection[str] = (), stars: Sequence[Reference] = ()
) -> Figure:
    """A panel per world and nature, a point per learner: final regret and final strong violation with 95 % bars.

    `highlight` names learners or classes of them; without it those are that no other one beats somewhere.
    """
    groups = {key: group for key, group in grouped(records).items() if key[2] != INFORMED or not stars}
    places = list(dict.fromkeys(key[:2] for key in groups))
    number = {name: 1 + i for i, name in enumerate(highlighted(groups, highlight))}
    with looking(LOOK):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure, panels = new_panels(len(places), 2, lambda rows, columns: (WIDTH, 3.8 * rows))
        FigureCanvasAgg(figure)  # numbers are placed in pixels
        for axes, place in zip(panels, places, strict=True):
            _plane(axes, {key[2]: group for key, group in groups.items() if key[:2] == place}, number)
            _stars(axes, stars, place)
            axes.set_title(place[1] if len({world for world, _ in places}) == 1 else ", ".join(place))
        others = {name for _, _, name in groups} - set(number)
        key = [f"{i:2d}  {name}" for name, i in number.items()] + ["grey: all others"] * bool(others)
        for part in range(3):  # columns of names, below
            figure.text(part / 3, 0.0, "\n".join(key[part::3]), va="top", ha="left")
        figure.suptitle(title)
    return figure


def highlighted(groups: Mapping[tuple[str, ...], Any], wanted: Collection[str]) -> list[str]:
    """The learners that have a name: those wanted; without a wish all, or if these are too many, the unbeaten ones.

    Of too many unbeaten ones, those are named that are so in most places.  Who learns nothing beats no one, and has a
    name.
    """
    names = list(dict.fromkeys(name for _, _, name in groups))
    if wanted:
        return [name for name in names if {name, name.partition(".")[0]} & set(wanted)]
    points: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for (world, nature, name), group in groups.items():
        regret, violation = mean_of(group, "regret"), mean_of(group, "violation")
        if regret is not None and violation is not None and name not in NON_LEARNERS:
            points.setdefault((world, nature), {})[name] = regret.mean, violation.mean
    unbeaten = Counter(
        name
        for found in points.values()
        for name, (x, y) in found.items()
        if not any(u <= x and v <= y and (u, v) != (x, y) for u, v in found.values())
    )
    best = {name for name, _ in unbeaten.most_common(2 * len(STYLES))} | set(NON_LEARNERS)
    return names if len(names) <= 2 * len(STYLES) else [name for name in names if name in best]


def _scales(axes: Axes) -> None:
    """What the axes of every panel are."""
    axes.set(xlabel="regret", ylabel="strong violation")
    axes.set_xscale("symlog", linthresh=10.0)
    axes.set_yscale("symlog", linthresh=10.0)


def _plane(axes: Axes, groups: Mapping[str, Sequence[Mapping[str, Any]]], number: Mapping[str, int]) -> None:
    """Points with bars, each numbered beside it where no other number stands."""
    _scales(axes)
    points, style = [], styles_by_name(name.partition(".")[0] for name in number)
    for name, group in groups.items():
        regret, violation = mean_of(group, "regret"), mean_of(group, "violation")
        if regret is None or violation is None:
            continue
        if name not in number:
            axes.plot(regret.mean, violation.mean, color=REST, marker=".", markersize=4, zorder=1)
            continue
        colour, _, marker = style[name.partition(".")[0]]
        axes.errorbar(
            regret.mean, violation.mean, xerr=regret.half, yerr=violation.half, color=colour, marker=marker,
            markersize=5, linewidth=0.6,
        )  # fmt: skip
        points.append((number[name], regret.mean, violation.mean))
    axes.set_ylim(bottom=-1.0)
    axes.figure.canvas.draw()  # places in pixels exist from here on
    taken = [axes.transData.transform((x, y)) for _, x, y in points]
    pixels = axes.figure.dpi / 72.0
    for i, x, y in points:
        middle = axes.transData.transform((x, y))
        room = [min(float(np.hypot(*(middle + pixels * at - other))) for other in taken) for at in AROUND]
        at = AROUND[next((k for k, far in enumerate(room) if far >= 7.0 * pixels), int(np.argmax(room)))]
        taken.append(middle + pixels * at)
        axes.annotate(
            str(i), (x, y), xytext=(at[0], at[1]), textcoords="offset points", fontsize=TEXT, ha="center", va="center"
        )


def draw_frontiers(lines: Sequence[Any], stars: Sequence[Reference] = ()) -> Figure:
    """A panel per world and nature: every learner's frontier as a line through its tries, the chosen one marked.

    `lines` have world, nature, learner, shared_regret and shared_violation, which are means over the same instances,
    criterion, on_frontier and chosen; a try without regret is left out.  As many of the best learners of a panel as
    there are styles have a colour and a name.
    """
    places = list(dict.fromkeys((line.world, line.nature) for line in lines))
    with looking(LOOK):
        figure, panels = new_panels(len(places), 2, lambda rows, columns: (WIDTH, 5.2 * rows))
        for axes, place in zip(panels, places, strict=True):
            _tries_panel(axes, [line for line in lines if (line.world, line.nature) == place])
            _stars(axes, stars, place)
            axes.set_title(", ".join(place))
        figure.suptitle("tries on three training instances: what no other try of the same learner beats")
    return figure


def _tries_panel(axes: Axes, lines: Sequence[Any]) -> None:
    _scales(axes)
    names = [name for _, name in sorted((line.criterion, line.learner) for line in lines if line.chosen)]
    for place in reversed(range(len(names))):  # the best on top
        named = place < len(STYLES)
        colour, dashes, marker = STYLES[place] if named else (REST, "-", ".")
        tried = [line for line in lines if line.learner == names[place] and line.shared_regret is not None]
        best = sorted((line.shared_regret, line.shared_violation) for line in tried if line.on_frontier)
        if best:
            regret, violation = zip(*best, strict=True)
            axes.plot(
                regret, violation, color=colour, linestyle=dashes, marker=marker, markersize=3,
                linewidth=1.2 if named else 0.6, label=names[place] if named else None,
            )  # fmt: skip
        for x, y in [(line.shared_regret, line.shared_violation) for line in tried if line.chosen]:
            axes.plot(x, y, color=colour, marker=marker, markersize=8, fillstyle="none")
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles[::-1], labels[::-1], fontsize=TEXT, frameon=False, loc="upper center", bbox_to_anchor=(0.45, -0.14),
            ncols=2, columnspacing=0.8,
        )  # fmt: skip


def write_tuning(tries: Sequence[Any], choices: Sequence[Any], out: Path) -> None:
    """Write tries.csv and choices.csv, if anything was tried."""
    if tries:
        make_folder(out)
        write_atomically(out / "tries.csv", tidy_csv(tries).encode())
        write_atomically(out / "choices.csv", tidy_csv(choices).encode())


def write_comparison(
    records: Sequence[Mapping[str, Any]], against: str, out: Path
) -> tuple[list[Difference], list[Order]]:
    """Write tables and paired differences in the user's units, ranks of those that learn, and how sure their order is.

    Ranks add regret and violation, which only learners' own units, each between 0 and 1 per step, make comparable.
    """
    found, learning = differences([in_user_units(record) for record in records], against), _learning(records)
    for style, ending in (("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
        write_atomically(out / f"table.{ending}", formatted(records, style).encode())
    agreed = orders(learning)
    for name, lines in (("differences", found), ("ranks", ranks(learning)), ("orders", agreed)):
        write_atomically(out / f"{name}.csv", tidy_csv(lines).encode())
    return found, agreed


def _learning(records: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Keep the records of learners; keep all where there is no learner."""
    return [record for record in records if record["learner"] not in NON_LEARNERS] or records


def draw_comparison(
    records: Sequence[Mapping[str, Any]],
    tries: Sequence[Any],
    limits: Sequence[Any],
    title: str,
    out: Path,
    highlight: Collection[str] = (),
) -> None:
    """Draw the plane of a comparison, and the frontiers of what was tried, with their references."""
    shown = [in_user_units(record) for record in records]
    stars = references(shown, limits)
    save(draw_plane(shown, title, highlight, stars), out, "plane")
    if tries:
        save(draw_frontiers(tries, stars), out, "frontier")
