"""Constrained planning over laws that are lists: programs whose columns are deterministic policies.

    maximise  r.q   subject to   d_j.q <= 0 for every table j                                    (`best_mixture`)
    minimise  max_j d_j.q                                                                        (`safest_mixture`)

over occupancies q.  The occupancies of deterministic policies span all of them, and dynamic programming finds the one
that maximises any table at the cost of one sweep over the entries.  So only the shares of a few such policies are left
to choose: for one table by the crossing of two lines, for several by a program with a row per table, whose columns are
generated (Dantzig and Wolfe).  For any prices y >= 0 the same sweep proves r.q <= max_q (r - sum_j y_j d_j).q: every
answer carries such a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.laws import SparseLaws
from omdpd.solvers.compiled.listed import (
    Choices,
    add_occupancy,
    listed_choices,
    listed_totals,
    policy_of_mixture,
)
from omdpd.solvers.programs import ACCURACY, Rows, run_highs
from omdpd.solvers.sweeps import lists_of, once

# A bound this close to the value (relative to the larger of both and one) is equal to it: the rounding of a sweep.
ROUNDING = 1e-12
# Where a price is looked for beside a budget: farther than the rounding of a cost, nearer than anybody's next policy.
BESIDE = 1e-9
# Sweeps after which an answer is given as it is, with its bound: a hundred times what any problem of ours needed.
MAX_SWEEPS = 3000
# Policies that are kept although they have no share: they often come back.
MAX_IDLE = 24


@dataclass(frozen=True, eq=False)
class Vertex:
    """A deterministic policy (H, S), what it earns, and what it costs by every table (m,)."""

    choices: Choices
    value: float
    costs: Floats


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of deterministic policies: an answer with its prices, and the bound that these prove."""

    vertices: tuple[Vertex, ...]
    shares: Floats
    prices: Floats
    bound: float
    sweeps: int

    @property
    def value(self) -> float:
        """r.q."""
        return float(sum(share * v.value for share, v in zip(self.shares, self.vertices, strict=True)))

    @property
    def costs(self) -> Floats:
        """d_j.q, (m,)."""
        return np.asarray(self.shares @ np.array([v.costs for v in self.vertices]))


@dataclass(frozen=True, eq=False)
class Problem:
    """Laws, the first state's law, a reward (n, S, A) and tables (m, n, S, A), n = H or one step for all."""

    laws: SparseLaws
    initial: Floats
    reward: Floats
    tables: Floats

    @staticmethod
    def of(laws: SparseLaws, initial: Floats, reward: Floats, tables: Floats) -> Problem:
        """A problem from tables of all steps, kept as they are read by the sweeps."""
        return Problem(laws, initial, once(reward), once(tables, 1))

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        """The deterministic policy that maximises w_0 r.q + sum_j w_j d_j.q, and the maximum."""
        lists = lists_of(self.laws)
        choices, values = listed_choices(*lists, self.reward, self.tables, weights, self.laws.shape[0])
        totals = listed_totals(*lists, choices, self.initial, self.reward, self.tables)
        return Vertex(choices, float(totals[0]), totals[1:]), float(self.initial @ values)

    def occupancy_and_policy(self, mixture: Mixture) -> tuple[Floats, Floats]:
        """The occupancy (H, S, A) of a mixture, and a policy that has it."""
        q = np.zeros(self.laws.shape)
        for share, vertex in zip(mixture.shares, mixture.vertices, strict=True):
            if share > 0.0:
                add_occupancy(*lists_of(self.laws), vertex.choices, self.initial, float(share), q)
        return q, policy_of_mixture(q, mixture.vertices[-1].choices)


def best_mixture(problem: Problem) -> Mixture | None:
    """The optimum under d_j.q <= 0 for every table; None where no policy satisfies them all."""
    m = len(problem.tables)
    free, bound = problem.best(np.r_[1.0, np.zeros(m)])
    if not m or free.costs.max() <= 0.0:
        return Mixture((free,), np.ones(1), np.zeros(m), bound, 1)
    if m == 1:
        safe, _ = problem.best(np.array([0.0, -1.0]))
        limit = max(float(safe.costs[0]), 0.0)
        if free.costs[0] <= limit <= ACCURACY:  # every policy costs as much
            return Mixture((free,), np.ones(1), np.zeros(1), free.value, 2)
        return None if limit > ACCURACY else _crossing(problem, free, safe, limit)
    start = safest_mixture(problem, enough=0.0, known=(free,))
    return None if start.costs.max() > ACCURACY else _several_tables(problem, start)


def price_range(problem: Problem) -> tuple[float, float | None]:
    """The least and the largest optimal price of a single table that can be met (None: there is no largest).

    They are the slopes of V(x) = max r.q subject to d.q <= x on either side of zero: what a little more budget earns,
    and what a little less loses.  Each is the price of the crossing at a cost a little beside zero.
    """
    free, _ = problem.best(np.array([1.0, 0.0]))
    safe, _ = problem.best(np.array([0.0, -1.0]))
    limit = max(float(safe.costs[0]), 0.0)
    more, less = limit + BESIDE, limit - BESIDE
    low, upper, lower = 0.0, free, safe
    if free.costs[0] > more:
        found = _crossing(problem, free, safe, more)
        low, (upper, lower) = max(float(found.prices[0]), 0.0), found.vertices
    if safe.costs[0] > less:
        return low, None
    if lower.costs[0] > less:
        upper, lower = lower, safe
    if upper.costs[0] <= less:
        return low, low
    return low, max(float(_crossing(problem, upper, lower, less).prices[0]), low)


def _crossing(problem: Problem, free: Vertex, safe: Vertex, limit: float) -> Mixture:
    """The optimum under d.q <= limit, from one policy that costs more and one that does not.

    Cutting planes on the dual in one price, whose pieces are policies; the answer mixes the two that bracket it.  There
    are finitely many, and one that comes again adds nothing: rounding has the last word then.
    """
    price, bound, seen = 0.0, np.inf, {_place(free), _place(safe)}
    for sweeps in range(3, MAX_SWEEPS):  # noqa: B007
        price = (free.value - safe.value) / float(free.costs[0] - safe.costs[0])
        between, height = problem.best(np.array([1.0, -price]))
        bound = min(bound, height + price * limit)
        line = free.value - price * (float(free.costs[0]) - limit)
        rounding = ROUNDING * max(1.0, abs(line), price)
        if height + price * limit <= line + rounding or _place(between) in seen:
            break
        seen.add(_place(between))
        if between.costs[0] > limit:
            free = between
        else:
            safe = between
    share = (limit - float(safe.costs[0])) / float(free.costs[0] - safe.costs[0])
    return Mixture((free, safe), np.array([share, 1.0 - share]), np.array([price]), bound, sweeps)


def safest_mixture(problem: Problem, enough: float = -np.inf, known: Sequence[Vertex] = ()) -> Mixture:
    """The mixture whose largest d_j.q is least; `bound` is at most that.  Stops early at a largest cost of `enough`."""
    m = len(problem.tables)
    vertices = list(known) or [problem.best(np.r_[0.0, np.full(m, -1.0 / m)])[0]]
    bound, prices = -np.inf, np.full(m, 1.0 / m)
    for sweeps in range(1, MAX_SWEEPS):  # noqa: B007
        shares, prices, level = _least_level(vertices)
        if level <= enough:
            break
        found, height = problem.best(np.r_[0.0, -prices])
        bound = max(bound, -height)
        if level - bound <= ROUNDING * max(1.0, abs(level)) or _known(found, vertices):
            break
        vertices, shares = _with(vertices, shares, found)
    return Mixture(tuple(vertices), shares, prices, bound, sweeps)


def _several_tables(problem: Problem, start: Mixture) -> Mixture:
    """Column generation from a mixture that satisfies every table."""
    vertices, bound = list(start.vertices), np.inf
    for sweeps in range(1, MAX_SWEEPS):  # noqa: B007
        shares, prices, value = _best_shares(vertices)
        found, height = problem.best(np.r_[1.0, -prices])
        bound = min(bound, height)
        if bound - value <= ROUNDING * max(1.0, abs(value), float(prices.sum())) or _known(found, vertices):
            break
        vertices, shares = _with(vertices, shares, found)
    return Mixture(tuple(vertices), shares, prices, bound, start.sweeps + sweeps)


def _with(vertices: list[Vertex], shares: Floats, found: Vertex) -> tuple[list[Vertex], Floats]:
    """The vertices with one more; of those without a share only the latest are kept."""
    idle = [i for i, share in enumerate(shares) if share <= 0.0]
    dropped = set(idle[: max(len(idle) - MAX_IDLE, 0)])
    kept = [i for i in range(len(vertices)) if i not in dropped]
    return [*(vertices[i] for i in kept), found], np.r_[shares[kept], 0.0]


def _place(vertex: Vertex) -> tuple[float, ...]:
    """What a policy earns and costs: all that a mixture sees of it."""
    return (vertex.value, *vertex.costs.tolist())


def _known(found: Vertex, vertices: Sequence[Vertex]) -> bool:
    return _place(found) in map(_place, vertices)


def _best_shares(vertices: Sequence[Vertex]) -> tuple[Floats, Floats, float]:
    """max sum_v theta_v value_v subject to sum_v theta_v costs_v <= 0, sum theta = 1: shares, prices, value."""
    values, costs = np.array([v.value for v in vertices]), np.array([v.costs for v in vertices]).T
    m, n = costs.shape
    matrix = np.vstack([costs, np.ones((1, n))])
    shares, duals = _solved(-values, matrix)
    shares, prices = _sharpened(values, costs, np.maximum(shares, 0.0), np.maximum(-duals[:m], 0.0))
    return shares, prices, float(shares @ values)


def _least_level(vertices: Sequence[Vertex]) -> tuple[Floats, Floats, float]:
    """min t subject to sum_v theta_v costs_v <= t, sum theta = 1: shares, weights of the tables, t."""
    costs = np.array([v.costs for v in vertices]).T
    m, n = costs.shape
    matrix = np.block([[costs, -np.ones((m, 1)), np.ones((m, 1))], [np.ones((1, n)), np.zeros((1, 2))]])
    objective = np.r_[np.zeros(n), 1.0, -1.0]
    x, duals = _solved(objective, matrix)
    shares, weights = np.maximum(x[:n], 0.0), np.maximum(-duals[:m], 0.0)
    shares, weights = shares / shares.sum(), weights / weights.sum()
    return shares, weights, float((costs @ shares).max())


def _sharpened(values: Floats, costs: Floats, shares: Floats, prices: Floats) -> tuple[Floats, Floats]:
    """Shares and prices to the last digit, from the square system of what HiGHS left positive, where it has one."""
    basic, tight = np.flatnonzero(shares > ACCURACY), np.flatnonzero(prices > ACCURACY)
    shares = shares / shares.sum()
    if len(basic) != len(tight) + 1:
        return shares, prices
    square = np.vstack([costs[np.ix_(tight, basic)], np.ones(len(basic))])
    try:
        theta = np.linalg.solve(square, np.r_[np.zeros(len(tight)), 1.0])
        y = np.linalg.solve(square.T, values[basic])[:-1]
    except np.linalg.LinAlgError:
        return shares, prices
    sharp, exact = np.zeros_like(shares), np.zeros_like(prices)
    sharp[basic], exact[tight] = theta, y
    if theta.min() < 0.0 or (len(y) and y.min() < 0.0) or (costs @ sharp).max() > ACCURACY:
        return shares, prices
    return sharp, exact


def _solved(objective: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    """Minimise objective.x over x >= 0 with matrix x <= 0, except for its last row, which is to be 1: x and duals."""
    n_rows, n = matrix.shape
    lower, upper = np.r_[np.full(n_rows - 1, -np.inf), 1.0], np.r_[np.zeros(n_rows - 1), 1.0]
    row, column = np.repeat(np.arange(n_rows), n), np.tile(np.arange(n), n_rows)
    _, x, duals, _, _ = run_highs(Rows(row, column, matrix.ravel(), lower, upper, n), objective, None)
    return x, duals
