"""Newton's method on the dual of the one-kernel mirror step.

Dual variables: V (H, S) for the flow equations, xi (m,) for the hinges.  With y_r = c_r - xi.d_r - V_h(s) + p_r.V_{h+1}
the dual is the smooth convex minimisation

    theta(V, xi) = sum_r f(y_r) + mu.V_1 + sum_j ( ([xi_j - W_j]^+)^2 / (2 rho_j) - b_j xi_j ),   0 <= xi_j (<= W_j if rho_j = 0)

with f(y) = ([y]^+)^2 / 2 (Euclid) or e^y (KL), and q_r = f'(y_r) at the solution.  Newton's matrix is that of
`single_blocks` with weights f''(y_r); eliminating V leaves a quadratic over a box in the m hinge multipliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.single_blocks import assemble, factorise, solve_blocks
from omdpd.kernels.single_box import box_quadratic
from omdpd.kernels.single_certificate import Best, dual_scale, duality_gap, occupancy_of_slack, offer
from omdpd.kernels.single_problem import LARGEST_EXPONENT, Problem, change_of_slack, clip_multipliers, dual_slack

# Relative size of the proximal term on a hinge multiplier: makes the quadratic in xi definite at a vertex,
# where no active row is left to carry a change of the hinge.
HINGE_REGULARISATION = 1e-12
# Gap (relative) below which Newton's step is taken whole: there the slope of theta is rounding.
ENDGAME = 1e-7
# Steps without halving the gap after which Newton gives up: far from, and close to the solution.
PATIENCE_FAR, PATIENCE_NEAR = 20, 4
# A line search that ends below this is a sign of a direction that only looks like descent.
SMALLEST_STEP = 1e-12


class Work(NamedTuple):
    """Arrays written by every Newton step: masses, weights, blocks, right-hand sides."""

    q: Floats
    w: Floats
    dy: Floats
    D: Floats
    E: Floats
    rows: Floats
    X: Floats


@njit(cache=True, error_model="numpy")
def workspace(H: int, S: int, A: int, m: int) -> Work:
    """Uninitialised arrays for a problem of this size."""
    return Work(
        np.empty((H, S, A)),
        np.empty((H, S, A)),
        np.empty((H, S, A)),
        np.empty((H, S, S)),
        np.empty((H, S, S)),
        np.empty((S * A, S)),
        np.empty((H, S, m + 1)),
    )


@njit(cache=True, error_model="numpy")
def dual_newton(
    problem: Problem, V: Floats, xi: Floats, work: Work, best: Best, tol: float, limit: int
) -> tuple[int, bool]:
    """Newton steps from (V, xi), which are overwritten; the number of steps and whether `best` is good enough.

    y is carried along by its changes: close to the solution those are small, so y holds the masses to rounding
    even where V and xi.d are 1e5 times larger.
    """
    y = np.empty(problem.c.shape)
    dual_slack(problem, V, xi, y)
    smallest, since = np.inf, 0
    for k in range(limit + 1):
        gap = duality_gap(problem, xi, y, occupancy_of_slack(problem, y))[0] / dual_scale(problem, V)
        if gap <= tol and offer(problem, V, xi, y, best, tol):
            return k, True
        since = 0 if gap < 0.5 * smallest else since + 1
        smallest = min(smallest, gap)
        patience = PATIENCE_NEAR if smallest <= ENDGAME else PATIENCE_FAR
        if k == limit or since > patience or not gap < np.inf:
            break
        dV, dxi = newton_step(problem, y, xi, work)
        step = 1.0 if gap <= ENDGAME else line_search(problem, y, xi, dV, dxi, work.dy)
        if not step > SMALLEST_STEP:
            break
        V += step * dV
        y += step * work.dy
        xi += step * dxi
        clip_multipliers(problem, xi)
    return k, offer(problem, V, xi, y, best, tol)


@njit(cache=True, error_model="numpy")
def newton_step(problem: Problem, y: Floats, xi: Floats, work: Work) -> tuple[Floats, Floats]:
    """The Newton direction (dV, dxi); work.dy is the change of y along it."""
    m = xi.size
    mass_and_weight(y, problem.kl, work.q, work.w)
    flow_and_hinges(problem, work)
    assemble(problem.p, work.w, work.D, work.E, work.rows)
    factorise(work.D, work.E)
    solve_blocks(work.D, work.E, work.X)
    dxi = np.zeros(m)
    if m > 0:
        T, v = hinge_quadratic(problem, work)
        dxi = hinge_step(problem, T, v, xi)
    dV = -work.X[:, :, 0]
    for j in range(m):
        dV -= dxi[j] * work.X[:, :, 1 + j]
    change_of_slack(problem, dV, dxi, work.dy)
    return dV, dxi


@njit(cache=True, error_model="numpy")
def mass_and_weight(y: Floats, kl: bool, q: Floats, w: Floats) -> None:
    """q := f'(y), w := f''(y).

    Euclid: a state without an active row gets its best one, linearised as if active (q = y <= 0).  Its Newton
    equation then reads: this action carries the inflow; and M stays definite with V meaningful at every state.
    """
    H, S, A = y.shape
    for h in range(H):
        for s in range(S):
            if kl:
                for a in range(A):
                    q[h, s, a] = np.exp(min(y[h, s, a], LARGEST_EXPONENT))
                    w[h, s, a] = q[h, s, a]
                continue
            best = 0
            for a in range(A):
                positive = y[h, s, a] > 0.0
                q[h, s, a] = y[h, s, a] if positive else 0.0
                w[h, s, a] = 1.0 if positive else 0.0
                if y[h, s, a] > y[h, s, best]:
                    best = a
            if w[h, s, best] == 0.0:
                q[h, s, best] = y[h, s, best]
                w[h, s, best] = 1.0


@njit(cache=True, error_model="numpy")
def flow_and_hinges(problem: Problem, work: Work) -> None:
    """X[..., 0] := mu - G^T q (the flow residual), X[..., 1 + j] := G^T (w d_j)."""
    H, S, A = work.q.shape
    m = problem.d.shape[3]
    X = work.X
    X[:] = 0.0
    for s in range(S):
        X[0, s, 0] = problem.mu[s]
    for h in range(H):
        for s in range(S):
            for a in range(A):
                weight = work.w[h, s, a]
                if weight > 0.0:
                    mass = work.q[h, s, a]
                    X[h, s, 0] -= mass
                    for j in range(m):
                        X[h, s, 1 + j] += weight * problem.d[h, s, a, j]
                    if h + 1 < H:
                        for t in range(S):
                            chance = problem.p[h, s, a, t]
                            if chance > 0.0:
                                X[h + 1, t, 0] += chance * mass
                                for j in range(m):
                                    X[h + 1, t, 1 + j] -= chance * weight * problem.d[h, s, a, j]


@njit(cache=True, error_model="numpy")
def hinge_quadratic(problem: Problem, work: Work) -> tuple[Floats, Floats]:
    """T = P^T diag(w) P with P_j = d_j - G M^{-1} G^T (w d_j), and the hinge arguments d.q after the flow step.

    T is a Gram matrix, so it is positive semidefinite also in rounding.
    """
    H, S, A = work.q.shape
    m = problem.d.shape[3]
    T = np.zeros((m, m))
    v = np.zeros(m)
    row = np.empty(m + 1)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                weight = work.w[h, s, a]
                if weight > 0.0:
                    for k in range(m + 1):
                        row[k] = -work.X[h, s, k]
                    if h + 1 < H:
                        for t in range(S):
                            chance = problem.p[h, s, a, t]
                            if chance > 0.0:
                                for k in range(m + 1):
                                    row[k] += chance * work.X[h + 1, t, k]
                    # dV = -X[..., 0], so q changes by -w row[0].
                    mass = work.q[h, s, a] - weight * row[0]
                    for j in range(m):
                        v[j] += problem.d[h, s, a, j] * mass
                        row[1 + j] += problem.d[h, s, a, j]
                    for j in range(m):
                        for k in range(j + 1):
                            T[j, k] += weight * row[1 + j] * row[1 + k]
    for j in range(m):
        for k in range(j):
            T[k, j] = T[j, k]
    return T, v


@njit(cache=True, error_model="numpy")
def hinge_step(problem: Problem, T: Floats, v: Floats, xi: Floats) -> Floats:
    """The change of xi: the quadratic over the box, on the piece of ([xi - W]^+)^2 that xi is (or is about to be) on."""
    m = xi.size
    g, low, high = np.empty(m), np.empty(m), np.empty(m)
    for j in range(m):
        W, rho = problem.W[j], problem.rho[j]
        g[j] = -(v[j] + problem.b[j])
        low[j], high[j] = -xi[j], W - xi[j]
        if rho > 0.0 and (xi[j] > W or (xi[j] == W and g[j] < 0.0)):
            g[j] += (xi[j] - W) / rho
            T[j, j] += 1.0 / rho
            low[j], high[j] = W - xi[j], np.inf
    scale = 0.0
    for j in range(m):
        scale = max(scale, T[j, j])
    for j in range(m):
        T[j, j] += HINGE_REGULARISATION * scale + 1e-30
    return box_quadratic(T, g, low, high)


@njit(cache=True, error_model="numpy")
def slope(problem: Problem, y: Floats, xi: Floats, dV: Floats, dxi: Floats, dy: Floats, step: float) -> float:
    """d theta / d step along (dV, dxi)."""
    H, S, A = y.shape
    total = 0.0
    for h in range(H):
        for s in range(S):
            for a in range(A):
                moved = y[h, s, a] + step * dy[h, s, a]
                if problem.kl:
                    total += np.exp(min(moved, LARGEST_EXPONENT)) * dy[h, s, a]
                elif moved > 0.0:
                    total += moved * dy[h, s, a]
    for s in range(S):
        total += problem.mu[s] * dV[0, s]
    for j in range(xi.size):
        total -= problem.b[j] * dxi[j]
        over = xi[j] + step * dxi[j] - problem.W[j]
        if problem.rho[j] > 0.0 and over > 0.0:
            total += over / problem.rho[j] * dxi[j]
    return total


@njit(cache=True, error_model="numpy")
def line_search(problem: Problem, y: Floats, xi: Floats, dV: Floats, dxi: Floats, dy: Floats) -> float:
    """A step in (0, 1] at which the slope has fallen to a fraction of its size at 0; 0 if (dV, dxi) is no descent."""
    start = slope(problem, y, xi, dV, dxi, dy, 0.0)
    if not start < 0.0:
        return 0.0
    end = slope(problem, y, xi, dV, dxi, dy, 1.0)
    if end <= -0.3 * start:
        return 1.0
    low, high, low_slope, high_slope = 0.0, 1.0, start, end
    step = 0.0
    for k in range(40):
        # The slope increases; halving every third time bounds the number of rounds.
        step = 0.5 * (low + high) if k % 3 == 2 else low - low_slope * (high - low) / (high_slope - low_slope)
        here = slope(problem, y, xi, dV, dxi, dy, step)
        if abs(here) <= -0.2 * start:
            break
        if here < 0.0:
            low, low_slope = step, here
        else:
            high, high_slope = step, here
    return step
