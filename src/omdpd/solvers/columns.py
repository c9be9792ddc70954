"""Constrained planning over laws that are lists: programs whose columns are deterministic policies.

    maximise  r.q   subject to   d_j.q <= 0 for every table j                                    (`best_mixture`)
    minimise  max_j d_j.q                                                                        (`safest_mixture`)

over occupancies q.  The occupancies of deterministic policies span all of them, and dynamic programming finds the one
that maximises any table at the cost of one sweep over the entries.  So only the shares of a few such policies are left
to choose, by a program with a row per table, whose columns are generated (Dantzig and Wolfe).  For any prices y >= 0
the same sweep proves r.q <= max_q (r - sum_j y_j d_j).q: every answer carries such a bound.  Of a policy only its
weights are kept, since the same sweep finds it again.

A table of costs that must never be paid is no question of accuracy: its price is one that nothing outweighs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import SparseLaws
from omdpd.problem.masks import as_mask
from omdpd.solvers.compiled.listed import Codes, listed_choices, listed_mixture, listed_totals
from omdpd.solvers.compiled.shares import best_shares
from omdpd.solvers.packed import Packed, room_for
from omdpd.solvers.sweeps import lists_of, once

# The rows of an answer hold to this: a budget that is exceeded by less is met.
ACCURACY = 1e-9
# A bound this close to the value (relative to the larger of both and one) is equal to it: the rounding of a sweep.
ROUNDING = 1e-12
# What the rounding of a cost adds to a bound, per unit of its price.
PRICED = 1e-14
# Where a price is looked for beside a budget: farther than the rounding of a cost, nearer than anybody's next policy.
BESIDE = 1e-9
# Sweeps after which an answer is given as it is, with its bound: a hundred times what any problem of ours needed.
MAX_SWEEPS = 3000
# With several tables, how far towards the prices of the best bound new policies are looked for.
STEADY = 0.5
# Policies that are kept although they have no share: they often come back.
MAX_IDLE = 24
# Pivots of the program of the shares: many times what it takes.
MAX_PIVOTS = 1000
# The price of what must never be paid: any chance of it above 1e-290 outweighs all rewards.
NEVER = 1e300

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Vertex:
    """A deterministic policy: how its problem finds it again, what it earns, and what it costs by every table (m,)."""

    key: Any
    value: float
    costs: Floats


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of deterministic policies: an answer with its prices, and the bound that these prove.

    Unless `feasible`, the largest cost is the least possible, up to `bound`.
    """

    vertices: tuple[Vertex, ...]
    shares: Floats
    prices: Floats
    bound: float
    feasible: bool = True

    @property
    def held(self) -> list[tuple[float, Vertex]]:
        """The policies that have a share, with it."""
        return [(float(share), v) for share, v in zip(self.shares, self.vertices, strict=True) if share > 0.0]

    @property
    def value(self) -> float:
        """r.q."""
        return float(sum(share * v.value for share, v in zip(self.shares, self.vertices, strict=True)))

    @property
    def costs(self) -> Floats:
        """d_j.q, (m,)."""
        return np.asarray(self.shares @ np.array([v.costs for v in self.vertices]))

    @property
    def tight(self) -> Bools:
        """Which tables leave no room, (m,)."""
        return self.costs > -BESIDE

    @property
    def settled(self) -> bool:
        """Whether the prices are the only optimal ones: one more policy has a share than tables are tight."""
        return int((self.shares > BESIDE).sum()) > int(self.tight.sum())


@dataclass(frozen=True, eq=False)
class Problem:
    """Laws, the first state's law, a reward (n, S, A) and tables (m, n, S, A), n = H or one step for all.

    `place` (n, S, A), where there is one, is the action that is played in the place of each; both have equal rows.
    `never` (m,) are the tables without negative entries of which nothing may ever be paid.
    """

    laws: SparseLaws
    initial: Floats
    reward: Floats
    tables: Floats
    place: Integers | None = None
    never: Bools = field(default_factory=lambda: np.zeros(0, bool))
    _known: dict[bytes, tuple[Vertex, float]] = field(default_factory=dict, init=False)

    @staticmethod
    def of(laws: SparseLaws, initial: Floats, reward: Floats, tables: Floats, place: Integers | None = None) -> Problem:
        """A problem from tables of all steps, kept as they are read by the sweeps."""
        return Problem(laws, initial, once(reward), once(tables, 1), place)

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        """The deterministic policy that maximises w_0 r.q + sum_j w_j d_j.q, and the maximum."""
        asked = weights.tobytes()
        if asked not in self._known:
            codes, values = self._swept(weights)
            totals = self.totals(codes)
            self._known[asked] = Vertex(weights, float(totals[0]), totals[1:]), float(self.initial @ values)
        return self._known[asked]

    def codes(self, vertex: Vertex, room: Codes | None = None) -> Codes:
        """What a policy that was found plays, (H, S), written into `room` where there is some."""
        codes = self._swept(vertex.key, room)[0]
        if self.place is not None:
            for h in range(len(codes)):
                place = self.place[min(h, len(self.place) - 1)]
                codes[h] = 2 * place[np.arange(len(place)), codes[h] >> 1]
        return codes

    def totals(self, codes: Codes) -> Floats:
        """What a deterministic policy earns and costs, (1 + m,)."""
        return evaluated(self.laws, self.initial, self.pure(codes), self.reward, self.tables)

    def often(self, codes: Codes) -> Floats:
        """How likely a deterministic policy comes to every step and state, (H, S)."""
        (H, S, A), mass = self.laws.shape, self.initial
        often = np.zeros((H, S))
        for h in range(H):
            often[h] = mass
            flow = np.zeros((S, A))
            flow[np.arange(S), codes[h] >> 1] = mass
            mass = self.laws.forward(flow, h)
        return often

    def pure(self, codes: Codes) -> Packed:
        """The policy that plays these codes."""
        return Packed(codes, np.zeros(0, np.int64), np.zeros((0, self.laws.shape[2])), np.zeros(0))

    def packed(self, mixture: Mixture, occupancy: Floats | None = None) -> Packed:
        """A policy with the occupancy of a mixture, which is added to `occupancy` (H, S, A)."""
        H, S, A = self.laws.shape
        held = sorted(mixture.held, key=lambda each: -each[0])
        codes, others = self.codes(held[0][1]), room_for((len(held) - 1, H, S), A)
        for other, (_, vertex) in zip(others, held[1:], strict=True):
            self.codes(vertex, other)
        kept = np.zeros((0, 0, 0)) if occupancy is None else occupancy
        shares = np.array([share for share, _ in held])
        played = (*lists_of(self.laws), codes, others, shares, self.initial, kept)
        n = listed_mixture(*played, np.zeros(0, np.int64), np.zeros((0, A + 1)), False) if len(held) > 1 else 0
        places, rows = np.zeros(n, np.int64), np.zeros((n, A + 1))
        listed_mixture(*played, places, rows, True)
        return Packed(codes, places, rows[:, :A].copy(), rows[:, A].copy())

    def occupancy_and_policy(self, mixture: Mixture) -> tuple[Floats, Floats]:
        """The occupancy (H, S, A) of a mixture, and a policy that has it."""
        q = np.zeros(self.laws.shape)
        policy = self.packed(mixture, q).table()
        return q, policy

    def _swept(self, weights: Floats, room: Codes | None = None) -> tuple[Codes, Floats]:
        H, S, A = self.laws.shape
        codes = room_for((H, S), A) if room is None else room
        return codes, listed_choices(*lists_of(self.laws), self.reward, self.tables, weights, codes)


def evaluated(laws: SparseLaws, initial: Floats, policy: Packed, reward: Floats, tables: Floats) -> Floats:
    """What a policy earns by `reward` (n, S, A) and costs by `tables` (m, n, S, A), (1 + m,)."""
    drawn = (policy.codes, policy.places, policy.rows)
    return np.asarray(listed_totals(*lists_of(laws), *drawn, initial, reward, tables))


class AnyProblem(Protocol):
    """What is asked of a problem: how many tables it has, which of them never, and its best policy for any weights."""

    @property
    def tables(self) -> Floats: ...  # noqa: D102
    @property
    def never(self) -> Bools: ...  # noqa: D102
    def best(self, weights: Floats) -> tuple[Vertex, float]: ...  # noqa: D102


class PlayedProblem(AnyProblem, Protocol):
    """A problem whose policies can be played: what they amount to, and what they do."""

    @property
    def laws(self) -> SparseLaws: ...  # noqa: D102
    @property
    def place(self) -> Integers | None: ...  # noqa: D102
    @property
    def reward(self) -> Floats: ...  # noqa: D102
    def often(self, codes: Codes) -> Floats: ...  # noqa: D102
    def codes(self, vertex: Vertex) -> Codes: ...  # noqa: D102
    def totals(self, codes: Codes) -> Floats: ...  # noqa: D102
    def pure(self, codes: Codes) -> Packed: ...  # noqa: D102
    def packed(self, mixture: Mixture) -> Packed: ...  # noqa: D102
    def occupancy_and_policy(self, mixture: Mixture) -> tuple[Floats, Floats]: ...  # noqa: D102


def restricted(problem: PlayedProblem, allowed: Bools) -> PlayedProblem:
    """The problem where these actions (H, S, A) alone are allowed."""
    mask = as_mask(allowed, problem.laws.shape[1:])
    if mask is None:
        return problem
    tables = {"reward": mask.everywhere(problem.reward), "tables": mask.everywhere(problem.tables)}
    return replace(problem, laws=mask.laws(problem.laws), place=mask.place, **tables)  # type: ignore[type-var]  # both are


def best_mixture(problem: AnyProblem, accuracy: float = ROUNDING) -> Mixture:
    """The optimum under d_j.q <= 0 for every table; or, where no policy satisfies them all, the safest mixture.

    The first vertex is the best policy without tables.  The value is as near to its bound as `accuracy` asks for.
    """
    m = len(problem.tables)
    free, bound = problem.best(np.r_[1.0, np.zeros(m)])
    if not m or free.costs.max() <= 0.0:
        return Mixture((free,), np.ones(1), np.zeros(m), bound)
    if problem.never.any():
        return _never_paying(problem, free, accuracy)
    start = safest_mixture(problem, enough=0.0, known=(free,))
    level = float(start.costs.max())
    return start if level > ACCURACY else _generated(problem, start.vertices, max(level, 0.0), accuracy)


@dataclass(frozen=True, eq=False)
class _Kept:
    """A problem under the tables that may cost something; the others have the price that nothing outweighs."""

    problem: AnyProblem

    @property
    def never(self) -> Bools:
        return np.zeros(len(self.tables), bool)

    @property
    def tables(self) -> Floats:  # as many as are left
        return self.problem.tables[: int((~self.problem.never).sum())]

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        asked = np.r_[weights[0], np.full(len(self.problem.never), -NEVER)]
        asked[1:][~self.problem.never] = weights[1:]
        found, bound = self.problem.best(asked)
        return Vertex(found, found.value, found.costs[~self.problem.never]), bound


@dataclass(frozen=True, eq=False)
class _Relaxed:
    """A problem under the same tables, each of which may exceed its budget by some slack (m,)."""

    problem: AnyProblem
    slack: Floats

    @property
    def never(self) -> Bools:
        return np.zeros(len(self.slack), bool)

    @property
    def tables(self) -> Floats:  # as many
        return self.problem.tables

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        found, bound = self.problem.best(weights)
        return Vertex(found, found.value, found.costs - self.slack), bound - float(weights[1:] @ self.slack)


def mixture_within(problem: AnyProblem, slack: Floats) -> Mixture:
    """The optimum where every table may exceed its budget by `slack` (m,); its vertices are those of the problem."""
    found = best_mixture(_Relaxed(problem, slack))
    return replace(found, vertices=tuple(v.key for v in found.vertices))


def _never_paying(problem: AnyProblem, free: Vertex, accuracy: float) -> Mixture:
    """The optimum among policies that never pay what must never be paid; or, without one, the safest mixture."""
    found = best_mixture(_Kept(problem), accuracy)
    vertices, prices = (free, *(v.key for v in found.vertices)), np.full(len(problem.never), NEVER)
    if not found.feasible or any(v.key.costs[problem.never].any() for _, v in found.held):
        return safest_mixture(problem, known=vertices)
    prices[~problem.never] = found.prices
    return replace(found, vertices=vertices, shares=np.r_[0.0, found.shares], prices=prices)


def price_of_less(problem: AnyProblem, mixture: Mixture, safest: Vertex) -> float | None:
    """What a little less of the budget of a single table loses, at the optimum `mixture` (None: it cannot be less)."""
    if mixture.settled:
        return float(mixture.prices[0])
    limit = max(float(safest.costs[0]), 0.0)
    less = limit - BESIDE
    if safest.costs[0] > less:
        return None
    known, free = (*mixture.vertices, safest), mixture.vertices[0].costs[0]
    return float(_generated(problem, known, less).prices[0]) if free > less else 0.0


def safest_mixture(
    problem: AnyProblem, enough: float = -np.inf, known: Sequence[Vertex] = (), units: Floats | None = None
) -> Mixture:
    """The mixture whose largest u_j d_j.q is least, for `units` u (m,) if given; `bound` is at most that.

    It stops early at a largest cost of `enough`.
    """
    m = len(problem.tables)
    unit = np.ones(m) if units is None else units
    vertices = list(known) or [problem.best(np.r_[0.0, -unit / m])[0]]
    bound = -np.inf
    for _ in range(MAX_SWEEPS):
        costs = np.array([v.costs * unit for v in vertices]).T
        below = 1.0 - float(costs.min())  # with so much on top no row can hold, and the program levels them
        shares, weights, level = best_shares(np.zeros(len(vertices)), costs + below, MAX_PIVOTS)
        level -= below
        if level <= enough:
            break
        found, height = problem.best(np.r_[0.0, -weights * unit])
        bound = max(bound, -height)
        if level - bound <= ROUNDING * max(1.0, abs(level)) or _known(found, vertices):
            break
        vertices, shares = _with(vertices, shares, found)
    return Mixture(tuple(vertices), shares, np.zeros(m), bound, feasible=False)


def _generated(problem: AnyProblem, known: Sequence[Vertex], limit: float, accuracy: float = ROUNDING) -> Mixture:
    """The optimum under d_j.q <= limit for every table, from policies of which a mixture satisfies that.

    With several tables the prices of a few policies jump about.  So the next policy is looked for between them and
    those of the best bound so far; and at the prices themselves where that finds nothing that would gain a share.
    There are finitely many policies, and one that comes again adds nothing: rounding has the last word then.
    """
    vertices, bound, centre = list(known), np.inf, None
    for _ in range(MAX_SWEEPS):
        values, costs = np.array([v.value for v in vertices]), np.array([v.costs for v in vertices]).T - limit
        shares, prices, _ = best_shares(values, costs, MAX_PIVOTS)
        value = float(shares @ values)
        rounding = max(accuracy * max(1.0, abs(value)), PRICED * float(prices.sum()))
        near = () if centre is None or len(prices) == 1 else (STEADY * centre + (1.0 - STEADY) * prices,)
        for asked in (*near, prices):
            found, height = problem.best(np.r_[1.0, -asked])
            if height + float(asked.sum()) * limit < bound:
                bound, centre = height + float(asked.sum()) * limit, asked
            if bound - value <= rounding or found.value - float(prices @ (found.costs - limit)) - value > rounding:
                break
        if bound - value <= rounding or _known(found, vertices):
            break
        vertices, shares = _with(vertices, shares, found)
    return Mixture(tuple(vertices), shares, prices if centre is None else centre, bound)


def _with(vertices: list[Vertex], shares: Floats, found: Vertex) -> tuple[list[Vertex], Floats]:
    """The vertices with one more; of those without a share only the first and the latest are kept."""
    idle = [i for i, share in enumerate(shares) if i and share <= 0.0]
    dropped = set(idle[: max(len(idle) - MAX_IDLE, 0)])
    kept = [i for i in range(len(vertices)) if i not in dropped]
    return [*(vertices[i] for i in kept), found], np.r_[shares[kept], 0.0]


def _known(found: Vertex, vertices: Sequence[Vertex]) -> bool:
    """Whether some policy earns and costs just as much: that is all that a mixture sees of it."""
    return any(found.value == v.value and np.array_equal(found.costs, v.costs) for v in vertices)
