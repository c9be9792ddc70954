"""Duality gap of the one-kernel mirror step, without cancellation, and the best certified point so far.

For any V, any xi in its box and any occupancy q of the kernel, with y = c - xi.d - V_h(s) + p.V_{h+1},

    gap = sum_r g(q_r, y_r) + sum_j ( phi_j(u_j) + phi_j*(xi_j) - xi_j u_j ),   u_j = d_j.q + b_j,

where g = (q - [y]^+)^2 / 2 + q ([y]^+ - y) (Euclid) or q (log q - y) - q + e^y (KL), phi_j(u) = W_j [u]^+ + rho_j/2 ([u]^+)^2.
The large terms mu.V_1 and q.c have been removed by the flow equations, so every term is nonnegative and the
gap is exact to rounding; it bounds the distance to the solution, 1/2 |q - q*|^2 <= gap (Euclid).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.single_problem import LARGEST_EXPONENT, Problem, dual_slack

# Spacing of the doubles near one: u_j is only known to this times |d_j|.q.
EPSILON = 2.0**-52
# Weight of the hinges in the scale of the objective: at W = 1e6 a gap is not asked below 1e-11 W.
HINGE_SCALE = 1e-5


class Best(NamedTuple):
    """The best certified point: occupancy, duals, and (gap, scale, rounding of the gap)."""

    q: Floats
    V: Floats
    xi: Floats
    numbers: Floats


@njit(cache=True, error_model="numpy")
def offer(problem: Problem, V: Floats, xi: Floats, y: Floats, best: Best, tol: float) -> bool:
    """Certify (V, xi) with the occupancy of the policy of y; keep it if better; say whether it is good enough.

    `y` only proposes the policy (it may carry the masses more precisely than V can); the dual side of the gap
    is computed from V and xi alone.
    """
    q = occupancy_of_slack(problem, y)
    exact = np.empty(y.shape)
    dual_slack(problem, V, xi, exact)
    return offer_occupancy(problem, V, xi, exact, q, best, tol)


@njit(cache=True, error_model="numpy")
def offer_occupancy(
    problem: Problem, V: Floats, xi: Floats, y: Floats, q: Floats, best: Best, tol: float
) -> bool:
    """The same for a given occupancy and the slack y of (V, xi)."""
    gap, noise = duality_gap(problem, xi, y, q)
    scale = dual_scale(problem, V)
    if gap / scale < best.numbers[0] / best.numbers[1]:
        best.q[:], best.V[:], best.xi[:] = q, V, xi
        best.numbers[0], best.numbers[1], best.numbers[2] = gap, scale, noise
    return gap <= tol * scale + noise


@njit(cache=True, error_model="numpy")
def dual_scale(problem: Problem, V: Floats) -> float:
    """max(1, max_h range(V_h), 1e-5 H sum_j W_j): what a gap is compared with."""
    H, S = V.shape
    scale = max(1.0, HINGE_SCALE * H * problem.W.sum())
    for h in range(H):
        low, high = V[h, 0], V[h, 0]
        for s in range(1, S):
            low, high = min(low, V[h, s]), max(high, V[h, s])
        scale = max(scale, high - low)
    return scale


@njit(cache=True, error_model="numpy")
def duality_gap(problem: Problem, xi: Floats, y: Floats, q: Floats) -> tuple[float, float]:
    """The gap and a bound on its rounding by the hinges."""
    H, S, A = y.shape
    m = xi.size
    u, size = problem.b.copy(), np.abs(problem.b)
    gap = 0.0
    for h in range(H):
        for s in range(S):
            for a in range(A):
                mass = q[h, s, a]
                gap += gap_of_row(mass, y[h, s, a], problem.kl)
                if mass > 0.0:
                    for j in range(m):
                        term = problem.d[h, s, a, j] * mass
                        u[j] += term
                        size[j] += abs(term)
    noise = 0.0
    for j in range(m):
        gap += gap_of_hinge(u[j], xi[j], problem.W[j], problem.rho[j])
        noise += EPSILON * max(problem.W[j], xi[j]) * size[j]
    return gap, noise


@njit(cache=True, error_model="numpy")
def gap_of_row(mass: float, slack: float, kl: bool) -> float:
    """(q - [y]^+)^2 / 2 + q ([y]^+ - y), or q (log q - y) - q + e^y."""
    if not kl:
        return 0.5 * (mass - slack) ** 2 if slack > 0.0 else 0.5 * mass**2 - mass * slack
    if mass <= 0.0:
        return np.exp(min(slack, LARGEST_EXPONENT))
    # q (e^z - 1 - z) with z = y - log q; the series where the difference would cancel.
    z = min(slack - np.log(mass), LARGEST_EXPONENT)
    if abs(z) < 1e-3:
        return mass * z * z * (0.5 + z * (1.0 / 6.0 + z / 24.0))
    return mass * (np.expm1(z) - z)


@njit(cache=True, error_model="numpy")
def gap_of_hinge(u: float, xi: float, W: float, rho: float) -> float:
    """phi(u) + phi*(xi) - xi u, each case written as a sum of nonnegative terms."""
    over = max(xi - W, 0.0)
    if u <= 0.0:
        return over**2 / (2.0 * rho) - xi * u if over > 0.0 else -xi * u
    if over > 0.0:
        return (rho * u - over) ** 2 / (2.0 * rho)
    return (W - xi) * u + 0.5 * rho * u**2


@njit(cache=True, error_model="numpy")
def occupancy_of_slack(problem: Problem, y: Floats) -> Floats:
    """Forward pass of the policy proportional to [y]^+ (Euclid; the best row where none is positive) or e^y (KL)."""
    H, S, A = y.shape
    q = np.zeros((H, S, A))
    mass, following = problem.mu.copy(), np.zeros(S)
    share = np.empty(A)
    for h in range(H):
        following[:] = 0.0
        for s in range(S):
            if mass[s] <= 0.0:
                continue
            best = 0
            for a in range(1, A):
                if y[h, s, a] > y[h, s, best]:
                    best = a
            total = 0.0
            for a in range(A):
                share[a] = np.exp(y[h, s, a] - y[h, s, best]) if problem.kl else max(y[h, s, a], 0.0)
                total += share[a]
            if total <= 0.0:
                share[best], total = 1.0, 1.0
            factor = mass[s] / total
            for a in range(A):
                if share[a] > 0.0:
                    q[h, s, a] = factor * share[a]
                    if h + 1 < H:
                        row = problem.p[h, s, a]
                        for t in range(S):
                            following[t] += q[h, s, a] * row[t]
        mass[:] = following
    return q
