"""Duality gap of the one-kernel mirror step, without cancellation.

For any V, any xi in its box and any occupancy q of the kernel, with y = c - xi.d - V_h(s) + p.V_{h+1},

    gap = sum_r g(q_r, y_r) + sum_j ( W_j [u_j]^+ - xi_j u_j ),   u_j = d_j.q,

where g = (q - [y]^+)^2 / 2 + q ([y]^+ - y) (Euclid) or q (log q - y) - q + e^y (KL).
The large terms mu.V_1 and q.c have been removed by the flow equations, so every term is nonnegative and the
gap is exact to rounding; it bounds the distance to the solution, 1/2 |q - q*|^2 <= gap (Euclid).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.kernel_step.problem import MAX_EXPONENT, Problem
from omdpd.solvers.compiled.options import ENTRY, INNER

# Spacing of the doubles near one: u_j is only known to this times |d_j|.q.
EPSILON = 2.0**-52
# Weight of the hinges in the scale of the objective: at W = 1e6 a gap is not asked below 1e-11 W.
HINGE_SCALE = 1e-5
# Below this e^z - 1 - z would lose more digits than three terms of its series.
SERIES_BELOW = 1e-3


@njit(**INNER)
def dual_scale(problem: Problem, V: Floats) -> float:
    """max(1, max_h range(V_h), 1e-5 H sum_j W_j max|d_j|): what a gap is compared with."""
    H, S = V.shape
    scale = 1.0
    for h in range(H):
        low, high = V[h, 0], V[h, 0]
        for s in range(1, S):
            low, high = min(low, V[h, s]), max(high, V[h, s])
        scale = max(scale, high - low)
    return max(scale, HINGE_SCALE * H * problem.weight)


@njit(**ENTRY)
def duality_gap(problem: Problem, xi: Floats, y: Floats, q: Floats) -> tuple[float, float]:
    """The gap, and a bound on its rounding by the hinges.

    u_j is known to eps |d_j|.q, and the gap changes with u_j at the rate W_j - xi_j above zero and -xi_j below.
    """
    H, R = y.shape
    m = xi.size
    u, lost, size = np.zeros(m), np.zeros(m), np.zeros(m)
    gap = 0.0
    for h in range(H):
        for r in range(R):
            mass = q[h, r]
            gap += gap_of_row(mass, y[h, r], problem.kl)
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
        W, value, error = problem.W[j], u[j] + lost[j], EPSILON * size[j]
        gap += gap_of_hinge(value, xi[j], W)
        below = abs((W if value - error > 0.0 else 0.0) - xi[j])
        noise += error * max(below, abs((W if value + error > 0.0 else 0.0) - xi[j]))
    return gap, noise


@njit(**INNER)
def gap_of_row(mass: float, slack: float, kl: bool) -> float:
    """(q - [y]^+)^2 / 2 + q ([y]^+ - y), or q (log q - y) - q + e^y."""
    if not kl:
        return 0.5 * (mass - slack) ** 2 if slack > 0.0 else 0.5 * mass**2 - mass * slack
    if mass <= 0.0:
        return np.exp(min(slack, MAX_EXPONENT))
    # q (e^z - 1 - z) with z = y - log q; the series where the difference would cancel.
    z = min(slack - np.log(mass), MAX_EXPONENT)
    if abs(z) < SERIES_BELOW:
        return mass * z * z * (0.5 + z * (1.0 / 6.0 + z / 24.0))
    return mass * (np.expm1(z) - z)


@njit(**ENTRY)
def gap_of_hinge(u: float, xi: float, W: float) -> float:
    """W [u]^+ - xi u, which would cancel if it were written so."""
    return (W - xi) * u if u > 0.0 else -xi * u


@njit(**INNER)
def occupancy_of_slack(p: Floats, mu: Floats, y: Floats, kl: bool) -> Floats:
    """Forward pass of the policy proportional to [y]^+ (Euclid; the best row where none is positive) or e^y (KL)."""
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
                q[h, r] = np.exp(y[h, r] - y[h, best]) if kl else max(y[h, r], 0.0)
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
