"""Every learner as its dial turns: what regret buys in violation, and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omdpd.experiments.spec import LearnerSpec, RunSpec
from omdpd.experiments.tuning import factors_for, multiplied, turned
from omdpd.learners.factors import Factor
from omdpd.report.canvas import new_figure
from omdpd.report.figures import LOOK, STYLES, Style, styles_by_name

from .cells import markdown, mean_cell
from .drawing import plain_log_ticks
from .study import Size, Study, Summary, learner, nature, runs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEARNERS = {
    "noisy": (
        "ProximalOMDPD.standard", "ProximalOMDPD.cautious", "PlanLP", "OMDPD.tuned", "SinhaVaze", "LekeufackJordan",
        "OptPessLP", "DOPE", "GreedyLP", "OptDual", "OptAug",
    ),
    "pool": (
        "ProximalOMDPD.standard", "ProximalOMDPD.cautious", "PlanLP", "OMDPD.tuned", "SinhaVaze", "LekeufackJordan",
        "CautiousLP", "GreedyLP",
    ),
}  # fmt: skip

# How far the dials are turned, the least and the largest multiple; the tuner of comparisons goes further.
TURNED = {"cost pessimism": (1 / 4, 4.0), "step": (1 / 10, 30.0)}


def dial_of(name: str) -> Factor:
    """The setting that is turned: its margin on cost, else its step."""
    roles = {factor.role: factor for factor in factors_for(learner(name))}
    return roles.get("cost pessimism") or roles["step"]


def positions(name: str) -> list[LearnerSpec]:
    """The learner at five positions of its dial, the middle one as it comes (where it comes with a value)."""
    dial = dial_of(name)
    low, high = TURNED[dial.role]
    multiples = [*np.geomspace(low, 1.0, 3), *np.geomspace(1.0, high, 3)[1:]]
    return [turned(learner(name), dial, float(multiple)) for multiple in multiples]


def runs(size: Size) -> list[RunSpec]:
    """Every learner at every position."""
    return [
        run
        for nature_name, names in LEARNERS.items()
        for name in names
        for run in runs_of([nature(nature_name)], positions(name), size)
    ]


def numbers(summary: Summary) -> str:
    """Regret and violation at every position of every dial; what no other position of anybody beats is marked."""
    rows = []
    for nature_name, names in LEARNERS.items():
        best = undominated(summary, nature_name)
        for name in names:
            dial = dial_of(name)
            for spec in positions(name):
                (line,) = summary.along(nature_name, spec.label)
                mark = " ●" if spec.label in best else ""
                cells = [mean_cell(line.values(key)) for key in ("regret", "violation")]
                rows.append([nature_name, f"`{name}`", f"{dial.setting} = {multiplied(spec, dial):g}{mark}", *cells])
    return markdown(["costs", "learner", "dial", "regret", "strong violation"], rows, 3)


def undominated(summary: Summary, nature_name: str) -> set[str]:
    """The labels whose mean regret and violation no other one beats in both."""
    points = {
        line.learner: (line.mean("regret"), line.mean("violation"))
        for line in summary.lines
        if line.nature == nature_name
    }
    known = {label: (r, v) for label, (r, v) in points.items() if r is not None and v is not None}
    return {
        label
        for label, mine in known.items()
        if not any(other != mine and other[0] <= mine[0] and other[1] <= mine[1] for other in known.values())
    }


def draw(summary: Summary) -> Figure:
    """A panel per nature, a line per learner through the positions of its dial."""
    from matplotlib import rc_context

    style = styles_by_name([name for names in LEARNERS.values() for name in names])
    with rc_context(LOOK):
        figure = new_figure(11.0, 5.4)
        for axes, (nature_name, names) in zip(figure.subplots(1, len(LEARNERS)), LEARNERS.items(), strict=True):
            for name in names:
                _line(axes, summary, nature_name, name, style[name], hollow=list(style).index(name) >= len(STYLES))
            axes.set(title=nature_name, xlabel="regret", ylabel="strong violation", xscale="log")
            axes.set_yscale("symlog", linthresh=1.0)
            axes.set_ylim(bottom=-0.1)
            plain_log_ticks(axes.xaxis)
            axes.legend(fontsize=7, frameon=False)
    return figure


def _line(axes: Axes, summary: Summary, nature_name: str, name: str, style: Style, hollow: bool) -> None:
    """One learner; there are more of them than styles, so the later ones have hollow markers and dotted lines."""
    colour, dashes, marker = style
    lines = [summary.along(nature_name, spec.label)[0] for spec in positions(name)]
    points = [(line.mean("regret") or 0.0, line.mean("violation") or 0.0) for line in lines]
    axes.plot(
        *zip(*points, strict=True), color=colour, linestyle=":" if hollow else dashes, marker=marker,
        fillstyle="none" if hollow else "full", linewidth=0.9, label=name,
    )  # fmt: skip
    axes.plot(*points[len(points) // 2], color=colour, marker="o", markersize=9, fillstyle="none")


FRONTIER = Study(
    "frontier",
    "What does each learner trade as its dial turns?",
    "A dial is the setting that a learner declares for its margin on cost, or else for its step "
    "(`learners/factors.py`), at five positions; the middle one is ringed in the figure. ● marks "
    "positions that no other position of anybody beats in both means.",
    Size((1500,), 5),
    Size((20,), 1),
    runs,
    {"numbers": numbers},
    draw,
)
