"""The rules by which the standard learner believes, one function each: numbers in, numbers out.

Nothing here knows how beliefs are laid out: tables and graphs ask the same functions.  Each constant stands beside the
rule that reads it, and nowhere else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from omdpd.jit.decorators import entry, glue, rule, short_rule
from omdpd.problem.arrays import Floats

# With an unknown number of episodes max(k, 256) stands for K in the logarithms and in gamma: early on both would change
# fast with k, and bonuses would grow where nothing was learnt.
MIN_EPISODES = 256.0


@short_rule
def episodes_for(known: float, k: float) -> float:
    """K, or max(k, 256) before one-based episode k if K is not known (0)."""
    return known if known > 0.0 else max(k, MIN_EPISODES)


# ------------------------------------------------------------------------------------------------------ sharing
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


@entry
def best_weight(score: Floats, stationary: bool) -> float:
    """The largest m whose score is within TIE of the best; in a stationary world the steps are one.

    >>> best_weight(np.array([-3.0, -2.0, -2.5, -9.0, -9.0, -9.0, -9.0, -9.0, -9.0]), False)
    2.0
    """
    return POOLED if stationary else WEIGHTS[best_place(score)]


@rule
def best_place(score: Floats) -> int:
    """The last place whose score is within TIE of the best."""
    best, place = -np.inf, 0
    for i in range(score.size):
        best = max(best, score[i])
    for i in range(score.size):
        if score[i] >= best - TIE:
            place = i
    return place


@entry
def best_pair(score: Floats, stationary: bool) -> tuple[float, float]:
    """(m, trust): the largest m whose best score is within TIE of the best, then the trust with the best score."""
    best, trust = np.empty(score.shape[0]), 0
    for i in range(score.shape[0]):
        best[i] = -np.inf
        for j in range(score.shape[1]):
            best[i] = max(best[i], score[i, j])
    place = best_place(best)
    for j in range(score.shape[1]):
        if score[place, j] > score[place, trust]:
            trust = j
    return POOLED if stationary else WEIGHTS[place], COST_TRUSTS[trust]


@glue
def shared_parts(n: float, m: float, T: float) -> tuple[float, float]:
    """(own, common): the error of a row's own observations and of the level that its steps share, per unit of noise."""
    own = 1.0 / (n + m)
    return own, (m * own) ** 2 / T


@glue
def shared_mean(total: float, level: float, own: float) -> float:
    """x~ in [0, 1] from a row's own sum and m times its level."""
    return min(max((total + level) * own, 0.0), 1.0)


@entry
def overall_mean(total: float, n: float) -> float:
    """The mean of everything met, with one observation of 1/2 more."""
    return (total + 0.5) / (n + 1.0)


# -------------------------------------------------------------------------------------------------------- noise
# How many standard deviations above the mean of the rows met a row's reward is thought possible at first.
OPTIMISTIC_DEVIATIONS = 2.0
# Share of a coin's variance below which the noise of a reward of which little was seen is not believed to be.
MIN_VARIANCE = 1e-4
# Variance of one fair coin: what is believed of the noise before anything was met twice.
COIN_VARIANCE = 0.25


@entry
def noise_share(sums: Floats, squares: Floats, visits: Floats) -> float:
    """The share of a coin's variance x(1-x) that observations in [0, 1] really have: 1 for a coin, 0 where exact.

    min(1, (1/4 + sum n Var_n) / (1/4 + sum n x(1-x)))      over the rows met at least twice, x their mean
    """
    found, binomial = COIN_VARIANCE, COIN_VARIANCE
    for e in range(visits.size):
        n = visits[e]
        if n >= 2.0:
            x = sums[e] / n
            found += max(squares[e] - n * x * x, 0.0)
            binomial += n * max(x * (1.0 - x), 0.0)
    return min(found / binomial, 1.0)


@entry
def reward_levels(sums: Floats, visits: Floats, binomial_share: float) -> tuple[float, float, float]:
    """The mean of all rows, the largest reward that is thought likely, the variance of one of which little was seen.

    From mean and standard deviation of the mean rewards of the rows met, with one more row of reward 1.
    """
    n, first, second = 1.0, 1.0, 1.0
    for e in range(visits.size):
        if visits[e] > 0.0:
            x = sums[e] / visits[e]
            n += 1.0
            first += x
            second += x * x
    mean = first / n
    optimistic_reward = min(mean + OPTIMISTIC_DEVIATIONS * math.sqrt(max(second / n - mean * mean, 0.0)), 1.0)
    return mean, optimistic_reward, binomial_share * max(mean * (1.0 - mean) if mean < 0.5 else 0.25, MIN_VARIANCE)


def units_of_cost(d: Any, n: Any) -> Any:
    """A cost, or the sum of n of them, as if its range were [0, 1]: u = (d + n) / 2; of numbers or arrays."""
    return (d + n) / 2.0


unit_cost = rule(units_of_cost)


@glue
def cost_of_unit(u: float, binomial_share: float) -> tuple[float, float]:
    """A mean cost in [-1, 1] from u in [0, 1], and the noise of one observation of it."""
    return 2.0 * u - 1.0, 4.0 * binomial_share * u * (1.0 - u)


@glue
def noise_at_price(price: float, noise: float, own: float, common: float) -> float:
    """What the noise of an estimated cost adds to the noise of the Lagrangian."""
    return price**2 * noise / max(1.0 / (own + common), 1.0)


# Two sums that differ by less than this share of them are the same: their difference is rounding.
ROUNDING = 1e-14


@glue
def spread(mean: float, square: float) -> float:
    """The variance of a number with this mean and mean square; 0 where it could be rounding, whose root is not small.

    >>> spread(0.5, 0.5), spread(-0.5, 0.25 + 3e-17)
    (0.25, 0.0)
    """
    found = square - mean * mean
    return found if found > ROUNDING * square else 0.0


# -------------------------------------------------------------------------------------------------------- bonus
# Variances of the Lagrangian that the bonus of a row always has, and what of the variance of what follows is in them.
ALWAYS, AHEAD = 0.64, 0.4
# What one observation of a row's law is worth at first.
FIRST = 0.5
# A row of which this many observations were made is believed to be as noisy as it looks, by half.
HALF_BELIEVED = 40.0
# Even shares of k / HSA visits below which a row's own word counts, and the part of it that a span of 1/2 adds.
OVERDUE_SHARE, SPAN_FACTOR = 1.0 / 30.0, math.sqrt(1.25)


@glue
def overdue(k: float, n: float, n_rows: float) -> float:
    """ln+(k / (HSA n)): nothing at a row that had its even share of k episodes, else slowly more.

    >>> overdue(750.0, 10.0, 75.0), round(overdue(7500.0, 10.0, 75.0), 3)
    (0.0, 2.303)
    """
    return math.log(max(k / (n_rows * max(n, 0.5)), 1.0))


@glue
def noise_after(noise: float, min_variance: float, n: float) -> float:
    """v_n = max(v, v_min 40/(40 + n)): the noise of an observation, as n of them of a row show it."""
    return max(noise, min_variance * HALF_BELIEVED / (HALF_BELIEVED + n))


@glue
def bonus(
    r: float, size: float, noise: float, follows: float, optimistic_reward: float, min_variance: float, due: float
) -> float:
    """sqrt((.64 + due) tau^2) + [r+ - r]^+ / N, where tau^2 is the variance of the Lagrangian of a row:

        tau^2 = v_N / (N + 1) + c + .4 Var_p(V)/n_p

    N = max(size, 1) observations of the row alone would tell as much about its reward r, v_N is `noise_after` them, and
    `follows` the rest of tau^2: c of its costs at their prices, and that of what follows.  `due` is `overdue` at its
    own visits.  The last term is one observation of the optimistic reward r+ more: a row with a bad start has a way
    back.
    """
    N = max(size, 1.0)
    variance = noise_after(noise, min_variance, N) / (N + 1.0) + follows
    return math.sqrt((ALWAYS + due) * variance) + max(optimistic_reward - r, 0.0) / N


@glue
def way_out(price: float, size: float, mean: float, highest: float) -> float:
    """min(1, price) min(.5/n_p, 1) (max V - p.V): where costs are dear, a row little known may lead anywhere."""
    return min(1.0, price) * min(FIRST / size, 1.0) * (highest - mean)


@glue
def own_bonus(persistence: float, price: float, due: float, n: float) -> float:
    """persistence sqrt(5/4) (1 + 2 price)/2 sqrt(due / n), where all costs that are met on the way have this price.

    (1 + 2 price)/2 is half the range of r - price d.  A row that was seldom visited hides more than this with a chance
    that falls like sqrt(30 HSA n / k).
    """
    return persistence * SPAN_FACTOR * (0.5 + price) * math.sqrt(due / max(n, 0.5))


# Episodes between two looks at what the policy in play can lose, once there were so many.
LOOKS = 16.0


@short_rule
def is_asked(k: float) -> bool:
    """Whether the policy after k episodes is asked what it can lose: the first sixteen are, then every sixteenth.

    >>> is_asked(5.0), is_asked(20.0), is_asked(32.0)
    (True, False, True)
    """
    return k < LOOKS or k % LOOKS == 0.0


# --------------------------------------------------------------------------------------------- bonus that settles
# Standard deviations of a row's own estimate and of what follows it.
ROW_SCALE, VALUE_SCALE = 0.8, 0.5
# Rewards that share with m = 10 count half of what other steps have seen.
HALF_SHARED = 10.0
# Observations of a hoped-for reward that a row's own mean is judged with.
SECOND_CHANCE = 0.75


@glue
def row_bonus(
    n: float, r: float, size: float, noise: float, cost_noise: float, m: float, optimistic_reward: float,
    min_variance: float,
) -> tuple[float, float, float]:  # fmt: skip
    """(row, variance, reach): the bonus of a row by itself, and what `value_bonus` needs of it.

        n_x = max(n + m/(m + 10) [n_r - n]^+, .1),      n_r = max(size, 1)
        row = .8 sqrt(v_{n_x} / max(n_x, 1) + c) + r+ min(.5/n_x, 1) + .75 [r+ - r]^+ / (n_x + .75)
        variance = v_{n_r} / n_r + c,      reach = r+ min(.5/n_r, 1)

    n are the row's own visits, `size` how many observations of it alone would tell as much about its reward r, v_n the
    `noise_after` n of them, c that of its costs at their prices.  The last term of `row` is three quarters of an
    observation of the optimistic reward r+: a row with a bad start has a way back.
    """
    n_x = max(n + m / (m + HALF_SHARED) * max(size - n, 0.0), 0.1)
    n_r = max(size, 1.0)
    own = noise_after(noise, min_variance, n_x) / max(n_x, 1.0)
    alone = ROW_SCALE * math.sqrt(own + cost_noise) + optimistic_reward * min(FIRST / n_x, 1.0)
    row = alone + SECOND_CHANCE * max(optimistic_reward - r, 0.0) / (n_x + SECOND_CHANCE)
    variance = noise_after(noise, min_variance, n_r) / n_r + cost_noise
    return row, variance, optimistic_reward * min(FIRST / n_r, 1.0)


@glue
def value_bonus(
    row: float,
    variance: float,
    reach: float,
    size: float,
    mean: float,
    square: float,
    highest: float,
    capped_price: float,
) -> float:
    """The bonus of a row that looks at what follows it: mean and mean square of V there, and the highest V.

        val = .5 sqrt(variance + Var_p(V)/n_p) + reach + min(.5/n_p, 1) (max V - p.V)
        b = row + price [val - row]^+,      price = min(1, sum of the prices)

    Where constraints are cheap only the row's own bonus counts; where they are dear, or nothing looks safe, cost relief
    further on does.
    """
    value = VALUE_SCALE * math.sqrt(variance + spread(mean, square) / size) + reach
    value += min(FIRST / size, 1.0) * (highest - mean)
    return row + capped_price * max(value - row, 0.0)


# ------------------------------------------------------------------------------------------------------ margins
# A margin under which no plan exists falls by this factor per episode, and otherwise grows back by that one.
MARGIN_DECAY, MARGIN_GROWTH, MIN_SHARE = 0.8, 1.1, 0.05
# Where tables are revealed and no plan meets them even so, the belief itself is wrong: it falls on by this much per
# episode, down to as many standard errors below the estimate as it would be above, and comes back half as fast.
SHARE_STEP, SHARE_FLOOR = 0.05, -1.0
# A lifted row that is exceeded by more than this share of H is not held.
EXCEEDED = 1e-6
# Tables that differ from all remembered ones by this share of their size, on average, never repeat.
NOVELTY_LIMIT, NOVELTY_RATE = 0.25, 0.125
# A revealed table is known exactly, and so is most of what a plan costs under it: the same dial buys more there.
REVEALED = 1.5
# Episodes after which standard errors of safety that change with time begin to.
ERRORS_CHANGE_AFTER = 1000.0


@short_rule
def is_exceeded(excess: float, horizon: int) -> bool:
    """Whether a plan exceeds a row by more than a solver's rounding."""
    return excess > EXCEEDED * horizon


@short_rule
def margin_share(share: float, exceeded: bool, revealed: bool) -> float:
    """The share of the margin after a plan: less where a lifted row was exceeded, else more, up to all of it.

    >>> margin_share(1.0, True, False), margin_share(0.5, False, False), margin_share(0.05, True, True)
    (0.8, 0.55, 0.0)
    """
    if exceeded:
        if share > MIN_SHARE or not revealed:
            return max(MARGIN_DECAY * share, MIN_SHARE)
        return max(share - SHARE_STEP, SHARE_FLOOR)
    if share < MIN_SHARE:
        return share + SHARE_STEP / 2.0
    return min(MARGIN_GROWTH * share, 1.0)


@short_rule
def novelty_after(novelty: float, distance: float) -> float:
    """How far revealed tables have been from the remembered ones, with one more that was so far."""
    return (1.0 - NOVELTY_RATE) * novelty + NOVELTY_RATE * distance


@short_rule
def margin_is_useless(overflowed: bool, novelty: float) -> bool:
    """Whether tables come that no memory holds: a margin on old ones then protects from nothing."""
    return overflowed and novelty > NOVELTY_LIMIT


@short_rule
def errors_for(z: float, growth: float, k: float) -> float:
    """z_k = z (1 + ln(1 + k/1000))^growth: the standard errors of safety after k episodes.

    With growth 1/2 violation grows like a logarithm; with less than 0 the margin is spent as time passes.

    >>> errors_for(1.0, 0.0, 9000.0), round(errors_for(1.0, 0.5, 9000.0), 3)
    (1.0, 1.817)
    """
    return z * (1.0 + math.log(1.0 + k / ERRORS_CHANGE_AFTER)) ** growth if growth != 0.0 else z


@short_rule
def margin(z: float, share: float, variance: float, horizon: int, revealed: bool) -> float:
    """What every entry of a cost table is raised by: z standard errors of the plan's cost, over H."""
    return (REVEALED * z if revealed else z) * share / horizon * math.sqrt(variance)
