"""The beliefs of the standard learner in two passes: what an episode adds to the evidence, and what follows from it.

`omdpd.beliefs.sharing`, `exploration` and `margins` say the same piece by piece; tests hold these passes to them.
Arrays that are written were just made by the caller: one that is returned costs ten times one that is handed in.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.lookahead import HALF_SHARED, kernel_variance, lagrangian_bonus, noise_variance, row_bonus
from omdpd.solvers.compiled.options import ENTRY
from omdpd.solvers.compiled.sharing import (
    COST_TRUSTS,
    HOPE,
    MIN_VARIANCE,
    POOLED,
    REWARD_TRUSTS,
    TRUST,
    WEIGHTS,
    best_pair,
    best_weight,
    kernel_scores,
    noise_share,
    overall_mean,
    rows_met,
    share_kernel,
    shared_table,
    table_scores,
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
    kernel_score += kernel_scores(states, actions, transitions, visits, WEIGHTS, TRUST)
    reward_score += table_scores(states, actions, rewards, reward_sum, visits, WEIGHTS, REWARD_TRUSTS)
    for i in range(len(costs)):
        observed = (costs[i] + 1.0) / 2.0
        for h in range(len(states)):
            cost_squares[i, h, states[h], actions[h]] += observed[h] ** 2
        sums = (cost_sum[i] + visits) / 2.0
        cost_score[i] += table_scores(states, actions, observed, sums, visits, WEIGHTS, COST_TRUSTS)


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
    n = visits
    weight = POOLED if stationary else best_weight(kernel_score)
    share_kernel(transitions, n, weight, TRUST, p, own, common)
    met, spread = rows_met(reward_sum, n)
    hope = min(met + HOPE * spread, 1.0)
    share = noise_share(reward_sum, reward_squares, n)
    reward_weight = POOLED if stationary else best_weight(reward_score[:, 0])
    r, r_own, r_common = shared_table(reward_sum, n, reward_weight, hope, TRUST)
    floor = share * max(met * (1.0 - met) if met < 0.5 else 0.25, MIN_VARIANCE)
    if not bandit:
        lifted[:], cost[:] = 0.0, 0.0
    cost_noise = np.zeros(n.shape)
    policy = policy_of_occupancy(plan)
    for i in range(len(cost_sum) if bandit else 0):
        sums = (cost_sum[i] + n) / 2.0
        weight, trust = best_pair(cost_score[i])
        weight = POOLED if stationary else weight
        u, u_own, u_common = shared_table(sums, n, weight, overall_mean(sums, n), trust)
        noise = 4.0 * noise_share(sums, cost_squares[i], n) * u * (1.0 - u)
        cost[i] = 2.0 * u - 1.0
        if i < len(prices):
            cost_noise += prices[i] ** 2 * noise / np.maximum(1.0 / (u_own + u_common), 1.0)
        variance = kernel_variance(plan, policy, p, cost[i], own, common)
        variance += noise_variance(plan, noise, u_own, u_common)
        lifted[i] = cost[i] + caution * np.sqrt(variance)
    table = r.copy()
    for j in range(len(prices)):
        table -= prices[j] * tables[j]
    also = reward_weight / (reward_weight + HALF_SHARED)
    size = 1.0 / (r_own + r_common)
    row, row_variance, reach = row_bonus(n, r, size, share * r * (1.0 - r), cost_noise, also, hope, floor)
    size = np.maximum(1.0 / (own + common), 1.0)
    bonus = lagrangian_bonus(p, table, row, row_variance, reach, size, min(1.0, prices.sum()))
    reward[:] = r + exploration * bonus


@njit(**ENTRY)
def lift_tables(
    tables: Floats, plan: Floats, p: Floats, own: Floats, common: Floats, factor: float, lifted: Floats
) -> None:
    """Write every revealed table (n, H, S, A), raised by `factor` standard errors of its cost under the plan."""
    policy = policy_of_occupancy(plan)
    for j in range(len(tables)):
        lifted[j] = tables[j] + factor * np.sqrt(kernel_variance(plan, policy, p, tables[j], own, common))
