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
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.cmdp import CMDP, Labels, Scenarios


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
    linked = _links(cmdp)
    reached = _reachable(linked, cmdp.initial)
    sources, targets = np.nonzero(linked & reached[:, None])
    S = cmdp.shape[1]
    graph = coo_matrix((np.ones(sources.size), (sources, targets)), shape=(S, S))
    _, label = connected_components(graph, directed=False)
    groups = [np.flatnonzero(reached & (label == part)) for part in dict.fromkeys(label[reached].tolist())]
    return tuple(_part(cmdp, states) for states in groups)


def _links(cmdp: CMDP) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether some action at some step leads from a state to another, (S, S)."""
    p = cmdp.transition
    steps = p[:1] if p.strides[0] == 0 or len(p) == 1 else p[:-1]
    linked = np.zeros((p.shape[1], p.shape[1]), dtype=bool)
    for step in steps:
        linked |= (step > 0.0).any(axis=1)
    return linked


def _reachable(
    linked: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], initial: Floats
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """States that can be met from the start at all."""
    reached = initial > 0.0
    while True:
        more = reached | linked[reached].any(axis=0)
        if np.array_equal(more, reached):
            return reached
        reached = more


def _part(cmdp: CMDP, states: Integers) -> Part:
    weight = float(cmdp.initial[states].sum())
    p, scenarios, labels = cmdp.transition, cmdp.scenarios, cmdp.labels
    kernel = p[0][np.ix_(states, np.arange(p.shape[2]), states)] if p.strides[0] == 0 else p[:, states][..., states]
    small = np.array(np.broadcast_to(kernel, (len(p), *kernel.shape[-3:])), order="C")
    # The last step leads nowhere; its rows may leave the part and are made to stay.
    small[-1] = np.where(small[-1].sum(-1, keepdims=True) > 0.5, small[-1], np.eye(len(states))[:, None])
    small /= small.sum(axis=-1, keepdims=True)
    whole = len(states) == cmdp.shape[1]
    names = tuple(labels.states[s] for s in states) if labels.states else ()
    kept = Labels(names, labels.actions, labels.constraints, labels.layout if whole else ())
    problem = replace(
        cmdp, transition=small, initial=cmdp.initial[states] / weight, labels=kept,
        reward=np.ascontiguousarray(cmdp.reward[:, states]), cost=np.ascontiguousarray(cmdp.cost[:, :, states]),
        scenarios=None if scenarios is None else Scenarios(scenarios.names, scenarios.tables[:, :, :, states].copy()),
    )  # fmt: skip
    return Part(weight, states, problem)
