"""The hinge multipliers' part of a Newton step on a layered graph.

With V eliminated, the step in xi minimises a quadratic over the box of the multipliers.  Its matrix needs, for every
multiplier that may move, X_j = M^-1 G^T (w d_j) (`lanes`).  A multiplier that its hinge pushes against its bound needs
none.  The X_j need not be exact: the quadratic is the true model on the space that they and the flow step span.  But
what X_j lacks is added to the curvature, which is small where the solution is nearly deterministic, and too much of it
makes multipliers creep: it is the measure by which `lanes` stops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import mean_of_layer
from omdpd.solvers.compiled.graph_step.active import Active
from omdpd.solvers.compiled.graph_step.problem import GraphProblem
from omdpd.solvers.compiled.newton.multipliers import move_of_multipliers

Marks = npt.NDArray[np.bool_]


class StepBefore(NamedTuple):
    """Of the Newton step before: multipliers, slopes in them, and which of them were free."""

    xi: Floats
    slope: Floats
    free: Marks


@rule
def mark_free(u: Floats, xi: Floats, W: Floats, free: Marks) -> None:
    """Mark the multipliers that may move, those that u does not push against their bound."""
    for j in range(xi.size):
        free[j] = not ((xi[j] <= 0.0 and u[j] <= 0.0) or (xi[j] >= W[j] and u[j] >= 0.0))


@rule
def count_free(free: Marks) -> int:
    """How many multipliers may move."""
    count = 0
    for j in range(free.size):
        count += free[j]
    return count


@rule
def hinge_quadratic(
    problem: GraphProblem, active: Active, y: Floats, v: Floats, X: Floats, free: Marks, T: Floats, slope: Floats
) -> None:
    """The model of theta in dxi at dV = -v - X dxi: matrix T (a Gram matrix) and slope, over the free multipliers.

    The column of multiplier j is the one of its place among the free ones.
    """
    g, d, m, n = problem.g, problem.d, slope.size, count_free(free)
    change, mean = np.zeros(n), np.zeros(n)
    T[:] = 0.0
    slope[:] = 0.0
    for h in range(g.layers.size - 1):
        last = h + 2 == g.layers.size
        mean_v = mean_of_layer(g, v, h + 1)
        mean[:] = 0.0
        if not last:
            for i in range(g.layers[h + 1], g.layers[h + 2]):
                for b in range(n):
                    mean[b] += g.members[i] * X[i, b]
        for i in range(g.layers[h], g.layers[h + 1]):
            for k in range(active.first[i], active.first[i + 1]):
                r = active.row[k]
                mass = y[r] + v[i] - active.spread[k] * mean_v
                for b in range(n):
                    change[b] = X[i, b] - active.spread[k] * mean[b] / g.S
                for e in range(active.entries[k], active.entries[k + 1]):
                    chance, t = active.probabilities[e], active.successors[e]
                    mass -= chance * v[t]
                    for b in range(n):
                        change[b] -= chance * X[t, b]
                b, weight = 0, g.copies[r]
                for j in range(m):
                    if free[j]:
                        change[b] -= d[r, j]
                        slope[b] += weight * mass * change[b]
                        for a in range(b + 1):
                            T[b, a] += weight * change[a] * change[b]
                        b += 1
    for i in range(g.mu.size):
        for b in range(n):
            slope[b] -= g.mu[i] * X[i, b]
    for b in range(n):
        for a in range(b):
            T[a, b] = T[b, a]


@rule
def stiffen(T: Floats, slope: Floats, xi: Floats, free: Marks, before: StepBefore) -> None:
    """T *= max(1, (change of the slope).s / s.T s) for the last move s of the multipliers.

    T holds for the rows that are active here.  On the way from the last point others were, and a step by T alone would
    pass over them and come back, time after time.  The columns of T are those of the free multipliers; moves of others
    are left out.  Slope and multipliers are remembered.
    """
    n, b, seen, known = count_free(free), 0, 0.0, 0.0
    s = np.zeros(n)
    for j in range(xi.size):
        if free[j]:
            if before.free[j]:
                s[b] = xi[j] - before.xi[j]
                seen += s[b] * (slope[b] - before.slope[j])
            before.slope[j] = slope[b]
            b += 1
        before.xi[j], before.free[j] = xi[j], free[j]
    for a in range(n):
        for b in range(n):
            known += s[a] * T[a, b] * s[b]
    if seen > known > 0.0:
        for a in range(n):
            for b in range(n):
                T[a, b] *= seen / known


@rule
def hinge_step(T: Floats, slope: Floats, xi: Floats, W: Floats, free: Marks, radius: float, dxi: Floats) -> float:
    """dxi := the minimiser over the box and the trust region (0 for multipliers that stay); the largest |dxi_j|."""
    n, b = count_free(free), 0
    own, most = np.empty(n), np.empty(n)
    for j in range(xi.size):
        if free[j]:
            own[b], most[b] = xi[j], W[j]
            b += 1
    moves = move_of_multipliers(T[:n, :n].copy(), slope[:n].copy(), own, most, radius)
    b, farthest = 0, 0.0
    for j in range(xi.size):
        dxi[j] = 0.0
        if free[j]:
            dxi[j] = moves[b]
            farthest = max(farthest, abs(moves[b]))
            b += 1
    return farthest
