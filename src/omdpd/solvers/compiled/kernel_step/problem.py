"""The one-kernel mirror step as data, and the linear maps between its variables.

Rows r = (s, a) of a step are numbered s A + a, so occupancies and slacks are (H, S A), the kernel (H, S A, S)
and the hinges (H, S A, m), each scaled to largest entry one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import entry, rule
from omdpd.jit.pointers import flat
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.levels import water_level
from omdpd.solvers.compiled.newton.heating import divide

# From this many states on, products go to BLAS; below, its call overhead exceeds the work.
BLAS_FROM = 16


class KernelProblem(NamedTuple):
    """Data of one mirror step in row layout: c (H, S A), p (H, S A, S), mu (S,), d (H, S A, m), W (m,).

    `weight` is sum_j W_j max|d_j|, in which a hinge without entries does not count.
    """

    c: Floats
    p: Floats
    mu: Floats
    d: Floats
    W: Floats
    weight: float


class KernelWork(NamedTuple):
    """Arrays written by every Newton step: values, slacks, their changes, masses, weights, blocks, right-hand sides.

    `trial` is for bent steps: values, masses of the states, slacks, multipliers; `best` is the best certified point:
    occupancy, values, multipliers; `hot` is for a heated problem: its linear terms and hinges.
    """

    V: Floats
    y: Floats
    level: Floats
    dV: Floats
    q: Floats
    w: Floats
    dy: Floats
    D: Floats
    E: Floats
    rows: Floats
    X: Floats
    trial: tuple[Floats, Floats, Floats, Floats]
    best: tuple[Floats, Floats, Floats]
    hot: tuple[Floats, Floats]


@rule
def workspace(H: int, S: int, A: int, m: int) -> KernelWork:
    """Uninitialised arrays for a problem of this size."""
    rows, states, blocks = np.empty((7, H, S * A)), np.empty((5, H, S)), np.empty((2, H, S, S))
    level, square, sides, duals = np.empty(A), np.empty((S * A, S)), np.empty((H, m + 1, S)), np.empty((3, m))
    return KernelWork(
        V=states[0],
        y=rows[0],
        level=level,
        dV=states[1],
        q=rows[1],
        w=rows[2],
        dy=rows[3],
        D=blocks[0],
        E=blocks[1],
        rows=square,
        X=sides,
        trial=(states[2], states[3], rows[4], duals[0]),
        best=(rows[5], states[4], duals[1]),
        hot=(rows[6], duals[2]),
    )


@rule
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


@rule
def expectation_by_blas(p: Floats, V: Floats, h: int, out: Floats) -> None:
    """The same for many states.  Apart, because the views cost more than the arithmetic for few."""
    np.dot(p[h], V[h + 1], out[h])


@rule
def change_of_slack(problem: KernelProblem, dV: Floats, dxi: Floats, dy: Floats) -> None:
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


@entry
def dual_slack(problem: KernelProblem, V: Floats, xi: Floats) -> Floats:
    """y = c - xi.d - V_h(s) + p.V_{h+1}."""
    H, R = problem.c.shape
    y = np.empty((H, R))
    change_of_slack(problem, V, xi, y)
    for h in range(H):
        for r in range(R):
            y[h, r] += problem.c[h, r]
    return y


@rule
def water_filling(problem: KernelProblem, xi: Floats, mass: Floats, V: Floats, y: Floats, level: Floats) -> None:
    """V backward in h such that the rows of every state carry its given mass (H, S), and the slack y of (V, xi).

    sum_a [level_a - V]^+ = mass with level = c - xi.d + p.V_{h+1}.
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
            V[h, s] = water_level(level, mass[h, s])
            for a in range(A):
                y[h, s * A + a] -= V[h, s]


@rule
def heated(problem: KernelProblem, tau: float, work: KernelWork) -> KernelProblem:
    """The problem with its linear terms and hinges divided by tau, in `work.hot`."""
    c, W = work.hot
    divide(flat(problem.c), tau, flat(c))
    divide(problem.W, tau, W)
    return KernelProblem(c, problem.p, problem.mu, problem.d, W, problem.weight / tau)


@rule
def masses_of_mixture(problem: KernelProblem, reference: Floats, mix: float) -> Floats:
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


@rule
def write_masses(q: Floats, mass: Floats) -> None:
    """Write the state masses (H, S) of an occupancy (H, S A)."""
    H, S = mass.shape
    A = q.shape[1] // S
    for h in range(H):
        for s in range(S):
            mass[h, s] = 0.0
            for a in range(A):
                mass[h, s] += q[h, s * A + a]
