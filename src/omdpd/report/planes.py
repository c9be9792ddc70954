"""Regret against violation: the figure for many learners.  Everybody wants to be in its lower left corner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omdpd.report.figures import LEGEND_LINE, styles_by_name
from omdpd.report.results import grouped, mean_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Where the number of a point may stand, in points of text from its middle: the first place that is free.
AROUND = [
    8.0 * ring * np.array([np.cos(turn), np.sin(turn)]) for ring in (1, 2, 3) for turn in np.arange(0.0, 6.2, 0.6)
]


def draw_plane(records: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """A panel per world and nature, a point per learner: final regret and final strong violation with 95 % bars."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = grouped(records)
    places = list(dict.fromkeys(key[:2] for key in groups))
    number = {name: 1 + i for i, name in enumerate(dict.fromkeys(key[2] for key in groups))}
    columns = min(len(places), 3)
    rows = -(-len(places) // columns)
    with rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        size = (5.2 * columns + 2.2, max(4.8 * rows, LEGEND_LINE * (len(number) + 4)))
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)  # numbers are placed in pixels
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(places) :]:
            axes.set_axis_off()
        for axes, place in zip(grid.flat, places, strict=False):
            _plane(axes, {key[2]: group for key, group in groups.items() if key[:2] == place}, number)
            axes.set_title(place[1] if len({world for world, _ in places}) == 1 else ", ".join(place))
        key = "\n".join(f"{i:2d}  {name}" for name, i in number.items())
        figure.text(1.0, 0.5, key, va="center", ha="left", fontsize=8)
        figure.suptitle(title)
    return figure


def _plane(axes: Axes, groups: Mapping[str, Sequence[Mapping[str, Any]]], number: Mapping[str, int]) -> None:
    """Points with bars, each numbered beside it where no other number stands."""
    axes.set(xlabel="regret", ylabel="strong violation")
    axes.set_xscale("symlog", linthresh=10.0)
    axes.set_yscale("symlog", linthresh=10.0)
    points, style = [], styles_by_name(number)
    for name, group in groups.items():
        regret, violation = mean_of(group, "regret"), mean_of(group, "violation")
        if regret is None or violation is None:
            continue
        colour, _, marker = style[name]
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
        free = [k for k, distance in enumerate(room) if distance >= 7.0 * pixels]
        at = AROUND[free[0] if free else int(np.argmax(room))]
        taken.append(middle + pixels * at)
        axes.annotate(
            str(i), (x, y), xytext=(at[0], at[1]), textcoords="offset points", fontsize=8, ha="center", va="center"
        )
