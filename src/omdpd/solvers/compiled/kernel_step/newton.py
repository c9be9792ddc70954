"""Newton's method on the dual of the one-kernel mirror step.

Dual variables: V (H, S) for the flow equations, xi (m,) for the hinges.  With y_r = c_r - xi.d_r - V_h(s) + p_r.V_{h+1}
the dual is the smooth convex minimisation

    theta(V, xi) = sum_r f(y_r) + mu.V_1,    0 <= xi_j <= W_j,

with f(y) = ([y]^+)^2 / 2, and q_r = f'(y_r) at the solution.  Newton's matrix is that of `blocks` with weights
f''(y_r); eliminating V leaves a quadratic over a box in the m hinge multipliers.

The outer functions are inlined by the front end: the compiler optimises every level of calls anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import glue, rule
from omdpd.jit.pointers import flat
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_matrix, copy_vector
from omdpd.solvers.compiled.kernel_step.bend import bend
from omdpd.solvers.compiled.kernel_step.blocks import assemble, factorise, solve_blocks
from omdpd.solvers.compiled.kernel_step.certificate import dual_scale, duality_gap, occupancy_of_slack
from omdpd.solvers.compiled.kernel_step.problem import KernelProblem, KernelWork, change_of_slack, dual_slack
from omdpd.solvers.compiled.newton.line import MIN_RADIUS, line_along, line_search, next_radius
from omdpd.solvers.compiled.newton.multipliers import clip_multipliers, move_of_multipliers

# Certificates without halving the gap after which Newton's method gives up, and after which the slack is computed anew.
PATIENCE, RENEW_AFTER = 4, 2
# Steps of a run that may be bent: where bending helps it takes a few, and without an end it can wander.
MAX_BENT = 12
# A certificate is worth its price when the linear model missed the masses by at most this many tolerances.
SURPRISE = 10.0


class Certified(NamedTuple):
    """What is certified of the best point: gap, its scale and rounding, Newton steps, and whether it is good enough.

    The point itself is in `KernelWork.best`: arrays in a value that changes in a loop take long to compile.
    """

    gap: float
    scale: float
    noise: float
    steps: int
    solved: bool


@glue
def dual_newton(problem: KernelProblem, xi: Floats, work: KernelWork, tol: float, limit: int) -> Certified:
    """At most `limit` Newton steps from (V, xi) with slack y, all overwritten; the best certified point is in `work`.

    y is carried along by its changes: close to the solution those are small, so y holds the masses to rounding
    even where V and xi.d are 1e5 times larger.  The certificate uses the slack of V and xi alone.
    """
    V, y, dV = work.V, work.y, work.dV
    best_q, best_V, best_xi = work.best
    gap, scale, noise, solved = np.inf, 1.0, 0.0, False
    radius, since, steps, bends = np.inf, 0, 0, 0
    while steps < limit:
        steps += 1
        dxi, farthest = newton_step(problem, xi, radius, work)
        line = line_along(flat(y), flat(work.dy), problem.mu, flat(dV))
        step = line_search(line)
        bent = False
        if step < 1.0 and bends < MAX_BENT:
            bends += 1
            bent = bend(problem, xi, dxi, line, step, work)
        surprise = np.inf if bent else move(problem.W, xi, dxi, step, work)
        stuck = step == 0.0 and not bent and not (farthest > MIN_RADIUS and farthest < np.inf)
        radius = next_radius(radius, step, farthest, step == 1.0 or bent, 1.0)
        # Only a whole step along which the linear model held can have ended at the solution.
        if (step == 1.0 and surprise <= SURPRISE * tol) or stuck or steps == limit:
            exact = dual_slack(problem, V, xi)
            q = occupancy_of_slack(problem.p, problem.mu, y)
            here, rounding = duality_gap(problem, xi, exact, q)
            size = dual_scale(problem, V)
            since = 0 if here / size < 0.5 * gap / scale else since + 1
            if here / size < gap / scale:
                gap, scale, noise = here, size, rounding
                solved = gap + noise <= tol * scale or gap <= noise
                copy_matrix(q, best_q)
                copy_matrix(V, best_V)
                copy_vector(xi, best_xi)
            if solved or stuck or since > PATIENCE:
                break
            if since == RENEW_AFTER:
                copy_matrix(exact, y)
    return Certified(gap, scale, noise, steps, solved)


@rule
def move(W: Floats, xi: Floats, dxi: Floats, step: float, work: KernelWork) -> float:
    """(V, xi, y) += step (dV, dxi, dy); how far the masses [y]^+ are from their linear model, as a gap."""
    if step == 0.0:
        return np.inf
    V, y, dV = work.V, work.y, work.dV
    H, S = V.shape
    surprise = 0.0
    for h in range(H):
        for s in range(S):
            V[h, s] += step * dV[h, s]
        for r in range(y.shape[1]):
            y[h, r] += step * work.dy[h, r]
            model = work.q[h, r] + step * work.w[h, r] * work.dy[h, r]
            surprise += (max(y[h, r], 0.0) - model) ** 2
    for j in range(xi.size):
        xi[j] += step * dxi[j]
    clip_multipliers(W, xi)
    return surprise


@glue
def newton_step(problem: KernelProblem, xi: Floats, radius: float, work: KernelWork) -> tuple[Floats, float]:
    """The Newton direction dxi with |dxi| <= radius, and the largest |dxi_j|; dV and dy are in `work`."""
    mass_and_weight(work.y, work.D.shape[1], work.q, work.w)
    flow_and_hinges(problem, work.q, work.w, work.X)
    assemble(problem.p, work.w, work.D, work.E, work.rows)
    factorise(work.D, work.E)
    solve_blocks(work.D, work.E, work.X)
    H, S, m = work.X.shape[0], work.X.shape[2], xi.size
    dxi, farthest = np.zeros(m), 0.0
    if m > 0:
        T, slope = hinge_quadratic(problem, work.q, work.w, work.X)
        dxi = move_of_multipliers(T, slope, xi, problem.W, radius)
    for j in range(m):
        farthest = max(farthest, abs(dxi[j]))
    for h in range(H):
        for s in range(S):
            total = -work.X[h, 0, s]
            for j in range(m):
                total -= dxi[j] * work.X[h, 1 + j, s]
            work.dV[h, s] = total
    change_of_slack(problem, work.dV, dxi, work.dy)
    return dxi, farthest


@rule
def mass_and_weight(y: Floats, S: int, q: Floats, w: Floats) -> None:
    """q := f'(y), w := f''(y).

    A state without an active row gets its best one, linearised as if active (q = y <= 0).  Its Newton equation then
    reads: this action carries the inflow; and M stays definite with V meaningful at every state.
    """
    H, R = y.shape
    A = R // S
    for h in range(H):
        for s in range(S):
            best = s * A
            for a in range(A):
                r = s * A + a
                positive = y[h, r] > 0.0
                q[h, r] = y[h, r] if positive else 0.0
                w[h, r] = 1.0 if positive else 0.0
                if y[h, r] > y[h, best]:
                    best = r
            if w[h, best] == 0.0:
                q[h, best] = y[h, best]
                w[h, best] = 1.0


@rule
def flow_and_hinges(problem: KernelProblem, q: Floats, w: Floats, X: Floats) -> None:
    """X[:, 0] := mu - G^T q (the flow residual), X[:, 1 + j] := G^T (w d_j)."""
    H, width, S = X.shape
    A = q.shape[1] // S
    p, d = problem.p, problem.d
    X[:] = 0.0
    for s in range(S):
        X[0, 0, s] = problem.mu[s]
    for h in range(H):
        for s in range(S):
            for a in range(A):
                r = s * A + a
                weight = w[h, r]
                if weight > 0.0:
                    for k in range(width):
                        value = -q[h, r] if k == 0 else weight * d[h, r, k - 1]
                        X[h, k, s] += value
                        if h + 1 < H:
                            for t in range(S):
                                X[h + 1, k, t] -= value * p[h, r, t]


@rule
def hinge_quadratic(problem: KernelProblem, q: Floats, w: Floats, X: Floats) -> tuple[Floats, Floats]:
    """T = P^T diag(w) P with P_j = d_j - G M^{-1} G^T (w d_j), and the slopes -d.q in xi after the flow step.

    T is a Gram matrix, so it is positive semidefinite also in rounding.
    """
    H, width, S = X.shape
    A = q.shape[1] // S
    p, d = problem.p, problem.d
    m = width - 1
    T, slope, row = np.zeros((m, m)), np.zeros(m), np.empty(width)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                r = s * A + a
                weight = w[h, r]
                if weight > 0.0:
                    for k in range(width):
                        total = 0.0
                        if h + 1 < H:
                            for t in range(S):
                                total += p[h, r, t] * X[h + 1, k, t]
                        row[k] = total - X[h, k, s]
                    # dV = -X[:, 0], so q changes by -w row[0].
                    mass = q[h, r] - weight * row[0]
                    for j in range(m):
                        slope[j] -= d[h, r, j] * mass
                        row[1 + j] += d[h, r, j]
                        for k in range(j + 1):
                            T[j, k] += weight * row[1 + j] * row[1 + k]
    for j in range(m):
        for k in range(j):
            T[k, j] = T[j, k]
    return T, slope
