"""The one-kernel mirror step as data, and the linear maps between its variables.

Rows r = (s, a) of a step are numbered s A + a, so occupancies and slacks are (H, S A), the kernel (H, S A, S)
and the hinges (H, S A, m).  Every d_j is scaled to largest entry one, so that regularisation and tolerances mean
the same for every hinge; W and xi are scaled with it, which changes neither q nor V nor the objective.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.levels import log_sum_exp, water_level
from omdpd.solvers.compiled.options import ENTRY, INNER

# From this many states on, products go to BLAS; below, its call overhead exceeds the work.
BLAS_FROM = 16
# Exponents are capped here (KL), far above any log-occupancy on the way to the solution.
MAX_EXPONENT = 300.0
# A state with less mass than this is started as if it had this much (KL), so that its logarithm exists.
MIN_MASS = 1e-30


class Problem(NamedTuple):
    """Data of one mirror step in row layout: c (H, S A), p (H, S A, S), mu (S,), d (H, S A, m), W (m,).

    `weight` is sum_j W_j max|d_j|, in which a hinge without entries does not count.
    """

    c: Floats
    p: Floats
    mu: Floats
    d: Floats
    W: Floats
    weight: float
    kl: bool


@njit(**ENTRY)
def scaled_hinges(d: Floats, W: Floats) -> tuple[Floats, Floats, float]:
    """d / max|d_j| in row layout, the m scales (one for a hinge without entries), and sum_j W_j max|d_j|."""
    m, H, S, A = d.shape
    size = np.ones(m)
    rows = np.empty((H, S * A, m))
    weight = 0.0
    for j in range(m):
        largest = 0.0
        for h in range(H):
            for s in range(S):
                for a in range(A):
                    largest = max(largest, abs(d[j, h, s, a]))
        if largest > 0.0:
            size[j] = largest
            weight += W[j] * largest
        for h in range(H):
            for s in range(S):
                for a in range(A):
                    rows[h, s * A + a, j] = d[j, h, s, a] / size[j]
    return rows, size, weight


@njit(**INNER)
def clip_multipliers(problem: Problem, xi: Floats) -> None:
    """Put xi back into its box: 0 <= xi_j <= W_j."""
    for j in range(xi.size):
        xi[j] = min(max(xi[j], 0.0), problem.W[j])


@njit(**INNER)
def expectation(p: Floats, V: Floats, h: int, out: Floats) -> None:
    """out[h, r] := p_r.V_{h+1} for the rows of step h (0 at the last step)."""
    H, R, S = p.shape
    if h + 1 == H:
        for r in range(R):
            out[h, r] = 0.0
    elif S < BLAS_FROM:
        for r in range(R):
            total = 0.0
            for t in range(S):
                total += p[h, r, t] * V[h + 1, t]
            out[h, r] = total
    else:
        expectation_by_blas(p, V, h, out)


@njit(**INNER)
def expectation_by_blas(p: Floats, V: Floats, h: int, out: Floats) -> None:
    """The same for many states.  Apart, because the views cost more than the arithmetic for few."""
    np.dot(p[h], V[h + 1], out[h])


@njit(**INNER)
def change_of_slack(problem: Problem, dV: Floats, dxi: Floats, dy: Floats) -> None:
    """dy := -dV_h(s) + p.dV_{h+1} - dxi.d."""
    H, R = dy.shape
    S = dV.shape[1]
    A = R // S
    p, d = problem.p, problem.d
    for h in range(H):
        expectation(p, dV, h, dy)
        for s in range(S):
            for a in range(A):
                dy[h, s * A + a] -= dV[h, s]
        if dxi.size > 0:
            for r in range(R):
                total = 0.0
                for j in range(dxi.size):
                    total += dxi[j] * d[h, r, j]
                dy[h, r] -= total


@njit(**ENTRY)
def dual_slack(problem: Problem, V: Floats, xi: Floats) -> Floats:
    """y = c - xi.d - V_h(s) + p.V_{h+1}."""
    H, R = problem.c.shape
    y = np.empty((H, R))
    change_of_slack(problem, V, xi, y)
    for h in range(H):
        for r in range(R):
            y[h, r] += problem.c[h, r]
    return y


@njit(**INNER)
def water_filling(problem: Problem, xi: Floats, mass: Floats, V: Floats, y: Floats, level: Floats) -> None:
    """V backward in h such that the rows of every state carry its given mass (H, S), and the slack y of (V, xi).

    Euclid: sum_a [level_a - V]^+ = mass; KL: sum_a exp(level_a - V) = mass, with level = c - xi.d + p.V_{h+1}.
    """
    H, S = mass.shape
    A = level.size
    for h in range(H - 1, -1, -1):
        expectation(problem.p, V, h, y)
        for s in range(S):
            for a in range(A):
                r = s * A + a
                for j in range(xi.size):
                    y[h, r] -= xi[j] * problem.d[h, r, j]
                y[h, r] += problem.c[h, r]
                level[a] = y[h, r]
            if problem.kl:
                V[h, s] = log_sum_exp(level) - np.log(max(mass[h, s], MIN_MASS))
            else:
                V[h, s] = water_level(level, mass[h, s])
            for a in range(A):
                y[h, s * A + a] -= V[h, s]


@njit(**INNER)
def masses_of_mixture(problem: Problem, reference: Floats, mix: float) -> Floats:
    """State masses (H, S) of the policy of `reference` (H, S A) mixed with a share `mix` of the uniform one."""
    H, R = reference.shape
    S = problem.mu.size
    A = R // S
    mass = np.zeros((H, S))
    for s in range(S):
        mass[0, s] = problem.mu[s]
    for h in range(H - 1):
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += max(reference[h, s * A + a], 0.0)
            for a in range(A):
                r = s * A + a
                share = max(reference[h, r], 0.0) / total if total > 0.0 else 1.0 / A
                flow = mass[h, s] * ((1.0 - mix) * share + mix / A)
                if flow > 0.0:
                    for t in range(S):
                        mass[h + 1, t] += flow * problem.p[h, r, t]
    return mass


@njit(**INNER)
def write_masses(q: Floats, mass: Floats) -> None:
    """Write the state masses (H, S) of an occupancy (H, S A)."""
    H, S = mass.shape
    A = q.shape[1] // S
    for h in range(H):
        for s in range(S):
            mass[h, s] = 0.0
            for a in range(A):
                mass[h, s] += q[h, s * A + a]


@njit(**INNER)
def hottest(problem: Problem) -> float:
    """A temperature at which no number of the objective exceeds one."""
    tau = 10.0
    for h in range(problem.c.shape[0]):
        for r in range(problem.c.shape[1]):
            tau = max(tau, abs(problem.c[h, r]))
    for j in range(problem.W.size):
        tau = max(tau, problem.W[j])
    return tau


@njit(**INNER)
def heat(problem: Problem, tau: float, c: Floats, W: Floats) -> None:
    """Write the linear terms and hinges divided by tau: those of a regulariser tau times as heavy."""
    for h in range(c.shape[0]):
        for r in range(c.shape[1]):
            c[h, r] = problem.c[h, r] / tau
    for j in range(W.size):
        W[j] = problem.W[j] / tau
