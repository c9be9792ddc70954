"""The tries of a tuning as points: regret against violation, and for each learner the tries that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omdpd.report.figures import STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What the lines of all but the best learners of a panel look like: there are more of them than colours to tell apart.
REST = "#bbbbbb"


def draw_frontiers(lines: Sequence[Any]) -> Figure:
    """A panel per world and nature: every learner's frontier as a line through its tries, the chosen one marked.

    `lines` have world, nature, learner, regret, violation, criterion, on_frontier and chosen; a try without regret is
    left out.  As many of the best learners of a panel as there are styles have a colour and a name.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    places = list(dict.fromkeys((line.world, line.nature) for line in lines))
    with rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(5.2 * len(places) + 0.4, 5.6), layout="constrained")
        (grid,) = figure.subplots(1, len(places), squeeze=False)
        for axes, place in zip(grid, places, strict=True):
            _panel(axes, [line for line in lines if (line.world, line.nature) == place])
            axes.set_title(", ".join(place))
        figure.suptitle("tries on the training instances: what no other try of the same learner beats")
    return figure


def _panel(axes: Axes, lines: Sequence[Any]) -> None:
    axes.set(xlabel="regret", ylabel="strong violation")
    axes.set_xscale("symlog", linthresh=10.0)
    axes.set_yscale("symlog", linthresh=10.0)
    chosen = sorted((line.criterion, line.learner) for line in lines if line.chosen)
    names = [name for _, name in chosen]
    for place in reversed(range(len(names))):  # the best on top
        named = place < len(STYLES)
        colour, dashes, marker = STYLES[place] if named else (REST, "-", ".")
        tried = [line for line in lines if line.learner == names[place] and line.regret is not None]
        best = sorted((line.regret, line.violation) for line in tried if line.on_frontier)
        if best:
            regret, violation = zip(*best, strict=True)
            axes.plot(
                regret, violation, color=colour, linestyle=dashes, marker=marker, markersize=3,
                linewidth=1.2 if named else 0.6, label=names[place] if named else None,
            )  # fmt: skip
        for line in tried:
            if line.chosen:
                axes.plot(line.regret, line.violation, color=colour, marker=marker, markersize=8, fillstyle="none")
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        best_first = list(zip(handles[::-1], labels[::-1], strict=True))
        axes.legend(*zip(*best_first, strict=True), fontsize=7, frameon=False, loc="upper right")
