"""Where a cold solve over one kernel starts: hinge multipliers that belong to the masses of its start."""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.options import GLUE, SUMS
from omdpd.kernels.single_newton import Work, hinge_step, mass_and_weight
from omdpd.kernels.single_problem import Problem, clip_multipliers, water_filling

# Steps taken, and the relative change that ends them.
STARTING_STEPS, CLOSE = 5, 0.3


@njit(**GLUE)
def starting_multipliers(problem: Problem, mass: Floats, xi: Floats, work: Work) -> None:
    """Overwrite xi by about what it would be if the masses of the states were right: a few cheap steps without blocks.

    With the masses held, V follows from xi backward in h (`water_filling`), and so does its derivative; the step is
    Newton's in xi alone.  Late in a run, when the reference is close, xi is then known to a few per cent.
    """
    m = xi.size
    # A single hinge: where its argument was positive, where negative, and by how much.
    low, high, above, below = 0.0, np.inf, 0.0, 0.0
    for _ in range(STARTING_STEPS):
        water_filling(problem, xi, mass, work.V, work.y, work.level)
        mass_and_weight(work.y, problem.kl, work.D.shape[1], work.q, work.w)
        T, v = restricted_quadratic(problem, work.q, work.w, work.X)
        dxi = hinge_step(problem, T, v, xi, np.inf)
        if m == 1:
            excess = v[0] + problem.b[0]
            if excess > 0.0:
                low, above = xi[0], excess
            else:
                high, below = xi[0], -excess
            if above > 0.0 and high < np.inf and not (low < xi[0] + dxi[0] < high):
                dxi[0] = low + (high - low) * above / (above + below) - xi[0]
        close = True
        for j in range(m):
            xi[j] = xi[j] + dxi[j] if np.isfinite(dxi[j]) else 0.0
            close = close and abs(dxi[j]) <= CLOSE * xi[j]
        clip_multipliers(problem, xi)
        if close:
            break


@njit(**SUMS)
def restricted_quadratic(problem: Problem, q: Floats, w: Floats, X: Floats) -> tuple[Floats, Floats]:
    """T = P^T diag(w) P and v = d.q, with P_j = dy / dxi_j while the masses of the states are held."""
    H, width, S = X.shape
    A = q.shape[1] // S
    p, d = problem.p, problem.d
    m = width - 1
    T, v, rows, total = np.zeros((m, m)), np.zeros(m), np.empty((A, m)), np.empty(m)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            share = 0.0
            total[:] = 0.0
            for a in range(A):
                r = s * A + a
                weight = w[h, r]
                if weight > 0.0:
                    share += weight
                    for j in range(m):
                        row = -d[h, r, j]
                        if h + 1 < H:
                            for t in range(S):
                                row += p[h, r, t] * X[h + 1, j, t]
                        rows[a, j] = row
                        total[j] += weight * row
                        v[j] += d[h, r, j] * q[h, r]
            for j in range(m):
                X[h, j, s] = total[j] / share if share > 0.0 else 0.0
            for a in range(A):
                weight = w[h, s * A + a]
                if weight > 0.0:
                    for j in range(m):
                        rows[a, j] -= X[h, j, s]
                        for k in range(j + 1):
                            T[j, k] += weight * rows[a, j] * rows[a, k]
    for j in range(m):
        for k in range(j):
            T[k, j] = T[j, k]
    return T, v
