"""The largest occupancy of a pair over a confidence box, one plain recursion per pair."""

from __future__ import annotations

import numpy as np


def most_mass(policy, box, initial, h, s, a):
    """max over kernels in the box of Pr(s_h = s, a_h = a)."""
    reach = np.zeros(len(initial))
    reach[s] = 1.0
    for g in range(h - 1, -1, -1):
        earlier = np.zeros(len(initial))
        for x, b in np.ndindex(policy.shape[1:]):
            earlier[x] += policy[g, x, b] * best_mean(box.lower[g, x, b], box.upper[g, x, b], reach)
        reach = earlier
    return float(initial @ reach) * policy[h, s, a]


def most_occupancy(policy, box, initial):
    """`most_mass` of every pair, (H, S, A)."""
    found = [most_mass(policy, box, initial, *at) for at in np.ndindex(policy.shape)]
    return np.reshape(found, policy.shape)


def most_value(policy, box, initial, table):
    """max over kernels in the box of the value of `table` under `policy`."""
    V = np.zeros(len(initial))
    for h in range(len(policy) - 1, -1, -1):
        now = np.zeros(len(initial))
        for x, b in np.ndindex(policy.shape[1:]):
            now[x] += policy[h, x, b] * (table[h, x, b] + best_mean(box.lower[h, x, b], box.upper[h, x, b], V))
        V = now
    return float(initial @ V)


def best_mean(lower, upper, values):
    """The largest mean of `values` under a law between the bounds: pour what is left into the best states first."""
    law, rest = lower.copy(), 1.0 - lower.sum()
    for t in np.argsort(-values, kind="stable"):
        more = min(upper[t] - lower[t], rest)
        law[t] += more
        rest -= more
    return float(law @ values)
