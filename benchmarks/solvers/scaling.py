"""How the cost of an iteration grows with S, A and H, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.solvers import contestants
from benchmarks.solvers.general import QuadraticProgram
from benchmarks.solvers.problems import Kind, Problem, Size, recorded
from omdpd.report.figures import write_figure

# The base size, and what each of its numbers is varied over.
BASE = {"S": 20, "A": 4, "H": 8}
GRID = {"S": (5, 10, 20, 40, 80), "A": (2, 4, 8, 16), "H": (4, 8, 16, 32)}
EPISODES = 12


@dataclass(frozen=True)
class Growth:
    """Milliseconds per iteration of the two solvers at one size, and their iterations per step."""

    varied: str
    size: int
    box: float
    kernel: float
    box_iterations: float
    kernel_iterations: float


def measure_growth(seed: int, largest: int | None = None) -> list[Growth]:
    """Time both solvers over the grid, or what is no larger of it (cold, on steps of short loops)."""
    found = []
    for name, sizes in GRID.items():
        for value in (value for value in sizes if largest is None or value <= largest):
            numbers = BASE | {name: value}
            size = Size(numbers["S"], numbers["A"], numbers["H"], EPISODES)
            (box, n), (kernel, m) = (
                _per_iteration(recorded(size, Kind(region, 1), seed, 3)) for region in ("box", "kernel")
            )
            found.append(Growth(name, value, box, kernel, n, m))
    return found


@dataclass(frozen=True)
class Exponent:
    """The powers with which an iteration of the two solvers grows between two sizes."""

    varied: str
    low: int
    high: int
    box: float
    kernel: float


def exponents(growth: list[Growth]) -> list[Exponent]:
    """One for each number, from where the fixed costs of a call no longer count."""
    return [
        Exponent(name, low, high, *(exponent(growth, name, low, high, region) for region in ("box", "kernel")))
        for name, low, high in (("S", 20, 80), ("A", 2, 16), ("H", 4, 32))
    ]


def exponent(growth: list[Growth], varied: str, low: int, high: int, region: str) -> float:
    """The power with which an iteration's cost grows between two sizes."""
    cost = {g.size: getattr(g, region) for g in growth if g.varied == varied}
    return float(np.log(cost[high] / cost[low]) / np.log(high / low))


def draw_growth(growth: list[Growth], file: Path) -> Path:
    """One panel per number, logarithmic on both axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(GRID), figsize=(11.0, 3.4), layout="constrained")
    for axes, name in zip(panels, GRID, strict=True):
        rows = [g for g in growth if g.varied == name]
        sizes = [g.size for g in rows]
        axes.loglog(sizes, [g.box for g in rows], "o-", color="#000000", label="confidence box")
        axes.loglog(sizes, [g.kernel for g in rows], "s--", color="#D55E00", label="single kernel")
        others = ", ".join(f"{key} = {value}" for key, value in BASE.items() if key != name)
        axes.set(xlabel=name, ylabel="ms per iteration", title=others)
        axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        axes.minorticks_off()
    panels[0].legend(frameon=False)
    return write_figure(figure, file)


def _per_iteration(problems: list[Problem]) -> tuple[float, float]:
    """Milliseconds per iteration, the median over problems, each solved twice and timed the second time; iterations."""
    solve = contestants.ours(False)
    unused: QuadraticProgram = None  # type: ignore[assignment]
    spent, iterations = [], []
    for problem in problems:
        solve(problem, unused)
        done = solve(problem, unused)
        spent.append(1e3 * done.seconds / max(done.iterations, 1))
        iterations.append(done.iterations)
    return float(np.median(spent)), float(np.mean(iterations))
