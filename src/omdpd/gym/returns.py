"""What came of learning in an environment, as a figure: the returns of its episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from omdpd.gym.learned import Learned
from omdpd.problem.arrays import Floats
from omdpd.report.canvas import new_figure
from omdpd.report.figures import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_learned(learned: Learned, file: str | Path | None = None, title: str = "") -> Figure:
    """Draw the returns of `learn`: reward and costs of every episode, their running means, and the budgets.

    The figure is returned; with a file it is written too.
    """
    from matplotlib import rc_context

    panels: list[tuple[str, Floats, float | None]] = [("reward", learned.rewards, None)]
    panels += [(f"cost {i}", learned.costs[:, i], float(b)) for i, b in enumerate(learned.budget)]
    with rc_context({"font.size": 9, "svg.hashsalt": "omdpd"}):
        figure = new_figure(4.5 * len(panels), 3.2)
        grid = figure.subplots(1, len(panels), squeeze=False)
        for axes, (name, values, budget) in zip(grid.flat, panels, strict=True):
            _returns(axes, values, budget)
            axes.set(title=f"{name} per episode", xlabel="episode")
        figure.suptitle(title)
    if file is not None:
        write_figure(figure, Path(file))
    return figure


def _returns(axes: Axes, values: Floats, budget: float | None) -> None:
    """Single episodes as dots, the mean over the last tenth of the run as a line."""
    n = max(len(values) // 10, 1)
    sums = np.cumsum(np.r_[np.zeros(n), values])
    means = (sums[n:] - sums[:-n]) / np.minimum(np.arange(1, len(values) + 1), n)
    episodes = np.arange(1, len(values) + 1)
    axes.plot(episodes, values, ".", color="#999999", markersize=2, label="one episode")
    axes.plot(episodes, means, color="#0072B2", linewidth=1.4, label=f"mean of the last {n}")
    if budget is not None:
        axes.axhline(budget, color="#D55E00", linestyle="--", linewidth=1.2, label="budget")
    axes.legend(fontsize=7, frameon=False)
