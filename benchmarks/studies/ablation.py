"""One part at a time is taken away or changed, and the pairs that interact: what is each worth?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omdpd.experiments.spec import LearnerSpec, RunSpec
from omdpd.report.canvas import new_figure
from omdpd.report.figures import LOOK
from omdpd.report.statistics import half_width

from .cells import difference_cell, markdown, mean_cell
from .study import Size, Study, Summary, learner, nature, runs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NATURES = ("noisy", "pool")
# Where the mirror step is held against the linear program with the same beliefs.
PLACES = ("noisy", "pool", "adaptive", "drifting", "anchored")
STANDARD, TUNED = "ProximalOMDPD.standard", "OMDPD.tuned"


@dataclass(frozen=True)
class Variant:
    """A learner with something changed, in words."""

    words: str
    learner: LearnerSpec


OF_STANDARD = (
    Variant("as it comes", learner(STANDARD)),
    Variant("no margin", learner(STANDARD, z=0.0)),
    Variant("no exploration", learner(STANDARD, exploration=0.0)),
    Variant("estimator: all steps pooled", learner(STANDARD, stationary=True)),
    Variant("estimator: each step alone, margin in √(L/n)", learner("ProximalOMDPD.cautious")),
    Variant("… and no margin", learner("ProximalOMDPD.balanced")),
    Variant("estimator: confidence box", learner("ProximalOMDPD.optimistic")),
    Variant("w0 = 1 instead of 10", learner(STANDARD, w0=1.0)),
    Variant("weights hardly grow (β / 1600)", learner(STANDARD, gamma_scale=0.01)),
    Variant("w0 = 1 and weights hardly grow", learner(STANDARD, w0=1.0, gamma_scale=0.01)),
    Variant("no margin, w0 = 1", learner(STANDARD, z=0.0, w0=1.0)),
    Variant("no margin, weights hardly grow", learner(STANDARD, z=0.0, gamma_scale=0.01)),
    Variant("weights of this episode, not the last", learner(STANDARD, lagged=False)),
    Variant("every surprise slows the steps", learner(STANDARD, patient=False)),
    Variant("memory of one table", learner(STANDARD, memory=1)),
    Variant("memory of one, every surprise slows", learner(STANDARD, memory=1, patient=False)),
    Variant("longer steps with costs met (η = H)", learner(STANDARD, eta_bandit=1.0)),
    Variant("shorter steps (η = H/100)", learner(STANDARD, eta=0.01, eta_bandit=0.01)),
    Variant("no mirror step: linear program", learner("PlanLP")),
)
OF_TUNED = (
    Variant("as it comes", learner(TUNED)),
    Variant("exact hinge, next surrogate", learner("ProximalOMDPD.optimistic")),
    Variant("hint as printed", learner(TUNED, hint="as-printed")),
    Variant("nested sets", learner(TUNED, nested=True)),
    Variant("no clipping", learner(TUNED, clip=False)),
    Variant("divergence: KL", learner(TUNED, divergence="kl")),
    Variant("C = SAH/2", learner(TUNED, diameter=37.5)),
    Variant("hint as printed, C = SAH/2", learner(TUNED, hint="as-printed", diameter=37.5)),
    Variant("reward scale 1, the theorem's", learner(TUNED, reward_scale=1.0)),
    Variant("reward scale 1, no clipping", learner(TUNED, reward_scale=1.0, clip=False)),
    Variant("transition scale 0.05 instead of 0.005", learner(TUNED, transition_scale=0.05)),
    Variant("transition scale 0.05 instead of 0.005, nested", learner(TUNED, transition_scale=0.05, nested=True)),
    Variant("w0 / 10", learner(TUNED, w0=0.1)),
    Variant("β / 10", learner(TUNED, beta_root=1.0)),
    Variant("w0 / 10 and β / 10", learner(TUNED, w0=0.1, beta_root=1.0)),
    Variant("unvisited pairs not trusted", learner(TUNED, trusting=False)),
)


def runs(size: Size) -> list[RunSpec]:
    """Every variant once, and the mirror step beside the program wherever that may matter."""
    learners = list(dict.fromkeys(variant.learner for variant in (*OF_STANDARD, *OF_TUNED)))
    more = [name for name in PLACES if name not in NATURES]
    return [
        *runs_of([nature(name) for name in NATURES], learners, size),
        *runs_of([nature(name) for name in more], [learner(STANDARD), learner("PlanLP")], size),
    ]


def standard(summary: Summary) -> str:
    """What changes of the default learner do."""
    return _table(summary, OF_STANDARD)


def tuned(summary: Summary) -> str:
    """What changes of the paper's update do."""
    return _table(summary, OF_TUNED)


def mirror(summary: Summary) -> str:
    """The mirror step less the linear program with the same beliefs, place by place."""
    rows = []
    for nature_name in PLACES:
        ours, program = (summary.along(nature_name, name)[-1] for name in (STANDARD, "PlanLP"))
        for side in ("regret", "violation"):
            mine, other = ours.values(side), program.values(side)
            rows.append([nature_name, side, mean_cell(mine), mean_cell(other), difference_cell(mine, other)])
    return markdown(["costs", "of", f"`{STANDARD}`", "`PlanLP`", "difference"], rows, 2)


def _table(summary: Summary, variants: tuple[Variant, ...]) -> str:
    """Paired differences to the first variant; its own row has its means."""
    rows = []
    for variant in variants:
        cells = []
        for nature_name in NATURES:
            line, base = (
                summary.along(nature_name, variant.learner.label)[-1],
                summary.along(nature_name, variants[0].learner.label)[-1],
            )
            for side in ("regret", "violation"):
                same = variant is variants[0]
                mine = line.values(side)
                cells.append(mean_cell(mine) if same else difference_cell(mine, base.values(side)))
        rows.append([variant.words, *cells])
    sides = [f"{side}, `{nature_name}`" for nature_name in NATURES for side in ("regret", "violation")]
    return markdown(["change", *sides], rows, 1)


def draw(summary: Summary) -> Figure:
    """The paired differences of every variant with their intervals: regret above zero is a loss, violation too."""
    from matplotlib import rc_context

    with rc_context(LOOK):
        figure = new_figure(12.0, 0.2 * (len(OF_STANDARD) + len(OF_TUNED)) + 2.0)
        grid = figure.subplots(2, 4, sharey="row", height_ratios=(len(OF_STANDARD), len(OF_TUNED)))
        for row, (name, variants) in zip(grid, ((STANDARD, OF_STANDARD), (TUNED, OF_TUNED)), strict=True):
            places = [(nature_name, side) for nature_name in NATURES for side in ("regret", "violation")]
            for axes, (nature_name, side) in zip(row, places, strict=True):
                _differences(axes, summary, variants, nature_name, side)
                axes.set_title(f"{nature_name}: {side}", fontsize=9)
            row[0].set_ylabel(name)
    return figure


def _differences(axes: Axes, summary: Summary, variants: tuple[Variant, ...], nature_name: str, side: str) -> None:
    base = summary.along(nature_name, variants[0].learner.label)[-1].values(side)
    for place, variant in enumerate(variants[1:]):
        mine = summary.along(nature_name, variant.learner.label)[-1].values(side)
        if mine is not None and base is not None:
            half = half_width(mine - base)
            error = 0.0 if half is None else float(half)
            axes.errorbar(float((mine - base).mean()), place, xerr=error, color="#0072B2", marker="o", capsize=2)
    axes.axvline(0.0, color="#000000", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=10.0)
    axes.set_yticks(range(len(variants) - 1), [variant.words for variant in variants[1:]], fontsize=7)
    axes.set_ylim(len(variants) - 1.5, -0.5)


ABLATION = Study(
    "ablation",
    "What is each part of the algorithm worth, alone and in the pairs that interact?",
    "The first row has means, the others paired differences to it with 95 % intervals over instances: positive regret "
    "or violation is a loss. * marks intervals without zero; with this many comparisons one in twenty of them is luck.",
    Size((2000,), 5),
    Size((20,), 3),
    runs,
    {"standard": standard, "tuned": tuned, "mirror": mirror},
    draw,
)
