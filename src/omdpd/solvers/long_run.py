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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import block_array, csc_matrix, csr_matrix, identity
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import LinearOperator, bicgstab, splu

from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import SparseLaws
from omdpd.solvers.columns import Bools, Mixture, Vertex
from omdpd.solvers.compiled.listed import Codes
from omdpd.solvers.packed import Packed, code_type

# Up to this many states systems are factorised; beyond it they are solved by iterations, which laws that mix make few.
MAX_FACTORISED = 2000
MAX_ITERATIONS = 200
MAX_REFINEMENTS = 6
# How exactly iterations solve a system, relative to its solution; and what is left to them rather than to factors.
ACCURATE, ENOUGH = 1e-14, 1e-13
# An action is better only by more than this, relative to the values: otherwise rounding would go on for ever.
BETTER = 1e-12
# Policies that are improved before the best one so far is given, with its bound: ten are many.
MAX_IMPROVEMENTS = 200
# Policies are first improved by values that are as exact as this, at most so many times.
ROUGH, MAX_ROUGH = 1e-5, 20


@dataclass(frozen=True, eq=False)
class LongRunProblem:
    """Stationary laws, a first state's law, a reward (1, S, A) and tables (m, 1, S, A), for a discount in (0, 1].

    A discount of one stands for averages.  Totals are those of an occupancy that sums to `steps`: 1 / (1 - discount),
    or one.
    """

    laws: SparseLaws
    initial: Floats
    reward: Floats
    tables: Floats
    discount: float
    place: Integers | None = None
    last: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def never(self) -> Bools:
        """Which tables must never cost anything: none, for in the long run what is rare is a share."""
        return np.zeros(len(self.tables), bool)

    @property
    def steps(self) -> float:
        """What an occupancy sums to."""
        return 1.0 if self.discount == 1.0 else 1.0 / (1.0 - self.discount)

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        """The deterministic policy that maximises w_0 r.q + sum_j w_j d_j.q, and a bound on the maximum."""
        table = weights[0] * self.reward[0] + np.tensordot(weights[1:], self.tables[:, 0], axes=1)
        actions, height = self._iterated(table)
        totals = self._totals(actions)
        return Vertex(actions, float(totals[0]), totals[1:]), height

    def codes(self, vertex: Vertex) -> Codes:
        """What a policy that was found plays, (1, S)."""
        every = np.arange(len(vertex.key))
        played = vertex.key if self.place is None else self.place[0][every, vertex.key]
        return (2 * played[None]).astype(code_type(self.laws.shape[2]))

    def totals(self, codes: Codes) -> Floats:
        """What a deterministic policy earns and costs, (1 + m,)."""
        return self._totals(np.asarray(codes[0] >> 1, np.int64))

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
        places = np.flatnonzero((q[0] > 0.0).sum(axis=1) > 1)
        packed = Packed(codes, places, q[0, places] / visits[places, None], visits[places], True)
        codes[0] |= ~reached_from(chain_of(self.laws, packed.table()[0]), self.initial)
        return packed

    def _totals(self, actions: Integers) -> Floats:
        q = self.visits(actions)
        every = np.concatenate([self.reward, self.tables[:, 0]])
        return np.asarray(every[:, np.arange(len(q)), actions] @ q)

    def visits(self, actions: Integers) -> Floats:
        """How often each state is visited, (S,), when these actions are played: discounted, or per step."""
        self.last["visits"] = visits_of(self._rows(actions), self.initial, self.discount, self.last.get("visits"))
        return self.last["visits"]

    def values(self, actions: Integers, table: Floats, accuracy: float) -> tuple[Floats, Floats]:
        """Gains and values (S,) of these actions; of discounted totals gains are zero."""
        earned = table[np.arange(len(actions)), actions]
        p, near = self._rows(actions), Near(self.last.get("value"), accuracy)
        if self.discount < 1.0:
            gain, value = np.zeros(len(actions)), _solved(p * self.discount, earned, near=near)
        else:
            gain, value = gain_and_bias(p, earned, near)
        self.last.update(actions=actions, value=value)
        return gain, value

    def _rows(self, actions: Integers) -> csr_matrix:
        return self._matrix[np.arange(len(actions)) * self.laws.shape[2] + actions]

    @cached_property
    def _matrix(self) -> csr_matrix:
        _, S, A = self.laws.shape
        return csr_matrix((self.laws.probabilities, self.laws.successors, self.laws.pointers), shape=(S * A, S))

    def _iterated(self, table: Floats) -> tuple[Integers, float]:
        """Policy iteration from the last policy on, first with rough values; the bound is what values prove."""
        _, S, A = self.laws.shape
        p, every = self._matrix, np.arange(S)
        actions = self.last.get("actions", table.argmax(axis=1))
        height, best, accuracy = np.inf, actions, ROUGH if S > MAX_FACTORISED else ACCURATE
        for improvement in range(MAX_IMPROVEMENTS):
            gain, value = self.values(actions, table, accuracy)
            after = table + self.discount * (p @ value).reshape(S, A)
            leads = (p @ gain).reshape(S, A)
            height, best = min(height, self._bound(gain, value, leads, after)), actions
            better = BETTER if accuracy == ACCURATE else ROUGH
            size = better * max(1.0, float(np.abs(value).max()), float(np.abs(gain).max()))
            climbs = leads.max(axis=1) > gain + size
            allowed = leads >= leads.max(axis=1, keepdims=True) - size
            masked = np.where(allowed, after, -np.inf)
            improves = climbs | (masked.max(axis=1) > after[every, actions] + size)
            if accuracy == ACCURATE and not improves.any():
                break
            if not improves.any() or improvement > MAX_ROUGH:
                accuracy = ACCURATE
            actions = np.where(improves, masked.argmax(axis=1), actions)
        return best, height

    def _bound(self, gain: Floats, value: Floats, leads: Floats, after: Floats) -> float:
        """What no policy exceeds, by the values of one: the program's dual, made feasible by what is missing most."""
        if self.discount < 1.0:
            over = max(float((after.max(axis=1) - value).max()), 0.0)
            return float(self.initial @ value) + over * self.steps
        # g + M (g - P_a g) + h >= r_a + P_a h with a large M: actions that lead to a smaller gain need not fit h.
        missing = after - value[:, None] - gain[:, None]
        falls = np.maximum(gain[:, None] - leads, 0.0)
        climb = max(float((leads - gain[:, None]).max()), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where((missing > 0.0) & (falls > BETTER), missing / falls, 0.0)
        big = float(needed.max())
        left = np.where(falls > BETTER, missing - big * falls, missing)
        return float(self.initial @ gain) + max(float(left.max()), 0.0) + (1.0 + big) * climb


def occupancy_in_the_long_run(laws: SparseLaws, policy: Floats, initial: Floats, discount: float) -> Floats:
    """How often each state and action is visited under a policy (S, A): discounted totals, or per step."""
    visits = visits_of(chain_of(laws, policy), initial, discount)
    return visits[:, None] * policy


def values_in_the_long_run(laws: SparseLaws, policy: Floats, table: Floats, discount: float) -> Floats:
    """What a policy (S, A) earns by a table (S, A) from every state on, (S,): discounted totals, or per step."""
    chain, earned = chain_of(laws, policy), (policy * table).sum(axis=1)
    return _solved(chain * discount, earned) if discount < 1.0 else gain_and_bias(chain, earned)[0]


def chain_of(laws: SparseLaws, policy: Floats) -> csr_matrix:
    """The chain (S, S) that a policy (S, A) makes of stationary laws."""
    S, A = policy.shape
    p = csr_matrix((laws.probabilities, laws.successors, laws.pointers), shape=(S * A, S))
    chosen = csr_matrix((policy.flatten(), np.arange(S * A), np.arange(S + 1) * A), shape=(S, S * A))
    chosen.eliminate_zeros()
    return chosen @ p


def visits_of(p: csr_matrix, initial: Floats, discount: float, near: Floats | None = None) -> Floats:
    """How often each state of a chain is visited, (S,): discounted totals, or the share of steps in the long run."""
    if discount < 1.0:
        return np.maximum(_solved((p * discount).T, initial, near=Near(near)), 0.0)
    classes, transient = closed_classes(p)
    reached = _absorbed(p, initial, transient)
    q = np.zeros(len(initial))
    for states in classes:
        q[states] = reached[states].sum() * _stationary(_within(p, states), None if near is None else near[states])
    return q


class Near(NamedTuple):
    """What a solution is like, where that is known, and how exactly it is wanted."""

    start: Floats | None = None
    accuracy: float = ACCURATE


UNKNOWN = Near()


def gain_and_bias(p: csr_matrix, earned: Floats, near: Near = UNKNOWN) -> tuple[Floats, Floats]:
    """g and h of a chain, (S,): h is zero at the first state of every closed class."""
    classes, transient = closed_classes(p)
    gain, bias = np.zeros(len(earned)), np.zeros(len(earned))
    for states in classes:
        # x - P x + mean(x) = r: the mean is the gain, since that is what the stationary law makes of both sides.
        start = None if near.start is None else near.start[states] - near.start[states].mean()
        found = _solved(_within(p, states), earned[states], 1.0, Near(start, near.accuracy))
        gain[states], bias[states] = found.mean(), found - found[0]
    if len(transient):
        inner, outer = p[transient][:, transient], p[transient]
        gain[transient] = _solved(inner, outer @ gain)
        bias[transient] = _solved(inner, earned[transient] - gain[transient] + outer @ bias)
    return gain, bias


def closed_classes(p: csr_matrix) -> tuple[list[np.ndarray], np.ndarray]:
    """The sets of states that are never left, each by its states, and the states that are left for good."""
    n, label = connected_components(p, connection="strong")
    row = np.repeat(np.arange(p.shape[0]), np.diff(p.indptr))
    left = np.zeros(n, bool)
    left[label[row[label[row] != label[p.indices]]]] = True
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(label, minlength=n))[:-1])
    return [group for i, group in enumerate(groups) if not left[i]], np.flatnonzero(left[label])


def reached_from(p: csr_matrix, initial: Floats) -> npt.NDArray[np.bool_]:
    """Which states a chain ever reaches, (S,)."""
    n = len(initial)
    first = csr_matrix((initial > 0.0).astype(np.float64))
    begun = block_array([[p, csr_matrix((n, 1))], [first, None]]).tocsr()  # one more state, which leads to the first
    reached = np.zeros(n + 1, bool)
    reached[breadth_first_order(begun, n, return_predecessors=False)] = True
    return reached[:n]


def _absorbed(p: csr_matrix, initial: Floats, transient: np.ndarray) -> Floats:
    """With which chance a chain stays for good in the class that it enters at a state, (S,)."""
    if not len(transient):
        return initial
    flow = _solved(p[transient][:, transient].T, initial[transient])
    reached = initial + flow @ p[transient]
    reached[transient] = 0.0
    return np.asarray(reached)


def _within(p: csr_matrix, states: np.ndarray) -> csr_matrix:
    """The chain of a closed class."""
    return p if len(states) == p.shape[0] else p[states][:, states]


def _stationary(p: csr_matrix, near: Floats | None) -> Floats:
    """The law that an irreducible chain keeps: q = P'q, whose sum is one."""
    found = np.maximum(_solved(p.T, np.full(p.shape[0], 1.0 / p.shape[0]), 1.0, Near(near)), 0.0)
    return np.asarray(found / found.sum())


def _solved(p: csr_matrix, right: Floats, mean: float = 0.0, near: Near = UNKNOWN) -> Floats:
    """x - p x + mean * (the mean of x) = right: by iterations where it is large and they get there, or by factors."""
    n = len(right)
    rows = csr_matrix(p)

    def left(x: Floats) -> Floats:
        return np.asarray(x - rows @ x + mean * x.mean())

    if n > MAX_FACTORISED:
        system, found = LinearOperator((n, n), left), np.zeros(n) if near.start is None else near.start
        before = np.inf
        for _ in range(MAX_REFINEMENTS):
            rest = right - left(found)
            missing = float(np.abs(rest).max()) / max(float(np.abs(found).max()), 1e-300)
            if missing <= near.accuracy:
                return found
            if missing > 0.1 * before:  # iterations do not get there
                break
            before = missing
            share = min(max(0.1 * near.accuracy / missing, 1e-8), 0.1)
            found = found + bicgstab(system, rest, rtol=share, atol=0.0, maxiter=MAX_ITERATIONS)[0]
        if missing <= max(ENOUGH, near.accuracy):
            return found
    # One more unknown, the mean of x, and the equation that says so: nothing is dense.
    system = identity(n, format="csc") - csc_matrix(p)
    if mean:
        system = block_array([[system, np.full((n, 1), mean)], [np.full((1, n), -1.0 / n), np.ones((1, 1))]]).tocsc()
    factors, right = splu(system), right if not mean else np.r_[right, 0.0]
    found = factors.solve(right)
    return np.asarray(found + factors.solve(right - system @ found))[:n]
