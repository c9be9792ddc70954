"""Chains: how often their states are visited, and what they earn, in the long run.

    discounted   V = r + gamma P V                           visits   q = mu + gamma P'q
    average      g = P g,   g + h = r + P h                  visits   q = P'q, a share of the steps in each closed class

Systems are solved by sparse factors where there are few states, else by iterations, which laws that mix make few, and
by factors where they do not end.  Large chains whose states can be put in a row so that steps are short are reduced
(`compiled/reduction.py`), which no slow mixing makes longer.  Averages are then those of a chain that ends with a
chance of 1e-18 at every step: states that are left less often than that count as never left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import block_array, coo_matrix, csc_matrix, csr_matrix, identity
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import LinearOperator, bicgstab, splu

from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import SparseLaws, Successors
from omdpd.solvers.compiled.reduction import fewest_ties_first, flow, gathered, put_back, reduced
from omdpd.solvers.threads import one_thread

# Systems of so few states are tables.
MAX_DENSE = 60
# Up to this many states systems are factorised; beyond it they are solved by iterations, which laws that mix make few.
MAX_FACTORISED = 2000
MAX_ITERATIONS = 200
MAX_REFINEMENTS = 6
# How exactly iterations solve a system, relative to its solution; and what is left to them rather than to factors.
ACCURATE, ENOUGH = 1e-14, 1e-13
# Larger chains are reduced in at most so many multiplications.
MAX_MULTIPLICATIONS = 1e9
# The chance with which a chain of averages that is reduced ends at every step: below the rounding of what it earns.
ENDS = 1e-18
# States that are tied to more others are taken out last.
MAX_TIES = 1000


class Order(NamedTuple):
    """The order (S,) in which states are taken out, and to which later ones each is tied then."""

    states: Integers
    start: Integers
    later: Successors


def order_of(p: csr_matrix) -> Order | None:
    """An order for a large chain in which states are tied to few others when they go; None where there is none."""
    n = p.shape[0]
    if n <= MAX_FACTORISED:
        return None
    either = csr_matrix((np.ones(p.nnz, np.int8), p.indices, p.indptr), shape=p.shape)
    both = coo_matrix(either + either.T)
    ties = _pattern(both.row[both.row != both.col], both.col[both.row != both.col], n)
    hub = np.diff(ties.indptr) > MAX_TIES
    h, most = int(hub.sum()), MAX_MULTIPLICATIONS - float(hub.sum()) ** 3
    states, start, later = fewest_ties_first(ties.indptr.astype(np.int64), ties.indices, ~hub, most)
    if most < 0.0 or (ties.nnz and not len(later) and h < n):
        return None
    states, place = np.r_[states, np.flatnonzero(hub)], np.empty(n, np.int64)
    place[states] = np.arange(n)
    row, col = np.triu_indices(h, 1)  # hubs are tied to each other in the end
    tied = _pattern(
        np.r_[np.repeat(np.arange(n - h), np.diff(start)), row + n - h], np.r_[place[later], col + n - h], n
    )
    return Order(states, tied.indptr.astype(np.int64), tied.indices)


def _pattern(row: Integers, col: Integers, n: int) -> csr_matrix:
    found = csr_matrix((np.ones(len(row), np.int8), (row, col)), shape=(n, n))
    found.sort_indices()
    return found


class Reduced:
    """The chain p, which ends with chance `ends` at each step, its states taken out one by one in this order."""

    def __init__(self, p: csr_matrix, ends: float, order: Order) -> None:
        self.states, self.ties, n = order.states, (order.start, order.later), len(order.states)
        place = np.empty(n, np.int64)
        place[order.states] = np.arange(n)
        entries, ties = coo_matrix(p), np.repeat(np.arange(n) * n, np.diff(order.start)) + order.later
        i, j, chance = place[entries.row], place[entries.col], (1.0 - ends) * entries.data

        def held(which: npt.NDArray[np.bool_]) -> Floats:
            at = np.searchsorted(ties, np.minimum(i, j)[which] * n + np.maximum(i, j)[which])
            return np.bincount(at, chance[which], len(ties)).astype(np.float64)

        self.up, self.down = held(i < j), held(i > j)
        self.left = reduced(*self.ties, self.up, self.down, np.full(n, ends))

    def values(self, earned: Floats) -> Floats:
        """V = r + (1 - ends) P V."""
        found = earned[self.states]
        gathered(*self.ties, self.down, found)
        put_back(*self.ties, self.up, self.left, found)
        return self._back(found)

    def visits(self, initial: Floats) -> Floats:
        """q = mu + (1 - ends) P'q."""
        found = initial[self.states]
        flow(*self.ties, self.up, self.down, self.left, found)
        return self._back(found)

    def _back(self, found: Floats) -> Floats:
        back = np.empty_like(found)
        back[self.states] = found
        return back


def reduced_chain(p: csr_matrix, discount: float, order: Order | None) -> Reduced | None:
    """The chain, reduced, where there is an order."""
    return None if order is None else Reduced(p, 1.0 - discount if discount < 1.0 else ENDS, order)


def occupancy_in_the_long_run(laws: SparseLaws, policy: Floats, initial: Floats, discount: float) -> Floats:
    """How often each state and action is visited under a policy (S, A): discounted totals, or per step."""
    chain = chain_of(laws, policy)
    visits = visits_of(chain, initial, discount, None, reduced_chain(chain, discount, order_of(chain)))
    return visits[:, None] * policy


def values_in_the_long_run(laws: SparseLaws, policy: Floats, table: Floats, discount: float) -> Floats:
    """What a policy (S, A) earns by a table (S, A) from every state on, (S,): discounted totals, or per step."""
    chain, earned = chain_of(laws, policy), (policy * table).sum(axis=1)
    within = reduced_chain(chain, discount, order_of(chain))
    if discount < 1.0:
        return discounted_values(chain, earned, discount, UNKNOWN, within)
    return gain_and_bias(chain, earned, UNKNOWN, within)[0]


def chain_of(laws: SparseLaws, policy: Floats) -> csr_matrix:
    """The chain (S, S) that a policy (S, A) makes of stationary laws."""
    S, A = policy.shape
    p = csr_matrix((laws.probabilities, laws.successors, laws.pointers), shape=(S * A, S))
    chosen = csr_matrix((policy.flatten(), np.arange(S * A), np.arange(S + 1) * A), shape=(S, S * A))
    chosen.eliminate_zeros()
    return chosen @ p


def discounted_values(p: csr_matrix, earned: Floats, discount: float, near: Near, within: Reduced | None) -> Floats:
    """What a chain earns from every state on, (S,), discounted; `within` is the chain reduced, where it is."""
    if within is not None:
        return within.values(earned)
    return _solved(p * discount, earned, near=near)


def visits_of(p: csr_matrix, initial: Floats, discount: float, near: Floats | None, within: Reduced | None) -> Floats:
    """How often each state of a chain is visited, (S,): discounted totals, or the share of steps in the long run."""
    if within is not None:
        found = within.visits(initial)
        return found if discount < 1.0 else found / found.sum()
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


def gain_and_bias(
    p: csr_matrix, earned: Floats, near: Near = UNKNOWN, within: Reduced | None = None
) -> tuple[Floats, Floats]:
    """g and h of a chain, (S,): h is zero at the first state of every closed class, or at most zero if reduced."""
    if within is not None:
        least = float(earned.min())
        gain = least + ENDS * within.values(earned - least)
        bias = within.values(earned - gain)
        return gain, bias - bias.max()
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
    if n <= MAX_DENSE:
        system = np.eye(n) - p.toarray() + mean / n
        found = np.linalg.solve(system, right)
        return np.asarray(found + np.linalg.solve(system, right - system @ found))
    rows = csr_matrix(p)

    def left(x: Floats) -> Floats:
        return np.asarray(x - rows @ x + mean * x.mean())

    if n > MAX_FACTORISED:
        system, found = LinearOperator((n, n), left), np.zeros(n) if near.start is None else near.start
        before = np.inf
        for _ in range(MAX_REFINEMENTS):
            rest = right - left(found)
            size = max(float(np.abs(rest).max()), 1e-300)  # the iterations take what is small for nothing
            missing = size / max(float(np.abs(found).max()), 1e-300)
            if missing <= near.accuracy:
                return found
            if missing > 0.1 * before:  # iterations do not get there
                break
            before = missing
            share = min(max(0.1 * near.accuracy / missing, 1e-8), 0.1)
            with one_thread():
                found = found + size * bicgstab(system, rest / size, rtol=share, atol=0.0, maxiter=MAX_ITERATIONS)[0]
        if missing <= max(ENOUGH, near.accuracy):
            return found
    # One more unknown, the mean of x, and the equation that says so: nothing is dense.
    system = identity(n, format="csc") - csc_matrix(p)
    if mean:
        system = block_array([[system, np.full((n, 1), mean)], [np.full((1, n), -1.0 / n), np.ones((1, 1))]]).tocsc()
    factors, right = splu(system), right if not mean else np.r_[right, 0.0]
    found = factors.solve(right)
    return np.asarray(found + factors.solve(right - system @ found))[:n]
