"""Side-by-side timings: every solver on the same problems, each warmed up on a problem before it is timed on it.

What is measured is processor time of this process: all solvers work in one thread here.  They take turns in random
order, so that no one always runs on caches that another one has just filled.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.solvers import contestants
from benchmarks.solvers.contestants import PIQP_BACKENDS, Solve
from benchmarks.solvers.general import quadratic_program
from benchmarks.solvers.problems import SIZES, Kind, Problem, Size, recorded, steps_of_run
from omdpd.learners.omdpd import OMDPD
from omdpd.natures import fixed
from omdpd.play.loop import play, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.compiled.flow import greedy_policy
from omdpd.solvers.planning import best_plan
from omdpd.solvers.programs import best_policy, optimistic_plan, vertex_plan
from omdpd.solvers.regions import Kernel
from omdpd.worlds import random_dirichlet

# A general solver that takes longer than this on the first problem of a size is left out of that size, and so is a
# backend of PIQP that takes five times as long there as its best one.
PATIENCE = 20.0


@dataclass(frozen=True)
class Timing:
    """One solver on one kind of problem: median time, iterations, accuracy, and how many times slower than ours."""

    size: str
    kind: str
    solver: str
    milliseconds: float
    iterations: float
    difference: float
    ratio: float
    ratio_warm: float
    problems: int


@dataclass(frozen=True)
class Planning:
    """One way to plan: median time, its largest relative difference to the first one, and the mean of what it finds."""

    size: str
    planner: str
    milliseconds: float
    difference: float
    value: float


@dataclass(frozen=True)
class Loop:
    """A whole run of the paper's size: its seconds, and those of its mirror steps alone."""

    episodes: int
    seconds: float
    n_steps: int
    steps: float


def time_kind(size: Size, kind: Kind, seeds: Sequence[int], n_problems: int, ours_only: bool) -> list[Timing]:
    """All solvers on recorded problems of one kind."""
    problems = [problem for seed in seeds for problem in recorded(size, kind, seed, n_problems)]
    chosen = {"ours, cold": contestants.ours(False), "ours, warm": contestants.ours(True)}
    if not ours_only:
        chosen |= _others(problems[0])
    times, iterations, differences = _race(problems, chosen)
    cold, warm = times["ours, cold"], times["ours, warm"]
    found = [
        Timing(
            str(size), str(kind), name, 1e3 * float(np.median(times[name])), float(np.mean(iterations[name])),
            float(np.median(differences[name])), float(np.median(times[name] / cold)),
            float(np.median(times[name] / warm)), len(problems),
        )
        for name in chosen
    ]  # fmt: skip
    sweep = time_sweep(problems[0])
    ratios = float(np.median(sweep / cold)), float(np.median(sweep / warm))
    return [
        *found,
        Timing(str(size), str(kind), "one Bellman sweep", 1e3 * sweep, 1, 0.0, *ratios, 1),
    ]


def time_sweep(problem: Problem) -> float:
    """Seconds for one backward induction at this size."""
    region = problem.region
    p = region.transition if isinstance(region, Kernel) else region.lower
    loss = np.ascontiguousarray(problem.loss)
    return _best_of(lambda: greedy_policy(p, loss), 50)


def time_planning(size: Size, seeds: Sequence[int]) -> list[Planning]:
    """Planning under one constraint: the exact Lagrangian method and linear programs, cold and warm."""
    times: dict[str, list[float]] = {}
    differences: dict[str, float] = {}
    values: dict[str, list[float]] = {}
    for seed in seeds:
        cmdp = random_dirichlet.make(np.random.default_rng(seed), size.S, size.A, size.H, binding=size.S <= 5)
        exact = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess).value
        for name, way in _ways(cmdp).items():
            times.setdefault(name, []).append(_best_of(way, 3))
            values.setdefault(name, []).append(way())
            if not name.startswith("extended"):
                off = abs(values[name][-1] - exact) / max(1.0, abs(exact))
                differences[name] = max(differences.get(name, 0.0), off)
    return [
        Planning(
            str(size), name, 1e3 * float(np.median(spent)), differences.get(name, 0.0), float(np.mean(values[name]))
        )
        for name, spent in times.items()
    ]


def _ways(cmdp: CMDP) -> dict[str, Callable[[], float]]:
    """The planners; the extended program (any kernel in a box) is left out where it takes minutes.

    By vertices of its polytope that dynamic programming finds, or by HiGHS, cold or from the basis of a like problem.
    """
    p, mu, r, d = cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess
    laws = cmdp.laws.listed()
    ways: dict[str, Callable[[], float]] = {
        "exact Lagrangian": lambda: best_plan(laws, mu, r, d).value,
        "linear program (HiGHS)": lambda: best_policy(p, mu, r, d).value,
    }
    if cmdp.shape[1] <= 20:
        lower, upper = np.maximum(p - 0.02, 0.0), np.minimum(p + 0.02, 1.0)
        basis = optimistic_plan(lower, upper, mu, np.clip(r + 0.01, 0.0, 1.0), d).basis
        ways["extended program, cold"] = lambda: optimistic_plan(lower, upper, mu, r, d).value
        ways["extended program, warm"] = lambda: optimistic_plan(lower, upper, mu, r, d, basis).value
        ways["extended program, by vertices"] = lambda: vertex_plan(lower, upper, mu, r, d).value
    return ways


def time_paper_loop(seed: int) -> Loop:
    """Play a run of `OMDPD.tuned` on a random world of the paper's size, then take its mirror steps again."""
    size = SIZES["S5"]
    cmdp = random_dirichlet.make(np.random.default_rng(seed), size.S, size.A, size.H)
    scene = Scene(cmdp, fixed.make_noisy(cmdp, seed), OMDPD.tuned(), size.episodes, {})
    began = time.process_time()
    for _ in play(scene, start_of_run(scene), np.random.default_rng(seed), lambda k: False):
        pass
    seconds = time.process_time() - began
    steps = steps_of_run(scene, seed)  # the same run once more, outside the clock
    began = time.process_time()
    for step in steps:
        step.solve()
    return Loop(size.episodes, seconds, len(steps), time.process_time() - began)


def time_compilation() -> tuple[float, float]:
    """Seconds to the first answers in a fresh process: with an empty cache, and from the cache."""
    code = "import time; t=time.perf_counter(); from omdpd.experiments.first_use import compile_for, runs_of; "
    code += "from omdpd.experiments.registry import Registry; names = ['OMDPD.tuned', 'ProximalOMDPD.standard']; "
    code += "compile_for(runs_of(Registry.installed(), names), lambda s: None); print(time.perf_counter()-t)"
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"OMDPD_CACHE_DIR": cache}
        spent = [
            float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
            for _ in range(2)
        ]
    return spent[0], spent[1]


def peak_memory() -> float:
    """The most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _others(sample: Problem) -> dict[str, Solve]:
    general = quadratic_program(sample)
    makers: dict[str, Callable[[], Solve]] = {
        f"PIQP {backend}": partial(contestants.piqp, backend, general) for backend in PIQP_BACKENDS
    }
    makers |= {
        "Clarabel": lambda: contestants.clarabel(general),
        "OSQP": lambda: contestants.osqp(general),
        "HiGHS": lambda: contestants.highs(general),
        "cvxpy": lambda: contestants.cvxpy(general),
    }
    kept: dict[str, Solve] = {}
    spent: dict[str, float] = {}
    for name, make in makers.items():
        if name in _hopeless(sample):
            continue
        solve = make()
        began = time.process_time()
        solve(sample, general)
        spent[name] = time.process_time() - began
        kept[name] = solve
    best = min(spent[name] for name in kept if name.startswith("PIQP"))
    return {
        name: solve
        for name, solve in kept.items()
        if spent[name] <= PATIENCE and not (name.startswith("PIQP") and spent[name] > 5.0 * best)
    }


def _hopeless(sample: Problem) -> tuple[str, ...]:
    """Solvers that take minutes per solve from some size on, in our trials."""
    S, hinges = sample.reference.shape[1], len(sample.hinges.weights)
    slow: tuple[str, ...] = ()
    if S > 5:
        slow += ("HiGHS", "PIQP sparse_ldlt_eq_cond", "PIQP sparse_ldlt_cond")
    if S > 5 and hinges:
        slow += ("PIQP sparse_ldlt_ineq_cond",)
    if S > 20:
        slow += ("OSQP", "cvxpy", "Clarabel")
    return slow


def _race(
    problems: Sequence[Problem], chosen: dict[str, Solve]
) -> tuple[dict[str, Floats], dict[str, list[int]], dict[str, list[float]]]:
    """Each solver untimed, then timed, on each problem, in random order."""
    rng = np.random.default_rng(0)
    times: dict[str, list[float]] = {name: [] for name in chosen}
    iterations: dict[str, list[int]] = {name: [] for name in chosen}
    answers: dict[str, list[Floats]] = {name: [] for name in chosen}
    for problem in problems:
        general = quadratic_program(problem)
        for name in rng.permutation(list(chosen)):
            chosen[name](problem, general)
            done = chosen[name](problem, general)
            times[name].append(done.seconds)
            iterations[name].append(done.iterations)
            answers[name].append(done.occupancy)
    reference = answers["ours, cold"]
    differences = {
        name: [float(np.abs(q - p).max()) for q, p in zip(found, reference, strict=True)]
        for name, found in answers.items()
    }
    return {name: np.array(spent) for name, spent in times.items()}, iterations, differences


def _best_of(call: Callable[[], object], n: int) -> float:
    spent = []
    for _ in range(n):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return float(np.median(spent))
