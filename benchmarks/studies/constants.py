"""The theorem's constants: from which K on does the penalty that they build up hold a constraint?

The penalty of the paper is Phi'(lam) = beta exp(beta lam), and lam grows by alpha times the violation.  A constraint is
held once the penalty is as large as its shadow price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import RunSpec
from omdpd.learners.potential import Potential
from omdpd.problem.setting import Setting
from omdpd.report.canvas import new_figure
from omdpd.report.figures import LOOK, styles_by_name
from omdpd.solvers.planning import best_plan
from omdpd.theory.bounds import theorem_numbers

from .cells import markdown, mean_cell, number
from .study import WORLD, Line, Size, Study, Summary, learner, nature, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEORY = learner("OMDPD.theory")
# One constant at a time, then together, set to those of OMDPD.tuned; then the scales of OMDPD.tuned, with the theorem's
# constants (as they are at K = 3000) and with its own.
CHANGED = (
    learner("OMDPD.theory", alpha=0.1),
    learner("OMDPD.theory", w0=1.0),
    learner("OMDPD.theory", beta_root=10.0),
    learner("OMDPD.theory", alpha=0.1, beta_root=10.0),
    learner("OMDPD.theory", alpha=0.1, w0=1.0, beta_root=10.0),
    learner("OMDPD.tuned", alpha=0.0012, w0=0.0036, beta_root=0.44),
    learner("OMDPD.tuned"),
)
NATURE = "noisy"
PAPER_SIZE = Setting(5, 5, 3)
# Numbers of episodes for which the penalty is worked out rather than played.
DECADES = tuple(10**n for n in range(3, 13))


def runs(size: Size) -> list[RunSpec]:
    """The theorem's constants for every K, and others at the second of them."""
    return [
        *runs_of([nature(NATURE)], [THEORY], size),
        *runs_of([nature(NATURE)], CHANGED, size, size.episodes[1:2]),
    ]


def measured(summary: Summary) -> str:
    """What the penalty came to, beside the price it would have to reach."""
    price = float(np.mean(prices(summary.lines[0].seeds)))
    rows = []
    for line in (line for line in summary.lines if line.learner == THEORY.label):
        constants = theorem_numbers(replace(PAPER_SIZE, n_episodes=line.episodes))
        rows.append([
            str(line.episodes), f"{constants.alpha:.2g}", f"{constants.beta:.2g}", f"{penalty(line):.2g}",
            f"{constants.penalty:.2g}", number(price), mean_cell(line.values("late_violation")),
        ])  # fmt: skip
    head = [
        "K",
        "alpha",
        "beta = w0",
        "penalty at the end",
        "the most it could be",
        "shadow price",
        "violation of a late episode",
    ]
    return markdown(head, rows, 1)


def changed(summary: Summary) -> str:
    """The same learner with single constants changed."""
    at = sorted({line.episodes for line in summary.lines})[1]
    rows = [
        [
            f"`{spec.label}`", f"{penalty(line):.2g}", mean_cell(line.values("regret")),
            mean_cell(line.values("violation")), mean_cell(line.values("late_violation")),
        ]
        for spec in (THEORY, *CHANGED)
        for line in [summary.line(NATURE, spec.label, at)]
    ]  # fmt: skip
    head = [f"K = {at}", "penalty at the end", "regret", "strong violation", "violation of a late episode"]
    return markdown(head, rows, 1)


def onset(summary: Summary) -> str:
    """How large the penalty can be at the end of K episodes that all violate by H, or by what was measured late."""
    late = summary.along(NATURE, THEORY.label)[-1].mean("late_violation") or 0.0
    price = float(np.mean(prices(summary.lines[0].seeds)))
    rows = [
        [f"{K:,}", *(f"{reached(K, amount):.2g}" for amount in (float(PAPER_SIZE.horizon), late)), number(price)]
        for K in DECADES
    ]
    head = ["K", "penalty if every episode violates by H", f"… by {number(late)}, as measured", "shadow price"]
    return markdown(head, rows, 1)


def reached(episodes: int, violation: float) -> float:
    """beta exp(beta alpha violation K), capped: the penalty after K episodes that violate by so much.

    >>> f"{reached(10**6, 5.0):.1e}"
    '5.9e-04'
    """
    constants = theorem_numbers(replace(PAPER_SIZE, n_episodes=episodes))
    lam = np.array([constants.alpha * violation * episodes])
    return float(Potential(constants.beta, constants.beta).slope(lam)[0])


def penalty(line: Line) -> float:
    """The mean penalty after the last episode."""
    last = None if line.curve is None else line.curve.weight[-1]
    return 0.0 if last is None else last


def prices(seeds: Sequence[int]) -> list[float]:
    """The shadow price of the constraint in every instance, which is drawn anew."""
    world = Registry.installed().spec("worlds", WORLD)
    found = []
    for seed in seeds:
        spec = RunSpec(world, nature(NATURE), THEORY, 1, seed)
        cmdp = world.build(np.random.default_rng(spec.stream(0)))
        found.append(float(best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess).multipliers.max()))
    return found


def draw(summary: Summary) -> Figure:
    """The penalty over the episodes for every K, below the price, and the violation beside it."""
    from matplotlib import rc_context

    lines = summary.along(NATURE, THEORY.label)
    style = styles_by_name([str(line.episodes) for line in lines])
    price = float(np.mean(prices(lines[0].seeds)))
    with rc_context(LOOK):
        figure = new_figure(10.0, 3.6)
        left, right = figure.subplots(1, 2)
        for line in lines:
            colour, dashes, _ = style[str(line.episodes)]
            curve = line.curve
            if curve is not None:
                look = {"color": colour, "linestyle": dashes, "label": f"K = {line.episodes}"}
                left.plot(curve.episodes, curve.weight, **look)
                right.plot(curve.episodes, curve.violation, **look)
        left.axhline(price, color="#000000", linewidth=0.8)
        left.text(1.0, price, "shadow price", va="bottom", fontsize=8)
        left.set(title="penalty", xlabel="episodes", xscale="log", yscale="log")
        right.set(title="strong violation", xlabel="episodes", xscale="log", yscale="log")
        left.legend(fontsize=8, frameon=False)
    return figure


CONSTANTS = Study(
    "constants",
    "From which K on do the theorem's constants hold a constraint?",
    "The penalty is what the learner pays, in reward, for a unit of expected cost above the budget; the shadow price "
    "is what that unit is worth in reward, averaged over the instances. A penalty below the price cannot hold the "
    "constraint. A late episode is one of the last tenth of the run.",
    Size((1000, 3000, 30_000, 1_000_000), 3, (30_000, 1)),
    Size((20, 40), 1),
    runs,
    {"measured": measured, "onset": onset, "changed": changed},
    draw,
    curves=True,
)
