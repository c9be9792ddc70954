"""Where a cold solve over one kernel starts: hinge multipliers that belong to the masses of its start."""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import glue, rule
from omdpd.jit.pointers import assume_distinct
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.kernel_step.newton import mass_and_weight
from omdpd.solvers.compiled.kernel_step.problem import KernelProblem, KernelWork, water_filling
from omdpd.solvers.compiled.newton.multipliers import clip_multipliers, move_of_multipliers

# Most steps taken, and the relative change that ends them: from there on Newton's method in V and xi is faster.
MAX_STARTING_STEPS, CLOSE = 5, 0.3


@glue
def starting_multipliers(problem: KernelProblem, mass: Floats, xi: Floats, work: KernelWork) -> None:
    """Overwrite xi by about what it would be if the masses of the states were right: a few cheap steps without blocks.

    With the masses held, V follows from xi backward in h (`water_filling`), and so does its derivative; the step is
    Newton's in xi alone.  Late in a run, when the reference is close, xi is then known to a few per cent.
    """
    H, S, m = mass.shape[0], mass.shape[1], xi.size
    ahead, rows = np.empty((H, S, m)), np.empty((work.level.size + 1, m))
    T, slope = np.empty((m, m)), np.empty(m)
    # A single hinge: where its argument was positive, where negative, and by how much.
    low, high, above, below = 0.0, np.inf, 0.0, 0.0
    for _ in range(MAX_STARTING_STEPS):
        water_filling(problem, xi, mass, work.V, work.y, work.level)
        mass_and_weight(work.y, work.D.shape[1], work.q, work.w)
        restricted_quadratic(problem, work.q, work.w, ahead, rows, T, slope)
        dxi = move_of_multipliers(T, slope, xi, problem.W, np.inf)
        if m == 1:
            if slope[0] < 0.0:
                low, above = xi[0], -slope[0]
            else:
                high, below = xi[0], slope[0]
            if above > 0.0 and high < np.inf and not (low < xi[0] + dxi[0] < high):
                dxi[0] = low + (high - low) * above / (above + below) - xi[0]
        close = True
        for j in range(m):
            xi[j] = xi[j] + dxi[j] if np.isfinite(dxi[j]) else 0.0
            close = close and abs(dxi[j]) <= CLOSE * xi[j]
        clip_multipliers(problem.W, xi)
        if close:
            break


@rule
def restricted_quadratic(
    problem: KernelProblem, q: Floats, w: Floats, ahead: Floats, rows: Floats, T: Floats, slope: Floats
) -> None:
    """T = P^T diag(w) P and slope = -d.q, with P_j = dy / dxi_j while the masses of the states are held.

    Scratch: `ahead` (H, S, m) for dV / dxi, `rows` (A + 1, m) for the actions of a state and their sum.
    """
    assume_distinct()
    H, S, m = ahead.shape
    A = q.shape[1] // S
    p, d = problem.p, problem.d
    for j in range(m):
        slope[j] = 0.0
        for k in range(m):
            T[j, k] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            share = 0.0
            for j in range(m):
                rows[A, j] = 0.0
            for a in range(A):
                r = s * A + a
                weight, mass = w[h, r], q[h, r]
                if weight > 0.0:
                    share += weight
                    for j in range(m):
                        rows[a, j] = -d[h, r, j]
                        slope[j] -= d[h, r, j] * mass
                    if h + 1 < H:
                        for t in range(S):
                            chance = p[h, r, t]
                            for j in range(m):
                                rows[a, j] += chance * ahead[h + 1, t, j]
                    for j in range(m):
                        rows[A, j] += weight * rows[a, j]
            for j in range(m):
                ahead[h, s, j] = rows[A, j] / share if share > 0.0 else 0.0
            for a in range(A):
                weight = w[h, s * A + a]
                if weight > 0.0:
                    for j in range(m):
                        rows[a, j] -= ahead[h, s, j]
                    for j in range(m):
                        scaled = weight * rows[a, j]
                        for k in range(m):
                            T[j, k] += scaled * rows[a, k]
