"""Timings on layered graphs: against general solvers with sparse matrices, growth in the entries, several hinges.

    python -m benchmarks.solvers.sparse_timing [--parts race,growth,hinges] [--only NAME] [--large]
        [--seed I] [--seeds N] [--sizes N,N] [--hinges N] [--ours] [--json FILE]

Processor time of one thread, the least of three solves of ours and one of the others (they take seconds).  Growth and
hinges are measured on N worlds, and their medians are compared.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.kept import keep
from benchmarks.solvers import contestants
from benchmarks.solvers.contestants import Solve
from benchmarks.solvers.general import QuadraticProgram
from benchmarks.solvers.graph_flows import shares_of_occupancy, values_of_shares
from benchmarks.solvers.sparse_problems import SparseProblem, general_program, of_known_kernel, of_loop
from benchmarks.solvers.sparse_worlds import grid, queue, taxi
from omdpd.solvers.graph_step import arrays_of
from omdpd.solvers.mirror import Hinges
from omdpd.solvers.threads import one_thread

# HiGHS' quadratic solver and OSQP take minutes beyond this many rows, in our trials.
FEW_ROWS = 3000
GROWTH, LARGE_GROWTH = (15, 20, 30), (15, 20, 30, 40, 50)
# How many hinges there are, and how many of them cannot bind.
HINGES = [(1, 0), (2, 0), (4, 0), (8, 2), (8, 0)]


@dataclass(frozen=True)
class SparseTiming:
    """One solver on one problem: milliseconds, Newton steps or iterations, sweeps, and how many times ours it takes."""

    problem: str
    rows: int
    entries: int
    solver: str
    milliseconds: float
    iterations: int
    sweeps: float
    difference: float
    ratio: float


def races(seed: int, large: bool) -> dict[str, Callable[[], SparseProblem]]:
    """The problems of the race by name."""
    episodes = 300 if large else 120
    chosen: dict[str, Callable[[], SparseProblem]] = {
        "grid 8x8 by step": lambda: of_loop(grid(8, 16, 0.1, seed), episodes, False, seed),
        "Taxi by step": lambda: of_loop(taxi(), episodes, False, seed),
        "Taxi pooled": lambda: of_loop(taxi(), episodes, True, seed),
        "grid 30x30 by step": lambda: of_loop(grid(30, 60, 0.1, seed), episodes, False, seed),
        "queue 2000 by step": lambda: of_loop(queue(2000, 50, seed), episodes, False, seed),
    }
    if large:
        chosen |= {
            "grid 50x50 by step": lambda: of_loop(grid(50, 100, 0.1, seed), episodes, False, seed),
            "queue 2000 pooled": lambda: of_loop(queue(2000, 50, seed), episodes, True, seed),
        }
    return chosen


def race(name: str, problem: SparseProblem, ours: bool = False) -> list[SparseTiming]:
    """Ours, warm and cold, and (unless ours alone is wanted) the others on one problem."""
    size = name, problem.graph.n_rows, len(problem.graph.successors)
    sweep, (warm, step) = time_sweep(problem), timed(problem.solve)
    hinges = problem.hinges
    cold, start = timed(problem._replace(hinges=Hinges(hinges.tables, hinges.weights)).solve)
    found = [
        SparseTiming(*size, "ours, warm", 1e3 * warm, step.iterations, warm / sweep, 0.0, 1.0),
        SparseTiming(*size, "ours, cold", 1e3 * cold, start.iterations, cold / sweep, 0.0, cold / warm),
    ]
    if ours:
        return found
    general = general_program(problem)
    for rival, make in rivals(problem, general).items():
        solve = make()
        began = time.process_time()
        answer = solve(problem, general)  # type: ignore[arg-type]  # it only asks for the shape of the reference
        spent = time.process_time() - began
        q = answer.occupancy / np.sqrt(problem.graph.copies)
        difference = float(np.abs(q - step.occupancy).max())
        found.append(
            SparseTiming(*size, rival, 1e3 * spent, answer.iterations, spent / sweep, difference, spent / warm)
        )
    return found


def rivals(problem: SparseProblem, general: QuadraticProgram) -> dict[str, Callable[[], Solve]]:
    """The general solvers that end within about a minute."""
    chosen: dict[str, Callable[[], Solve]] = {
        "PIQP": lambda: contestants.piqp("sparse_ldlt", general),
        "Clarabel": lambda: contestants.clarabel(general),
    }
    if problem.graph.n_rows <= FEW_ROWS:
        chosen |= {"OSQP": lambda: contestants.osqp(general), "HiGHS": lambda: contestants.highs(general)}
    return chosen


def growth(n: int, seed: int) -> SparseTiming:
    """Ours under the known kernel of an n x n grid with H = 2 n, nothing lumped."""
    return of_ours(f"grid {n}x{n}, H {2 * n}", of_known_kernel(grid(n, 2 * n, 0.1, seed), seed))


def exponent(found: list[SparseTiming]) -> float:
    """The power of the entries with which the time grows from the first to the last."""
    first, last = found[0], found[-1]
    return float(np.log(last.milliseconds / first.milliseconds) / np.log(last.entries / first.entries))


def several_hinges(m: int, slack: int, seed: int) -> SparseTiming:
    """Random hinges on a 20 x 20 grid, some slack; `iterations` counts the multipliers strictly inside their box."""
    problem = of_known_kernel(grid(20, 40, 0.1, seed), seed, m, m - slack)
    W, multipliers = problem.eta * problem.hinges.weights, problem.solve().multipliers
    free = int(((multipliers > 1e-9 * W) & (multipliers < W * (1 - 1e-9))).sum())
    bind = m - slack
    name = f"20x20, {m} hinge{'s' if m > 1 else ''}, {bind} bind{'' if bind > 1 else 's'}"
    return replace(of_ours(name, problem), iterations=free)


def of_ours(name: str, problem: SparseProblem) -> SparseTiming:
    """One problem, warm."""
    sweep, (warm, step) = time_sweep(problem), timed(problem.solve)
    size = name, problem.graph.n_rows, len(problem.graph.successors)
    return SparseTiming(*size, "ours, warm", 1e3 * warm, step.iterations, warm / sweep, 0.0, 1.0)


def median(found: list[SparseTiming], first: SparseTiming | None = None) -> SparseTiming:
    """The medians of one problem on several worlds, beside those of the first problem."""
    entries, spent, steps, sweeps = (
        np.median([getattr(one, name) for one in found]) for name in ("entries", "milliseconds", "iterations", "sweeps")
    )
    ratio = 1.0 if first is None else float(spent) / first.milliseconds
    return replace(
        found[0], entries=int(entries), solver="median", milliseconds=float(spent), iterations=round(float(steps)),
        sweeps=float(sweeps), ratio=ratio,
    )  # fmt: skip


def compared(measure: Callable[..., SparseTiming], cases: list[tuple[int, ...]], seeds: range) -> list[SparseTiming]:
    """The medians of every case, shown with what they are the medians of."""
    medians: list[SparseTiming] = []
    for case in cases:
        found = [measure(*case, seed) for seed in seeds]
        medians.append(median(found, medians[0] if medians else None))
        show([*found, medians[-1]])
    return medians


def time_sweep(problem: SparseProblem) -> float:
    """Seconds for one backward sweep over the graph: the values of the reference's policy."""
    arrays = arrays_of(problem.graph)
    shares = shares_of_occupancy(arrays, problem.reference)
    return timed(lambda: values_of_shares(arrays, shares, problem.loss), 5)[0]


def timed(call, repetitions: int = 3):
    """The least processor time of a few calls after one that is not timed, and what the call returns."""
    found, spent = call(), []
    for _ in range(repetitions):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return min(spent), found


def show(found: list[SparseTiming]) -> None:
    """One line per timing."""
    for row in found:
        print(
            f"{row.problem:24} {row.rows:8} rows {row.entries:8} entries  {row.solver:11} {row.milliseconds:10.2f} ms "
            f"{row.iterations:6} it {row.sweeps:8.0f} sweeps  x{row.ratio:8.2f}  |dq| {row.difference:.0e}",
            flush=True,
        )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="race,growth,hinges")
    parser.add_argument("--only", default="", help="of the race, the problems with this in their name")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--seed", type=int, default=7500)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sizes", help="of the growth, sides of the grid, separated by commas")
    parser.add_argument("--hinges", type=int, default=8, help="of the hinges, no more than so many at once")
    parser.add_argument("--ours", action="store_true", help="no general solver")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    parts = options.parts.split(",")
    sizes = tuple(map(int, options.sizes.split(","))) if options.sizes else LARGE_GROWTH if options.large else GROWTH
    kept: dict[str, list[SparseTiming]] = {"race": [], "growth": [], "hinges": []}
    with one_thread():
        for name, make in races(options.seed, options.large).items() if "race" in parts else ():
            if options.only in name:
                timings = race(name, make(), options.ours)
                kept["race"] += timings
                show(timings)
        seeds = range(options.seed, options.seed + options.seeds)
        if "growth" in parts:
            kept["growth"] = compared(growth, [(n,) for n in sizes], seeds)
            if len(sizes) > 1:
                print(f"the time of a solve grows like entries^{exponent(kept['growth']):.2f}")
        if "hinges" in parts:
            kept["hinges"] = compared(several_hinges, [case for case in HINGES if case[0] <= options.hinges], seeds)
    keep(options.json, {part: [asdict(row) for row in rows] for part, rows in kept.items()})
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
