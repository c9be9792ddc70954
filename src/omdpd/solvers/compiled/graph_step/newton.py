"""Newton's method on the dual of the mirror step on a layered graph, with bent steps.

    theta(V, xi) = sum_r copies_r / 2 ([y_r]^+)^2 + mu.V,    0 <= xi_j <= W_j,    y = c - xi.d - V_i + p.V',

and q = [y]^+ at the solution.  Where a line search cuts the Newton step, theta has kinks on the way: actions that are
taken up or given up, in every layer.  A *bent* step keeps of the linear model only the masses of the states, and finds
the V that belongs to them by water filling, which crosses all those kinks consistently.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import glue, rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays
from omdpd.solvers.compiled.graph_step.active import (
    Active,
    Gradients,
    empty_active,
    empty_gradients,
    flow_residual_in_metric,
    select_active,
    solve_newton,
)
from omdpd.solvers.compiled.graph_step.certificate import (
    dual_scale,
    expected_gap,
    gap_of_hinges,
    gap_of_rows,
    hinges_of_slack,
    most_claimed,
)
from omdpd.solvers.compiled.graph_step.hinges import (
    Marks,
    StepBefore,
    count_free,
    hinge_quadratic,
    hinge_step,
    mark_free,
    stiffen,
)
from omdpd.solvers.compiled.graph_step.lanes import Lanes, empty_lanes, solve_flow_and_columns
from omdpd.solvers.compiled.graph_step.problem import (
    GraphProblem,
    change_of_slack,
    dual_slack,
    occupancy_of_slack,
    water_filling,
)
from omdpd.solvers.compiled.newton.line import (
    MIN_RADIUS,
    SHORTER,
    TRIALS,
    Line,
    change_along_line,
    change_of_row,
    line_along,
    line_search,
    next_radius,
)
from omdpd.solvers.compiled.newton.multipliers import clip_multipliers

# Relative residual at which conjugate gradients stop far from the solution, and the error of a hinge's curvature there;
# the factor when the gap stalls, and the least residual.
RESIDUAL, COLUMN, TIGHTENING, MIN_RESIDUAL = 0.1, 0.5, 0.1, 1e-10
# Within so many tolerances of the solution, and after a step that held whole, the residual is one that would leave this
# part of a tolerance, and no less than the last number: a Newton step saved is then worth more than gradients.
NEAR, LEFT, LAST_RESIDUAL = 1e4, 0.1, 1e-3
# A certificate is computed where it is expected within this many tolerances.
CLOSE = 10.0
# Steps without a tenth less of expected gap after which the residual is tightened, and after which the run is given up.
STALLED, PATIENCE = 6, 40
# The line's step below which a whole bent one is not tried, it would be too long; and the one below which the trust
# region of xi shrinks.
FAR, SHORT = 0.05, 0.01


class GraphWork(NamedTuple):
    """Arrays that every Newton step writes: values, slacks and their changes, an occupancy and masses, the systems."""

    V: Floats
    dV: Floats
    trial_V: Floats
    mass: Floats
    y: Floats
    dy: Floats
    exact: Floats
    q: Floats
    active: Active
    cg: Gradients
    lanes: Lanes
    free: Marks
    before: StepBefore
    T: Floats
    u: Floats
    slope: Floats
    dxi: Floats
    trial_xi: Floats


class CertifiedFlow(NamedTuple):
    """A certified point: occupancy, duals, gap, its scale and rounding, Newton and gradient steps; good enough?"""

    q: Floats
    V: Floats
    xi: Floats
    gap: float
    scale: float
    noise: float
    steps: int
    gradients: int
    solved: bool


@rule
def workspace(g: Arrays, m: int) -> GraphWork:
    """Uninitialised arrays for a problem of this size."""
    N, R = g.members.size, g.copies.size
    states, rows = np.empty((4, N)), np.empty((4, R))
    return GraphWork(
        V=states[0], dV=states[1], trial_V=states[2], mass=states[3], y=rows[0], dy=rows[1], exact=rows[2], q=rows[3],
        active=empty_active(g), cg=empty_gradients(N), lanes=empty_lanes(N, m), free=np.zeros(m, np.bool_),
        before=StepBefore(np.zeros(m), np.zeros(m), np.zeros(m, np.bool_)), T=np.empty((m, m)), u=np.empty(m),
        slope=np.empty(m), dxi=np.empty(m), trial_xi=np.empty(m),
    )  # fmt: skip


@glue
def dual_newton(problem: GraphProblem, xi: Floats, work: GraphWork, tol: float, limit: int) -> CertifiedFlow:
    """At most `limit` Newton steps from (V, xi) with slack y, all overwritten; the best certified point.

    y is carried along by its changes: close to the solution those are small, so y holds the masses to rounding
    even where V and xi.d are 1e5 times larger.  The certificate uses the slack of V and xi alone.
    """
    g, active, cg = problem.g, work.active, work.cg
    V, y, dy, u = work.V, work.y, work.dy, work.u
    best = CertifiedFlow(y, V, xi, np.inf, 1.0, 0.0, 0, 0, False)
    residual, radius, least, most = RESIDUAL, np.inf, np.inf, np.inf
    since, steps, gradients, stuck, whole = 0, 0, 0, False, False
    work.before.free[:] = False
    while True:
        choices = select_active(g, y, active)
        flow_residual_in_metric(g, active, y, cg.F)
        hinges_of_slack(problem, active, y, u)
        whole_scale = dual_scale(problem, V)
        scale = min(whole_scale, most)
        expected = expected_gap(problem, active, cg.F, u, xi) / scale
        since = 0 if expected < 0.9 * least else since + 1
        least = min(least, expected)
        last = stuck or steps >= limit or since > PATIENCE
        if last or not expected > CLOSE * tol:
            dual_slack(problem, V, xi, work.exact)
            occupancy_of_slack(g, y, work.q, work.mass)
            gap, noise = gap_of_hinges(problem, xi, work.q)
            gap += gap_of_rows(g.copies, work.exact, work.q)
            most = most_claimed(problem, work.q, whole_scale)
            scale = min(whole_scale, most)
            if gap / scale < best.gap / best.scale:
                solved = gap + noise <= tol * scale or gap <= noise
                best = CertifiedFlow(work.q.copy(), V.copy(), xi.copy(), gap, scale, noise, 0, 0, solved)
            if best.solved or last:
                break
        if since >= STALLED:
            residual = max(residual * TIGHTENING, MIN_RESIDUAL)
            dual_slack(problem, V, xi, y)
        steps += 1
        wanted = residual
        if whole or expected < NEAR * tol:
            wanted = min(residual, max(np.sqrt(LEFT * tol / expected), LAST_RESIDUAL))
        n, farthest = newton_step(problem, xi, choices, wanted, radius, work)
        gradients += n
        line = line_over_copies(g, y, dy, work.dV, work.exact, work.q)
        step = line_search(line)
        whole = step == 1.0
        bent = not whole and bend(problem, V, xi, y, step, line, work)
        if not bent:
            move(problem.W, V, xi, y, step, work)
        radius = next_radius(radius, step, farthest, whole or bent, SHORT)
        if step == 0.0 and not bent:
            stuck = residual <= MIN_RESIDUAL and not farthest > MIN_RADIUS
            residual = max(residual * TIGHTENING**2, MIN_RESIDUAL)
            dual_slack(problem, V, xi, y)
    return CertifiedFlow(best.q, best.V, best.xi, best.gap, best.scale, best.noise, steps, gradients, best.solved)


@glue
def newton_step(
    problem: GraphProblem, xi: Floats, choices: int, residual: float, radius: float, work: GraphWork
) -> tuple[int, float]:
    """The Newton direction (dV, dxi, dy) in `work`; the gradient iterations it took, and the largest |dxi_j|."""
    active, cg, X = work.active, work.cg, work.lanes.X
    free, dxi, farthest = work.free, work.dxi, 0.0
    mark_free(work.u, xi, problem.W, free)
    dxi[:] = 0.0
    if count_free(free) == 0:
        n = solve_newton(problem.g, active, choices, cg, residual)
    else:
        column = COLUMN if residual >= RESIDUAL else residual * residual
        n = solve_flow_and_columns(problem, active, choices, free, cg, work.lanes, residual, column)
        hinge_quadratic(problem, active, work.y, cg.v, X, free, work.T, work.slope)
        stiffen(work.T, work.slope, xi, free, work.before)
        farthest = hinge_step(work.T, work.slope, xi, problem.W, free, radius, dxi)
    set_direction(cg.v, X, free, dxi, work.dV)
    change_of_slack(problem, work.dV, dxi, work.dy)
    return n, farthest


@rule
def line_over_copies(g: Arrays, y: Floats, dy: Floats, dV: Floats, one: Floats, two: Floats) -> Line:
    """The line from y along (dy, dV); `one` and `two` are scratch over rows.

    Only rows that are positive somewhere on the way count, a quarter of them and less: they are gathered once.
    """
    n = 0
    for r in range(y.size):
        if max(y[r], y[r] + dy[r]) > 0.0:
            root = np.sqrt(g.copies[r])
            one[n], two[n] = root * y[r], root * dy[r]
            n += 1
    return line_along(one[:n], two[:n], g.mu, dV)


@rule
def set_direction(v: Floats, X: Floats, free: Marks, dxi: Floats, dV: Floats) -> None:
    """dV := -v - sum_j dxi_j X_j, over the free multipliers."""
    for i in range(dV.size):
        total, k = -v[i], 0
        for j in range(dxi.size):
            if free[j]:
                total -= dxi[j] * X[i, k]
                k += 1
        dV[i] = total


@rule
def move(W: Floats, V: Floats, xi: Floats, y: Floats, step: float, work: GraphWork) -> None:
    """(V, xi, y) += step (dV, dxi, dy)."""
    if step > 0.0:
        for i in range(V.size):
            V[i] += step * work.dV[i]
        for r in range(y.size):
            y[r] += step * work.dy[r]
        for j in range(xi.size):
            xi[j] += step * work.dxi[j]
        clip_multipliers(W, xi)


@rule
def bend(problem: GraphProblem, V: Floats, xi: Floats, y: Floats, step: float, line: Line, work: GraphWork) -> bool:
    """Move to a V by water filling with the masses of the linear model, if one of a few lengths beats the line.

    None shorter than the line's own step does.
    """
    g = problem.g
    wanted, noise = change_along_line(line, step)
    length = 1.0 if step >= FAR else SHORTER
    for _ in range(TRIALS):
        if length < step:
            break
        masses_of_model(g.copies, work.active, y, work.dy, length, work.mass)
        for j in range(xi.size):
            work.trial_xi[j] = xi[j] + length * work.dxi[j]
        clip_multipliers(problem.W, work.trial_xi)
        water_filling(problem, work.trial_xi, work.mass, work.trial_V, work.exact)
        if change_to(g, y, work.exact, V, work.trial_V) < min(wanted, 0.0) - noise:
            V[:] = work.trial_V
            y[:] = work.exact
            xi[:] = work.trial_xi
            return True
        length *= SHORTER
    return False


@rule
def masses_of_model(copies: Floats, active: Active, y: Floats, dy: Floats, length: float, mass: Floats) -> None:
    """The states' masses after a step in the linear model, none below zero."""
    for i in range(mass.size):
        total = 0.0
        for k in range(active.first[i], active.first[i + 1]):
            r = active.row[k]
            total += copies[r] * (y[r] + length * dy[r])
        mass[i] = max(total, 0.0)


@rule
def change_to(g: Arrays, y: Floats, moved: Floats, V: Floats, moved_V: Floats) -> float:
    """theta at another point less theta here."""
    total = 0.0
    for r in range(y.size):
        total += g.copies[r] * change_of_row(y[r], moved[r])
    for i in range(g.mu.size):
        total += g.mu[i] * (moved_V[i] - V[i])
    return total
