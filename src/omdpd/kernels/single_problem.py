"""The one-kernel mirror step as data, and the linear maps between its variables.

Every d_j is scaled to largest entry one, so that regularisation and tolerances mean the same for every hinge;
W, b, rho and xi are scaled with it, which changes neither q nor V nor the objective.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.arrays import Floats

# Exponents are capped here (KL), far above any log-occupancy on the way to the solution.
LARGEST_EXPONENT = 300.0
# A state with less mass than this is started as if it had this much (KL), so that its logarithm exists.
SMALLEST_MASS = 1e-30


class Problem(NamedTuple):
    """Data of one mirror step; `d` has the hinge as its last axis, (H, S, A, m)."""

    c: Floats
    p: Floats
    mu: Floats
    d: Floats
    W: Floats
    b: Floats
    rho: Floats
    kl: bool


@njit(cache=True, error_model="numpy")
def scaled_hinges(d: Floats) -> tuple[Floats, Floats]:
    """d / max|d_j| with the hinge as last axis, and the m scales (one for an empty hinge)."""
    m, H, S, A = d.shape
    size = np.ones(m)
    last = np.empty((H, S, A, m))
    for j in range(m):
        largest = np.abs(d[j]).max()
        if largest > 0.0:
            size[j] = largest
        for h in range(H):
            for s in range(S):
                for a in range(A):
                    last[h, s, a, j] = d[j, h, s, a] / size[j]
    return last, size


@njit(cache=True, error_model="numpy")
def clip_multipliers(problem: Problem, xi: Floats) -> None:
    """Put xi back into its box: 0 <= xi_j, and xi_j <= W_j where the hinge has no quadratic part."""
    for j in range(xi.size):
        xi[j] = max(xi[j], 0.0)
        if problem.rho[j] == 0.0:
            xi[j] = min(xi[j], problem.W[j])


@njit(cache=True, error_model="numpy")
def dual_slack(problem: Problem, V: Floats, xi: Floats, y: Floats) -> None:
    """y := c - xi.d - V_h(s) + p.V_{h+1}."""
    H, S, A = y.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                y[h, s, a] = backed_up(problem, V, xi, h, s, a) - V[h, s]


@njit(cache=True, error_model="numpy")
def backed_up(problem: Problem, V: Floats, xi: Floats, h: int, s: int, a: int) -> float:
    """c - xi.d + p.V_{h+1} of one row."""
    total = problem.c[h, s, a]
    for j in range(xi.size):
        total -= xi[j] * problem.d[h, s, a, j]
    following = 0.0
    if h + 1 < V.shape[0]:
        row = problem.p[h, s, a]
        for t in range(row.size):
            following += row[t] * V[h + 1, t]
    return total + following


@njit(cache=True, error_model="numpy")
def change_of_slack(problem: Problem, dV: Floats, dxi: Floats, dy: Floats) -> None:
    """dy := -dV_h(s) + p.dV_{h+1} - dxi.d."""
    H, S, A = dy.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                total = -dV[h, s]
                if h + 1 < H:
                    row = problem.p[h, s, a]
                    for t in range(S):
                        total += row[t] * dV[h + 1, t]
                for j in range(dxi.size):
                    total -= dxi[j] * problem.d[h, s, a, j]
                dy[h, s, a] = total


@njit(cache=True, error_model="numpy")
def water_filling(problem: Problem, xi: Floats, mass: Floats, V: Floats) -> None:
    """V backward in h such that the rows of every state carry its given mass.

    Euclid: sum_a [level_a - V]^+ = mass; KL: sum_a exp(level_a - V) = mass, with level = c - xi.d + p.V_{h+1}.
    """
    H, S, A = problem.c.shape
    level = np.empty(A)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                level[a] = backed_up(problem, V, xi, h, s, a)
            if problem.kl:
                V[h, s] = log_sum_exp(level) - np.log(max(mass[h, s], SMALLEST_MASS))
            else:
                V[h, s] = water_level(level, mass[h, s])


@njit(cache=True, error_model="numpy")
def water_level(level: Floats, mass: float) -> float:
    """The V with sum_a [level_a - V]^+ = mass; the largest level if there is no mass.  Sorts `level`."""
    A = level.size
    for i in range(1, A):
        entry = level[i]
        k = i
        while k > 0 and level[k - 1] < entry:
            level[k] = level[k - 1]
            k -= 1
        level[k] = entry
    # Sums of differences to the top, so that a level of 1e8 does not swallow a mass of 1e-8.
    top, total, value = level[0], 0.0, -mass
    for k in range(1, A):
        if level[k] - top <= value:
            break
        total += level[k] - top
        value = (total - mass) / (k + 1)
    return top + value


@njit(cache=True, error_model="numpy")
def log_sum_exp(level: Floats) -> float:
    """log sum_a exp(level_a) without overflow."""
    top = level.max()
    total = 0.0
    for a in range(level.size):
        total += np.exp(level[a] - top)
    return top + np.log(total)
