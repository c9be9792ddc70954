"""Passes over the rows of a plan, the same for tables and graphs.

The two differ in where rows lie, and in how a row looks ahead.

Both have layers of states and states of rows; a row may stand for several pairs (its copies), and rows of one (s, a) at
different steps are one group.  Six small functions are all that is asked of the two, and compiled code picks them by
type: `layer`, `rows_of`, `group_of`, `copies_of`, `evenly`, `look`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from omdpd.beliefs import rules
from omdpd.beliefs.rules import cost_of_unit, noise_at_price, row_bonus, value_bonus
from omdpd.jit.decorators import RULE, rule
from omdpd.jit.pointers import assume_distinct
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.flow import NO_MASS


class Tables(NamedTuple):
    """Every row (h, s, a) for itself, E of them; laws (E, S)."""

    H: int
    S: int
    A: int
    p: Floats


class Lists(NamedTuple):
    """Rows of a graph: see `Graph`.  A law is entries, and a share of it spread evenly over the S states of a layer.

    `groups` (E,) have one number for the rows of one pair, or of one class, over the layers.
    """

    layers: Integers
    rows: Integers
    groups: Integers
    n_groups: int
    copies: Floats
    entries: Integers
    successors: Integers
    probabilities: Floats
    spread: Floats
    members: Floats
    S: int


Laid = Tables | Lists


def either(of_tables: Callable[..., Any], of_lists: Callable[..., Any], tables: type = Tables) -> Callable[..., Any]:
    """A function of what lies in tables or in lists that is one or the other by its type, compiled or not."""

    def ask(g: Any, *rest: Any) -> Any:
        return (of_tables if isinstance(g, tables) else of_lists)(g, *rest)

    def pick(g: Any, *rest: Any) -> Any:
        return of_tables if g.instance_class is tables else of_lists

    overload(ask, jit_options=RULE, strict=False)(pick)
    return ask


def _look_in_table(g: Any, e: int, ahead: Floats, following: Floats, even: tuple[float, float]) -> tuple[float, float]:
    law, mean, square = g.p[e], 0.0, 0.0
    for t in range(following.size):
        part = law[t] * following[t]
        mean += part
        square += part * following[t]
    return mean, square


def _look_in_lists(g: Any, e: int, ahead: Floats, following: Floats, even: tuple[float, float]) -> tuple[float, float]:
    mean, square = g.spread[e] * even[0], g.spread[e] * even[1]
    for k in range(g.entries[e], g.entries[e + 1]):
        x = ahead[g.successors[k]]
        mean += g.probabilities[k] * x
        square += g.probabilities[k] * x * x
    return mean, square


def _evenly_in_lists(g: Any, ahead: Floats, first: int, last: int) -> tuple[float, float]:
    mean, square = 0.0, 0.0
    for i in range(first, last):
        mean += g.members[i] * ahead[i]
        square += g.members[i] * ahead[i] * ahead[i]
    return mean / g.S, square / g.S


def _layer_of_lists(g: Any, h: int) -> tuple[int, int]:
    last = g.layers.size - 1
    return g.layers[min(h, last)], g.layers[min(h + 1, last)]


# How many layers, groups and states there are.
sizes = either(lambda g: (g.H, g.S * g.A, g.H * g.S), lambda g: (g.layers.size - 1, g.n_groups, g.layers[-1]))
# The states of layer h, first and last + 1 (none after the last layer), and the rows of state i.
layer = either(lambda g, h: (h * g.S, min(h + 1, g.H) * g.S), _layer_of_lists)
rows_of = either(lambda g, i: (i * g.A, (i + 1) * g.A), lambda g, i: (g.rows[i], g.rows[i + 1]))
# The group of row e of layer h.
group_of = either(lambda g, e, h: e - h * g.S * g.A, lambda g, e, h: g.groups[e])
copies_of = either(lambda g, e: 1.0, lambda g, e: g.copies[e])
# Mean and mean square of what is ahead: under the uniform law over a layer (unasked where laws are written out), and
# under the law of row e; `following` is what is ahead in the next layer, nothing after the last.
evenly = either(lambda g, ahead, first, last: (0.0, 0.0), _evenly_in_lists)
look = either(_look_in_table, _look_in_lists)


class Errors(NamedTuple):
    """The two parts of the error of every law (E,), per unit of noise: see `pooling`."""

    own: Floats
    common: Floats


class Expected(NamedTuple):
    """Mean rewards (E,), the two parts of their error, the share of a coin's noise, m, and `rules.reward_levels`."""

    mean: Floats
    own: Floats
    common: Floats
    binomial_share: float
    m: float
    optimistic_reward: float
    min_variance: float


class Charged(NamedTuple):
    """What the last plan would pay for a little more of each cost, (J,), and the tables (J, E) of these costs."""

    prices: Floats
    tables: Floats


class Own(NamedTuple):
    """What every row has seen itself, and how long it is asked.

    Attributes
    ----------
    visits, rewards, costs : (E,), (E,), (n, E)
        Visits, and sums of what was met there; no costs where tables are revealed.
    moves
        Counts of who followed, laid out as laws are.
    episodes, n_rows, persistence
        Episodes counted, HSA, and the dial of `rules.overdue` (0: rows are left for good).
    """

    visits: Floats
    rewards: Floats
    costs: Floats
    moves: Laid
    episodes: float
    n_rows: float
    persistence: float


@rule
def write_shares_of(g: Laid, q: Floats, chosen: Floats) -> None:
    """Write the chance of every pair that a row stands for, given its state: the policy of the plan q."""
    for i in range(sizes(g)[2]):
        first, last = rows_of(g, i)
        mass, pairs = 0.0, 0.0
        for e in range(first, last):
            mass += copies_of(g, e) * max(q[e], 0.0)
            pairs += copies_of(g, e)
        for e in range(first, last):
            chosen[e] = max(q[e], 0.0) / mass if mass > NO_MASS else 1.0 / pairs


@rule
def write_moments(g: Laid, h: int, ahead: Floats, mean: Floats, square: Floats) -> tuple[int, int]:
    """Write mean and mean square of what is ahead of every row of layer h; its rows, first and last + 1."""
    first, last = layer(g, h + 1)
    even, following = evenly(g, ahead, first, last), ahead[first:last]
    first_row, last_row = rows_of(g, layer(g, h)[0])[0], rows_of(g, first - 1)[1]
    # Slices, because an index that starts at zero is known not to be negative, and a loop over it is fast.
    x, y = mean[first_row:last_row], square[first_row:last_row]
    for i in range(x.size):
        x[i], y[i] = look(g, first_row + i, ahead, following, even)
    return first_row, last_row


@rule
def cost_variance(g: Laid, q: Floats, chosen: Floats, cost: Floats, errors: Errors) -> float:
    """Variance of cost.q that is due to the kernel, to first order, C the cost-to-go of the plan q under the law:

        sum_hsa q^2 Var_p(C_{h+1}) own  +  sum_sa ( sum_h q sqrt(Var_p(C_{h+1}) common) )^2

    Errors of a level that several steps share are added before they are squared.  `chosen` is the plan's policy.
    """
    E, (H, _, n_states) = q.size, sizes(g)
    ahead, work = np.zeros(n_states), np.empty((5, E))
    mean, square, variance = work[0], work[1], work[2]
    for h in range(H - 1, -1, -1):
        write_moments(g, h, ahead, mean, square)
        first, last = layer(g, h)
        for i in range(first, last):
            here, there = rows_of(g, i)
            total = 0.0
            for e in range(here, there):
                total += copies_of(g, e) * chosen[e] * (cost[e] + mean[e])
            ahead[i] = total
    for e in range(E):
        variance[e] = rules.spread(mean[e], square[e])
    return noise_variance(g, q, variance, errors, work[3:])


@rule
def noise_variance(g: Laid, q: Floats, noise: Floats, errors: Errors, work: Floats) -> float:
    """Variance of x.q where row e of x is known up to noise v:

        sum_hsa q^2 v own  +  sum_sa ( sum_h q sqrt(v common) )^2

    `work` (2, E) is overwritten.
    """
    H, n_groups, _ = sizes(g)
    part, root, sums, total = work[0], work[1], np.zeros((2, n_groups)), 0.0
    linear, pairs = sums[0], sums[1]
    write_errors(q, noise, errors.own, errors.common, part, root)
    for h in range(H - 1, -1, -1):
        first, last = layer(g, h)
        for e in range(rows_of(g, first)[0], rows_of(g, last - 1)[1]):
            k, copies = group_of(g, e, h), copies_of(g, e)
            total += copies * part[e]
            linear[k] += root[e]
            pairs[k] = copies
    for k in range(n_groups):
        total += pairs[k] * linear[k] * linear[k]
    return total


@rule
def write_errors(q: Floats, noise: Floats, own: Floats, common: Floats, part: Floats, root: Floats) -> None:
    """Write q^2 v own and q sqrt(v common) of every row."""
    assume_distinct()
    for e in range(q.size):
        part[e] = q[e] * q[e] * noise[e] * own[e]
        root[e] = q[e] * math.sqrt(noise[e] * common[e])


@rule
def write_cost(
    u: Floats, own: Floats, common: Floats, binomial_share: float, price: float,
    cost: Floats, noise: Floats, cost_noise: Floats,
) -> None:  # fmt: skip
    """Write an estimated cost from u in [0, 1] with the noise of one observation; add what it is at its price."""
    assume_distinct()
    for e in range(u.size):
        cost[e], noise[e] = cost_of_unit(u[e], binomial_share)
        cost_noise[e] += noise_at_price(price, noise[e], own[e], common[e])


@rule
def write_reward(
    g: Laid, errors: Errors, own: Own, r: Expected, cost_noise: Floats, charged: Charged, exploration: float,
    reward: Floats,
) -> None:  # fmt: skip
    """Write r~: the expected rewards r with their bonus on the Lagrangian r - sum_j price_j d_j.

    With prices lam_j on the cost tables d_j a plan earns r - sum_j lam_j d_j, and what is not known of either is worth
    a try.  One optimistic pass backward, V_h = max_a (r - sum_j lam_j d_j + b + p.V_{h+1}), looks at what follows.
    Without persistence the bonus is that of version 0.2, which settles.
    """
    E, (H, _, n_states), prices = own.visits.size, sizes(g), charged.prices
    work, ahead, price = np.empty((8, E)), np.zeros(n_states), 0.0
    row, variance, reach, size = work[0], work[1], work[2], work[3]
    lagrangian, mean, square, bonus = work[4], work[5], work[6], work[7]
    if own.persistence == 0.0:
        write_row_bonuses(own.visits, r, cost_noise, row, variance, reach)
    for e in range(E):
        size[e], lagrangian[e] = max(1.0 / (errors.own[e] + errors.common[e]), 1.0), r.mean[e]
    for j in range(prices.size):
        price += prices[j]
        for e in range(E):
            lagrangian[e] -= prices[j] * charged.tables[j, e]
    for h in range(H - 1, -1, -1):
        first, last = layer(g, h + 1)
        a, b = write_moments(g, h, ahead, mean, square)
        highest = ahead[first] if first < last else 0.0
        for i in range(first, last):
            highest = max(highest, ahead[i])
        if own.persistence > 0.0:
            write_bonuses(own, r, cost_noise, size, mean, square, a, b, highest, price, bonus)
            if rules.overdue(rules.OVERDUE_SHARE * own.episodes, 0.0, own.n_rows) > 0.0:
                raise_to_own_word(own, r.mean, charged, price, ahead, (first, last), mean, a, b, bonus)
        else:
            write_value_bonuses(
                row[a:b], variance[a:b], reach[a:b], size[a:b], mean[a:b], square[a:b], highest, min(1.0, price),
                bonus[a:b],
            )  # fmt: skip
        first, last = layer(g, h)
        for i in range(first, last):
            here, there = rows_of(g, i)
            most = -np.inf
            for e in range(here, there):
                most = max(most, lagrangian[e] + bonus[e] + mean[e])
            ahead[i] = most
    for e in range(E):
        reward[e] = r.mean[e] + exploration * bonus[e]


@rule
def write_bonuses(
    own: Own, r: Expected, cost_noise: Floats, size: Floats, mean: Floats, square: Floats, a: int, b: int,
    highest: float, price: float, bonus: Floats,
) -> None:  # fmt: skip
    """`rules.bonus` and `rules.way_out` of the rows from a to b."""
    for e in range(a, b):
        follows = cost_noise[e] + rules.AHEAD * rules.spread(mean[e], square[e]) / size[e]
        due = own.persistence**2 * rules.overdue(own.episodes, own.visits[e], own.n_rows)
        known, noise = 1.0 / (r.own[e] + r.common[e]), r.binomial_share * r.mean[e] * (1.0 - r.mean[e])
        bonus[e] = rules.bonus(r.mean[e], known, noise, follows, r.optimistic_reward, r.min_variance, due)
        bonus[e] += rules.way_out(price, size[e], mean[e], highest)


@rule
def raise_to_own_word(
    own: Own, r: Floats, charged: Charged, price: float, ahead: Floats, following: tuple[int, int], mean: Floats,
    a: int, b: int, bonus: Floats,
) -> None:  # fmt: skip
    """Raise the bonus of rows that were left for long to what they have seen themselves, and `rules.own_bonus`."""
    for e in range(a, b):
        due = rules.overdue(rules.OVERDUE_SHARE * own.episodes, own.visits[e], own.n_rows)
        if due > 0.0:
            word = own_word(own, e, charged, r[e], mean[e], ahead, following)
            word += rules.own_bonus(own.persistence, price if len(own.costs) > 0 else 0.0, due, own.visits[e])
            bonus[e] = max(bonus[e], word - r[e])


@rule
def own_word(
    own: Own, e: int, charged: Charged, r: float, mean: float, ahead: Floats, following: tuple[int, int]
) -> float:
    """The reward with which a row would be worth what it has seen itself: r itself where it has seen nothing.

        r^ + sum_j lam_j (d_j - d^_j) + (p^ - p).V

    ^ are means of its own visits; `mean` is p.V, and `following` the states after it, first and last + 1.
    """
    n = own.visits[e]
    if n == 0.0:
        return r
    word = look(own.moves, e, ahead, ahead[following[0] : following[1]], (0.0, 0.0))[0] + own.rewards[e]
    for j in range(charged.prices.size if len(own.costs) > 0 else 0):
        word += charged.prices[j] * (n * charged.tables[j, e] - own.costs[j, e])
    return word / n - mean


@rule
def write_row_bonuses(
    visits: Floats, r: Expected, cost_noise: Floats, row: Floats, variance: Floats, reach: Floats
) -> None:
    """`rules.row_bonus` of every row."""
    assume_distinct()
    for e in range(visits.size):
        known, noise = 1.0 / (r.own[e] + r.common[e]), r.binomial_share * r.mean[e] * (1.0 - r.mean[e])
        row[e], variance[e], reach[e] = row_bonus(
            visits[e], r.mean[e], known, noise, cost_noise[e], r.m, r.optimistic_reward, r.min_variance
        )


@rule
def write_value_bonuses(
    row: Floats, variance: Floats, reach: Floats, size: Floats, mean: Floats, square: Floats, highest: float,
    capped_price: float, bonus: Floats,
) -> None:  # fmt: skip
    """`rules.value_bonus` of the rows of a layer."""
    assume_distinct()
    for e in range(row.size):
        bonus[e] = value_bonus(row[e], variance[e], reach[e], size[e], mean[e], square[e], highest, capped_price)
