"""The figures that several studies share: numbers against K, and curves over the episodes of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from omdpd.report.canvas import new_figure
from omdpd.report.figures import LOOK, Style, styles_by_name

from .study import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

NAMES = {"regret": "regret", "violation": "strong violation", "weight": "penalty"}


def panels(
    summary: Summary, sides: Sequence[str], fill: Callable[[Axes, str, str, Mapping[str, Style]], None], scale: float
) -> Figure:
    """A row per nature and a column per side, filled by `fill`, with one legend; below `scale` axes are linear."""
    from matplotlib import rc_context

    style = styles_by_name([line.learner for line in summary.lines])
    with rc_context(LOOK):
        figure = new_figure(5.0 * len(sides), 3.1 * len(summary.natures) + 0.2 * len(style) + 0.3)
        grid = figure.subplots(len(summary.natures), len(sides), squeeze=False)
        for line, nature in zip(grid, summary.natures, strict=True):
            for axes, side in zip(line, sides, strict=True):
                fill(axes, nature, side, style)
                axes.set(title=f"{nature}: {NAMES[side]}", xlabel="episodes", xscale="log")
                _scaled(axes, scale)
        found = {
            label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(found.values(), found.keys(), loc="outside lower center", fontsize=8, frameon=False)
    return figure


def _scaled(axes: Axes, scale: float) -> None:
    """A logarithmic axis where everything is positive; elsewhere one that is linear around zero, with its line."""
    lowest = min((float(np.min(line.get_ydata())) for line in axes.lines), default=0.0)
    if lowest >= scale:
        axes.set_yscale("log")
        return
    axes.set_yscale("symlog", linthresh=scale)
    axes.axhline(0.0, color="#000000", linewidth=0.6)


def against_episodes(summary: Summary, sides: Sequence[str], scale: float = 1.0) -> Figure:
    """The means of runs of every length as lines, every instance as a point."""

    def fill(axes: Axes, nature: str, side: str, style: Mapping[str, Style]) -> None:
        for name in summary.learners(nature):
            colour, dashes, marker = style[name]
            lines = [line for line in summary.along(nature, name) if line.values(side) is not None]
            at, means = [line.episodes for line in lines], [line.mean(side) or 0.0 for line in lines]
            axes.plot(at, means, color=colour, linestyle=dashes, marker=marker, label=name)
            for line in lines:
                values = line.values(side)
                if values is not None:
                    axes.plot([line.episodes] * len(values), values, ".", color=colour, alpha=0.5)

    return panels(summary, sides, fill, scale)


def over_episodes(summary: Summary, sides: Sequence[str], scale: float = 1.0) -> Figure:
    """The mean curves of the longest runs of every learner."""

    def fill(axes: Axes, nature: str, side: str, style: Mapping[str, Style]) -> None:
        for name in summary.learners(nature):
            curve = summary.along(nature, name)[-1].curve
            if curve is None or None in getattr(curve, side):
                continue
            colour, dashes, _ = style[name]
            axes.plot(curve.episodes, getattr(curve, side), color=colour, linestyle=dashes, label=name)

    return panels(summary, sides, fill, scale)


def plain_log_ticks(axis: Axis) -> None:
    """Give a logarithmic axis that shows less than a power of ten ordinary numbers for ticks, which do not collide."""
    from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter

    low, high = axis.get_view_interval()
    if low <= 0.0 or high >= 10.0 * low:
        return
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())
