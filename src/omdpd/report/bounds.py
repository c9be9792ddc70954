"""The theorem's bounds as curves over the number of episodes, beside what learners did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.report.canvas import Axes, Figure, looking, new_figure
from omdpd.report.curves import Curves, load_curves
from omdpd.report.figures import LOOK, styles_by_name, write_figure
from omdpd.report.results import summaries
from omdpd.theory.bounds import Side, theorem_terms, total

# Points of a bound's curve, and how far beyond the asked K it is drawn: to where most terms have become meaningful.
POINTS, BEYOND = 60, 1e7
# A term has one colour in both panels.
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#E69F00", "#0072B2")


def draw_bounds(setting: Setting, delta: float, beside: Path | None = None, file: Path | None = None) -> Figure:
    """Regret and violation: every term, the trivial HK, and the curves of a folder of results; log-log."""
    measured = _measured(beside)
    with looking(LOOK):
        figure = new_figure(8.0, 4.4)
        sides: tuple[Side, Side] = ("regret", "violation")
        for axes, side in zip(figure.subplots(1, 2), sides, strict=True):
            _bounds(axes, side, setting, delta)
            _curves(axes, side, measured)
            axes.set(title=f"cumulative {side}", xlabel="episodes K", xscale="log", yscale="log")
            axes.legend(fontsize=8, frameon=False)
    if file is not None:
        write_figure(figure, file)
    return figure


def _bounds(axes: Axes, side: Side, setting: Setting, delta: float) -> None:
    """The terms of one side over K, the sum of them, and what no policy can exceed."""
    K = np.unique(np.geomspace(10.0, (setting.n_episodes or 1) * BEYOND, POINTS).astype(np.int64))
    at = [theorem_terms(replace(setting, n_episodes=int(k)), delta) for k in K]
    axes.plot(K, setting.horizon * K.astype(float), color="#000000", linewidth=2.0, label="trivial: HK")
    for place, term in enumerate(at[0]):
        if term.side in (side, "both"):
            mark = "" if term.given else ", order only"
            axes.plot(
                K, [terms[place].value for terms in at], linestyle="--", color=COLOURS[place], label=term.name + mark
            )
    axes.plot(K, [total(terms, side) for terms in at], color="#D55E00", linewidth=1.6, label="sum")


def _curves(axes: Axes, side: Side, measured: list[Curves]) -> None:
    """The mean curves of learners where they are positive."""
    style = styles_by_name(c.learner for c in measured)
    for curves in measured:
        band = curves.violation if side == "violation" else curves.regret
        if band is not None and (band.mean > 0.0).any():
            colour, line, _ = style[curves.learner]
            kept = band.mean > 0.0
            axes.plot(
                band.episodes[kept],
                band.mean[kept],
                color=colour,
                linestyle=line,
                label=f"{curves.learner}, {curves.nature}",
            )


def _measured(beside: Path | None) -> list[Curves]:
    """The curves of a folder of results; none without one."""
    if beside is None:
        return []
    found = summaries(beside)
    if not found:
        raise InvalidInputError(f"{beside} holds no finished run")
    return load_curves(beside / "runs", found, as_learnt=True)  # as the theorem is stated
