"""The tries of a tuning as points: regret against violation, and for each learner the tries that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omdpd.report.figures import LEGEND_LINE, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_frontiers(lines: Sequence[Any]) -> Figure:
    """A panel per world and nature: every learner's frontier as a line through its tries, the chosen one marked.

    `lines` have world, nature, learner, regret, violation, on_frontier and chosen; a try without regret is left out.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    places = list(dict.fromkeys((line.world, line.nature) for line in lines))
    names = list(dict.fromkeys(line.learner for line in lines))
    style = {name: STYLES[i % len(STYLES)] for i, name in enumerate(names)}
    with rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(
            figsize=(5.2 * len(places) + 2.6, max(4.8, LEGEND_LINE * (len(names) + 4))), layout="constrained"
        )
        (grid,) = figure.subplots(1, len(places), squeeze=False)
        for axes, place in zip(grid, places, strict=True):
            _panel(axes, [line for line in lines if (line.world, line.nature) == place], style)
            axes.set_title(", ".join(place))
        handles = {
            label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside right center", fontsize=8, frameon=False)
        figure.suptitle("tries on the training instances: what no other try of the same learner beats")
    return figure


def _panel(axes: Axes, lines: Sequence[Any], style: dict[str, Any]) -> None:
    axes.set(xlabel="regret", ylabel="strong violation")
    axes.set_xscale("symlog", linthresh=10.0)
    axes.set_yscale("symlog", linthresh=10.0)
    for name, (colour, dashes, marker) in style.items():
        tried = [line for line in lines if line.learner == name and line.regret is not None]
        best = sorted((line.regret, line.violation) for line in tried if line.on_frontier)
        if best:
            regret, violation = zip(*best, strict=True)
            axes.plot(
                regret,
                violation,
                color=colour,
                linestyle=dashes,
                marker=marker,
                markersize=3,
                linewidth=0.8,
                label=name,
            )
        for line in tried:
            if line.chosen:
                axes.plot(line.regret, line.violation, color=colour, marker=marker, markersize=8, fillstyle="none")
