"""One face for every solver of a mirror step: prepare on one problem, then solve others of the same shape.

General solvers keep their factorisation's pattern and get new values only; what is timed is update and solve.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.solvers.general import QuadraticProgram
from benchmarks.solvers.problems import Problem
from benchmarks.solvers.single import solve_single
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.solve import solve_box
from omdpd.solvers.mirror import STEP_TOLERANCE
from omdpd.solvers.regions import Box, Kernel


@dataclass(frozen=True, eq=False)
class Timed:
    """One timed solve."""

    seconds: float
    occupancy: Floats
    iterations: int


# A solver takes a problem (and its general form, built outside the clock) and returns a timed solve.
Solve = Callable[[Problem, QuadraticProgram], Timed]
PIQP_BACKENDS = ("sparse_ldlt", "sparse_ldlt_ineq_cond", "sparse_ldlt_eq_cond", "sparse_ldlt_cond")


def ours(warm: bool) -> Solve:
    """The structured solvers; only the one over a kernel knows a warm start."""

    def solve(problem: Problem, _: QuadraticProgram) -> Timed:
        began = time.process_time()
        c, W = problem.reference - problem.eta * problem.loss, problem.eta * problem.hinges.weights
        before = problem.before
        hot = warm and before is not None and before.multipliers.shape == W.shape
        if isinstance(problem.region, Kernel):
            xi = before.multipliers if hot and before else None
            p = problem.region.transition
            answer = solve_single(
                c, problem.reference, p, problem.initial, problem.hinges.tables, W, STEP_TOLERANCE, xi
            )
            return Timed(time.process_time() - began, answer.q, int(answer.steps))
        lower, upper = problem.region.lower, problem.region.upper
        solved = solve_box(
            c, problem.reference, lower, upper, problem.initial, problem.hinges.tables, W, False, STEP_TOLERANCE
        )
        return Timed(time.process_time() - began, solved[0], solved[6])

    return solve


def piqp(backend: str, sample: QuadraticProgram) -> Solve:
    """PIQP with one of its backends, at 1e-9."""
    import piqp as library

    solver = library.SparseSolver()
    solver.settings.kkt_solver = getattr(library.KKTSolver, backend)
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, 1e-9)
    upper = np.zeros(sample.G.shape[0])
    free, zero = np.full(len(upper), -np.inf), np.zeros(len(sample.cost))
    solver.setup(sample.P, sample.cost, sample.A, sample.b, sample.G, free, upper, zero, None)

    def solve(problem: Problem, general: QuadraticProgram) -> Timed:
        began = time.process_time()
        solver.update(c=general.cost, A=general.A, b=general.b, G=general.G)
        solver.solve()
        seconds = time.process_time() - began
        return Timed(seconds, general.occupancy(solver.result.x, problem.reference.shape), solver.result.info.iter)

    return solve


def clarabel(sample: QuadraticProgram) -> Solve:
    """Clarabel at 1e-9, rebuilt for every problem (its update needs the same cost structure and no presolve)."""
    import clarabel as library

    settings = library.DefaultSettings()
    settings.verbose = False
    settings.presolve_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    n_eq, n_in, n = sample.A.shape[0], sample.G.shape[0], len(sample.cost)
    cones = [library.ZeroConeT(n_eq), library.NonnegativeConeT(n_in + n)]
    nonnegative = -sparse.identity(n, format="csc")
    stacked = sparse.vstack([sample.A, sample.G, nonnegative]).tocsc()
    solver = library.DefaultSolver(sample.P, sample.cost, stacked, np.r_[sample.b, np.zeros(n_in + n)], cones, settings)

    def solve(problem: Problem, general: QuadraticProgram) -> Timed:
        rows = sparse.vstack([general.A, general.G, nonnegative]).tocsc()
        began = time.process_time()
        solver.update(q=general.cost, A=rows.data)
        answer = solver.solve()
        seconds = time.process_time() - began
        return Timed(seconds, general.occupancy(np.array(answer.x), problem.reference.shape), answer.iterations)

    return solve


def osqp(sample: QuadraticProgram) -> Solve:
    """OSQP at 1e-6 with polishing: it does not reach more."""
    import osqp as library

    n_in, n = sample.G.shape[0], len(sample.cost)
    unit = sparse.identity(n, format="csc")
    low = np.r_[sample.b, np.full(n_in, -np.inf), np.zeros(n)]
    high = np.r_[sample.b, np.zeros(n_in), np.full(n, np.inf)]
    solver = library.OSQP()
    stacked = sparse.vstack([sample.A, sample.G, unit]).tocsc()
    solver.setup(
        sample.P, sample.cost, stacked, low, high, verbose=False, eps_abs=1e-6, eps_rel=1e-6, polishing=True,
        warm_starting=False, max_iter=20_000,
    )  # fmt: skip

    def solve(problem: Problem, general: QuadraticProgram) -> Timed:
        rows = sparse.vstack([general.A, general.G, unit]).tocsc()
        began = time.process_time()
        solver.update(q=general.cost, Ax=rows.data)
        answer = solver.solve()
        seconds = time.process_time() - began
        return Timed(seconds, general.occupancy(answer.x, problem.reference.shape), int(answer.info.iter))

    return solve


def highs(sample: QuadraticProgram) -> Solve:
    """HiGHS' quadratic solver, as it comes."""
    import highspy

    def solve(problem: Problem, general: QuadraticProgram) -> Timed:
        n = len(general.cost)
        rows = sparse.vstack([general.A, general.G]).tocsr()
        began = time.process_time()
        solver = highspy.Highs()
        solver.silent()
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n, rows.shape[0]
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = general.cost, np.zeros(n), np.full(n, np.inf)
        lp.row_lower_ = np.r_[general.b, np.full(general.G.shape[0], -np.inf)]
        lp.row_upper_ = np.r_[general.b, np.zeros(general.G.shape[0])]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
        hessian = highspy.HighsHessian()
        hessian.dim_ = n
        hessian.start_ = np.minimum(np.arange(n + 1), general.n_q)
        hessian.index_, hessian.value_ = np.arange(general.n_q), np.ones(general.n_q)
        model = highspy.HighsModel()
        model.lp_, model.hessian_ = lp, hessian
        solver.passModel(model)
        solver.run()
        seconds = time.process_time() - began
        z = np.array(solver.getSolution().col_value)
        z = z if z.size == n else np.full(n, np.nan)
        return Timed(seconds, general.occupancy(z, problem.reference.shape), 0)

    return solve


def cvxpy(sample: QuadraticProgram) -> Solve:
    """The same step as a user of a modelling language would write it, with its default solver."""
    import cvxpy

    cp: Any = cvxpy

    def solve(problem: Problem, general: QuadraticProgram) -> Timed:
        began = time.process_time()
        H, S, A = problem.reference.shape
        q = [cp.Variable((S, A), nonneg=True) for _ in range(H)]
        rules = [cp.sum(q[0], axis=1) == problem.initial]
        for h in range(H - 1):
            arriving: Any = _arriving(cp, problem.region, q[h], h, rules)
            rules.append(cp.sum(q[h + 1], axis=1) == arriving)
        target = problem.reference - problem.eta * problem.loss
        objective = sum(0.5 * cp.sum_squares(q[h] - target[h]) for h in range(H))
        for weight, table in zip(problem.eta * problem.hinges.weights, problem.hinges.tables, strict=True):
            objective += weight * cp.pos(sum(cp.sum(cp.multiply(table[h], q[h])) for h in range(H)))
        cp.Problem(cp.Minimize(objective), rules).solve(solver="CLARABEL")
        seconds = time.process_time() - began
        return Timed(seconds, np.array([step.value for step in q]), 0)

    return solve


def _arriving(cp: Any, region: Box | Kernel, q: Any, h: int, rules: list[Any]) -> Any:
    """What flows into the next step's states; for a box with x between its bounds."""
    S, A = q.shape
    flat = cp.reshape(q, (S * A,), order="C")
    if isinstance(region, Kernel):
        return region.transition[h].reshape(S * A, S).T @ flat
    x = cp.Variable((S * A, S), nonneg=True)
    column = cp.reshape(flat, (S * A, 1), order="C")
    rules.append(cp.sum(x, axis=1) == flat)
    rules.append(x <= cp.multiply(region.upper[h].reshape(S * A, S), column @ np.ones((1, S))))
    rules.append(x >= cp.multiply(region.lower[h].reshape(S * A, S), column @ np.ones((1, S))))
    return cp.sum(x, axis=0)
