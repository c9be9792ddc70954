"""How regret and violation grow with the number of episodes, across runs that were told different numbers of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from benchmarks.ratios import paired_ratio_interval
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
# The longest runs are played under the first two.
NATURES = ("noisy", "pool", "adaptive")
LEADERS = ("ProximalOMDPD.standard", "ProximalOMDPD.settling")


def runs(size: Size) -> list[RunSpec]:
    """The leaders with every number of episodes, instance by instance."""
    leaders, found = [learner(name) for name in LEADERS], []
    for K in size.episodes:
        met = [nature(name) for name in (NATURES[:2] if size.is_long(K) else NATURES)]
        found += sorted(runs_of(met, leaders, size, [K]), key=lambda spec: spec.seed)
    return found


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
    lengths, rows = sorted({line.episodes for line in summary.lines}), []
    for nature_name in summary.natures:
        for name in summary.learners(nature_name):
            lines = {line.episodes: line for line in summary.along(nature_name, name)}
            for side, words in EXPONENTS.items():
                found = [exponent(lines.get(early), lines.get(late), side) for early, late in spans(lengths)]
                rows.append([nature_name, f"`{name}`", words, *found])
    return markdown(["costs", "learner", "of", *(f"{a} to {b}" for a, b in spans(lengths))], rows, 3)


def ratios(summary: Summary) -> str:
    """The first leader's means to the second's from the second number of episodes on, and the worst instances."""
    rows, lengths = [], sorted({line.episodes for line in summary.lines})
    for K in lengths[1:]:
        met = [name for name in summary.natures for line in summary.along(name, LEADERS[0]) if line.episodes == K]
        for name, natures in (*((each, [each]) for each in met), ("together", met)):
            pair = [[summary.line(each, who, K) for each in natures] for who in LEADERS]
            rows.append([name, str(K), *ratio_cells(*pair)])
    head = [
        "costs",
        "K",
        *(f"{side} ratio" for side in SIDES),
        "largest regret; of `settling`",
        "largest ratio of runs",
    ]
    return markdown(head, rows, 2)


def ratio_cells(ours: Sequence[Line], theirs: Sequence[Line]) -> list[str]:
    """Ratios of means over natures and paired runs with 90 % intervals, both largest runs, the largest ratio of two."""
    cells = []
    for side in SIDES:
        mine, other = (np.array([line.values(side) for line in lines]) for lines in (ours, theirs))
        each = mine.mean(axis=0), other.mean(axis=0)
        if mine.shape[1] < 2:
            cells.append(f"{mine.mean() / other.mean():.2f}")
        else:
            cells.append("{:.2f} ({:.2f} .. {:.2f})".format(*paired_ratio_interval(*each, np.random.default_rng(0))))
    mine, other = (np.array([line.values("regret") for line in lines]) for lines in (ours, theirs))
    return [*cells, f"{mine.max():.0f}; {other.max():.0f}", f"{(mine / other).max():.2f}"]


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


def exponent(early: Line | None, late: Line | None, side: str) -> str:
    """The exponent of the mean over the seeds of both, with its interval; the longer runs may have fewer."""
    if early is None or late is None or early.episodes == late.episodes:
        return "-"
    before, after = early.values(side), late.values(side)
    if before is None or after is None or early.seeds[: len(late.seeds)] != late.seeds:
        return "-"
    return exponent_cell(Growth(early.episodes, late.episodes, before[: len(after)], after))


def draw(summary: Summary) -> Figure:
    """Regret and violation against the number of episodes."""
    return against_episodes(summary, SIDES)


SIDES = ("regret", "violation")
EXPONENTS = {"regret": "regret", "lagrangian_regret": "Lagrangian regret", "violation": "violation"}
GROWTH = Study(
    "growth",
    "How do regret and violation of the leaders grow with K?",
    "An exponent is the slope of the logarithm of the mean over instances between two numbers of episodes; in brackets "
    "its 95 % bootstrap interval over instances. 0.5 is what the theorems promise, 1 is no learning at all. Every K is "
    "a run of its own, because constants depend on K.",
    Size((1000, 10_000, 100_000, 1_000_000), 16, (1_000_000, 8), 13260),
    Size((50, 100, 200), 3),
    runs,
    {"ratios": ratios, "numbers": numbers, "exponents": exponents, "limits": limits},
    draw,
)  # fmt: skip
