"""One trajectory from a policy, with the random numbers passed in."""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers


@njit(cache=True)
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


@njit(cache=True)
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
