"""Water filling at one state: the value V at which its actions, of gains g_a, carry a given mass.

Euclid   sum_a [g_a - V]^+ = mass,        KL   sum_a exp(g_a - V) = mass
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import inner
from omdpd.problem.arrays import Floats


@inner
def water_level(gains: Floats, mass: float) -> float:
    """The Euclidean V; the largest gain if there is no mass.

    Newton's method on a convex piecewise linear function: it climbs to the root in at most A steps.
    """
    A = gains.size
    best = -np.inf
    for a in range(A):
        best = max(best, gains[a])
    if mass <= 0.0:
        return best
    V = best - mass
    for _ in range(A):
        total, count = -mass, 0
        for a in range(A):
            if gains[a] > V:
                total += gains[a]
                count += 1
        if count == 0 or total <= V * count:
            break
        V = total / count
    return V


@inner
def log_sum_exp(gains: Floats) -> float:
    """log sum_a exp(g_a) without overflow: the V of KL plus log mass."""
    top = gains[0]
    for a in range(1, gains.size):
        top = max(top, gains[a])
    total = 0.0
    for a in range(gains.size):
        total += np.exp(gains[a] - top)
    return top + np.log(total)
