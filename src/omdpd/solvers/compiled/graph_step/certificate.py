"""Duality gap of the mirror step on a layered graph, without cancellation.

For any V, any xi in its box and any occupancy q of the graph, with y = c - xi.d - V_i + p.V',

    gap = sum_r copies_r ( (q_r - [y_r]^+)^2 / 2 + q_r ([y_r]^+ - y_r) ) + sum_j ( W_j [u_j]^+ - xi_j u_j )

with u_j = d_j.Q.

The large terms mu.V and q.c have been removed by the flow equations, so every term is nonnegative and the gap is exact
to rounding; it bounds the distance to the solution: sum_r copies_r (q_r - q*_r)^2 / 2 <= gap.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_step.active import Active, size_in_metric
from omdpd.solvers.compiled.graph_step.problem import GraphProblem
from omdpd.solvers.compiled.newton.certificate import EPSILON, HINGE_SCALE, gap_of_hinge, gap_of_row, noise_of_hinge

# Up to here a scale is taken as it is: a gap within 1e-10 of it is 1e-6 at most.
PLAIN_SCALE = 1e4


@rule
def dual_scale(problem: GraphProblem, V: Floats) -> float:
    """max(1, max_h range(V_h), 1e-5 H sum_j W_j max|d_j|): what a gap is compared with."""
    layers = problem.g.layers
    H = layers.size - 1
    scale = 1.0
    for h in range(H):
        low, high = V[layers[h]], V[layers[h]]
        for i in range(layers[h] + 1, layers[h + 1]):
            low, high = min(low, V[i]), max(high, V[i])
        scale = max(scale, high - low)
    return max(scale, HINGE_SCALE * H * problem.weight)


@rule
def most_claimed(problem: GraphProblem, q: Floats, scale: float) -> float:
    """The most that a gap of the point q may be compared with: its objective, where the scale is beyond `PLAIN_SCALE`.

    Prices of hinges are as large as W, and a W of 1e9 would call a gap of 0.3 small beside an objective of one.
    """
    if scale <= PLAIN_SCALE:
        return np.inf
    copies, d = problem.g.copies, problem.d
    objective = 0.0
    for r in range(q.size):
        objective += 0.5 * copies[r] * (q[r] - problem.c[r]) ** 2
    for j in range(problem.W.size):
        objective += problem.W[j] * max(np.sum(d[:, j] * (copies * q)), 0.0)
    return max(PLAIN_SCALE, objective)


@rule
def gap_of_rows(copies: Floats, y: Floats, q: Floats) -> float:
    """sum_r copies_r ( (q_r - [y_r]^+)^2 / 2 + q_r ([y_r]^+ - y_r) )."""
    gap = 0.0
    for r in range(y.size):
        gap += copies[r] * gap_of_row(q[r], y[r])
    return gap


@rule
def gap_of_hinges(problem: GraphProblem, xi: Floats, q: Floats) -> tuple[float, float]:
    """The hinges' part of the gap, and a bound on its rounding; u_j is known to eps |d_j|.Q."""
    copies, d = problem.g.copies, problem.d
    gap, noise = 0.0, 0.0
    for j in range(xi.size):
        u, lost, size = 0.0, 0.0, 0.0
        for r in range(q.size):
            if q[r] > 0.0:
                # Compensated, because W multiplies the error of u.
                term = d[r, j] * (copies[r] * q[r])
                total = u + term
                lost += (u - total) + term if abs(u) >= abs(term) else (term - total) + u
                u = total
                size += abs(term)
        gap += gap_of_hinge(u + lost, xi[j], problem.W[j])
        noise += noise_of_hinge(u + lost, EPSILON * size, xi[j], problem.W[j])
    return gap, noise


@rule
def hinges_of_slack(problem: GraphProblem, active: Active, y: Floats, u: Floats) -> None:
    """u_j := d_j.Q for the flow Q = copies [y]^+, which is not yet one of the graph."""
    copies, d = problem.g.copies, problem.d
    u[:] = 0.0
    for k in range(active.first[active.first.size - 1]):
        r = active.row[k]
        flow = copies[r] * max(y[r], 0.0)
        for j in range(u.size):
            u[j] += flow * d[r, j]


@rule
def expected_gap(problem: GraphProblem, active: Active, F: Floats, u: Floats, xi: Floats) -> float:
    """About what the certificate will say, from the flow residual in its metric and the hinges' arguments."""
    gap = 0.5 * size_in_metric(active, F)
    for j in range(xi.size):
        gap += gap_of_hinge(u[j], xi[j], problem.W[j])
    return gap
