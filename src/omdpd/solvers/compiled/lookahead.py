"""What is not known about a plan: how far its cost may be off, and what exploring a row may be worth.

Both look one step ahead: an error in a row of the kernel matters by the variance of what follows it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_vector, index_of_largest
from omdpd.solvers.compiled.options import ENTRY

# Standard deviations of a row's own estimate and of what follows it, and what one observation is worth at first.
ROW_SCALE, VALUE_SCALE, FIRST = 0.8, 0.5, 0.5
# A row of which this many observations were made is believed to be as noisy as it looks, by half.
FEW = 40.0
# Rewards that share with m = 10 count half of what other steps have seen.
HALF_SHARED = 10.0
# Observations of a hoped-for reward that a row's own mean is judged with.
SECOND_CHANCE = 0.75


@njit(**ENTRY)
def kernel_variance(occupancy: Floats, policy: Floats, p: Floats, cost: Floats, own: Floats, common: Floats) -> float:
    """Variance of cost.q that is due to the kernel, to first order, C the cost-to-go of the policy under p:

        sum_hsa q^2 Var_p(C_{h+1}) own  +  sum_sa ( sum_h q sqrt(Var_p(C_{h+1}) common) )^2

    Errors of a level that several steps share are added before they are squared.
    """
    H, S, A = occupancy.shape
    after, now = np.zeros(S), np.zeros(S)
    total = 0.0
    linear = np.zeros((S, A))
    for h in range(H - 1, -1, -1):
        for s in range(S):
            now[s] = 0.0
            for a in range(A):
                mean, square = 0.0, 0.0
                if h + 1 < H:
                    for t in range(S):
                        mean += p[h, s, a, t] * after[t]
                        square += p[h, s, a, t] * after[t] * after[t]
                variance = max(square - mean * mean, 0.0)
                q = occupancy[h, s, a]
                total += q * q * variance * own[h, s, a]
                linear[s, a] += q * np.sqrt(variance * common[h, s, a])
                now[s] += policy[h, s, a] * (cost[h, s, a] + mean)
        copy_vector(now, after)
    for s in range(S):
        for a in range(A):
            total += linear[s, a] * linear[s, a]
    return total


@njit(**ENTRY)
def noise_variance(occupancy: Floats, noise: Floats, own: Floats, common: Floats) -> float:
    """Variance of cost.q that is due to the noise of observed costs:

    sum_hsa q^2 v own  +  sum_sa ( sum_h q sqrt(v common) )^2
    """
    H, S, A = occupancy.shape
    total = 0.0
    for s in range(S):
        for a in range(A):
            linear = 0.0
            for h in range(H):
                q = occupancy[h, s, a]
                total += q * q * noise[h, s, a] * own[h, s, a]
                linear += q * np.sqrt(noise[h, s, a] * common[h, s, a])
            total += linear * linear
    return total


@njit(**ENTRY)
def row_bonus(
    visits: Floats,
    mean: Floats,
    size: Floats,
    noise: Floats,
    cost_noise: Floats,
    share: float,
    hope: float,
    floor: float,
) -> tuple[Floats, Floats, Floats]:
    """(row, variance, reach) of `lagrangian_bonus`, for rewards of mean r and noise v, worth n_r >= 1 observations:

        n_x = max(n + share [n_r - n]^+, .1)
        row = .8 sqrt(max(v, floor 40/(40 + n_x)) / max(n_x, 1) + cost_noise) + hope min(.5/n_x, 1)
              + .75 [hope - r]^+ / (n_x + .75)
        variance = max(v, floor 40/(40 + n_r)) / n_r + cost_noise,      reach = hope min(.5/n_r, 1)

    The last term of `row` is three quarters of an observation of reward `hope`: a row with a bad start has a way back.
    """
    row, variance, reach = np.empty(visits.shape), np.empty(visits.shape), np.empty(visits.shape)
    write_row_bonus(visits, mean, size, noise, cost_noise, share, hope, floor, row, variance, reach)
    return row, variance, reach


@njit(**ENTRY)
def write_row_bonus(
    visits: Floats,
    mean: Floats,
    size: Floats,
    noise: Floats,
    cost_noise: Floats,
    share: float,
    hope: float,
    floor: float,
    row: Floats,
    variance: Floats,
    reach: Floats,
) -> None:
    """`row_bonus`, written into the last three."""
    H, S, A = visits.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                n, v, c = visits[h, s, a], noise[h, s, a], cost_noise[h, s, a]
                n_x = max(n + share * max(size[h, s, a] - n, 0.0), 0.1)
                n_r = max(size[h, s, a], 1.0)
                own = max(v, floor * FEW / (FEW + n_x)) / max(n_x, 1.0)
                row[h, s, a] = ROW_SCALE * np.sqrt(own + c) + hope * min(FIRST / n_x, 1.0)
                row[h, s, a] += SECOND_CHANCE * max(hope - mean[h, s, a], 0.0) / (n_x + SECOND_CHANCE)
                variance[h, s, a] = max(v, floor * FEW / (FEW + n_r)) / n_r + c
                reach[h, s, a] = hope * min(FIRST / n_r, 1.0)


@njit(**ENTRY)
def lagrangian_bonus(
    p: Floats, table: Floats, row: Floats, variance: Floats, reach: Floats, size: Floats, share: float
) -> Floats:
    """The bonus of every row of the Lagrangian `table`, by one optimistic backward pass; V of the pass is with it.

        mu = p.V_{h+1},    val = .5 sqrt(variance + Var_p(V_{h+1}) / size) + reach + min(.5/size, 1) (max V_{h+1} - mu)
        b = row + share [val - row]^+,      V_h = max_a (table + b + mu)

    `row` is the bonus for the row alone; `share` in [0, 1] is how much what follows matters.
    """
    bonus = np.empty(table.shape)
    write_lagrangian_bonus(p, table, row, variance, reach, size, share, bonus)
    return bonus


@njit(**ENTRY)
def write_lagrangian_bonus(
    p: Floats, table: Floats, row: Floats, variance: Floats, reach: Floats, size: Floats, share: float, bonus: Floats
) -> None:
    """`lagrangian_bonus`, written into the last one."""
    H, S, A = table.shape
    after, now = np.zeros(S), np.zeros(S)
    for h in range(H - 1, -1, -1):
        highest = after[index_of_largest(after)]
        for s in range(S):
            best = -np.inf
            for a in range(A):
                mean, square = 0.0, 0.0
                if h + 1 < H:
                    for t in range(S):
                        mean += p[h, s, a, t] * after[t]
                        square += p[h, s, a, t] * after[t] * after[t]
                spread = max(square - mean * mean, 0.0) / size[h, s, a]
                value = VALUE_SCALE * np.sqrt(variance[h, s, a] + spread) + reach[h, s, a]
                value += min(FIRST / size[h, s, a], 1.0) * (highest - mean)
                bonus[h, s, a] = row[h, s, a] + share * max(value - row[h, s, a], 0.0)
                best = max(best, table[h, s, a] + bonus[h, s, a] + mean)
            now[s] = best
        copy_vector(now, after)
