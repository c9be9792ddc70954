"""The beliefs of the standard learner in two passes: what an episode adds to the evidence, and what follows from it.

`omdpd.beliefs.sharing`, `exploration` and `margins` say the same piece by piece; tests hold these passes to them.
Arrays that are written were just made by the caller: one that is returned costs ten times one that is handed in.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.lookahead import (
    HALF_SHARED,
    kernel_variance,
    noise_variance,
    write_lagrangian_bonus,
    write_row_bonus,
)
from omdpd.solvers.compiled.options import ENTRY, INNER
from omdpd.solvers.compiled.sharing import (
    COST_TRUSTS,
    HOPE,
    MIN_VARIANCE,
    POOLED,
    REWARD_TRUSTS,
    TRUST,
    WEIGHTS,
    add_kernel_scores,
    add_table_scores,
    best_pair,
    best_weight,
    noise_share,
    overall_mean,
    rows_met,
    share_kernel,
    share_table,
)


@njit(**ENTRY)
def add_evidence(
    reward_squares: Floats,
    cost_squares: Floats,
    kernel_score: Floats,
    reward_score: Floats,
    cost_score: Floats,
    visits: Floats,
    transitions: Floats,
    reward_sum: Floats,
    cost_sum: Floats,
    states: Integers,
    actions: Integers,
    rewards: Floats,
    costs: Floats,
) -> None:
    """Add one episode to the five arrays of the evidence, in place, from the counts before it.

    `costs` (I, H), or (0, H) where none are observed.
    """
    for h in range(len(states)):
        reward_squares[h, states[h], actions[h]] += rewards[h] ** 2
    add_kernel_scores(states, actions, transitions, visits, WEIGHTS, TRUST, kernel_score)
    add_table_scores(states, actions, rewards, reward_sum, visits, WEIGHTS, REWARD_TRUSTS, reward_score)
    observed, sums = np.empty(len(states)), np.empty(visits.shape)
    for i in range(len(costs)):
        for h in range(len(states)):
            observed[h] = (costs[i, h] + 1.0) / 2.0
            cost_squares[i, h, states[h], actions[h]] += observed[h] ** 2
        write_halved(cost_sum, i, visits, sums)
        add_table_scores(states, actions, observed, sums, visits, WEIGHTS, COST_TRUSTS, cost_score[i])


@njit(**ENTRY)
def standard_beliefs(
    visits: Floats,
    transitions: Floats,
    reward_sum: Floats,
    cost_sum: Floats,
    reward_squares: Floats,
    cost_squares: Floats,
    kernel_score: Floats,
    reward_score: Floats,
    cost_score: Floats,
    stationary: bool,
    bandit: bool,
    prices: Floats,
    tables: Floats,
    plan: Floats,
    exploration: float,
    caution: float,
    reward: Floats,
    lifted: Floats,
    cost: Floats,
    p: Floats,
    own: Floats,
    common: Floats,
) -> None:
    """Write rewards with their bonus, costs with and without their margins, and the kernel with its error, last six.

    Parameters
    ----------
    visits, transitions, reward_sum, cost_sum
        Counts.
    reward_squares, cost_squares, kernel_score, reward_score, cost_score
        Evidence.
    stationary, bandit : bool
        Whether the steps are pooled, and whether costs are estimated (where they are revealed, d~ and d are zero).
    prices, tables : (J,), (J, H, S, A)
        What the last plan would pay for a little more of each cost.
    plan : (H, S, A)
        The occupancy whose cost is asked about.
    exploration, caution : float
        Factors of the bonus, and of the standard errors that every entry of a cost is raised by.
    reward, lifted, cost, p, own, common
        What is written.
    """
    scratch = np.empty((9, *visits.shape))
    cost_noise, policy = scratch[8], policy_of_occupancy(plan)
    weight = POOLED if stationary else best_weight(kernel_score)
    share_kernel(transitions, visits, weight, TRUST, p, own, common)
    cost_noise[:] = 0.0
    for i in range(len(cost_sum)):
        if not bandit:
            lifted[i], cost[i] = 0.0, 0.0
            continue
        price = prices[i] if i < len(prices) else 0.0
        weight, trust = best_pair(cost_score[i])
        weight = POOLED if stationary else weight
        noise, n_own, n_common = scratch[0], scratch[1], scratch[2]
        write_cost(cost_sum, i, cost_squares[i], visits, weight, trust, price, scratch, cost[i], cost_noise)
        variance = kernel_variance(plan, policy, p, cost[i], own, common)
        variance += noise_variance(plan, noise, n_own, n_common)
        add_to(cost[i], caution * np.sqrt(variance), lifted[i])
    weight = POOLED if stationary else best_weight(reward_score[:, 0])
    write_reward(
        reward_sum, reward_squares, visits, weight, prices, tables, p, own, common, exploration, scratch, reward
    )


@njit(**INNER)
def write_cost(
    cost_sum: Floats,
    i: int,
    squares: Floats,
    visits: Floats,
    weight: float,
    trust: float,
    price: float,
    scratch: Floats,
    cost: Floats,
    cost_noise: Floats,
) -> None:
    """Write the i-th cost table and, into the first three of `scratch`, its noise and the two parts of its error.

    price^2 times the noise of the estimate is added to `cost_noise`.
    """
    noise, own, common, u, sums = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    H, S, A = visits.shape
    write_halved(cost_sum, i, visits, sums)
    share_table(sums, visits, weight, overall_mean(sums, visits), trust, u, own, common)
    coin = 4.0 * noise_share(sums, squares, visits)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                noise[h, s, a] = coin * u[h, s, a] * (1.0 - u[h, s, a])
                cost[h, s, a] = 2.0 * u[h, s, a] - 1.0
                size = max(1.0 / (own[h, s, a] + common[h, s, a]), 1.0)
                cost_noise[h, s, a] += price**2 * noise[h, s, a] / size


@njit(**INNER)
def write_reward(
    reward_sum: Floats,
    squares: Floats,
    visits: Floats,
    weight: float,
    prices: Floats,
    tables: Floats,
    p: Floats,
    p_own: Floats,
    p_common: Floats,
    exploration: float,
    scratch: Floats,
    reward: Floats,
) -> None:
    """Write the rewards with their bonus; the last of `scratch` is the noise of costs at their prices."""
    r, own, common, noise, size = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    row, variance, reach, cost_noise = scratch[5], scratch[6], scratch[7], scratch[8]
    H, S, A = visits.shape
    met, spread = rows_met(reward_sum, visits)
    hope, coin = min(met + HOPE * spread, 1.0), noise_share(reward_sum, squares, visits)
    floor = coin * max(met * (1.0 - met) if met < 0.5 else 0.25, MIN_VARIANCE)
    share_table(reward_sum, visits, weight, hope, TRUST, r, own, common)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                noise[h, s, a] = coin * r[h, s, a] * (1.0 - r[h, s, a])
                size[h, s, a] = 1.0 / (own[h, s, a] + common[h, s, a])
    share = weight / (weight + HALF_SHARED)
    write_row_bonus(visits, r, size, noise, cost_noise, share, hope, floor, row, variance, reach)
    charged, table = 0.0, noise
    for j in range(prices.size):
        charged += prices[j]
    for h in range(H):
        for s in range(S):
            for a in range(A):
                size[h, s, a] = max(1.0 / (p_own[h, s, a] + p_common[h, s, a]), 1.0)
                table[h, s, a] = r[h, s, a]
                for j in range(prices.size):
                    table[h, s, a] -= prices[j] * tables[j, h, s, a]
    bonus = own
    write_lagrangian_bonus(p, table, row, variance, reach, size, min(1.0, charged), bonus)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                reward[h, s, a] = r[h, s, a] + exploration * bonus[h, s, a]


@njit(**INNER)
def write_halved(cost_sum: Floats, i: int, visits: Floats, sums: Floats) -> None:
    """Write the sums of the i-th cost as if its range were [0, 1]."""
    H, S, A = visits.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                sums[h, s, a] = (cost_sum[i, h, s, a] + visits[h, s, a]) / 2.0


@njit(**INNER)
def add_to(table: Floats, lift: float, lifted: Floats) -> None:
    """Write a table with every entry raised."""
    H, S, A = table.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                lifted[h, s, a] = table[h, s, a] + lift


@njit(**ENTRY)
def lift_tables(
    tables: Floats, plan: Floats, p: Floats, own: Floats, common: Floats, factor: float, lifted: Floats
) -> None:
    """Write every revealed table (n, H, S, A), raised by `factor` standard errors of its cost under the plan."""
    policy = policy_of_occupancy(plan)
    for j in range(len(tables)):
        variance = kernel_variance(plan, policy, p, tables[j], own, common)
        add_to(tables[j], factor * np.sqrt(variance), lifted[j])
