"""Histories episode by episode: what each cost beside its budget, and what it earned beside the best safe policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from omdpd.play.history import History
from omdpd.problem.arrays import Floats
from omdpd.report.canvas import drawn, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNSAFE = "#D55E00"
# The room for the words of the left panel, in heights of its curves.
LABEL = 0.15


def draw_episodes(histories: Sequence[History], styles: Sequence[tuple[str, str, str]], title: str) -> Figure:
    """Draw two panels over episodes: expected cost above the budget, and expected reward.

    The true values of the policies in play are drawn, not sampled returns.  Of several constraints the one counts that
    exceeds its budget most.
    """
    figure = new_figure(8.0, 3.2)
    left, right = figure.subplots(1, 2)
    for history, (colour, line, _) in zip(histories, styles, strict=True):
        _curve(left, history, history.excess.max(axis=1), colour, line)
        _curve(right, history, history.values, colour, line)
    low, high = min(left.get_ylim()[0], 0.0), max(left.get_ylim()[1], 0.0)
    high += LABEL * (high - low)  # above all curves
    left.axhspan(0.0, high, color=UNSAFE, alpha=0.12, linewidth=0)
    left.axhline(0.0, color=UNSAFE, linewidth=1.5)
    left.text(0.98, 0.98, "over budget", color=UNSAFE, ha="right", va="top", transform=left.transAxes)
    left.set(title="expected cost of an episode, minus its budget", xlabel="episode", ylim=(low, high))
    if (value := histories[0].comparator.value) is not None:
        level = float(histories[0].units.values(np.array(value)))
        right.axhline(level, color="#555555", linestyle="--", linewidth=1.2, label="best safe policy")
    right.set(title="expected reward of an episode", xlabel="episode")
    right.legend(loc="best", frameon=False)
    figure.suptitle(title)
    return figure


def _curve(axes: Axes, history: History, values: Floats, colour: str, line: str) -> None:
    """One line over episodes, counted from 1."""
    axes.plot(np.arange(1, len(values) + 1), values, color=colour, linestyle=line, label=drawn(history.label))
