"""The beliefs of the standard learner in two passes: what an episode adds to the evidence, and what follows from it.

`omdpd.beliefs.sharing`, `exploration` and `margins` say the same piece by piece; tests hold these passes to them.
Arrays that are written were just made by the caller: one that is returned costs ten times one that is handed in.
A pass asks for memory once, and works in loops over whole tables or over the S A rows of a layer: divisions and roots
are most of it, and go several at a time where the compiler knows that nothing overlaps (`pointers.assume_distinct`).
Sums keep the order of the entries.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.entries import sum_of_vector
from omdpd.solvers.compiled.flow import policy_of_occupancy, write_policy
from omdpd.solvers.compiled.lookahead import (
    HALF_SHARED,
    kernel_variance,
    sum_of_errors,
    variance_by_kernel,
    write_errors,
    write_lagrangian_bonus,
    write_row_bonus,
)
from omdpd.solvers.compiled.options import ENTRY, INLINE, INNER
from omdpd.solvers.compiled.pointers import assume_distinct, borrow, by_row, flat, outlive
from omdpd.solvers.compiled.scores import (
    add_log_chances,
    add_logarithms,
    predict_departure,
    predict_mean,
    write_shares,
)
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
    moments_of_rows,
    share_kernel,
    share_of_noise,
    share_table,
)

# Tables that are worked in: policy, noise of costs, and what `write_cost` and `write_reward` need.
N_TABLES = 12


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
) -> bool:
    """Add one episode to the five arrays of the evidence, in place, from the counts before it; true once it is done.

    `costs` (I, H), or (0, H) where none are observed.  All tables are scored step by step, since they share f.
    """
    H, I, R = len(states), len(costs), COST_TRUSTS.size  # noqa: E741
    own_lanes, own_steps = np.empty((H + R * (I + 1) + 5, WEIGHTS.size)), np.empty(2 * H + I)
    lanes, steps, cost_scores = borrow(own_lanes), borrow(own_steps), borrow(cost_score)
    n, X, base = steps[:H], steps[H : 2 * H], steps[2 * H :]
    f, x, chance = lanes[:H], lanes[H : H + R], lanes[H + R :]
    # Chances of costs come first, R rows each; then those of rewards and of departures, and three rows to work in.
    earned, moved, total, T, level = chance[R * I : R * I + 1], chance[-4], chance[-3], chance[-2], chance[-1]
    for k in range(R * I + 2):
        for m in range(WEIGHTS.size):
            chance[k, m] = 1.0
    size = sum_of_vector(flat(visits)) + 1.0
    reward_base = (sum_of_vector(flat(reward_sum)) + 0.5) / size
    for i in range(I):
        base[i] = (sum_of_halves(flat(cost_sum), i, flat(visits)) + 0.5) / size
    for h in range(H):
        s, b = states[h], actions[h]
        for g in range(H):
            n[g], X[g] = visits[g, s, b], reward_sum[g, s, b]
        write_shares(n, WEIGHTS, f, total)
        reward_squares[h, s, b] += rewards[h] ** 2
        predict_mean(n, X, h, rewards[h], reward_base, f, total, WEIGHTS, REWARD_TRUSTS, level, x, earned, reward_score)
        for i in range(I):
            for g in range(H):
                X[g] = (cost_sum[i, g, s, b] + n[g]) / 2.0
            seen, paid = (costs[i, h] + 1.0) / 2.0, chance[R * i : R * (i + 1)]
            cost_squares[i, h, s, b] += seen**2
            predict_mean(n, X, h, seen, base[i], f, total, WEIGHTS, COST_TRUSTS, level, x, paid, cost_scores[i])
        if h + 1 < H:
            for g in range(H):
                X[g] = transitions[g, s, b, states[h + 1]]
            predict_departure(n, X, h, TRUST, TRUST / visits.shape[1], f, WEIGHTS, T, level, moved, kernel_score)
    add_logarithms(moved, kernel_score)
    add_log_chances(earned, reward_score)
    for i in range(I):
        add_log_chances(chance[R * i : R * (i + 1)], cost_scores[i])
    outlive(own_lanes, own_steps, cost_score)
    return True


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
) -> bool:
    """Write rewards with their bonus, costs with and without their margins, and the kernel with its error, last six.

    True once it is done.

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
        What is written: arrays that overlap neither one another nor anything that is read.
    """
    (H, S, A), I = visits.shape, len(cost_sum)  # noqa: E741
    own_tables, own_laws = np.empty((N_TABLES, H, S * A)), np.empty((2, S * A, S))
    scratch, laws = borrow(own_tables), borrow(own_laws)
    n, q, law, law_own, law_common = by_row(visits), by_row(plan), by_row(p), by_row(own), by_row(common)
    policy, cost_noise, T = scratch[0], scratch[1], scratch[2, 0]
    weight = POOLED if stationary else best_weight(kernel_score)
    share_kernel(by_row(transitions), n, weight, TRUST, T, laws[0], laws[1], law, law_own, law_common)
    fill(0.0, flat(cost_noise))
    write_policy(plan, flat(policy))
    for i in range(I):
        mean, raised = by_row(borrow(cost)[i]), by_row(borrow(lifted)[i])
        if not bandit:
            fill(0.0, flat(mean))
            fill(0.0, flat(raised))
            continue
        price = prices[i] if i < len(prices) else 0.0
        weight, trust = best_pair(borrow(cost_score)[i])
        weight = POOLED if stationary else weight
        sums, squares = by_row(borrow(cost_sum)[i]), by_row(borrow(cost_squares)[i])
        write_cost(sums, squares, n, weight, trust, price, scratch, mean, cost_noise)
        noise, n_own, n_common, part, root = scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
        write_errors(flat(q), flat(noise), flat(n_own), flat(n_common), flat(part), flat(root))
        by_noise = sum_of_errors(part, root)
        after, one, two, three = scratch[2, 0, :S], scratch[6, 0], scratch[7, 0], scratch[8, 0]
        variance = variance_by_kernel(q, policy, law, mean, law_own, law_common, after, one, two, three)
        variance += by_noise
        add_to(flat(mean), caution * np.sqrt(variance), flat(raised))
    weight = POOLED if stationary else best_weight(reward_score[:, 0])
    write_reward(
        by_row(reward_sum), by_row(reward_squares), n, weight, prices, borrow(tables), law, law_own, law_common,
        exploration, scratch, S, flat(reward),
    )  # fmt: skip
    outlive(own_tables, own_laws)
    return True


@njit(**INLINE)
def write_cost(
    cost_sum: Floats,
    squares: Floats,
    visits: Floats,
    weight: float,
    trust: float,
    price: float,
    scratch: Floats,
    cost: Floats,
    cost_noise: Floats,
) -> None:
    """Write a cost table and, into `scratch` from its fourth on, its noise and the two parts of its error.

    price^2 times the noise of the estimate is added to `cost_noise`.
    """
    noise, own, common, u, sums = scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
    write_halved(flat(cost_sum), flat(visits), flat(sums))
    base = (sum_of_vector(flat(sums)) + 0.5) / (sum_of_vector(flat(visits)) + 1.0)
    share_table(sums, visits, weight, base, trust, scratch[2, 0], scratch[8, 0], u, own, common)
    coin = 4.0 * share_of_noise(flat(sums), flat(squares), flat(visits))
    write_cost_noise(flat(u), flat(own), flat(common), coin, price, flat(noise), flat(cost), flat(cost_noise))


@njit(**INLINE)
def write_cost_noise(
    u: Floats,
    own: Floats,
    common: Floats,
    coin: float,
    price: float,
    noise: Floats,
    cost: Floats,
    cost_noise: Floats,
) -> None:
    """Write the noise of one observed cost and what it is expected to be, both in units of d."""
    assume_distinct()
    for e in range(u.size):
        noise[e] = coin * u[e] * (1.0 - u[e])
        cost[e] = 2.0 * u[e] - 1.0
        cost_noise[e] += price**2 * noise[e] / max(1.0 / (own[e] + common[e]), 1.0)


@njit(**INLINE)
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
    S: int,
    reward: Floats,
) -> None:
    """Write the rewards with their bonus; the second of `scratch` is the noise of costs at their prices."""
    r, own, common, noise, size = scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
    row, variance, reach, cost_noise = scratch[8], scratch[9], scratch[10], scratch[1]
    one, two, after = scratch[2, 0], scratch[11, 0], scratch[0, 0, :S]
    met, spread = moments_of_rows(flat(reward_sum), flat(visits))
    hope, coin = min(met + HOPE * spread, 1.0), share_of_noise(flat(reward_sum), flat(squares), flat(visits))
    floor = coin * max(met * (1.0 - met) if met < 0.5 else 0.25, MIN_VARIANCE)
    share_table(reward_sum, visits, weight, hope, TRUST, one, two, r, own, common)
    write_noise(flat(r), flat(own), flat(common), coin, flat(noise), flat(size))
    share = weight / (weight + HALF_SHARED)
    write_row_bonus(
        flat(visits), flat(r), flat(size), flat(noise), flat(cost_noise), share, hope, floor,
        flat(row), flat(variance), flat(reach),
    )  # fmt: skip
    table, bonus = noise, own
    write_departures(flat(r), flat(p_own), flat(p_common), flat(table), flat(size))
    for j in range(prices.size):
        charge(prices[j], flat(tables[j]), flat(table))
    share = min(1.0, sum_of_vector(prices))
    write_lagrangian_bonus(p, table, row, variance, reach, size, share, after, one, two, bonus)
    add_bonus(flat(r), exploration, flat(bonus), reward)


@njit(**INLINE)
def add_bonus(r: Floats, exploration: float, bonus: Floats, reward: Floats) -> None:
    """Write the rewards with so much of their bonus; all tables as vectors."""
    assume_distinct()
    for e in range(reward.size):
        reward[e] = r[e] + exploration * bonus[e]


@njit(**INLINE)
def write_noise(x: Floats, own: Floats, common: Floats, coin: float, noise: Floats, size: Floats) -> None:
    """Write the noise of one observation of a mean x, and how many observations of it alone would tell as much."""
    assume_distinct()
    for e in range(x.size):
        noise[e] = coin * x[e] * (1.0 - x[e])
        size[e] = 1.0 / (own[e] + common[e])


@njit(**INLINE)
def write_departures(r: Floats, own: Floats, common: Floats, table: Floats, size: Floats) -> None:
    """Copy the rewards, and write how many departures from a row alone would tell as much about where it leads."""
    assume_distinct()
    for e in range(r.size):
        table[e] = r[e]
        size[e] = max(1.0 / (own[e] + common[e]), 1.0)


@njit(**INLINE)
def charge(price: float, cost: Floats, table: Floats) -> None:
    """Subtract a cost at its price."""
    assume_distinct()
    for e in range(table.size):
        table[e] -= price * cost[e]


@njit(**INLINE)
def write_halved(cost_sum: Floats, visits: Floats, sums: Floats) -> None:
    """Write the sums of a cost as if its range were [0, 1]."""
    assume_distinct()
    for e in range(sums.size):
        sums[e] = (cost_sum[e] + visits[e]) / 2.0


@njit(**INNER)
def sum_of_halves(cost_sum: Floats, i: int, visits: Floats) -> float:
    """The sum of what `write_halved` writes of the i-th cost."""
    start, total = i * visits.size, 0.0
    for e in range(visits.size):
        total += (cost_sum[start + e] + visits[e]) / 2.0
    return total


@njit(**INLINE)
def fill(value: float, vector: Floats) -> None:
    """Write one number everywhere."""
    for e in range(vector.size):
        vector[e] = value


@njit(**INLINE)
def add_to(table: Floats, lift: float, lifted: Floats) -> None:
    """Write a table, as a vector, with every entry raised."""
    assume_distinct()
    for e in range(table.size):
        lifted[e] = table[e] + lift


@njit(**ENTRY)
def lift_tables(
    tables: Floats, plan: Floats, p: Floats, own: Floats, common: Floats, factor: float, lifted: Floats
) -> None:
    """Write every revealed table (n, H, S, A), raised by `factor` standard errors of its cost under the plan."""
    policy = policy_of_occupancy(plan)
    for j in range(len(tables)):
        variance = kernel_variance(plan, policy, p, tables[j], own, common)
        add_to(flat(tables[j]), factor * np.sqrt(variance), flat(lifted[j]))
