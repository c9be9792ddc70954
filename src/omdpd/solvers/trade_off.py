"""The exact trade-off between one table and value: the upper hull of what policies cost and earn.

    V(x) = max r.q   subject to   d_0.q <= x   and   d_j.q <= 0 for the other tables

is concave and piecewise linear.  Between two of its points the policy that is best at the slope of their chord lies
above the chord, and is another point; or it does not, and the chord is a piece of V.  So every breakpoint takes two
plans, and none is missed.  If there are too many the widest gaps are closed first.

What a little more of a budget earns is the largest slope from the optimum to any policy: the policy that is best at a
slope has a larger one, until there is none.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.solvers.columns import MAX_SWEEPS, ROUNDING, AnyProblem, Bools, Mixture, Vertex, best_mixture

# A gap that one may see in a value, relative to it: one that rounding leaves open is told.
SEEN = 1e-9


class Point(NamedTuple):
    """What a policy costs by the first table, and what it earns."""

    cost: float
    value: float


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The points (cost, value) of V from its least cost to its largest value, by cost.

    `off` is how far V may lie above the line between two of them: 0 (up to rounding) where none is missing.
    """

    points: tuple[Point, ...]
    off: float

    @property
    def slopes(self) -> Floats:
        """What one more unit of cost earns between a point and the next, (n - 1,)."""
        points = np.array(self.points)
        return np.asarray(np.diff(points[:, 1]) / np.diff(points[:, 0]))


# The best policy at a price of the first table: where it lies, and a proved max_q (r - price d_0).q.
Best = Callable[[float], tuple[Point, float]]


def trade_off(problem: AnyProblem, most: int, size: float) -> TradeOff | None:
    """The points of V, at most `most` of them; None where no policy meets the other tables.

    Costs are exact up to rounding relative to themselves and to `size`, which is 0 where they are sums of no negatives.
    """
    safest = _best(problem, 0.0, 1.0)
    if safest is None:
        return None
    richest = _best(problem, 1.0, 0.0)
    assert richest is not None

    def best(price: float) -> tuple[Point, float]:
        found = _best(problem, 1.0, price)
        assert found is not None
        return found

    points, off = _hull(best, safest[0], richest[0], most)
    return TradeOff(_trimmed(points, ROUNDING * size), off)


def prices_of_more(problem: AnyProblem, mixture: Mixture) -> Floats:
    """What a little more of every budget earns at the optimum `mixture`, (m,): the least of its optimal prices."""
    prices = np.maximum(mixture.prices, 0.0) + 0.0
    if mixture.settled or not prices.any():
        return prices
    at = [Point(max(float(cost), 0.0), mixture.value) for cost in mixture.costs]
    return np.array([_slope(problem, i, at[i]) if tight else 0.0 for i, tight in enumerate(mixture.tight)])


def _slope(problem: AnyProblem, i: int, at: Point) -> float:
    """The slope of V, by table i, to the right of a point on it."""
    price = 0.0
    for _ in range(MAX_SWEEPS):
        best = _best(problem, 1.0, price, i)
        assert best is not None
        found, bound = best
        if found.cost <= at.cost or bound - (at.value - price * at.cost) <= _rounding(found, bound, price):
            break
        price = max((found.value - at.value) / (found.cost - at.cost), price)
    return price


def _rounding(found: Point, bound: float, price: float) -> float:
    """What is rounding of a bound, that of a policy at a price."""
    return 10.0 * ROUNDING * max(1.0, abs(bound), abs(price * found.cost))


def _best(problem: AnyProblem, gain: float, price: float, i: int = 0) -> tuple[Point, float] | None:
    """The best policy for gain r - price d_i under the other tables, with the bound of its plan."""
    if len(problem.tables) == 1:
        vertex, bound = problem.best(np.array([gain, -price]))
        return Point(float(vertex.costs[0]), vertex.value), bound
    mixture = best_mixture(_Priced(problem, gain, price, i))
    if not mixture.feasible:
        return None
    found = np.array([(share * v.key.costs[i], share * v.key.value) for share, v in mixture.held])
    return Point(*found.sum(axis=0).tolist()), mixture.bound


@dataclass(frozen=True, eq=False)
class _Priced:
    """A problem of which table i is a price of its reward: gain r - price d_i under the others."""

    problem: AnyProblem
    gain: float
    price: float
    i: int

    @property
    def tables(self) -> Floats:  # as many as are left
        return self.problem.tables[1:]

    @property
    def never(self) -> Bools:
        return np.delete(self.problem.never, self.i)

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        asked = np.insert(weights[1:], self.i, -weights[0] * self.price)
        found, bound = self.problem.best(np.r_[weights[0] * self.gain, asked])
        spent = self.price * float(found.costs[self.i])
        return Vertex(found, self.gain * found.value - spent, np.delete(found.costs, self.i)), bound


def _hull(best: Best, left: Point, right: Point, most: int) -> tuple[list[Point], float]:
    """The points from `left` to `right`, and the widest gap that is left open: also one that rounding leaves."""
    points, left_open = [left, right], [0.0]
    open_pieces: list[tuple[float, Point, Point, Point]] = []

    def look(left: Point, right: Point) -> None:
        if right.cost <= left.cost:
            return
        price = (right.value - left.value) / (right.cost - left.cost)
        found, bound = best(price)
        gap = bound - (left.value - price * left.cost)
        if gap > _rounding(found, bound, price) and found not in (left, right) and found.cost <= right.cost:
            heapq.heappush(open_pieces, (-gap, left, found, right))
        elif gap > SEEN * max(1.0, abs(left.value)):
            left_open.append(gap)

    look(left, right)
    while open_pieces and len(points) < most:
        _, left, found, right = heapq.heappop(open_pieces)
        points.append(found)
        look(left, found)
        look(found, right)
    return sorted(points), max(*left_open, *(-piece[0] for piece in open_pieces[:1]), 0.0)


def _trimmed(points: list[Point], rounding: float) -> tuple[Point, ...]:
    """The points that V needs: of one cost the best value, of one value the least cost, and of a line its ends."""
    kept: list[Point] = []
    for point in points:
        if kept and point.value <= kept[-1].value + ROUNDING * max(1.0, abs(point.value)):
            continue
        while kept and (point.cost - kept[-1].cost <= rounding + ROUNDING * abs(point.cost) or _below(kept, point)):
            kept.pop()
        kept.append(point)
    return tuple(kept)


def _below(kept: list[Point], point: Point) -> bool:
    """Whether the last of these points lies on the line from the one before it to `point`, or below."""
    if len(kept) < 2:
        return False
    (a, v), (b, w) = kept[-2:]
    return (w - v) * (point.cost - a) <= (point.value - v) * (b - a)
