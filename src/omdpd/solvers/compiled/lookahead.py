"""What is not known about a plan: how far its cost may be off, and what exploring a row may be worth.

Both look one step ahead: an error in a row of the kernel matters by the variance of what follows it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import index_of_largest
from omdpd.solvers.compiled.options import ENTRY, INLINE
from omdpd.solvers.compiled.pointers import assume_distinct, by_row, flat

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
    after, work = np.empty(p.shape[3]), np.empty((3, occupancy[0].size))
    return variance_by_kernel(
        by_row(occupancy), by_row(policy), by_row(p), by_row(cost), by_row(own), by_row(common),
        after, work[0], work[1], work[2],
    )  # fmt: skip


@njit(**INLINE)
def variance_by_kernel(
    occupancy: Floats,
    policy: Floats,
    p: Floats,
    cost: Floats,
    own: Floats,
    common: Floats,
    after: Floats,
    mean: Floats,
    square: Floats,
    linear: Floats,
) -> float:
    """`kernel_variance` of tables (H, S A, ...); the last four, (S,) and three times (S A,), are overwritten."""
    assume_distinct()
    (H, R), S = occupancy.shape, after.size
    total = 0.0
    for r in range(R):
        mean[r], square[r], linear[r] = 0.0, 0.0, 0.0
    for left in range(H):
        h = H - 1 - left
        for r in range(R):
            variance = max(square[r] - mean[r] * mean[r], 0.0)
            q = occupancy[h, r]
            square[r] = q * q * variance * own[h, r]
            linear[r] += q * np.sqrt(variance * common[h, r])
            mean[r] = policy[h, r] * (cost[h, r] + mean[r])
        r = 0
        for s in range(S):
            after[s] = 0.0
            for _ in range(R // S):
                total += square[r]
                after[s] += mean[r]
                r += 1
        if h > 0:
            write_moments(p[h - 1], after, mean, square)
    for r in range(R):
        total += linear[r] * linear[r]
    return total


@njit(**INLINE)
def write_moments(p: Floats, after: Floats, mean: Floats, square: Floats) -> None:
    """Mean and mean square of `after` (S,) under every row (S A, S) of a layer, (S A,) each."""
    assume_distinct()
    for r in range(p.shape[0]):
        first, second = 0.0, 0.0
        for t in range(p.shape[1]):
            part = p[r, t] * after[t]
            first += part
            second += part * after[t]
        mean[r], square[r] = first, second


@njit(**ENTRY)
def noise_variance(occupancy: Floats, noise: Floats, own: Floats, common: Floats) -> float:
    """Variance of cost.q that is due to the noise of observed costs:

    sum_hsa q^2 v own  +  sum_sa ( sum_h q sqrt(v common) )^2
    """
    R = occupancy[0].size
    part, root = np.empty((len(occupancy), R)), np.empty((len(occupancy), R))
    write_errors(flat(occupancy), flat(noise), flat(own), flat(common), flat(part), flat(root))
    return sum_of_errors(part, root)


@njit(**INLINE)
def write_errors(occupancy: Floats, noise: Floats, own: Floats, common: Floats, part: Floats, root: Floats) -> None:
    """Write q^2 v own and q sqrt(v common); all tables as vectors."""
    assume_distinct()
    for e in range(occupancy.size):
        q = occupancy[e]
        part[e] = q * q * noise[e] * own[e]
        root[e] = q * np.sqrt(noise[e] * common[e])


@njit(**INLINE)
def sum_of_errors(part: Floats, root: Floats) -> float:
    """`noise_variance` from what `write_errors` writes, (H, S A) each."""
    total = 0.0
    for r in range(part.shape[1]):
        linear = 0.0
        for h in range(part.shape[0]):
            total += part[h, r]
            linear += root[h, r]
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
    write_row_bonus(
        flat(visits), flat(mean), flat(size), flat(noise), flat(cost_noise), share, hope, floor,
        flat(row), flat(variance), flat(reach),
    )  # fmt: skip
    return row, variance, reach


@njit(**INLINE)
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
    """`row_bonus`, written into the last three; all tables as vectors."""
    assume_distinct()
    for e in range(visits.size):
        n, v, c = visits[e], noise[e], cost_noise[e]
        n_x = max(n + share * max(size[e] - n, 0.0), 0.1)
        n_r = max(size[e], 1.0)
        own = max(v, floor * FEW / (FEW + n_x)) / max(n_x, 1.0)
        alone = ROW_SCALE * np.sqrt(own + c) + hope * min(FIRST / n_x, 1.0)
        row[e] = alone + SECOND_CHANCE * max(hope - mean[e], 0.0) / (n_x + SECOND_CHANCE)
        variance[e] = max(v, floor * FEW / (FEW + n_r)) / n_r + c
        reach[e] = hope * min(FIRST / n_r, 1.0)


@njit(**ENTRY)
def lagrangian_bonus(
    p: Floats, table: Floats, row: Floats, variance: Floats, reach: Floats, size: Floats, share: float
) -> Floats:
    """The bonus of every row of the Lagrangian `table`, by one optimistic backward pass; V of the pass is with it.

        mu = p.V_{h+1},    val = .5 sqrt(variance + Var_p(V_{h+1}) / size) + reach + min(.5/size, 1) (max V_{h+1} - mu)
        b = row + share [val - row]^+,      V_h = max_a (table + b + mu)

    `row` is the bonus for the row alone; `share` in [0, 1] is how much what follows matters.
    """
    bonus, after, work = np.empty(table.shape), np.empty(p.shape[3]), np.empty((2, table[0].size))
    write_lagrangian_bonus(
        by_row(p), by_row(table), by_row(row), by_row(variance), by_row(reach), by_row(size), share,
        after, work[0], work[1], by_row(bonus),
    )  # fmt: skip
    return bonus


@njit(**INLINE)
def write_lagrangian_bonus(
    p: Floats,
    table: Floats,
    row: Floats,
    variance: Floats,
    reach: Floats,
    size: Floats,
    share: float,
    after: Floats,
    mean: Floats,
    square: Floats,
    bonus: Floats,
) -> None:
    """`lagrangian_bonus` of tables (H, S A, ...), written into the last one.

    `after` (S,), `mean` and `square` (S A,) are overwritten.
    """
    assume_distinct()
    (H, R), S = table.shape, after.size
    for s in range(S):
        after[s] = 0.0
    for r in range(R):
        mean[r], square[r] = 0.0, 0.0
    for left in range(H):
        h = H - 1 - left
        highest = after[index_of_largest(after)]
        for r in range(R):
            spread = max(square[r] - mean[r] * mean[r], 0.0) / size[h, r]
            value = VALUE_SCALE * np.sqrt(variance[h, r] + spread) + reach[h, r]
            value += min(FIRST / size[h, r], 1.0) * (highest - mean[r])
            extra = row[h, r] + share * max(value - row[h, r], 0.0)
            bonus[h, r] = extra
            mean[r] = table[h, r] + extra + mean[r]
        r = 0
        for s in range(S):
            best = -np.inf
            for _ in range(R // S):
                best = max(best, mean[r])
                r += 1
            after[s] = best
        if h > 0:
            write_moments(p[h - 1], after, mean, square)
