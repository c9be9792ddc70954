"""Where a cold solve over one kernel starts: hinge multipliers that belong to the masses of its start."""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.kernel_step.newton import Work, hinge_step, mass_and_weight
from omdpd.solvers.compiled.kernel_step.problem import Problem, clip_multipliers, water_filling
from omdpd.solvers.compiled.options import GLUE, INNER
from omdpd.solvers.compiled.pointers import assume_distinct

# Most steps taken, and the relative change that ends them: from there on Newton's method in V and xi is faster.
MAX_STARTING_STEPS, CLOSE = 5, 0.3


@njit(**GLUE)
def starting_multipliers(problem: Problem, mass: Floats, xi: Floats, work: Work) -> None:
    """Overwrite xi by about what it would be if the masses of the states were right: a few cheap steps without blocks.

    With the masses held, V follows from xi backward in h (`water_filling`), and so does its derivative; the step is
    Newton's in xi alone.  Late in a run, when the reference is close, xi is then known to a few per cent.
    """
    H, S, m = mass.shape[0], mass.shape[1], xi.size
    ahead, rows, total = np.empty((H, S, m)), np.empty((work.level.size, m)), np.empty(m)
    T, v = np.empty((m, m)), np.empty(m)
    # A single hinge: where its argument was positive, where negative, and by how much.
    low, high, above, below = 0.0, np.inf, 0.0, 0.0
    for _ in range(MAX_STARTING_STEPS):
        water_filling(problem, xi, mass, work.V, work.y, work.level)
        mass_and_weight(work.y, problem.kl, work.D.shape[1], work.q, work.w)
        restricted_quadratic(problem.p, problem.d, work.q, work.w, ahead, rows, total, T, v)
        dxi = hinge_step(problem, T, v, xi, np.inf)
        if m == 1:
            if v[0] > 0.0:
                low, above = xi[0], v[0]
            else:
                high, below = xi[0], -v[0]
            if above > 0.0 and high < np.inf and not (low < xi[0] + dxi[0] < high):
                dxi[0] = low + (high - low) * above / (above + below) - xi[0]
        close = True
        for j in range(m):
            xi[j] = xi[j] + dxi[j] if np.isfinite(dxi[j]) else 0.0
            close = close and abs(dxi[j]) <= CLOSE * xi[j]
        clip_multipliers(problem, xi)
        if close:
            break


@njit(**INNER)
def restricted_quadratic(
    p: Floats, d: Floats, q: Floats, w: Floats, ahead: Floats, rows: Floats, total: Floats, T: Floats, v: Floats
) -> None:
    """T = P^T diag(w) P and v = d.q, with P_j = dy / dxi_j while the masses of the states are held.

    Scratch: `ahead` (H, S, m) for dV / dxi, `rows` (A, m), `total` (m,).
    """
    assume_distinct()
    H, S, m = ahead.shape
    A = q.shape[1] // S
    for j in range(m):
        v[j] = 0.0
        for k in range(m):
            T[j, k] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            share = 0.0
            for j in range(m):
                total[j] = 0.0
            for a in range(A):
                r = s * A + a
                weight, mass = w[h, r], q[h, r]
                if weight > 0.0:
                    share += weight
                    for j in range(m):
                        rows[a, j] = -d[h, r, j]
                        v[j] += d[h, r, j] * mass
                    if h + 1 < H:
                        for t in range(S):
                            chance = p[h, r, t]
                            for j in range(m):
                                rows[a, j] += chance * ahead[h + 1, t, j]
                    for j in range(m):
                        total[j] += weight * rows[a, j]
            for j in range(m):
                ahead[h, s, j] = total[j] / share if share > 0.0 else 0.0
            for a in range(A):
                weight = w[h, s * A + a]
                if weight > 0.0:
                    for j in range(m):
                        rows[a, j] -= ahead[h, s, j]
                    for j in range(m):
                        scaled = weight * rows[a, j]
                        for k in range(m):
                            T[j, k] += scaled * rows[a, k]
