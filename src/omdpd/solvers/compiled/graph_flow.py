"""Policies, flows and values on a layered graph: one sweep over its rows each.

A policy over rows gives every row its share of its state: the chance that a member of the state takes one of the
actions that the row stands for.  Shares of a state sum to one; vectors q over rows hold one number per true pair, so
copies[r] q[r] is the flow of a row.  `solvers.graph` says what the arrays are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import entry, inner
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.flow import NO_MASS

Indices = npt.NDArray[np.int64]


class Arrays(NamedTuple):
    """The arrays of a `Graph`, as compiled functions take them."""

    layers: Indices
    rows: Indices
    entries: Indices
    successors: Indices
    probabilities: Floats
    members: Floats
    copies: Floats
    mu: Floats
    S: float
    spread: Floats


@inner
def mean_of_layer(g: Arrays, V: Floats, h: int) -> float:
    """The expectation of V under the uniform law over the true states of layer h (0 after the last one)."""
    if h + 1 == g.layers.size:
        return 0.0
    total = 0.0
    for i in range(g.layers[h], g.layers[h + 1]):
        total += g.members[i] * V[i]
    return total / g.S


@inner
def spread_over_layer(g: Arrays, flow: float, mass: Floats, h: int) -> None:
    """Add a flow that the uniform law leads to layer h to the masses of its states."""
    if flow != 0.0 and h + 1 < g.layers.size:
        each = flow / g.S
        for i in range(g.layers[h], g.layers[h + 1]):
            mass[i] += each * g.members[i]


@entry
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


@entry
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


@entry
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


@entry
def flow_residual(g: Arrays, q: Floats) -> float:
    """Largest violation of the flow equations of the graph's states and of q >= 0."""
    H = g.layers.size - 1
    inflow = np.zeros(g.members.size)
    for i in range(g.mu.size):
        inflow[i] = g.mu[i]
    worst = 0.0
    for h in range(H):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            balance = -inflow[i]
            for r in range(g.rows[i], g.rows[i + 1]):
                flow = g.copies[r] * q[r]
                balance += flow
                worst = max(worst, -flow)
                spread += g.spread[r] * flow
                for e in range(g.entries[r], g.entries[r + 1]):
                    inflow[g.successors[e]] += flow * g.probabilities[e]
            worst = max(worst, abs(balance))
        spread_over_layer(g, spread, inflow, h + 1)
    return worst
