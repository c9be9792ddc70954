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

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import index_of_largest, sum_of_vector
from omdpd.solvers.compiled.options import ENTRY, INLINE
from omdpd.solvers.compiled.pointers import assume_distinct, by_row, flat

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
# Variance of one fair coin: what is believed of the noise before anything was met twice.
ONE_COIN = 0.25


@njit(**ENTRY)
def shared_table(sums: Floats, visits: Floats, m: float, base: float, a: float) -> tuple[Floats, Floats, Floats]:
    """(x~, own, common), each (H, S, A), of a table of means in [0, 1]."""
    x, own, common = np.empty(visits.shape), np.empty(visits.shape), np.empty(visits.shape)
    T, level = np.empty(visits[0].size), np.empty(visits[0].size)
    share_table(by_row(sums), by_row(visits), m, base, a, T, level, by_row(x), by_row(own), by_row(common))
    return x, own, common


@njit(**INLINE)
def share_table(
    sums: Floats,
    visits: Floats,
    m: float,
    base: float,
    a: float,
    T: Floats,
    level: Floats,
    x: Floats,
    own: Floats,
    common: Floats,
) -> None:
    """`shared_table` of tables (H, S A), written into the last three; `T` and `level` (S A,) are overwritten."""
    write_factors(flat(visits), m, flat(x))
    write_level(sums, visits, m, base, a, x, T, level)
    repeat(level, x)
    repeat(T, common)
    write_parts(flat(visits), m, flat(own), flat(common))
    write_means(flat(sums), flat(own), flat(x))


@njit(**INLINE)
def write_factors(visits: Floats, m: float, f: Floats) -> None:
    """f = m / (n + m), tables as vectors."""
    assume_distinct()
    for e in range(visits.size):
        f[e] = m / (visits[e] + m)


@njit(**INLINE)
def write_level(
    sums: Floats, visits: Floats, m: float, base: float, a: float, f: Floats, T: Floats, level: Floats
) -> None:
    """T and m level~ of every (s, a), from tables (H, S A)."""
    assume_distinct()
    H, R = visits.shape
    for r in range(R):
        T[r], level[r] = a, a * base
    for h in range(H):
        for r in range(R):
            T[r] += f[h, r] * visits[h, r]
            level[r] += f[h, r] * sums[h, r]
    for r in range(R):
        level[r] = m * level[r] / T[r]


@njit(**INLINE)
def repeat(row: Floats, table: Floats) -> None:
    """Write the same numbers (S A,) into every layer of a table (H, S A): what follows is then one long loop."""
    assume_distinct()
    for h in range(table.shape[0]):
        for r in range(row.size):
            table[h, r] = row[r]


@njit(**INLINE)
def write_parts(visits: Floats, m: float, own: Floats, common: Floats) -> None:
    """The two parts of the error, tables as vectors; `common` is T before."""
    assume_distinct()
    for e in range(visits.size):
        alone = 1.0 / (visits[e] + m)
        own[e] = alone
        common[e] = (m * alone) ** 2 / common[e]


@njit(**INLINE)
def write_means(sums: Floats, own: Floats, x: Floats) -> None:
    """x~ of tables as vectors; `x` is m level~ before."""
    assume_distinct()
    for e in range(x.size):
        x[e] = min(max((sums[e] + x[e]) * own[e], 0.0), 1.0)


@njit(**ENTRY)
def shared_kernel(transitions: Floats, visits: Floats, m: float, a: float) -> tuple[Floats, Floats, Floats]:
    """(p~, own, common) of the kernel: every entry as in `shared_table` with base 1/S.

    The last step leads nowhere: its rows are uniform, own = 1/a and common = 0, and nothing reads them.
    """
    p, own, common = np.empty(transitions.shape), np.empty(visits.shape), np.empty(visits.shape)
    R, S = visits[0].size, visits.shape[1]
    T, level, mass = np.empty(R), np.empty((R, S)), np.empty((R, S))
    share_kernel(by_row(transitions), by_row(visits), m, a, T, level, mass, by_row(p), by_row(own), by_row(common))
    return p, own, common


@njit(**INLINE)
def share_kernel(
    transitions: Floats,
    visits: Floats,
    m: float,
    a: float,
    T: Floats,
    level: Floats,
    mass: Floats,
    p: Floats,
    own: Floats,
    common: Floats,
) -> None:
    """`shared_kernel` of tables (H, S A, ...), written into the last three.

    `T` (S A,), `level` and `mass` (S A, S) are overwritten.
    """
    H, R, S = transitions.shape
    write_factors(flat(visits), m, flat(own))
    write_levels(transitions, visits, a, own, T, level, mass)
    scale(m, flat(level), flat(mass))
    repeat(T, common)
    write_parts(flat(visits), m, flat(own), flat(common))
    for h in range(H - 1):
        write_laws(transitions[h], level, own[h], p[h], mass)
        scale(1.0, flat(p[h]), flat(mass))
    for r in range(R):
        own[H - 1, r], common[H - 1, r] = 1.0 / a, 0.0
        for t in range(S):
            p[H - 1, r, t] = 1.0 / S


@njit(**INLINE)
def write_levels(
    transitions: Floats, visits: Floats, a: float, f: Floats, T: Floats, level: Floats, beside: Floats
) -> None:
    """T (S A,) and T level~ (S A, S) from all layers but the last, and T once more beside every entry of a level."""
    assume_distinct()
    H, R, S = transitions.shape
    for r in range(R):
        T[r] = a
        for t in range(S):
            level[r, t] = a / S
    for h in range(H - 1):
        for r in range(R):
            if visits[h, r] > 0.0:
                T[r] += f[h, r] * visits[h, r]
                for t in range(S):
                    level[r, t] += f[h, r] * transitions[h, r, t]
    for r in range(R):
        for t in range(S):
            beside[r, t] = T[r]


@njit(**INLINE)
def scale(factor: float, vector: Floats, by: Floats) -> None:
    """Multiply every entry by one number, and divide it by the entry beside it."""
    assume_distinct()
    for e in range(vector.size):
        vector[e] = factor * vector[e] / by[e]


@njit(**INLINE)
def write_laws(transitions: Floats, level: Floats, own: Floats, p: Floats, mass: Floats) -> None:
    """Laws of one layer that need not sum to one, (S A, S), and beside every entry what its row sums to."""
    assume_distinct()
    R, S = p.shape
    for r in range(R):
        total = 0.0
        for t in range(S):
            share = (transitions[r, t] + level[r, t]) * own[r]
            p[r, t] = share
            total += share
        for t in range(S):
            mass[r, t] = total


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
    return (sum_of_vector(flat(sums)) + 0.5) / (sum_of_vector(flat(visits)) + 1.0)


@njit(**ENTRY)
def noise_share(sums: Floats, squares: Floats, visits: Floats) -> float:
    """The share of a coin's variance x(1-x) that observations in [0, 1] really have: 1 for a coin, 0 where exact.

    min(1, (1 + sum n Var_n) / (1 + sum n x(1-x)))      over the rows met at least twice, x their mean
    """
    return share_of_noise(flat(sums), flat(squares), flat(visits))


@njit(**INLINE)
def share_of_noise(sums: Floats, squares: Floats, visits: Floats) -> float:
    """`noise_share` of tables as vectors."""
    found, coin = ONE_COIN, ONE_COIN
    for e in range(visits.size):
        n = visits[e]
        if n >= 2.0:
            x = sums[e] / n
            found += max(squares[e] - n * x * x, 0.0)
            coin += n * max(x * (1.0 - x), 0.0)
    return min(found / coin, 1.0)


@njit(**ENTRY)
def rows_met(sums: Floats, visits: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the mean rewards of the rows met, with one more row of reward 1."""
    return moments_of_rows(flat(sums), flat(visits))


@njit(**INLINE)
def moments_of_rows(sums: Floats, visits: Floats) -> tuple[float, float]:
    """`rows_met` of tables as vectors."""
    n, first, second = 1.0, 1.0, 1.0
    for e in range(visits.size):
        if visits[e] > 0.0:
            x = sums[e] / visits[e]
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
