"""The multipliers of the hinges: their units, their box, and their move in one Newton step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import entry, rule
from omdpd.problem.arrays import Floats

# Relative size of the proximal term on a multiplier: makes the quadratic definite at a vertex, where no active row is
# left to carry a change of the hinge; and where none is left for any hinge.
REGULARISATION, LEAST = 1e-12, 1e-30
# A multiplier of a bound below this fraction of its own terms is rounding.
MIN_MULTIPLIER = 1e-14
# A pivot below this fraction of its diagonal entry is rounding; where that is zero, its root can still be divided by.
MIN_PIVOT, TINY = 1e-14, 1e-300
# Rounds of the active set method per variable, each of which frees or binds one; only rounding can make it take more.
MAX_ROUNDS = 6


@entry
def scaled_hinges(d: Floats, W: Floats) -> tuple[Floats, Floats, float]:
    """d / max|d_j| by rows (R, m), the m scales (one for a hinge without entries), and sum_j W_j max|d_j|.

    Regularisation and tolerances then mean the same for every hinge; W and xi are scaled with it, which changes neither
    q nor V nor the objective.
    """
    m, R = d.shape
    size, rows, weight = np.ones(m), np.empty((R, m)), 0.0
    for j in range(m):
        largest = 0.0
        for r in range(R):
            largest = max(largest, abs(d[j, r]))
        if largest > 0.0:
            size[j] = largest
            weight += W[j] * largest
        for r in range(R):
            rows[r, j] = d[j, r] / size[j]
    return rows, size, weight


@rule
def clip_multipliers(W: Floats, xi: Floats) -> None:
    """Put xi back into its box: 0 <= xi_j <= W_j."""
    for j in range(xi.size):
        xi[j] = min(max(xi[j], 0.0), W[j])


@rule
def move_of_multipliers(T: Floats, slope: Floats, xi: Floats, W: Floats, radius: float) -> Floats:
    """arg min_x 1/2 x^T T x + slope.x over the box 0 <= xi + x <= W and |x_j| <= radius; T gets its proximal term."""
    m = xi.size
    low, high, scale = np.empty(m), np.empty(m), 0.0
    for j in range(m):
        scale = max(scale, T[j, j])
    for j in range(m):
        T[j, j] += REGULARISATION * scale + LEAST
        low[j], high[j] = max(-xi[j], -radius), min(W[j] - xi[j], radius)
    return box_quadratic(T, slope, low, high)


@rule
def box_quadratic(T: Floats, g: Floats, low: Floats, high: Floats) -> Floats:
    """arg min_x 1/2 x^T T x + g.x over low <= x <= high, T positive definite, low <= 0 <= high.

    Primal active set from x = 0: minimise over the free variables, stop at the first bound on the way, free the
    bound variable of the most wrong sign.  Every round lowers the objective, so it ends; the cap on rounds only
    guards against rounding, and any x on the way is feasible and no worse than 0.
    """
    m = g.size
    x = np.zeros(m)
    free = np.ones(m, dtype=np.bool_)
    for j in range(m):
        free[j] = not ((x[j] <= low[j] and g[j] >= 0.0) or (x[j] >= high[j] and g[j] <= 0.0))
    for _ in range(MAX_ROUNDS * (m + 1)):
        target = free_minimiser(T, g, x, free)
        step, blocking = 1.0, -1
        for j in range(m):
            move = target[j] - x[j]
            if free[j] and move != 0.0:
                bound = high[j] if move > 0.0 else low[j]
                if abs(bound - x[j]) < step * abs(move):
                    step, blocking = (bound - x[j]) / move, j
        for j in range(m):
            if free[j]:
                x[j] = min(max(x[j] + step * (target[j] - x[j]), low[j]), high[j])
        if blocking >= 0:
            free[blocking] = False
            x[blocking] = high[blocking] if target[blocking] > x[blocking] else low[blocking]
            continue
        worst, released = 0.0, -1
        for j in range(m):
            if not free[j]:
                slope = g[j]
                size = abs(g[j])
                for k in range(m):
                    slope += T[j, k] * x[k]
                    size += abs(T[j, k] * x[k])
                wrong = -slope if x[j] <= low[j] else slope
                if low[j] < high[j] and wrong > worst and wrong > MIN_MULTIPLIER * size:
                    worst, released = wrong, j
        if released < 0:
            break
        free[released] = True
    return x


@rule
def free_minimiser(T: Floats, g: Floats, x: Floats, free: npt.NDArray[np.bool_]) -> Floats:
    """The minimiser over the free variables with the others held at x, by Cholesky with floored pivots."""
    m = g.size
    L = np.zeros((m, m))
    z = x.copy()
    for i in range(m):
        if not free[i]:
            continue
        rest = -g[i]
        for k in range(m):
            if not free[k]:
                rest -= T[i, k] * x[k]
        for j in range(i + 1):
            if free[j]:
                total = T[i, j]
                for k in range(j):
                    if free[k]:
                        total -= L[i, k] * L[j, k]
                if i == j:
                    L[i, i] = np.sqrt(max(total, MIN_PIVOT * T[i, i] + TINY))
                else:
                    L[i, j] = total / L[j, j]
        for k in range(i):
            if free[k]:
                rest -= L[i, k] * z[k]
        z[i] = rest / L[i, i]
    for i in range(m - 1, -1, -1):
        if free[i]:
            for k in range(i + 1, m):
                if free[k]:
                    z[i] -= L[k, i] * z[k]
            z[i] /= L[i, i]
    return z
