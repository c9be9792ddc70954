"""The exact trade-off between one table and value: the upper hull of what policies cost and earn.

    V(x) = max r.q   subject to   d_0.q <= x   and   d_j.q <= 0 for the other tables

is concave and piecewise linear.  Between two of its points the policy that is best at the slope of their chord lies
above the chord, and is another point; or it does not, and the chord is a piece of V.  So every breakpoint takes two
plans, and none is missed.  If there are too many, the pieces around one cost come first, and then the widest gaps.

Near the least cost breakpoints may come ever closer together, at ever larger prices: a policy that is hardly ever in
some state can earn there without costing.  A point that is above its chord by rounding alone is none, and each piece
between two points has its own bound.

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

    `off` (n - 1,) is how far V may lie above the line between a point and the next: 0 (up to rounding) where it is V.
    """

    points: tuple[Point, ...]
    off: Floats

    @property
    def slopes(self) -> Floats:
        """What one more unit of cost earns between a point and the next, (n - 1,)."""
        points = np.array(self.points)
        return np.asarray(np.diff(points[:, 1]) / np.diff(points[:, 0]))


class Piece(NamedTuple):
    """A chord between two points of V, how far V may lie above it, and a point above it where one was found."""

    left: Point
    right: Point
    off: float
    above: Point | None


# The best policy at a price of the first table: where it lies, and a proved max_q (r - price d_0).q.
Best = Callable[[float], tuple[Point, float]]


def trade_off(problem: AnyProblem, most: int, size: float, near: float = np.inf) -> TradeOff | None:
    """The points of V, at most `most`, around the cost `near` first; None where no policy meets the other tables.

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

    pieces = _hull(best, safest[0], richest[0], most, near)
    points = _trimmed(sorted({point for piece in pieces for point in piece[:2]}), ROUNDING * size)
    places = np.searchsorted([point.cost for point in points], [piece.right.cost for piece in pieces])
    off = np.zeros(len(points) - 1)
    inside = (places > 0) & (places < len(points))
    np.maximum.at(off, places[inside] - 1, np.array([piece.off for piece in pieces])[inside])
    return TradeOff(points, off)


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


def _hull(best: Best, left: Point, right: Point, most: int, near: float) -> list[Piece]:
    """The pieces from `left` to `right`, with at most `most` ends: first around the cost `near`, then the widest."""
    closed: list[Piece] = []
    waiting: list[tuple[bool, float, Piece]] = []

    def look(left: Point, right: Point) -> None:
        piece = _piece(best, left, right)
        if piece.above is None:
            closed.append(piece)
        else:
            heapq.heappush(waiting, (not left.cost <= near <= right.cost, -piece.off, piece))

    look(left, right)
    while waiting and len(closed) + len(waiting) < most - 1:
        left, right, _, above = heapq.heappop(waiting)[2]
        assert above is not None
        look(left, above)
        look(above, right)
    return [*closed, *(piece for _, _, piece in waiting)]


def _piece(best: Best, left: Point, right: Point) -> Piece:
    """What the policy that is best at the slope of a chord says of it: also of a gap that rounding leaves."""
    if right.cost <= left.cost:
        return Piece(left, right, 0.0, None)
    price = (right.value - left.value) / (right.cost - left.cost)
    found, bound = best(price)
    level, rounding = left.value - price * left.cost, _rounding(found, bound, price)
    off = min(bound - level, right.value - left.value)
    if found.value - price * found.cost - level > rounding and found.cost <= right.cost:
        return Piece(left, right, off, found)
    seen = bound - level > max(rounding, SEEN * max(1.0, abs(left.value)))
    return Piece(left, right, off if seen else 0.0, None)


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
