"""The mirror step on a layered graph as data, and the linear maps between its variables.

    minimise  sum_r copies_r / 2 (q_r - c_r)^2 + sum_j W_j [d_j.Q]^+    over the flows Q = copies q of the graph

Dual: V over states, xi over hinges, and the slack y_r = c_r - xi.d_r - V_i + p_r.V' of row r of state i.  Every d_j is
scaled to largest entry one.  A uniform law costs one mean of V per layer (backward) and one sum of flow per layer
(forward).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import inline, rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays, expectation, mean_of_layer, send, spread_over_layer
from omdpd.solvers.compiled.newton.heating import divide


class GraphProblem(NamedTuple):
    """Data of one step: the graph, c (R,), d (R, m), W (m,), and sum_j W_j max|d_j| of the hinges with entries."""

    g: Arrays
    c: Floats
    d: Floats
    W: Floats
    weight: float


@rule
def change_of_slack(problem: GraphProblem, dV: Floats, dxi: Floats, dy: Floats) -> None:
    """dy := -dxi.d - dV_i + p.dV'."""
    g, d, m = problem.g, problem.d, dxi.size
    for h in range(g.layers.size - 1):
        mean = mean_of_layer(g, dV, h + 1)
        for i in range(g.layers[h], g.layers[h + 1]):
            here = dV[i]
            for r in range(g.rows[i], g.rows[i + 1]):
                total = expectation(g, r, mean, dV)
                for j in range(m):
                    total -= dxi[j] * d[r, j]
                dy[r] = total - here


@rule
def dual_slack(problem: GraphProblem, V: Floats, xi: Floats, y: Floats) -> None:
    """y := c - xi.d - V_i + p.V'."""
    change_of_slack(problem, V, xi, y)
    for r in range(y.size):
        y[r] += problem.c[r]


@rule
def water_filling(problem: GraphProblem, xi: Floats, mass: Floats, V: Floats, y: Floats) -> None:
    """V backward such that the rows of every state carry its given mass, and the slack y of (V, xi).

    sum_r copies_r [level_r - V]^+ = mass with level = c - xi.d + p.V'; V is the best level where there is no mass.
    """
    g, d, m = problem.g, problem.d, xi.size
    for h in range(g.layers.size - 2, -1, -1):
        mean = mean_of_layer(g, V, h + 1)
        for i in range(g.layers[h], g.layers[h + 1]):
            low, high = g.rows[i], g.rows[i + 1]
            best = low
            for r in range(low, high):
                total = expectation(g, r, mean, V)
                for j in range(m):
                    total -= xi[j] * d[r, j]
                y[r] = problem.c[r] + total
                if y[r] > y[best]:
                    best = r
            V[i] = fill_state(g.copies, y, low, high, best, mass[i])


@inline
def fill_state(copies: Floats, y: Floats, low: int, high: int, best: int, mass: float) -> float:
    """The water level of one state, whose levels are in y[low:high]; they become slacks.

    Newton's method on a convex piecewise linear function of the depth below the best level: it climbs to the root in at
    most as many steps as there are rows.
    """
    top, depth = y[best], 0.0
    if mass > 0.0:
        depth = -mass / copies[best]
        for _ in range(high - low - 1):
            total, count = -mass, 0.0
            for r in range(low, high):
                below = y[r] - top
                if below > depth:
                    total += copies[r] * below
                    count += copies[r]
            if total <= depth * count:
                break
            depth = total / count
    for r in range(low, high):
        y[r] = (y[r] - top) - depth
    return top + depth


@rule
def masses_of_mixture(g: Arrays, reference: Floats, mix: float, mass: Floats) -> None:
    """State masses of the policy of `reference`, mixed with a share `mix` of the one uniform over true actions."""
    mass[:] = 0.0
    for i in range(g.mu.size):
        mass[i] = g.mu[i]
    for h in range(g.layers.size - 2):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            total, pairs = 0.0, 0.0
            for r in range(g.rows[i], g.rows[i + 1]):
                total += g.copies[r] * max(reference[r], 0.0)
                pairs += g.copies[r]
            if mass[i] > 0.0:
                for r in range(g.rows[i], g.rows[i + 1]):
                    each = max(reference[r], 0.0) / total if total > 0.0 else 1.0 / pairs
                    flow = mass[i] * g.copies[r] * ((1.0 - mix) * each + mix / pairs)
                    spread += send(g, r, flow, mass)
        spread_over_layer(g, spread, mass, h + 1)


@rule
def masses_of_occupancy(g: Arrays, q: Floats, mass: Floats) -> None:
    """State masses of an occupancy."""
    for i in range(mass.size):
        total = 0.0
        for r in range(g.rows[i], g.rows[i + 1]):
            total += g.copies[r] * q[r]
        mass[i] = total


@rule
def occupancy_of_slack(g: Arrays, y: Floats, q: Floats, mass: Floats) -> None:
    """q := the forward pass of the policy proportional to copies [y]^+ (the best row where none is positive)."""
    mass[:] = 0.0
    for i in range(g.mu.size):
        mass[i] = g.mu[i]
    for h in range(g.layers.size - 1):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            low, high = g.rows[i], g.rows[i + 1]
            best, total = low, 0.0
            for r in range(low, high):
                if y[r] > y[best]:
                    best = r
                q[r] = max(y[r], 0.0)
                total += g.copies[r] * q[r]
            if total <= 0.0:
                q[best], total = 1.0, g.copies[best]
            factor = max(mass[i], 0.0) / total
            for r in range(low, high):
                q[r] *= factor
                flow = g.copies[r] * q[r]
                if flow > 0.0:
                    spread += send(g, r, flow, mass)
        spread_over_layer(g, spread, mass, h + 1)


@rule
def heated(problem: GraphProblem, tau: float) -> GraphProblem:
    """The problem with its linear terms and hinges divided by tau: a regulariser tau times as heavy."""
    c, W = np.empty(problem.c.size), np.empty(problem.W.size)
    divide(problem.c, tau, c)
    divide(problem.W, tau, W)
    return GraphProblem(g=problem.g, c=c, d=problem.d, W=W, weight=problem.weight / tau)
