"""How regret and violation grow with the number of episodes, across runs that were told different numbers of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import RunSpec
from omdpd.report.statistics import Growth
from omdpd.report.tables import exponent_cell
from omdpd.theory.limits import limits_of

from .cells import markdown, mean_cell
from .drawing import against_episodes
from .study import WORLD, Line, Size, Study, Summary, learner, nature, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
NATURES = ("noisy", "pool")
LEADERS = ("ProximalOMDPD.standard", "ProximalOMDPD.cautious", "PlanLP")


def runs(size: Size) -> list[RunSpec]:
    """The leaders with every number of episodes."""
    return runs_of([nature(name) for name in NATURES], [learner(name) for name in LEADERS], size)


def numbers(summary: Summary) -> str:
    """Regret and violation at every number of episodes."""
    rows = [
        [line.nature, f"`{line.learner}`", str(line.episodes), *(mean_cell(line.values(key)) for key in SIDES)]
        for nature_name in summary.natures
        for name in summary.learners(nature_name)
        for line in summary.along(nature_name, name)
    ]
    return markdown(["costs", "learner", "K", "regret", "strong violation"], rows, 2)


def exponents(summary: Summary) -> str:
    """The exponents between neighbouring numbers of episodes, and over all of them."""
    rows = []
    for nature_name in summary.natures:
        for name in summary.learners(nature_name):
            lines = summary.along(nature_name, name)
            for side in SIDES:
                found = [exponent(early, late, side) for early, late in spans(lines)]
                rows.append([nature_name, f"`{name}`", side, *found])
    lengths = sorted({line.episodes for line in summary.lines})
    return markdown(["costs", "learner", "of", *(f"{a} to {b}" for a, b in spans(lengths))], rows, 3)


def limits(summary: Summary) -> str:
    """What the margin alone costs who knows all but the costs, on the same instances, beside the first leader."""
    registry, rows = Registry.installed(), []
    for line in (each for name in summary.natures for each in summary.along(name, LEADERS[0])):
        specs = [registry.run(WORLD, line.nature, "Uniform", line.episodes, seed) for seed in line.seeds]
        for each in limits_of(specs):
            sides = zip(SIDES, (each.regret, each.violation), strict=True)
            cells = [f"{least:.0f}; {mean_cell(line.values(side))}" for side, least in sides]
            rows.append([line.nature, str(line.episodes), *cells])
    return markdown(["costs", "K", f"regret; of `{LEADERS[0]}`", "strong violation; of it"], rows, 2)


def spans(items: Sequence[T]) -> list[tuple[T, T]]:
    """Neighbours, and the first with the last.

    >>> spans([1, 2, 3])
    [(1, 2), (2, 3), (1, 3)]
    """
    return [*pairwise(items), (items[0], items[-1])]


def exponent(early: Line, late: Line, side: str) -> str:
    """The exponent of the mean over seeds, with its interval."""
    before, after = early.values(side), late.values(side)
    if before is None or after is None or len(before) != len(after) or early.episodes == late.episodes:
        return "-"
    return exponent_cell(Growth(early.episodes, late.episodes, before, after))


def draw(summary: Summary) -> Figure:
    """Regret and violation against the number of episodes."""
    return against_episodes(summary, SIDES)


SIDES = ("regret", "violation")
GROWTH = Study(
    "growth",
    "How do regret and violation of the leaders grow with K?",
    "An exponent is the slope of the logarithm of the mean over instances between two numbers of episodes; in brackets "
    "its 95 % bootstrap interval over instances. 0.5 is what the theorems promise, 1 is no learning at all. Every K is "
    "a run of its own, because constants depend on K.",
    Size((750, 3000, 12_000, 48_000), 4),
    Size((50, 100, 200), 3),
    runs,
    {"numbers": numbers, "exponents": exponents, "limits": limits},
    draw,
)  # fmt: skip
