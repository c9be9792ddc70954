"""Duality gap of the one-kernel mirror step, without cancellation.

For any V, any xi in its box and any occupancy q of the kernel, with y = c - xi.d - V_h(s) + p.V_{h+1},

    gap = sum_r ( (q_r - [y_r]^+)^2 / 2 + q_r ([y_r]^+ - y_r) ) + sum_j ( W_j [u_j]^+ - xi_j u_j ),   u_j = d_j.q.

The large terms mu.V_1 and q.c have been removed by the flow equations, so every term is nonnegative and the
gap is exact to rounding; it bounds the distance to the solution, 1/2 |q - q*|^2 <= gap.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import entry, rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.kernel_step.problem import KernelProblem
from omdpd.solvers.compiled.newton.certificate import (
    EPSILON,
    HINGE_SCALE,
    gap_of_hinge,
    gap_of_row,
    noise_of_hinge,
)


@rule
def dual_scale(problem: KernelProblem, V: Floats) -> float:
    """max(1, max_h range(V_h), 1e-5 H sum_j W_j max|d_j|): what a gap is compared with."""
    H, S = V.shape
    scale = 1.0
    for h in range(H):
        low, high = V[h, 0], V[h, 0]
        for s in range(1, S):
            low, high = min(low, V[h, s]), max(high, V[h, s])
        scale = max(scale, high - low)
    return max(scale, HINGE_SCALE * H * problem.weight)


@entry
def duality_gap(problem: KernelProblem, xi: Floats, y: Floats, q: Floats) -> tuple[float, float]:
    """The gap, and a bound on its rounding by the hinges, whose u_j is known to eps |d_j|.q."""
    H, R = y.shape
    m = xi.size
    u, lost, size = np.zeros(m), np.zeros(m), np.zeros(m)
    gap = 0.0
    for h in range(H):
        for r in range(R):
            mass = q[h, r]
            gap += gap_of_row(mass, y[h, r])
            if mass > 0.0:
                for j in range(m):
                    # Compensated, because W multiplies the error of u.
                    term = problem.d[h, r, j] * mass
                    total = u[j] + term
                    lost[j] += (u[j] - total) + term if abs(u[j]) >= abs(term) else (term - total) + u[j]
                    u[j] = total
                    size[j] += abs(term)
    noise = 0.0
    for j in range(m):
        value = u[j] + lost[j]
        gap += gap_of_hinge(value, xi[j], problem.W[j])
        noise += noise_of_hinge(value, EPSILON * size[j], xi[j], problem.W[j])
    return gap, noise


@rule
def occupancy_of_slack(p: Floats, mu: Floats, y: Floats) -> Floats:
    """Forward pass of the policy proportional to [y]^+; the best row where none is positive."""
    H, R = y.shape
    S = mu.size
    A = R // S
    q = np.zeros((H, R))
    mass = np.zeros((H + 1, S))
    for s in range(S):
        mass[0, s] = mu[s]
    for h in range(H):
        for s in range(S):
            if mass[h, s] <= 0.0:
                continue
            best, total = s * A, 0.0
            for a in range(1, A):
                if y[h, s * A + a] > y[h, best]:
                    best = s * A + a
            for a in range(A):
                r = s * A + a
                q[h, r] = max(y[h, r], 0.0)
                total += q[h, r]
            if total <= 0.0:
                q[h, best], total = 1.0, 1.0
            factor = mass[h, s] / total
            for a in range(A):
                r = s * A + a
                q[h, r] *= factor
                if q[h, r] > 0.0 and h + 1 < H:
                    for t in range(S):
                        mass[h + 1, t] += q[h, r] * p[h, r, t]
    return q
