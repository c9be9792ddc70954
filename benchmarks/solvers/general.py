"""The mirror step as a general quadratic program, with a fixed sparsity pattern so that solvers only update values.

minimise 1/2 |q - c|^2 + W.t   over z = (q, x, t) >= 0
A z = b: flow, and sum_s' x = q (box);   G z <= 0: x - upper q, lower q - x (box), d.q - t
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks.solvers.problems import Problem
from omdpd.problem.arrays import Floats
from omdpd.solvers.regions import Kernel


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """minimise 1/2 z.P z + cost.z subject to A z = b, G z <= 0, z >= 0; the first entries of z are q."""

    P: sparse.csc_matrix
    cost: Floats
    A: sparse.csc_matrix
    b: Floats
    G: sparse.csc_matrix
    n_q: int

    def occupancy(self, z: Floats, shape: tuple[int, ...]) -> Floats:
        """q from a solution."""
        return np.array(z[: self.n_q]).reshape(shape)  # a copy: solvers reuse their memory


def quadratic_program(problem: Problem) -> QuadraticProgram:
    """The program of one recorded step."""
    H, S, A = problem.reference.shape
    m, n = len(problem.hinges.weights), H * S * A
    flow, b, box, n_x = _flow_of_kernel(problem) if isinstance(problem.region, Kernel) else _flow_of_box(problem)
    P = sparse.diags(np.r_[np.ones(n), np.zeros(n_x + m)]).tocsc()
    c = (problem.reference - problem.eta * problem.loss).ravel()
    cost = np.r_[-c, np.zeros(n_x), problem.eta * problem.hinges.weights]
    tables = sparse.csc_matrix(np.where(problem.hinges.tables == 0.0, 1e-300, problem.hinges.tables).reshape(m, n))
    hinge = sparse.hstack([tables, sparse.csc_matrix((m, n_x)), -sparse.identity(m)])
    G = sparse.vstack([sparse.hstack([box, sparse.csc_matrix((box.shape[0], m))]), hinge]).tocsc()
    A_all = sparse.hstack([flow, sparse.csc_matrix((flow.shape[0], m))]).tocsc()
    return QuadraticProgram(P, cost, A_all, b, G, n)


def _kept(values: Floats) -> Floats:
    """Zeros stay in the pattern, so that every problem of a size has the same one."""
    return np.where(values == 0.0, 1e-300, values)


def _flow_of_kernel(problem: Problem) -> tuple[sparse.csc_matrix, Floats, sparse.csc_matrix, int]:
    assert isinstance(problem.region, Kernel)
    p = problem.region.transition
    H, S, A = p.shape[:3]
    n = H * S * A
    before = np.arange(n - S * A)
    arrive = (before // (S * A) + 1)[:, None] * S + np.arange(S)
    rows = np.r_[np.arange(n) // A, arrive.ravel()]
    columns = np.r_[np.arange(n), np.repeat(before, S)]
    flow = sparse.csc_matrix((np.r_[np.ones(n), -_kept(p[:-1].ravel())], (rows, columns)), (H * S, n))
    return flow, np.r_[problem.initial, np.zeros((H - 1) * S)], sparse.csc_matrix((0, n)), 0


def _flow_of_box(problem: Problem) -> tuple[sparse.csc_matrix, Floats, sparse.csc_matrix, int]:
    assert not isinstance(problem.region, Kernel)
    lower, upper = problem.region.lower, problem.region.upper
    H, S, A = lower.shape[:3]
    n, n_before = H * S * A, (H - 1) * S * A
    n_x = n_before * S
    x, of = np.arange(n_x), np.arange(n_x) // S
    arrive = (of // (S * A) + 1) * S + x % S
    rows = np.r_[np.arange(n) // A, arrive, H * S + np.arange(n_before), H * S + of]
    columns = np.r_[np.arange(n), n + x, np.arange(n_before), n + x]
    values = np.r_[np.ones(n), -np.ones(n_x), -np.ones(n_before), np.ones(n_x)]
    flow = sparse.csc_matrix((values, (rows, columns)), (H * S + n_before, n + n_x))
    bound_rows = np.r_[x, x, n_x + x, n_x + x]
    bound_columns = np.r_[n + x, of, n + x, of]
    one = np.ones(n_x)
    bounds = np.r_[one, -_kept(upper[:-1].ravel()), -one, _kept(lower[:-1].ravel())]
    box = sparse.csc_matrix((bounds, (bound_rows, bound_columns)), (2 * n_x, n + n_x))
    return flow, np.r_[problem.initial, np.zeros((H - 1) * S + n_before)], box, n_x
