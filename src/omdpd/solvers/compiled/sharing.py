"""Rows of the same (s, a) at different steps, estimated together.

The rows of a table x_h(s,a) scatter around a level of their own (s,a): x_h = level + e_h with Var(e_h) = v/m, where v
is the variance of one observation, and the level is as far from `base` as after `a` observations, Var = v/a.  Given n_h
observations with sum X_h per step, what is expected of a row, and the covariance of the errors of two steps, are

    f_h = m / (n_h + m),      T = a + sum_h f_h n_h,      level~ = (a base + sum_h f_h X_h) / T
    x~_h = (X_h + m level~) / (n_h + m),      Cov(h, g) = v ( 1{h = g} / (n_h + m)  +  f_h f_g / T )

(exactly so if everything is normal, and the best linear estimate otherwise).  Below, own_h = 1/(n_h + m),
common_h = f_h^2 / T, and the row is known as well as N_h = 1 / (own_h + common_h) observations of it alone would tell.
m = infinity pools the steps, m near 0 keeps them apart.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.entries import index_of_largest, sum_of_table
from omdpd.solvers.compiled.options import ENTRY

# Grid of m: from rows that are nearly apart to rows that are nearly one; a factor of two to ten costs a prediction
# little.
WEIGHTS = np.array([0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 1000.0, 10_000.0])
# Grid of a for costs: observations' worth of trust in the mean of all of them.  Rows of noisy costs are many, and a few
# lucky ones mislead.
COST_TRUSTS = np.array([2.0, 10.0, 50.0, 250.0, 1000.0])
# a = one observation's worth for the kernel (towards uniform) and the reward (towards optimism).
TRUST = 1.0
REWARD_TRUSTS = np.array([TRUST])
# m with which the steps of a stationary world are one, to the last digit.
POOLED = 1e12
# Scores this close (in nats) do not tell two weights apart.
TIE = 1.0
# How many standard deviations above the mean of the rows met a row's reward is thought possible at first.
HOPE = 2.0
# Share of a coin's variance below which the noise of a reward of which little was seen is not believed to be.
MIN_VARIANCE = 1e-4
# A predicted mean is kept this far from 0 and 1 before its logarithm is taken.
MIN_CHANCE = 1e-3
# A product of chances below this is not multiplied further: its logarithm is taken instead.
SMALL = 1e-200
# Variance of one fair coin: what is believed of the noise before anything was met twice.
ONE_COIN = 0.25


@njit(**ENTRY)
def shared_table(sums: Floats, visits: Floats, m: float, base: float, a: float) -> tuple[Floats, Floats, Floats]:
    """(x~, own, common), each (H, S, A), of a table of means in [0, 1]."""
    x, own, common = np.empty(visits.shape), np.empty(visits.shape), np.empty(visits.shape)
    share_table(sums, visits, m, base, a, x, own, common)
    return x, own, common


@njit(**ENTRY)
def share_table(
    sums: Floats, visits: Floats, m: float, base: float, a: float, x: Floats, own: Floats, common: Floats
) -> None:
    """`shared_table`, written into the last three."""
    H, S, A = visits.shape
    for s in range(S):
        for b in range(A):
            T, level = a, a * base
            for g in range(H):
                f = m / (visits[g, s, b] + m)
                T += f * visits[g, s, b]
                level += f * sums[g, s, b]
            for h in range(H):
                own[h, s, b] = 1.0 / (visits[h, s, b] + m)
                common[h, s, b] = (m * own[h, s, b]) ** 2 / T
                x[h, s, b] = min(max((sums[h, s, b] + m * level / T) * own[h, s, b], 0.0), 1.0)


@njit(**ENTRY)
def shared_kernel(transitions: Floats, visits: Floats, m: float, a: float) -> tuple[Floats, Floats, Floats]:
    """(p~, own, common) of the kernel: every entry as in `shared_table` with base 1/S.

    The last step leads nowhere: its rows are uniform, own = 1/a and common = 0, and nothing reads them.
    """
    p, own, common = np.empty(transitions.shape), np.empty(visits.shape), np.empty(visits.shape)
    share_kernel(transitions, visits, m, a, p, own, common)
    return p, own, common


@njit(**ENTRY)
def share_kernel(
    transitions: Floats, visits: Floats, m: float, a: float, p: Floats, own: Floats, common: Floats
) -> None:
    """`shared_kernel`, written into the last three."""
    H, S, A = visits.shape
    p[H - 1], own[H - 1], common[H - 1] = 1.0 / S, 1.0 / a, 0.0
    level = np.empty(S)
    for s in range(S):
        for b in range(A):
            T = a
            level[:] = a / S
            for g in range(H - 1):
                n = visits[g, s, b]
                if n > 0.0:
                    f = m / (n + m)
                    T += f * n
                    for t in range(S):
                        level[t] += f * transitions[g, s, b, t]
            for h in range(H - 1):
                own[h, s, b] = 1.0 / (visits[h, s, b] + m)
                common[h, s, b] = (m * own[h, s, b]) ** 2 / T
                mass = 0.0
                for t in range(S):
                    p[h, s, b, t] = (transitions[h, s, b, t] + m * level[t] / T) * own[h, s, b]
                    mass += p[h, s, b, t]
                for t in range(S):
                    p[h, s, b, t] /= mass


@njit(**ENTRY)
def kernel_scores(
    states: Integers, actions: Integers, transitions: Floats, visits: Floats, grid: Floats, a: float
) -> Floats:
    """sum over the steps of one trajectory of ln p~_h(s'|s,a), for every m of the grid, from the counts before it."""
    scores = np.zeros(grid.size)
    add_kernel_scores(states, actions, transitions, visits, grid, a, scores)
    return scores


@njit(**ENTRY)
def add_kernel_scores(
    states: Integers, actions: Integers, transitions: Floats, visits: Floats, grid: Floats, a: float, scores: Floats
) -> None:
    """`kernel_scores`, added to the last one."""
    H, S, _ = visits.shape
    for i in range(grid.size):
        m, chance = grid[i], 1.0
        for h in range(H - 1):
            s, b, t = states[h], actions[h], states[h + 1]
            T, level = a, a / S
            for g in range(H - 1):
                if visits[g, s, b] > 0.0:
                    f = m / (visits[g, s, b] + m)
                    T += f * visits[g, s, b]
                    level += f * transitions[g, s, b, t]
            chance *= (transitions[h, s, b, t] + m * level / T) / (visits[h, s, b] + m)
            if chance < SMALL:
                scores[i] += np.log(chance)
                chance = 1.0
        scores[i] += np.log(chance)


@njit(**ENTRY)
def table_scores(
    states: Integers, actions: Integers, observed: Floats, sums: Floats, visits: Floats, grid: Floats, trusts: Floats
) -> Floats:
    """sum over one trajectory of x ln x~ + (1 - x) ln(1 - x~), for every (m, a) of the two grids: a proper score."""
    scores = np.zeros((grid.size, trusts.size))
    add_table_scores(states, actions, observed, sums, visits, grid, trusts, scores)
    return scores


@njit(**ENTRY)
def add_table_scores(
    states: Integers,
    actions: Integers,
    observed: Floats,
    sums: Floats,
    visits: Floats,
    grid: Floats,
    trusts: Floats,
    scores: Floats,
) -> None:
    """`table_scores`, added to the last one."""
    H = visits.shape[0]
    base = overall_mean(sums, visits)
    chance = np.empty(trusts.size)
    for i in range(grid.size):
        m = grid[i]
        chance[:] = 1.0
        for h in range(H):
            s, b, seen = states[h], actions[h], observed[h]
            total, level = 0.0, 0.0
            for g in range(H):
                if visits[g, s, b] > 0.0:
                    f = m / (visits[g, s, b] + m)
                    total += f * visits[g, s, b]
                    level += f * sums[g, s, b]
            for j in range(trusts.size):
                expected = (level + trusts[j] * base) / (total + trusts[j])
                x = (sums[h, s, b] + m * expected) / (visits[h, s, b] + m)
                x = min(max(x, MIN_CHANCE), 1.0 - MIN_CHANCE)
                # Logarithms are most of the work: coins need one in all.
                if seen == 1.0 or seen == 0.0:
                    chance[j] *= x if seen == 1.0 else 1.0 - x
                    if chance[j] < SMALL:
                        scores[i, j] += np.log(chance[j])
                        chance[j] = 1.0
                else:
                    scores[i, j] += seen * np.log(x) + (1.0 - seen) * np.log(1.0 - x)
        for j in range(trusts.size):
            if chance[j] < 1.0:
                scores[i, j] += np.log(chance[j])


@njit(**ENTRY)
def best_weight(score: Floats) -> float:
    """The largest m whose score is within TIE of the best.

    >>> best_weight(np.array([-3.0, -2.0, -2.5, -9.0, -9.0, -9.0, -9.0, -9.0, -9.0]))
    2.0
    """
    best, place = score[index_of_largest(score)], 0
    for i in range(score.size):
        if score[i] >= best - TIE:
            place = i
    return WEIGHTS[place]


@njit(**ENTRY)
def best_pair(score: Floats) -> tuple[float, float]:
    """(m, trust): the largest m whose best score is within TIE of the best, then the trust with the best score."""
    best, place = -np.inf, 0
    for i in range(len(score)):
        best = max(best, score[i, index_of_largest(score[i])])
    for i in range(len(score)):
        if score[i, index_of_largest(score[i])] >= best - TIE:
            place = i
    return WEIGHTS[place], COST_TRUSTS[index_of_largest(score[place])]


@njit(**ENTRY)
def overall_mean(sums: Floats, visits: Floats) -> float:
    """The mean of everything met, with one observation of 1/2 more."""
    return (sum_of_table(sums) + 0.5) / (sum_of_table(visits) + 1.0)


@njit(**ENTRY)
def noise_share(sums: Floats, squares: Floats, visits: Floats) -> float:
    """The share of a coin's variance x(1-x) that observations in [0, 1] really have: 1 for a coin, 0 where exact.

    min(1, (1 + sum n Var_n) / (1 + sum n x(1-x)))      over the rows met at least twice, x their mean
    """
    found, coin = ONE_COIN, ONE_COIN
    H, S, A = visits.shape
    for h in range(H):
        for s in range(S):
            for b in range(A):
                n = visits[h, s, b]
                if n >= 2.0:
                    x = sums[h, s, b] / n
                    found += max(squares[h, s, b] - n * x * x, 0.0)
                    coin += n * max(x * (1.0 - x), 0.0)
    return min(found / coin, 1.0)


@njit(**ENTRY)
def rows_met(sums: Floats, visits: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the mean rewards of the rows met, with one more row of reward 1."""
    n, first, second = 1.0, 1.0, 1.0
    H, S, A = visits.shape
    for h in range(H):
        for s in range(S):
            for b in range(A):
                if visits[h, s, b] > 0.0:
                    x = sums[h, s, b] / visits[h, s, b]
                    n += 1.0
                    first += x
                    second += x * x
    mean = first / n
    return mean, np.sqrt(max(second / n - mean * mean, 0.0))


@njit(**ENTRY)
def kernel_drift(p: Floats, p_before: Floats) -> float:
    """sum_h (H-1-h) max_{s,a} |p_h - p_before_h|_1, h from 0: bounds |u - u_before|_1 of every policy."""
    H, S, A, _ = p.shape
    total = 0.0
    for h in range(H - 1):
        worst = 0.0
        for s in range(S):
            for b in range(A):
                moved = 0.0
                for t in range(S):
                    moved += abs(p[h, s, b, t] - p_before[h, s, b, t])
                worst = max(worst, moved)
        total += (H - 1 - h) * worst
    return total
