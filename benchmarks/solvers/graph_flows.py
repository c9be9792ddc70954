"""Policies, flows and values on a layered graph: one sweep over its rows each, for benchmarks and tests.

A policy over rows gives every row its share of its state: the chance that a member of the state takes one of the
actions that the row stands for.  Shares of a state sum to one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.flow import NO_MASS
from omdpd.solvers.compiled.graph_flow import Arrays, mean_of_layer, spread_over_layer


@njit
def shares_of_occupancy(g: Arrays, q: Floats) -> Floats:
    """The policy of an occupancy: copies q over their sum, uniform over true actions where there is no mass."""
    shares = np.empty(q.size)
    for i in range(g.rows.size - 1):
        total, pairs = 0.0, 0.0
        for r in range(g.rows[i], g.rows[i + 1]):
            total += g.copies[r] * max(q[r], 0.0)
            pairs += g.copies[r]
        for r in range(g.rows[i], g.rows[i + 1]):
            shares[r] = g.copies[r] * (max(q[r], 0.0) / total if total > NO_MASS else 1.0 / pairs)
    return shares


@njit
def occupancy_of_shares(g: Arrays, shares: Floats) -> Floats:
    """The occupancy (per true pair) of a policy over rows, by one forward sweep."""
    H = g.layers.size - 1
    q, mass = np.empty(shares.size), np.zeros(g.members.size)
    for i in range(g.mu.size):
        mass[i] = g.mu[i]
    for h in range(H):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            for r in range(g.rows[i], g.rows[i + 1]):
                flow = mass[i] * shares[r]
                q[r] = flow / g.copies[r]
                if flow > 0.0:
                    spread += g.spread[r] * flow
                    for e in range(g.entries[r], g.entries[r + 1]):
                        mass[g.successors[e]] += flow * g.probabilities[e]
        spread_over_layer(g, spread, mass, h + 1)
    return q


@njit
def values_of_shares(g: Arrays, shares: Floats, reward: Floats) -> Floats:
    """V_i, the value of a policy over rows from every state on, for a reward per true pair; one backward sweep."""
    V = np.zeros(g.members.size)
    for h in range(g.layers.size - 2, -1, -1):
        mean = mean_of_layer(g, V, h + 1)
        for i in range(g.layers[h], g.layers[h + 1]):
            for r in range(g.rows[i], g.rows[i + 1]):
                ahead = g.spread[r] * mean
                for e in range(g.entries[r], g.entries[r + 1]):
                    ahead += g.probabilities[e] * V[g.successors[e]]
                V[i] += shares[r] * (reward[r] + ahead)
    return V
