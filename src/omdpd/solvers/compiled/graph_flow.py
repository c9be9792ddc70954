"""Flows and expectations on a layered graph: what every sweep over its rows does at one of them.

Vectors q over rows hold one number per true pair, so copies[r] q[r] is the flow of a row.  `solvers.graph` says what
the arrays are.  `expectation` and `send` also take the active rows of a step, whose laws lie side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import entry, inner, rule
from omdpd.problem.arrays import Floats

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


@rule
def expectation(laws: Any, r: int, mean: float, V: Floats) -> float:
    """The expectation of V under the law of row r, `mean` under the uniform part of it."""
    total = laws.spread[r] * mean
    for e in range(laws.entries[r], laws.entries[r + 1]):
        total += laws.probabilities[e] * V[laws.successors[e]]
    return total


@rule
def send(laws: Any, r: int, flow: float, mass: Floats) -> float:
    """Add the flow of row r to the masses of its successors; what of it the uniform law leads on."""
    for e in range(laws.entries[r], laws.entries[r + 1]):
        mass[laws.successors[e]] += flow * laws.probabilities[e]
    return laws.spread[r] * flow


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
                spread += send(g, r, flow, inflow)
            worst = max(worst, abs(balance))
        spread_over_layer(g, spread, inflow, h + 1)
    return worst
