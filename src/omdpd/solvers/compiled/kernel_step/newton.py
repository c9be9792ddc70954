"""Newton's method on the dual of the one-kernel mirror step.

Dual variables: V (H, S) for the flow equations, xi (m,) for the hinges.  With y_r = c_r - xi.d_r - V_h(s) + p_r.V_{h+1}
the dual is the smooth convex minimisation

    theta(V, xi) = sum_r f(y_r) + mu.V_1,    0 <= xi_j <= W_j,

with f(y) = ([y]^+)^2 / 2 (Euclid) or e^y (KL), and q_r = f'(y_r) at the solution.  Newton's matrix is that of
`blocks` with weights f''(y_r); eliminating V leaves a quadratic over a box in the m hinge multipliers.

The outer functions are inlined by the front end: the compiler optimises every level of calls anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_matrix, copy_vector
from omdpd.solvers.compiled.kernel_step.bend import bend
from omdpd.solvers.compiled.kernel_step.blocks import assemble, factorise, solve_blocks
from omdpd.solvers.compiled.kernel_step.box import box_quadratic
from omdpd.solvers.compiled.kernel_step.certificate import EPSILON, dual_scale, duality_gap, occupancy_of_slack
from omdpd.solvers.compiled.kernel_step.problem import (
    MAX_EXPONENT,
    Problem,
    change_of_slack,
    clip_multipliers,
    dual_slack,
)
from omdpd.solvers.compiled.options import GLUE, INNER

# Relative size of the proximal term on a hinge multiplier: makes the quadratic in xi definite at a vertex,
# where no active row is left to carry a change of the hinge; and where none is left for any hinge.
HINGE_REGULARISATION, TINY = 1e-12, 1e-30
# The trust region of xi: it follows the length of the steps taken, grows by the first factor after a whole step
# and shrinks by the second when there was no descent at all.
GROWTH, SHRINKAGE, MIN_RADIUS = 4.0, 1e-3, 1e-9
# Certificates without halving the gap after which Newton's method gives up, and after which the slack is computed anew.
PATIENCE, RENEW_AFTER = 4, 2
# Steps of a run that may be bent: where bending helps it takes a few, and without an end it can wander.
MAX_BENT = 12
# A certificate is worth its price when the linear model missed the masses by at most this many tolerances.
SURPRISE = 10.0
# A whole step may leave the slope this part of its size at 0, a searched one that.  The trials of a search at least
# halve its interval every third time; this many of them reach 1e-4, and only rounding asks for a shorter step.
WHOLE_SLOPE, SEARCHED_SLOPE, MAX_TRIALS = 0.3, 0.2, 40


class Work(NamedTuple):
    """Arrays written by every Newton step: values, slacks, their changes, masses, weights, blocks, right-hand sides.

    `trial` is for bent steps: values, masses of the states, slacks, multipliers; `best` is the best certified point:
    occupancy, values, multipliers; `hot` is for a heated problem: its linear terms and hinges.
    """

    V: Floats
    y: Floats
    level: Floats
    dV: Floats
    q: Floats
    w: Floats
    dy: Floats
    D: Floats
    E: Floats
    rows: Floats
    X: Floats
    trial: tuple[Floats, Floats, Floats, Floats]
    best: tuple[Floats, Floats, Floats]
    hot: tuple[Floats, Floats]


class Answer(NamedTuple):
    """What is certified of the best point: gap, its scale and rounding, Newton steps, and whether it is good enough.

    The point itself is in `Work.best`: arrays in a value that changes in a loop take long to compile.
    """

    gap: float
    scale: float
    noise: float
    steps: int
    solved: bool


@njit(**INNER)
def workspace(H: int, S: int, A: int, m: int) -> Work:
    """Uninitialised arrays for a problem of this size."""
    rows, states, blocks = np.empty((7, H, S * A)), np.empty((5, H, S)), np.empty((2, H, S, S))
    level, square, sides, duals = np.empty(A), np.empty((S * A, S)), np.empty((H, m + 1, S)), np.empty((3, m))
    return Work(
        V=states[0],
        y=rows[0],
        level=level,
        dV=states[1],
        q=rows[1],
        w=rows[2],
        dy=rows[3],
        D=blocks[0],
        E=blocks[1],
        rows=square,
        X=sides,
        trial=(states[2], states[3], rows[4], duals[0]),
        best=(rows[5], states[4], duals[1]),
        hot=(rows[6], duals[2]),
    )


@njit(**GLUE)
def dual_newton(problem: Problem, xi: Floats, work: Work, tol: float, limit: int) -> Answer:
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
        step = line_search(problem, y, dV, work.dy)
        bent = False
        if step < 1.0 and bends < MAX_BENT:
            bends += 1
            bent = bend(problem, V, xi, y, work.q, work.w, dV, dxi, work.dy, step, work.level, work.trial)
        surprise = np.inf if bent else move(problem, V, xi, y, dV, dxi, step, work)
        stuck = step == 0.0 and not bent and not (farthest > MIN_RADIUS and farthest < np.inf)
        if step == 1.0 or bent:
            radius = max(radius, GROWTH * farthest)
        elif farthest > 0.0:
            radius = max(farthest * (2.0 * step if step > 0.0 else SHRINKAGE), MIN_RADIUS)
        # Only a whole step along which the linear model held can have ended at the solution.
        if (step == 1.0 and surprise <= SURPRISE * tol) or stuck or steps == limit:
            exact = dual_slack(problem, V, xi)
            q = occupancy_of_slack(problem.p, problem.mu, y, problem.kl)
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
    return Answer(gap, scale, noise, steps, solved)


@njit(**INNER)
def move(problem: Problem, V: Floats, xi: Floats, y: Floats, dV: Floats, dxi: Floats, step: float, work: Work) -> float:
    """(V, xi, y) += step (dV, dxi, dy); how far the masses f'(y) are from their linear model, as a gap."""
    if step == 0.0:
        return np.inf
    H, S = V.shape
    surprise = 0.0
    for h in range(H):
        for s in range(S):
            V[h, s] += step * dV[h, s]
        for r in range(y.shape[1]):
            y[h, r] += step * work.dy[h, r]
            model = work.q[h, r] + step * work.w[h, r] * work.dy[h, r]
            if problem.kl:
                mass = np.exp(min(y[h, r], MAX_EXPONENT))
                surprise += (mass - model) ** 2 / max(mass, model, 1e-300)
            else:
                surprise += (max(y[h, r], 0.0) - model) ** 2
    for j in range(xi.size):
        xi[j] += step * dxi[j]
    clip_multipliers(problem, xi)
    return surprise


@njit(**GLUE)
def newton_step(problem: Problem, xi: Floats, radius: float, work: Work) -> tuple[Floats, float]:
    """The Newton direction dxi with |dxi| <= radius, and the largest |dxi_j|; dV and dy are in `work`."""
    mass_and_weight(work.y, problem.kl, work.D.shape[1], work.q, work.w)
    flow_and_hinges(problem, work.q, work.w, work.X)
    assemble(problem.p, work.w, work.D, work.E, work.rows)
    factorise(work.D, work.E)
    solve_blocks(work.D, work.E, work.X)
    H, S, m = work.X.shape[0], work.X.shape[2], xi.size
    dxi, farthest = np.zeros(m), 0.0
    if m > 0:
        T, v = hinge_quadratic(problem, work.q, work.w, work.X)
        dxi = hinge_step(problem, T, v, xi, radius)
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


@njit(**INNER)
def mass_and_weight(y: Floats, kl: bool, S: int, q: Floats, w: Floats) -> None:
    """q := f'(y), w := f''(y).

    Euclid: a state without an active row gets its best one, linearised as if active (q = y <= 0).  Its Newton
    equation then reads: this action carries the inflow; and M stays definite with V meaningful at every state.
    """
    H, R = y.shape
    A = R // S
    for h in range(H):
        for s in range(S):
            best = s * A
            for a in range(A):
                r = s * A + a
                if kl:
                    q[h, r] = np.exp(min(y[h, r], MAX_EXPONENT))
                    w[h, r] = q[h, r]
                    continue
                positive = y[h, r] > 0.0
                q[h, r] = y[h, r] if positive else 0.0
                w[h, r] = 1.0 if positive else 0.0
                if y[h, r] > y[h, best]:
                    best = r
            if not kl and w[h, best] == 0.0:
                q[h, best] = y[h, best]
                w[h, best] = 1.0


@njit(**INNER)
def flow_and_hinges(problem: Problem, q: Floats, w: Floats, X: Floats) -> None:
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


@njit(**INNER)
def hinge_quadratic(problem: Problem, q: Floats, w: Floats, X: Floats) -> tuple[Floats, Floats]:
    """T = P^T diag(w) P with P_j = d_j - G M^{-1} G^T (w d_j), and the hinge arguments d.q after the flow step.

    T is a Gram matrix, so it is positive semidefinite also in rounding.
    """
    H, width, S = X.shape
    A = q.shape[1] // S
    p, d = problem.p, problem.d
    m = width - 1
    T, v, row = np.zeros((m, m)), np.zeros(m), np.empty(width)
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
                        v[j] += d[h, r, j] * mass
                        row[1 + j] += d[h, r, j]
                        for k in range(j + 1):
                            T[j, k] += weight * row[1 + j] * row[1 + k]
    for j in range(m):
        for k in range(j):
            T[k, j] = T[j, k]
    return T, v


@njit(**INNER)
def hinge_step(problem: Problem, T: Floats, v: Floats, xi: Floats, radius: float) -> Floats:
    """The change of xi: the quadratic over its box and the trust region."""
    m = xi.size
    g, low, high = np.empty(m), np.empty(m), np.empty(m)
    scale = 0.0
    for j in range(m):
        scale = max(scale, T[j, j])
    for j in range(m):
        g[j] = -v[j]
        T[j, j] += HINGE_REGULARISATION * scale + TINY
        low[j], high[j] = max(-xi[j], -radius), min(problem.W[j] - xi[j], radius)
    return box_quadratic(T, g, low, high)


@njit(**INNER)
def line_search(problem: Problem, y: Floats, dV: Floats, dy: Floats) -> float:
    """A step in (0, 1] at which the slope has fallen to a fraction of its size at 0; 0 if dy is no descent."""
    low, high, step = 0.0, 1.0, 0.0
    if problem.kl:
        high = longest_step(y, dy)
    start, low_slope, high_slope = 0.0, 0.0, 0.0
    for k in range(MAX_TRIALS):
        # Ends first; then the slope is known to change sign: secant steps, and halving every third time.
        if k == 1:
            step = high
        elif k > 1:
            step = 0.5 * (low + high) if k % 3 == 0 else low - low_slope * (high - low) / (high_slope - low_slope)
        here, noise = slope(problem, y, dV, dy, step)
        if k == 0:
            start = low_slope = here
            if not here < noise:
                return 0.0
        elif k == 1:
            high_slope = here
            if here <= max(-WHOLE_SLOPE * start, noise):
                return high
            if start >= 0.0:
                return 0.0
        elif abs(here) <= -SEARCHED_SLOPE * start:
            break
        elif here < 0.0:
            low, low_slope = step, here
        else:
            high, high_slope = step, here
    return step


@njit(**INNER)
def longest_step(y: Floats, dy: Floats) -> float:
    """KL: the step in (0, 1] that lifts no y above one (or by one, where it is there already).

    No mass exceeds one, so the solution has y <= 0; a y that overshoots comes back by one per Newton step only.
    """
    step = 1.0
    for h in range(y.shape[0]):
        for r in range(y.shape[1]):
            room = max(1.0 - y[h, r], 1.0)
            if dy[h, r] * step > room:
                step = room / dy[h, r]
    return step


@njit(**INNER)
def slope(problem: Problem, y: Floats, dV: Floats, dy: Floats, step: float) -> tuple[float, float]:
    """d theta / d step along (dV, dxi), of which dy is the slack's change, and its rounding."""
    H, R = y.shape
    total, size = 0.0, 0.0
    for h in range(H):
        for r in range(R):
            moved = y[h, r] + step * dy[h, r]
            if problem.kl:
                moved = np.exp(min(moved, MAX_EXPONENT))
            if moved > 0.0:
                total += moved * dy[h, r]
                size += abs(moved * dy[h, r])
    for s in range(problem.mu.size):
        total += problem.mu[s] * dV[0, s]
        size += abs(problem.mu[s] * dV[0, s])
    return total, 4.0 * EPSILON * size
