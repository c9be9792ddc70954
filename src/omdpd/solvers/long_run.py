"""Planning without an end: discounted totals, and averages over the long run, as columns of the same programs.

    discounted   V = r_pi + gamma P_pi V                     total   mu.V
    average      g = P_pi g,   g + h = r_pi + P_pi h         mean    mu.g

`LongRunProblem` finds the best deterministic stationary policy for any weights by policy iteration, and what a policy
earns and costs from how often it visits what: all that `columns.py` asks of a problem.  A mixture of such policies,
one of which is drawn before the first step, reaches whatever any policy reaches.  Several closed classes of a policy
are no exception: gains are then vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra, reverse_cuthill_mckee

from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import SparseLaws
from omdpd.solvers.chains import (
    ACCURATE,
    MAX_FACTORISED,
    Near,
    Order,
    Reduced,
    chain_of,
    closed_classes,
    discounted_values,
    gain_and_bias,
    order_of,
    reached_from,
    reduced_chain,
    visits_of,
)
from omdpd.solvers.columns import NEVER, Bools, Mixture, Vertex, restricted
from omdpd.solvers.compiled.listed import Codes, listed_climb
from omdpd.solvers.packed import Packed, code_type

# An action is better only by more than this, relative to the values: otherwise rounding would go on for ever.
BETTER, BETTER_REDUCED = 1e-12, 1e-14
# Gains that differ by less than this, relative to the largest, are alike.
ALIKE = 1e-10
# Values climb along the row of states and back until they rise by this share of their first rise, at most so often.
LITTLE, MAX_CLIMBS = 0.1, 30
# A share of less than this of what is played in a state is none: it moves nothing within a million million steps.
NO_SHARE = 1e-12
# Policies that are improved before the best one so far is given, with its bound: ten are many.
MAX_IMPROVEMENTS = 200
# Policies are first improved by values that are as exact as this, at most so many times.
ROUGH, MAX_ROUGH = 1e-5, 20


@dataclass(frozen=True, eq=False)
class LongRunProblem:
    """Stationary laws, a first state's law, a reward (1, S, A) and tables (m, 1, S, A), for a discount in (0, 1].

    Of the tables `never` (m,), whose entries are not negative, nothing may ever be paid (`columns.py`).
    A discount of one stands for averages.  Totals are those of an occupancy that sums to `steps`: 1 / (1 - discount),
    or one.
    """

    laws: SparseLaws
    initial: Floats
    reward: Floats
    tables: Floats
    discount: float
    place: Integers | None = None
    never: Bools = field(default_factory=lambda: np.zeros(0, bool))
    last: dict[str, Any] = field(default_factory=dict)
    known: dict[bytes, tuple[Vertex, float]] = field(default_factory=dict, init=False)

    @property
    def steps(self) -> float:
        """What an occupancy sums to."""
        return 1.0 if self.discount == 1.0 else 1.0 / (1.0 - self.discount)

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        """The deterministic policy that maximises w_0 r.q + sum_j w_j d_j.q, and a bound on the maximum."""
        if weights.min() <= -NEVER:
            return self._never_paying(np.where(weights > -NEVER, weights, 0.0))
        asked = weights.tobytes()
        if asked not in self.known:
            table = weights[0] * self.reward[0] + np.tensordot(weights[1:], self.tables[:, 0], axes=1)
            actions, height = self._iterated(table)
            totals = self._totals(actions)
            found = Vertex(actions, float(totals[0]), totals[1:]), height
            if weights[0]:
                return found
            self.known[asked] = found
        return self.known[asked]

    def _never_paying(self, weights: Floats) -> tuple[Vertex, float]:
        """The best policy that plays nothing which pays by the tables `never`, or may lead to where one has to pay."""
        _, S, A = self.laws.shape
        free, states = ~self.tables[self.never, 0].any(axis=0), np.zeros(S, bool)
        while (free.any(axis=1) != states).any():
            states = free.any(axis=1)
            free &= (self._matrix @ (1.0 - states)).reshape(S, A) == 0.0
        within = restricted(self, (free | ~states[:, None])[None])
        if within is self:
            return self.best(weights)
        found, height = within.best(weights)
        assert within.place is not None
        return Vertex(within.place[0][np.arange(S), found.key], found.value, found.costs), height

    def codes(self, vertex: Vertex) -> Codes:
        """What a policy that was found plays, (1, S)."""
        every = np.arange(len(vertex.key))
        played = vertex.key if self.place is None else self.place[0][every, vertex.key]
        return (2 * played[None]).astype(code_type(self.laws.shape[2]))

    def totals(self, codes: Codes) -> Floats:
        """What a deterministic policy earns and costs, (1 + m,)."""
        return self._totals(np.asarray(codes[0] >> 1, np.int64))

    def often(self, codes: Codes) -> Floats:
        """How often a deterministic policy visits every state, (1, S); what it passes once counts as next to never."""
        actions = np.asarray(codes[0] >> 1, np.int64)
        passed = reached_from(self._rows(actions), self.initial)
        return np.maximum(self.visits(actions), np.finfo(float).tiny * passed)[None]

    def pure(self, codes: Codes) -> Packed:
        """The policy that plays these codes for ever."""
        return Packed(codes, np.zeros(0, np.int64), np.zeros((0, self.laws.shape[2])), np.zeros(0), True)

    def occupancy_and_policy(self, mixture: Mixture) -> tuple[Floats, Floats]:
        """The occupancy (1, S, A) of a mixture, and the stationary policy that has it where there is one."""
        q = np.zeros(self.laws.shape)
        for share, vertex in mixture.held:
            actions = self.codes(vertex)[0] >> 1
            q[0, np.arange(q.shape[1]), actions] += share * self.visits(actions)
        return q, self._packed(q, mixture).table()

    def packed(self, mixture: Mixture) -> Packed:
        """The stationary policy of `occupancy_and_policy`."""
        return self._packed(self.occupancy_and_policy(mixture)[0], mixture)

    def _packed(self, q: Floats, mixture: Mixture) -> Packed:
        """The policy of an occupancy (1, S, A); where a state is never visited, that of the largest share.

        Of averages no share of the steps is left for states that are passed once; they count as reached.
        """
        visits = q[0].sum(axis=1)
        codes = self.codes(max(mixture.held, key=lambda each: each[0])[1])
        codes[0] = np.where(visits > 0.0, 2 * q[0].argmax(axis=1), codes[0])
        played = np.where(q[0] > NO_SHARE * visits[:, None], q[0], 0.0)
        places = np.flatnonzero((played > 0.0).sum(axis=1) > 1)
        rows = played[places] / played[places].sum(axis=1, keepdims=True)
        packed = Packed(codes, places, rows, visits[places], True)
        codes[0] |= ~reached_from(chain_of(self.laws, packed.table()[0]), self.initial)
        return packed

    def _totals(self, actions: Integers) -> Floats:
        q = self.visits(actions)
        every = np.concatenate([self.reward, self.tables[:, 0]])
        return np.asarray(every[:, np.arange(len(q)), actions] @ q)

    def visits(self, actions: Integers) -> Floats:
        """How often each state is visited, (S,), when these actions are played: discounted, or per step."""
        near = self.last.get("visits")
        p = self._rows(actions)
        found = visits_of(p, self.initial, self.discount, near, self._reduced(actions, p))
        if self.never.any():  # where it never comes, not even rounding is left
            found *= reached_from(p, self.initial)
        self.last["visits"] = found
        return found

    def values(self, actions: Integers, table: Floats, accuracy: float) -> tuple[Floats, Floats]:
        """Gains and values (S,) of these actions; of discounted totals gains are zero."""
        earned = table[np.arange(len(actions)), actions]
        p, near = self._rows(actions), Near(self.last.get("value"), accuracy)
        within = self._reduced(actions, p)
        if self.discount < 1.0:
            gain, value = np.zeros(len(actions)), discounted_values(p, earned, self.discount, near, within)
        else:
            gain, value = gain_and_bias(p, earned, near, within)
        self.last.update(actions=actions, value=value)
        return gain, value

    def _rows(self, actions: Integers) -> csr_matrix:
        return self._matrix[np.arange(len(actions)) * self.laws.shape[2] + actions]

    @cached_property
    def _matrix(self) -> csr_matrix:
        _, S, A = self.laws.shape
        return csr_matrix((self.laws.probabilities, self.laws.successors, self.laws.pointers), shape=(S * A, S))

    def _reduced(self, actions: Integers, p: csr_matrix) -> Reduced | None:
        """The chain of these actions, reduced; that of the latest is kept."""
        if self._order is not None and not np.array_equal(self.last.get("reduced_actions", ()), actions):
            self.last["reduced_actions"], self.last["reduced"] = actions, reduced_chain(p, self.discount, self._order)
        return self.last.get("reduced")

    @cached_property
    def _order(self) -> Order | None:
        """The order in which states are taken out, whatever is played."""
        return order_of(self._any)

    @cached_property
    def _row(self) -> Integers:
        """The states in a row in which steps are short."""
        return np.asarray(reverse_cuthill_mckee(self._any + self._any.T, symmetric_mode=True), np.int64)

    @cached_property
    def _any(self) -> csr_matrix:
        """From which state some action leads to which, (S, S)."""
        _, S, A = self.laws.shape
        own = csr_matrix((np.ones(S * A), np.arange(S * A), np.arange(S + 1) * A), shape=(S, S * A))
        return csr_matrix(own @ self._matrix)

    def _iterated(self, table: Floats) -> tuple[Integers, float]:
        """Policy iteration from the last policy on, first with rough values; the bound is what values prove.

        In a valley that is all but never left, what is rounding of a step adds up: a policy may lose there what an
        earlier one had, and improvements would go round in a circle.  So where they do not end soon values that were
        once reached are kept, above those of one state that is often visited.
        """
        _, S, A = self.laws.shape
        p, every = self._matrix, np.arange(S)
        actions = self.last.get("actions", table.argmax(axis=1))
        top, centre, kept = -np.inf, None, None
        height, best, accuracy = np.inf, actions, ROUGH if S > MAX_FACTORISED and self._order is None else ACCURATE
        for improvement in range(MAX_IMPROVEMENTS):
            gain, value = self.values(actions, table, accuracy)
            led = self._led(actions, gain)
            if led is not None:
                actions = led
                continue
            after = table + self.discount * (p @ value).reshape(S, A)
            leads = (p @ gain).reshape(S, A)
            height = min(height, self._bound(gain, value, leads, after))
            earned = float(self.initial @ (gain if self.discount == 1.0 else value))
            top, best = (earned, actions) if earned >= top or self._order is None else (top, best)
            better = ROUGH if accuracy != ACCURATE else BETTER if self._order is None else BETTER_REDUCED
            size = better * max(1.0, float(np.abs(value).max()), float(np.abs(gain).max()))
            climbs = leads.max(axis=1) > gain + size
            allowed = leads >= leads.max(axis=1, keepdims=True) - size
            masked = np.where(allowed, after, -np.inf)
            improves = climbs | (masked.max(axis=1) > after[every, actions] + size)
            if accuracy == ACCURATE and not improves.any():
                break
            if not improves.any() or improvement > MAX_ROUGH:
                accuracy = ACCURATE
            if self._order is not None and np.ptp(gain) <= ALIKE * max(1.0, abs(float(gain[0]))):
                if improvement >= MAX_ROUGH:
                    centre = int(self.visits(actions).argmax()) if centre is None else centre
                    value = _raised(value - value[centre] * (self.discount == 1.0), gain, kept, size)
                climbed = self._climbed(table - gain[:, None], value, size)
                kept = None if centre is None else (float(gain[0]), climbed)
                masked = table + self.discount * (p @ climbed).reshape(S, A)
                height = min(height, self._bound(gain, climbed, leads, masked))
                improves = masked.max(axis=1) > masked[every, actions] + size
                if height - top <= size:
                    break
            actions = np.where(improves, masked.argmax(axis=1), actions)
        return best, height

    def _climbed(self, table: Floats, value: Floats, size: float) -> Floats:
        """Values that are improved state by state, along the row and back: what is better far away comes to all."""
        found, first = value.copy(), 0.0
        ways, laws = (
            (self._row, self._row[::-1].copy()),
            (self.laws.pointers, self.laws.successors, self.laws.probabilities),
        )
        for _ in range(MAX_CLIMBS):
            most = max(listed_climb(*laws, table, self.discount, way, found) for way in ways)
            first = max(first, most)
            if most <= max(LITTLE * first, size):
                break
        return found

    @cached_property
    def _communicating(self) -> list[np.ndarray]:
        """Sets of states that no action leaves, and in which some policy leads from anywhere to anywhere."""
        return closed_classes(self._any)[0] if self.discount == 1.0 else []

    def _led(self, actions: Integers, gain: Floats) -> Integers | None:
        """Actions that lead all states of such a set to where its gain is largest; None where gains are alike.

        A policy with several closed classes, or one that all but never leaves a part of the set, would be improved at
        the border between them alone, one step at a time.
        """
        behind = np.zeros(len(gain), bool)
        for states in self._communicating:
            top = float(gain[states].max())
            behind[states] = gain[states] < top - ALIKE * max(1.0, abs(top))
        if not behind.any():
            return None
        p, A = self._matrix, self.laws.shape[2]
        steps = dijkstra(self._any.T, indices=np.flatnonzero(~behind), unweighted=True, min_only=True)
        nearest = np.minimum.reduceat(steps[p.indices], p.indptr[:-1]).reshape(-1, A)
        mean = np.where(nearest < steps[:, None], (p @ steps).reshape(-1, A), np.inf)
        return np.where(behind, mean.argmin(axis=1), actions)

    def _bound(self, gain: Floats, value: Floats, leads: Floats, after: Floats) -> float:
        """What no policy exceeds, by the values of one: the program's dual, made feasible by what is missing most."""
        if self.discount < 1.0:
            over = max(float((after.max(axis=1) - value).max()), 0.0)
            return float(self.initial @ value) + over * self.steps
        # g + M (g - P_a g) + h >= r_a + P_a h with a large M: actions that lead to a smaller gain need not fit h.
        missing = after - value[:, None] - gain[:, None]
        falls = np.maximum(gain[:, None] - leads, 0.0)
        climb = max(float((leads - gain[:, None]).max()), 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            needed = np.where((missing > 0.0) & (falls > BETTER), missing / falls, 0.0)
        big = float(needed.max())
        left = np.where(falls > BETTER, missing - big * falls, missing)
        return float(self.initial @ gain) + max(float(left.max()), 0.0) + (1.0 + big) * climb


def _raised(value: Floats, gain: Floats, kept: tuple[float, Floats] | None, size: float) -> Floats:
    """Values, or those that were kept, where both are of one gain and these are larger."""
    return np.maximum(value, kept[1]) if kept is not None and abs(kept[0] - float(gain[0])) <= size else value
