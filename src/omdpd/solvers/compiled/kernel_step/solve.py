"""One mirror step over the occupancy polytope of one known kernel, with hinges: the learner's usual case.

    minimise  D(q, c) + sum_j W_j [d_j.q]^+
    over q >= 0 with sum_a q_1(s, a) = mu(s),  sum_a q_{h+1}(t, a) = sum_{s,a} p_h(t | s, a) q_h(s, a),

with D = 1/2 |q - c|^2 (Euclid) or sum_r q_r (log q_r - c_r) - q_r (KL, c = log of the reference minus the step).

Method: Newton on the dual (`newton`), which needs one to six steps from the masses of the reference and, without
an earlier solution, from hinge multipliers that belong to them (`start`).
Where it fails (large W, steps of 1e6), the problem is heated: with c and W divided by a large tau it is easy,
and tau is lowered to one as fast as Newton's method can follow.  Every answer carries its duality gap
(`certificate`) and is the forward pass of a policy, so it is feasible to rounding.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_matrix, copy_vector
from omdpd.solvers.compiled.flow import flow_residual
from omdpd.solvers.compiled.kernel_step.certificate import occupancy_of_slack
from omdpd.solvers.compiled.kernel_step.newton import dual_newton, workspace
from omdpd.solvers.compiled.kernel_step.problem import (
    Problem,
    clip_multipliers,
    heat,
    hottest,
    masses_of_mixture,
    scaled_hinges,
    water_filling,
    write_masses,
)
from omdpd.solvers.compiled.kernel_step.start import starting_multipliers
from omdpd.solvers.compiled.options import ENTRY, GLUE, INNER
from omdpd.solvers.compiled.pointers import borrow, outlive

SOLVED, INACCURATE, FAILED = 0, 1, 2
# The solvers stop at this relative gap; it leaves two orders to the 1e-10 that every step is held to.
TOLERANCE = 1e-12
# Largest relative gap of an answer called inaccurate rather than failed.
INACCURATE_GAP = 1e-8
# Share of the uniform policy in the start: every reachable state then has mass, and V a meaning there.
MIX = 0.01
# Newton steps at the wanted temperature, and at one on the way, which is followed loosely; and one more of either for
# so many states, since a large problem has more kinks to cross.
STEPS, STEPS_HEATED, TOLERANCE_HEATED, STATES_PER_STEP = 40, 20, 1e-6, 12
# The temperature falls by the first factor at first and then, depending on how well Newton's method can follow, by one
# between the other two; a factor above the last means that it cannot, and the problem is given up.
COOLING, MIN_FACTOR, MAX_FACTOR = 0.1, 0.01, 0.8
# Newton steps in total after which the best certified point is returned: ten times what one temperature may take.
MAX_STEPS = 400


@njit(**ENTRY)
def solve_step(
    reference: Floats,
    loss: Floats,
    eta: float,
    p: Floats,
    mu: Floats,
    d: Floats,
    weights: Floats,
    kl: bool,
    tol: float,
    warm: bool,
    start: Floats,
    occupancy: Floats,
    values: Floats,
    multipliers: Floats,
) -> tuple[float, float, int, int, float]:
    """The step from `reference` along -eta loss with hinges eta w_j [d_j.q]^+: q, V and xi are written, last three.

    Returns gap, scale, iterations and status of `solve_single`, and the largest violation of the flow equations.
    """
    m = weights.size
    c, W, warm_start = np.empty(loss.shape), np.empty(m), np.zeros(m)
    linear_term(reference, loss, eta, kl, c)
    for j in range(m):
        W[j] = eta * weights[j]
        if warm:
            warm_start[j] = min(start[j], W[j])
    gap, scale, steps, status = solved(
        c, reference, p, mu, d, W, kl, tol, warm, warm_start, occupancy, values, multipliers
    )
    return gap, scale, steps, status, flow_residual(occupancy, p, mu)


@njit(**INNER)
def linear_term(reference: Floats, loss: Floats, eta: float, kl: bool, c: Floats) -> None:
    """c := reference - eta loss (Euclid) or log reference - eta loss (KL)."""
    H, S, A = loss.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                origin = np.log(reference[h, s, a]) if kl else reference[h, s, a]
                c[h, s, a] = origin - eta * loss[h, s, a]


@njit(**ENTRY)
def solve_single(
    c: Floats,
    reference: Floats,
    p: Floats,
    mu: Floats,
    d: Floats,
    W: Floats,
    kl: bool,
    tol: float,
    warm: bool,
    xi_warm: Floats,
) -> tuple[Floats, Floats, Floats, float, float, int, int]:
    """Solve the mirror step; return (q, V, xi, gap, scale, iterations, status).

    Parameters
    ----------
    c, reference : (H, S, A)
        Finite linear term, and the occupancy whose masses start the method (it need not be feasible).
    p, mu : (H, S, A, S), (S,)
        The kernel, of which the last step is not used, and the initial law.
    d, W : (m, H, S, A), (m,)
        Hinges; m may be zero.  W >= 0.
    kl, tol : bool, float
        Geometry; relative gap at which the problem counts as solved.
    warm, xi_warm : bool, (m,)
        If `warm`, start from these hinge multipliers.  An earlier V would not help: water-filling with the masses of
        the reference gives a better one, since it sees the present c.

    Returns
    -------
    q : (H, S, A)
        Forward pass of a policy under p.
    V, xi : (H, S), (m,)
        Dual variables; for kl = False, q is near [c - xi.d - V_h(s) + p.V_{h+1}]^+.
    gap, scale : float
        Certified duality gap, its rounding included, and max(1, max_h range(V_h), 1e-5 H sum_j W_j max|d_j|).
    iterations, status : int
        Newton steps; SOLVED (gap at most tol scale, or rounding), INACCURATE (gap at most 1e-8 scale) or FAILED.
    """
    q, V, xi = np.empty(c.shape), np.empty(c.shape[:2]), np.empty(W.size)
    gap, scale, steps, status = solved(c, reference, p, mu, d, W, kl, tol, warm, xi_warm, q, V, xi)
    return q, V, xi, gap, scale, steps, status


@njit(**GLUE)
def solved(
    c: Floats,
    reference: Floats,
    p: Floats,
    mu: Floats,
    d: Floats,
    W: Floats,
    kl: bool,
    tol: float,
    warm: bool,
    xi_warm: Floats,
    occupancy: Floats,
    values: Floats,
    multipliers: Floats,
) -> tuple[float, float, int, int]:
    """`solve_single`, as a part of whatever calls it: q, V and xi are written, last three, the rest is returned."""
    H, S, A = c.shape
    m = W.size
    rows, size, weight = scaled_hinges(d, W)
    bounds, xi, reached_xi = np.empty(m), np.zeros(m), np.zeros(m)
    for j in range(m):
        bounds[j] = W[j] * size[j]
        if warm:
            xi[j] = xi_warm[j] * size[j]
    own_problem = Problem(
        c=c.reshape(H, S * A), p=p.reshape(H, S * A, S), mu=mu, d=rows, W=bounds, weight=weight, kl=kl
    )
    own_work = workspace(H, S, A, m)
    target, work = borrow(own_problem), borrow(own_work)
    start = reference.reshape(H, S * A)
    mass = masses_of_mixture(target, start, MIX)
    if not warm and m > 0:
        starting_multipliers(target, mass, xi, work)
    problem, tau, factor, reached = target, 1.0, COOLING, 0.0
    q, gap, scale, noise = occupancy.reshape(H, S * A), np.inf, 1.0, 0.0
    best_q, best_V, best_xi = work.best
    steps, status = 0, FAILED
    more = H * S // STATES_PER_STEP
    while steps < MAX_STEPS + 2 * more and factor < MAX_FACTOR:
        clip_multipliers(problem, xi)
        water_filling(problem, xi, mass, work.V, work.y, work.level)
        hot = tau > 1.0
        accuracy, limit = (TOLERANCE_HEATED, STEPS_HEATED) if hot else (tol, STEPS)
        answer = dual_newton(problem, xi, work, accuracy, limit + more)
        if steps == 0:  # what there is to tell if nothing is ever certified
            copy_vector(xi, multipliers)
        if not hot and answer.gap / answer.scale < gap / scale:
            copy_matrix(best_q, q)
            copy_matrix(best_V, values)
            copy_vector(best_xi, multipliers)
            gap, scale, noise = answer.gap, answer.scale, answer.noise
        steps += answer.steps
        if answer.solved and not hot:
            status = SOLVED
            break
        if answer.solved:
            reached, factor = tau, max(factor * factor, MIN_FACTOR)
            for j in range(m):
                reached_xi[j] = best_xi[j] * tau
            write_masses(best_q, mass)
        elif reached > 0.0:
            factor = np.sqrt(factor)
        elif hot:
            break
        tau = max(1.0, reached * factor) if reached > 0.0 else hottest(target)
        heat(target, tau, work.hot[0], work.hot[1])
        problem = Problem(
            c=work.hot[0],
            p=target.p,
            mu=target.mu,
            d=target.d,
            W=work.hot[1],
            weight=target.weight / tau,
            kl=kl,
        )
        for j in range(m):
            xi[j] = reached_xi[j] / tau if reached > 0.0 else 0.0
    gap += noise
    if not gap < np.inf:
        copy_matrix(occupancy_of_slack(target.p, mu, start, kl), q)
        values[:], gap = 0.0, np.inf
    if status == FAILED and gap <= INACCURATE_GAP * scale:
        status = INACCURATE
    for j in range(m):
        multipliers[j] = multipliers[j] / size[j]
    outlive(own_problem, own_work)
    return gap, scale, steps, status
