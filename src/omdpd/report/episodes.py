"""Histories episode by episode: what each cost beside its budget, and what it earned beside the best safe policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omdpd.play.history import History
from omdpd.problem.arrays import Floats
from omdpd.report.canvas import Axes, Figure, drawn, new_figure
from omdpd.report.curves import band, episodes_of

# No curve has this colour.
UNSAFE = "#B00020"
# The room for the words of the left panel, in heights of its curves.
LABEL = 0.15


def draw_episodes(
    groups: Sequence[Sequence[History]], styles: Sequence[tuple[str, str, str]], title: str, spread: str = "interval"
) -> Figure:
    """Draw two panels over episodes: expected cost above the budget, and expected reward.

    The true values of the policies in play are drawn, not sampled returns.  Of several constraints the one counts that
    exceeds its budget most.  A group holds the seeds of one curve.
    """
    figure = new_figure(8.0, 3.2)
    left, right = figure.subplots(1, 2)
    for group, (colour, line, _) in zip(groups, styles, strict=True):
        _curve(left, group, [history.excess.max(axis=1) for history in group], (colour, line), spread)
        _curve(right, group, [history.values for history in group], (colour, line), spread)
    low, high = min(left.get_ylim()[0], 0.0), max(left.get_ylim()[1], 0.0)
    high += LABEL * (high - low)  # above all curves
    left.axhspan(0.0, high, color=UNSAFE, alpha=0.12, linewidth=0)
    left.axhline(0.0, color=UNSAFE, linewidth=1.5)
    left.text(0.98, 0.98, "over budget", color=UNSAFE, ha="right", va="top", transform=left.transAxes)
    left.set(title="expected cost of an episode, minus its budget", xlabel="episode", ylim=(low, high))
    if (value := groups[0][0].comparator.value) is not None:
        level = float(groups[0][0].units.values(np.array(value)))
        right.axhline(level, color="#555555", linestyle="--", linewidth=1.2, label="best safe policy")
    right.set(title="expected reward of an episode", xlabel="episode")
    right.legend(loc="best", frameon=False)
    figure.suptitle(title)
    return figure


def _curve(axes: Axes, group: Sequence[History], curves: list[Floats], style: tuple[str, str], spread: str) -> None:
    """The mean of seeds, with what lies around it, episode by episode."""
    episodes = episodes_of(group)
    found = band(episodes, np.stack(curves), np.arange(len(episodes)))
    found.shade(axes, style[0], spread)
    axes.plot(episodes, found.middle(spread), color=style[0], linestyle=style[1], label=drawn(group[0].label))
