"""How well every weight m of a grid has predicted an episode, from the counts before it.

One step of a trajectory asks about one (s, a), of which every layer g has n_g observations with sum X_g (see
`sharing` for f and T).  Loops run over the grid innermost: its weights go through a division side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.options import ENTRY, INLINE
from omdpd.solvers.compiled.pointers import assume_distinct
from omdpd.solvers.compiled.sharing import overall_mean

# A predicted mean is kept this far from 0 and 1 before its logarithm is taken.
MIN_CHANCE = 1e-3
# A product of chances below this is not multiplied further: its logarithm is taken instead.
SMALL = 1e-200


@njit(**ENTRY)
def kernel_scores(
    states: Integers, actions: Integers, transitions: Floats, visits: Floats, grid: Floats, a: float
) -> Floats:
    """sum over the steps of one trajectory of ln p~_h(s'|s,a), for every m of the grid, from the counts before it."""
    H, S, _ = visits.shape
    scores, chance = np.zeros(grid.size), np.ones(grid.size)
    n, X, f, total, level = np.empty(H), np.empty(H), np.empty((H, grid.size)), np.empty(grid.size), np.empty(grid.size)
    for h in range(H - 1):
        s, b, t = states[h], actions[h], states[h + 1]
        for g in range(H):
            n[g], X[g] = visits[g, s, b], transitions[g, s, b, t]
        write_shares(n, grid, f, total)
        predict_departure(n, X, h, a, a / S, f, grid, total, level, chance, scores)
    add_logarithms(chance, scores)
    return scores


@njit(**ENTRY)
def table_scores(
    states: Integers, actions: Integers, observed: Floats, sums: Floats, visits: Floats, grid: Floats, trusts: Floats
) -> Floats:
    """sum over one trajectory of x ln x~ + (1 - x) ln(1 - x~), for every (m, a) of the two grids: a proper score."""
    H, base = len(visits), overall_mean(sums, visits)
    scores, chance = np.zeros((grid.size, trusts.size)), np.ones((trusts.size, grid.size))
    n, X, f, total, level = np.empty(H), np.empty(H), np.empty((H, grid.size)), np.empty(grid.size), np.empty(grid.size)
    x = np.empty((trusts.size, grid.size))
    for h in range(H):
        for g in range(H):
            n[g], X[g] = visits[g, states[h], actions[h]], sums[g, states[h], actions[h]]
        write_shares(n, grid, f, total)
        predict_mean(n, X, h, observed[h], base, f, total, grid, trusts, level, x, chance, scores)
    add_log_chances(chance, scores)
    return scores


@njit(**INLINE)
def write_shares(n: Floats, grid: Floats, f: Floats, total: Floats) -> None:
    """f_g = m / (n_g + m) of the layers that have seen something, (H, m), and sum_g f_g n_g, (m,)."""
    assume_distinct()
    for i in range(grid.size):
        total[i] = 0.0
    for g in range(n.size):
        if n[g] > 0.0:
            for i in range(grid.size):
                f[g, i] = grid[i] / (n[g] + grid[i])
                total[i] += f[g, i] * n[g]


@njit(**INLINE)
def predict_departure(
    n: Floats,
    X: Floats,
    h: int,
    a: float,
    start: float,
    f: Floats,
    grid: Floats,
    T: Floats,
    level: Floats,
    chance: Floats,
    scores: Floats,
) -> None:
    """Multiply the chances (m,) by those of the next state that was seen, X of which were seen before.

    The last layer leads nowhere; `T` and `level` are overwritten.
    """
    assume_distinct()
    for i in range(grid.size):
        T[i], level[i] = a, start
    for g in range(n.size - 1):
        if n[g] > 0.0:
            for i in range(grid.size):
                T[i] += f[g, i] * n[g]
                level[i] += f[g, i] * X[g]
    for i in range(grid.size):
        chance[i] *= (X[h] + grid[i] * level[i] / T[i]) / (n[h] + grid[i])
    for i in range(grid.size):
        if chance[i] < SMALL:
            scores[i] += np.log(chance[i])
            chance[i] = 1.0


@njit(**INLINE)
def predict_mean(
    n: Floats,
    X: Floats,
    h: int,
    seen: float,
    base: float,
    f: Floats,
    total: Floats,
    grid: Floats,
    trusts: Floats,
    level: Floats,
    x: Floats,
    chance: Floats,
    scores: Floats,
) -> None:
    """Score the means that (m, trust) expect of layer h against what was seen there.

    Logarithms are most of the work, and coins need one in all: the chance of what they showed is multiplied into
    `chance` (trust, m).  Of everything else the score is added to `scores` (m, trust).

    `level` (m,) and `x`, whose first rows are (trust, m), are overwritten.
    """
    assume_distinct()
    for i in range(grid.size):
        level[i] = 0.0
    for g in range(n.size):
        if n[g] > 0.0:
            for i in range(grid.size):
                level[i] += f[g, i] * X[g]
    for j in range(trusts.size):
        for i in range(grid.size):
            expected = (level[i] + trusts[j] * base) / (total[i] + trusts[j])
            mean = (X[h] + grid[i] * expected) / (n[h] + grid[i])
            x[j, i] = min(max(mean, MIN_CHANCE), 1.0 - MIN_CHANCE)
    if seen == 1.0 or seen == 0.0:
        multiply_chances(x, seen == 1.0, chance, scores)
    else:
        for j in range(trusts.size):
            for i in range(grid.size):
                scores[i, j] += seen * np.log(x[j, i]) + (1.0 - seen) * np.log(1.0 - x[j, i])


@njit(**INLINE)
def multiply_chances(x: Floats, head: bool, chance: Floats, scores: Floats) -> None:
    """Multiply chances (trust, m) by x, or by 1 - x; of those that are small by now add the logarithm."""
    assume_distinct()
    small = 0
    for j in range(chance.shape[0]):
        for i in range(chance.shape[1]):
            chance[j, i] *= x[j, i] if head else 1.0 - x[j, i]
            small += chance[j, i] < SMALL
    if small > 0:
        for j in range(chance.shape[0]):
            for i in range(chance.shape[1]):
                if chance[j, i] < SMALL:
                    scores[i, j] += np.log(chance[j, i])
                    chance[j, i] = 1.0


@njit(**INLINE)
def add_logarithms(chance: Floats, scores: Floats) -> None:
    """Add the logarithms of what was multiplied, (m,)."""
    for i in range(chance.size):
        scores[i] += np.log(chance[i])


@njit(**INLINE)
def add_log_chances(chance: Floats, scores: Floats) -> None:
    """Add the logarithms of what was multiplied, (trust, m), to scores (m, trust)."""
    for j in range(chance.shape[0]):
        for i in range(chance.shape[1]):
            if chance[j, i] < 1.0:
                scores[i, j] += np.log(chance[j, i])
