"""Closed parts of a CMDP: states that an episode can never mix.

Where the first state decides which states can ever be met (Taxi: the passenger's destination never changes), the
problem is several smaller ones.  A learner's work per episode grows with the square to the cube of the number of
states, so the parts are much cheaper than the whole; states that cannot be reached are left out.  A policy that meets
the budgets in every part meets them on the whole; the converse does not hold, because the whole may spend more in one
part and less in another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from omdpd.problem.arrays import Floats, Integers, one_step, over_steps
from omdpd.problem.cmdp import CMDP, Labels, Scenarios
from omdpd.problem.laws import SparseLaws, laws_of_entries


@dataclass(frozen=True, eq=False)
class Part:
    """A closed part: how often an episode starts in it, the numbers of its states in the whole, and its problem."""

    weight: float
    states: Integers
    cmdp: CMDP


def parts_of(cmdp: CMDP) -> tuple[Part, ...]:
    """The closed parts of a problem, in the order of their first states; unreachable states belong to none.

    >>> p = np.zeros((4, 1, 4))
    >>> p[[0, 1, 2, 3], 0, [1, 0, 2, 3]] = 1.0
    >>> whole = CMDP.from_arrays(p, np.zeros((4, 1)), np.zeros((4, 1)), 1.0, [0.5, 0.0, 0.5, 0.0], horizon=3)
    >>> [(part.weight, part.states.tolist()) for part in parts_of(whole)]
    [(0.5, [0, 1]), (0.5, [2])]
    """
    S = cmdp.shape[1]
    linked = _links(cmdp)
    reached = _reachable(linked, cmdp.initial)
    sources, targets = linked.nonzero()
    inside = reached[sources]
    graph = coo_matrix((np.ones(inside.sum()), (sources[inside], targets[inside])), shape=(S, S))
    _, label = connected_components(graph, directed=False)
    groups = [np.flatnonzero(reached & (label == part)) for part in dict.fromkeys(label[reached].tolist())]
    return tuple(_part(cmdp, states) for states in groups)


def _links(cmdp: CMDP) -> csr_matrix:
    """A matrix (S, S) that is positive where some action at some step leads from a state to another."""
    laws = cmdp.laws.listed()
    H, S, A = laws.shape
    rows = np.repeat(np.arange(len(laws.pointers) - 1), np.diff(laws.pointers))
    used = rows < max(laws.n_steps - (laws.n_steps == H and H > 1), 1) * S * A
    sources, targets = rows[used] // A % S, laws.successors[used]
    return coo_matrix((np.ones(len(sources)), (sources, targets)), shape=(S, S)).tocsr()


def _reachable(linked: csr_matrix, initial: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """States that can be met from the start at all."""
    reached = initial > 0.0
    while True:
        more = reached | (linked.T @ reached > 0.0)
        if np.array_equal(more, reached):
            return reached
        reached = more


def _laws_of_part(laws: SparseLaws, states: Integers) -> SparseLaws:
    """The laws among some states of a kernel, numbered anew."""
    H, S, A = laws.shape
    n, size = laws.n_steps, len(states)
    number = np.full(S, -1)
    number[states] = np.arange(size)
    rows = np.repeat(np.arange(n * S * A), np.diff(laws.pointers))
    step, source, action = rows // (S * A), number[rows // A % S], rows % A
    target = number[laws.successors]
    kept = (source >= 0) & (target >= 0)
    row = (step * size + source) * A + action
    # The last step leads nowhere; its rows may leave the part and are made to stay.
    total = np.bincount(row[kept], laws.probabilities[kept], n * size * A)
    leaving = np.flatnonzero(total < 0.5)
    kept &= ~np.isin(row, leaving)
    rows = np.r_[row[kept], leaving]
    following = np.r_[target[kept], leaving // A % size]
    return laws_of_entries(
        rows, following, np.r_[laws.probabilities[kept], np.ones(len(leaving))], (H, size, A), n, 1.0
    )


def _part(cmdp: CMDP, states: Integers) -> Part:
    weight = float(cmdp.initial[states].sum())
    scenarios, labels, H = cmdp.scenarios, cmdp.labels, cmdp.shape[0]
    whole = len(states) == cmdp.shape[1]
    names = tuple(labels.states[s] for s in states) if labels.states else ()
    kept = Labels(names, labels.actions, labels.constraints, labels.layout if whole else ())
    problem = replace(
        cmdp, laws=_laws_of_part(cmdp.laws.listed(), states), initial=cmdp.initial[states] / weight, labels=kept,
        reward=over_steps(np.ascontiguousarray(one_step(cmdp.reward, 0)[:, states]), H, 0),
        cost=over_steps(np.ascontiguousarray(one_step(cmdp.cost, 1)[:, :, states]), H, 1),
        scenarios=None if scenarios is None else Scenarios(
            scenarios.names, over_steps(one_step(scenarios.tables, 2)[:, :, :, states].copy(), H, 2)
        ),
        _divided=None,
    )  # fmt: skip
    return Part(weight, states, problem)
