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

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, identity
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import bicgstab, splu

from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import SparseLaws
from omdpd.solvers.columns import Mixture, Vertex
from omdpd.solvers.compiled.listed import Codes
from omdpd.solvers.packed import Packed, code_type

# Up to this many states systems are factorised; beyond it they are solved by iterations, which laws that mix make few.
MAX_FACTORISED = 2000
MAX_ITERATIONS = 500
MAX_REFINEMENTS = 6
# How exactly iterations solve a system, relative to its solution; and what is left to them rather than to factors.
ACCURATE, ENOUGH = 1e-14, 1e-11
# An action is better only by more than this, relative to the values: otherwise rounding would go on for ever.
BETTER = 1e-12
# Policies that are improved before the best one so far is given, with its bound: ten are many.
MAX_IMPROVEMENTS = 200


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
    last: list[Integers] = field(default_factory=list)

    @property
    def steps(self) -> float:
        """What an occupancy sums to."""
        return 1.0 if self.discount == 1.0 else 1.0 / (1.0 - self.discount)

    def best(self, weights: Floats) -> tuple[Vertex, float]:
        """The deterministic policy that maximises w_0 r.q + sum_j w_j d_j.q, and a bound on the maximum."""
        table = weights[0] * self.reward[0] + np.tensordot(weights[1:], self.tables[:, 0], axes=1)
        actions, height = self._iterated(table)
        self.last[:] = [actions]
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

        In the long run no share of the steps is left for states that are passed once: nothing is marked then.
        """
        visits = q[0].sum(axis=1)
        codes = self.codes(max(mixture.held, key=lambda each: each[0])[1])
        codes[0] = np.where(visits > 0.0, 2 * q[0].argmax(axis=1), codes[0] | (self.discount < 1.0))
        places = np.flatnonzero((q[0] > 0.0).sum(axis=1) > 1)
        return Packed(codes, places, q[0, places] / visits[places, None], visits[places], True)

    def _totals(self, actions: Integers) -> Floats:
        q = self.visits(actions)
        every = np.concatenate([self.reward, self.tables[:, 0]])
        return np.asarray(every[:, np.arange(len(q)), actions] @ q)

    def visits(self, actions: Integers) -> Floats:
        """How often each state is visited, (S,), when these actions are played: discounted, or per step."""
        return visits_of(self._rows(actions), self.initial, self.discount)

    def values(self, actions: Integers, table: Floats) -> tuple[Floats, Floats]:
        """Gains and values (S,) of these actions; of discounted totals gains are zero."""
        earned = table[np.arange(len(actions)), actions]
        p = self._rows(actions)
        if self.discount < 1.0:
            return np.zeros(len(actions)), _solved(p * self.discount, earned)
        return gain_and_bias(p, earned)

    def _rows(self, actions: Integers) -> csr_matrix:
        return self._matrix[np.arange(len(actions)) * self.laws.shape[2] + actions]

    @cached_property
    def _matrix(self) -> csr_matrix:
        _, S, A = self.laws.shape
        return csr_matrix((self.laws.probabilities, self.laws.successors, self.laws.pointers), shape=(S * A, S))

    def _iterated(self, table: Floats) -> tuple[Integers, float]:
        """Policy iteration from the last policy on; the bound is that of the values that it ends with."""
        _, S, A = self.laws.shape
        p, every = self._matrix, np.arange(S)
        actions = self.last[0] if self.last else table.argmax(axis=1)
        height, best = np.inf, actions
        for _ in range(MAX_IMPROVEMENTS):
            gain, value = self.values(actions, table)
            after = table + self.discount * (p @ value).reshape(S, A)
            leads = (p @ gain).reshape(S, A)
            height, best = min(height, self._bound(gain, value, leads, after)), actions
            size = BETTER * max(1.0, float(np.abs(value).max()), float(np.abs(gain).max()))
            climbs = leads.max(axis=1) > gain + size
            allowed = leads >= leads.max(axis=1, keepdims=True) - size
            masked = np.where(allowed, after, -np.inf)
            improves = climbs | (masked.max(axis=1) > after[every, actions] + size)
            if not improves.any():
                break
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


def visits_of(p: csr_matrix, initial: Floats, discount: float) -> Floats:
    """How often each state of a chain is visited, (S,): discounted totals, or the share of steps in the long run."""
    if discount < 1.0:
        return np.maximum(_solved((p * discount).T, initial), 0.0)
    classes, transient = closed_classes(p)
    reached = _absorbed(p, initial, transient)
    q = np.zeros(len(initial))
    for states in classes:
        q[states] = reached[states].sum() * _stationary(p[states][:, states])
    return q


def gain_and_bias(p: csr_matrix, earned: Floats) -> tuple[Floats, Floats]:
    """g and h of a chain, (S,): h is zero at the first state of every closed class."""
    classes, transient = closed_classes(p)
    gain, bias = np.zeros(len(earned)), np.zeros(len(earned))
    for states in classes:
        inner = p[states][:, states]
        system = (identity(len(states), format="csc") - inner).tolil()
        system[:, 0] = 1.0  # the unknown of the first state is the gain of all
        found = _factorised(csc_matrix(system), earned[states])
        gain[states], bias[states] = found[0], np.r_[0.0, found[1:]]
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


def _absorbed(p: csr_matrix, initial: Floats, transient: np.ndarray) -> Floats:
    """With which chance a chain stays for good in the class that it enters at a state, (S,)."""
    if not len(transient):
        return initial
    flow = _solved(p[transient][:, transient].T, initial[transient])
    reached = initial + flow @ p[transient]
    reached[transient] = 0.0
    return np.asarray(reached)


def _stationary(p: csr_matrix) -> Floats:
    """The law that an irreducible chain keeps."""
    system = (identity(p.shape[0], format="csc") - p.T).tolil()
    system[0] = 1.0
    found = np.maximum(_factorised(csc_matrix(system), np.eye(1, p.shape[0])[0]), 0.0)
    return np.asarray(found / found.sum())


def _solved(p: csr_matrix, right: Floats) -> Floats:
    """x = p x + right."""
    return _factorised(csc_matrix(identity(p.shape[0], format="csc") - p), right)


def _factorised(system: csc_matrix, right: Floats) -> Floats:
    """system x = right, by iterations where it is large and they get there, and by factors otherwise."""
    if len(right) > MAX_FACTORISED:
        rows, found = csr_matrix(system), np.zeros(len(right))
        for _ in range(MAX_REFINEMENTS):
            found = found + bicgstab(rows, right - rows @ found, rtol=1e-8, atol=0.0, maxiter=MAX_ITERATIONS)[0]
            missing = float(np.abs(rows @ found - right).max()) / max(float(np.abs(found).max()), 1e-300)
            if missing <= ACCURATE:
                return np.asarray(found)
        if missing <= ENOUGH:
            return np.asarray(found)
    factors = splu(system)
    found = factors.solve(right)
    return np.asarray(found + factors.solve(right - system @ found))
