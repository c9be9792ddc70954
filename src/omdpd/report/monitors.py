"""A monitored run as a figure: in which episodes each inequality held, and what regret and violation came from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.report.canvas import Axes, Figure, looking, new_figure
from omdpd.theory.inequalities import Inequality
from omdpd.theory.monitor import Losses, Monitor

# Inches of a line in the list of inequalities; columns that episodes are gathered in.
LINE, MAX_COLUMNS = 0.22, 200
ESTIMATION, OPTIMISATION, BOTH = "#0072B2", "#D55E00", "#000000"
HELD, FAILED = "#DCE6EC", "#8A3800"


def draw_monitor(monitor: Monitor) -> Figure:
    """Above, a line per inequality that applies, dark where it failed; below, the split of regret and of violation."""
    shown = [each for each in monitor if each.applies]
    with looking({"font.size": 8, "axes.titlesize": 9, "lines.linewidth": 1.3}):
        heights = (LINE * len(shown) + 0.8, 2.6)
        figure = new_figure(8.0, sum(heights))
        grid = figure.add_gridspec(2, 2, height_ratios=heights)
        _held(figure.add_subplot(grid[0, :]), shown, len(monitor.rows))
        _split(figure.add_subplot(grid[1, 0]), monitor.losses, "regret")
        _split(figure.add_subplot(grid[1, 1]), monitor.losses, "violation")
        figure.suptitle(f"{monitor.label}, {monitor.nature}")
    return figure


def _held(axes: Axes, shown: list[Inequality], n_episodes: int) -> None:
    """The share of episodes in which each held, along the run; white where it was no longer followed."""
    from matplotlib.colors import LinearSegmentedColormap

    picture, n = np.stack([_gathered(each, n_episodes) for each in shown]), len(shown)
    colours = LinearSegmentedColormap.from_list("held", [FAILED, HELD])
    extent = (0, n_episodes, n, 0)
    axes.imshow(picture, aspect="auto", cmap=colours, vmin=0.0, vmax=1.0, extent=extent, interpolation="nearest")
    axes.hlines(np.arange(1, n), 0, n_episodes, color="#FFFFFF", linewidth=2.0)
    axes.set_yticks(np.arange(len(shown)) + 0.5, [f"{each.name}: {each.share:.0%}" for each in shown])
    axes.set(title="where it held (light) and failed (dark), and the share of episodes", xlabel="episode")


def _gathered(inequality: Inequality, n_episodes: int) -> Floats:
    """The share of held episodes in each of at most `MAX_COLUMNS` parts of a run; nan where there is none."""
    held, n = inequality.holds.astype(np.float64), min(n_episodes, MAX_COLUMNS)
    edges = np.linspace(0, n_episodes, n + 1).astype(np.int64)
    return np.array([held[a:b].mean() if a < len(held) else np.nan for a, b in pairwise(edges)])


def _split(axes: Axes, losses: Losses, side: str) -> None:
    """A loss over the episodes, with its two parts."""
    whole, estimation, optimisation = (
        getattr(losses, name) for name in (side, f"estimation_{side}", f"optimisation_{side}")
    )
    axes.set(title=f"cumulative {side}", xlabel="episode")
    if whole is None or optimisation is None:
        axes.text(0.5, 0.5, "no policy is safe in every episode", ha="center", transform=axes.transAxes)
        return
    episodes = np.arange(1, len(whole) + 1)
    axes.axhline(0.0, color="#999999", linewidth=0.8)
    axes.plot(episodes, whole, color=BOTH, label=side)
    axes.plot(episodes, estimation, color=ESTIMATION, linestyle="--", label="estimation error")
    axes.plot(episodes, optimisation, color=OPTIMISATION, linestyle=":", label="optimisation error")
    axes.legend(frameon=False, fontsize=8)
