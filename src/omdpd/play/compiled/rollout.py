"""One trajectory from a policy, with the random numbers passed in."""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import Successors


@checked_entry
def index_of_uniform(law: Floats, uniform: float) -> int:
    """The first index whose cumulative probability exceeds `uniform`; never one of probability zero."""
    total = 0.0
    last = 0
    for i in range(law.size):
        if law[i] > 0.0:
            total += law[i]
            last = i
            if uniform < total:
                return i
    return last


@checked_entry
def trajectory(policy: Floats, transition: Floats, initial: Floats, uniforms: Floats) -> tuple[Integers, Integers]:
    """States and actions of one episode; `uniforms` (H, 2) drives the states (column 0) and the actions (column 1)."""
    H = policy.shape[0]
    states = np.empty(H, dtype=np.int64)
    actions = np.empty(H, dtype=np.int64)
    law = initial
    for h in range(H):
        s = index_of_uniform(law, uniforms[h, 0])
        a = index_of_uniform(policy[h, s], uniforms[h, 1])
        states[h] = s
        actions[h] = a
        law = transition[h, s, a]
    return states, actions


@checked_entry
def listed_trajectory(
    pointers: Integers, successors: Successors, probabilities: Floats, policy: Floats, initial: Floats, uniforms: Floats
) -> tuple[Integers, Integers]:
    """States and actions of one episode; `uniforms` (H, 2) drives the states (column 0) and the actions (column 1)."""
    H, S, A = policy.shape
    last = (pointers.size - 1) // (S * A) - 1
    states, actions = np.empty(H, dtype=np.int64), np.empty(H, dtype=np.int64)
    s = index_of_uniform(initial, uniforms[0, 0])
    for h in range(H):
        if h > 0:
            row = (min(h - 1, last) * S + s) * A + actions[h - 1]
            first, stop = pointers[row], pointers[row + 1]
            s = successors[first + index_of_uniform(probabilities[first:stop], uniforms[h, 0])]
        states[h] = s
        actions[h] = index_of_uniform(policy[h, s], uniforms[h, 1])
    return states, actions
