"""What is believed of costs and rewards, put together from estimates that steps share: for tables and graphs alike.

The two differ in where sums lie: `share` picks by the type of `where`, compiled or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.beliefs import rules
from omdpd.beliefs.pooling import share_rows, share_table
from omdpd.beliefs.rows import Errors, Expected, Laid, cost_variance, either, noise_variance, sizes, write_cost
from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.entries import sum_of_vector


class InTables(NamedTuple):
    """Sums of every row, those of a step in R places."""

    R: int


class InLists(NamedTuple):
    """Sums by pair and step of what was visited, and which of them are those of every row: see `pooling`."""

    pairs: Integers
    place: Integers
    ends: Integers


# The mean of every row and the two parts of its error, from sums and visits.
share = either(
    lambda g, sums, n, m, base, a, x, own, common: share_table(sums, n, g.R, m, base, a, x, own, common),
    lambda g, sums, n, m, base, a, x, own, common: share_rows(
        g.pairs, g.place, g.ends, sums, n, m, base, a, x, own, common
    ),
    InTables,
)


class Sums(NamedTuple):
    """Visits, sums and sums of squares, scores, and whether steps are all alike: of rewards, or of one cost."""

    n: Floats
    total: Floats
    squares: Floats
    scores: Floats
    stationary: float


@rule
def believe_cost(
    where: InTables | InLists, x: Sums, price: float, cost: Floats, noise: Floats, errors: Errors, cost_noise: Floats
) -> None:
    """Write an expected cost with its noise and errors; add what the noise is at its price."""
    unit, u = np.empty(x.n.size), np.zeros(cost.size)
    for k in range(x.n.size):
        unit[k] = rules.unit_cost(x.total[k], x.n[k])
    m, trust = rules.best_pair(x.scores, x.stationary)
    base = rules.overall_mean(sum_of_vector(unit), sum_of_vector(x.n))
    share(where, unit, x.n, m, base, trust, u, errors.own, errors.common)
    binomial_share = rules.noise_share(unit, x.squares, x.n)
    write_cost(u, errors.own, errors.common, binomial_share, price, cost, noise, cost_noise)


@rule
def expected_reward(where: InTables | InLists, x: Sums, persistence: float, E: int) -> Expected:
    """Mean rewards of E rows with their errors; without persistence little seen is believed to be as good as hoped."""
    found = np.zeros((3, E))
    binomial_share = rules.noise_share(x.total, x.squares, x.n)
    base, optimistic_reward, min_variance = rules.reward_levels(x.total, x.n, binomial_share)
    m = rules.best_weight(x.scores[:, 0], x.stationary)
    if persistence == 0.0:
        base = optimistic_reward
    share(where, x.total, x.n, m, base, rules.TRUST, found[0], found[1], found[2])
    return Expected(found[0], found[1], found[2], binomial_share, m, optimistic_reward, min_variance)


@rule
def price_of(prices: Floats, i: int) -> float:
    """What the last plan would pay for a little more of cost i; nothing before the first one."""
    return prices[i] if i < prices.size else 0.0


@rule
def lift_of_estimate(
    g: Laid, plan: tuple[Floats, Floats], cost: Floats, noise: Floats, errors: tuple[Errors, Errors], z: float,
    asked: float,
) -> float:  # fmt: skip
    """The margin of an expected cost: errors of the kernel and of the cost itself, `asked` is the share of it.

    `plan` is the last plan with its policy.
    """
    q, chosen = plan
    variance = cost_variance(g, q, chosen, cost, errors[0])
    variance += noise_variance(g, q, noise, errors[1], np.empty((2, q.size)))
    return rules.margin(z, asked, variance, sizes(g)[0], False)
