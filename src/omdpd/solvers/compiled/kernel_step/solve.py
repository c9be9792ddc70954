"""One mirror step over the occupancy polytope of one known kernel, with hinges: the learner's usual case.

    minimise  1/2 |q - c|^2 + sum_j W_j [d_j.q]^+,    c = reference - eta loss,  W = eta w,
    over q >= 0 with sum_a q_1(s, a) = mu(s),  sum_a q_{h+1}(t, a) = sum_{s,a} p_h(t | s, a) q_h(s, a),

Method: Newton on the dual (`newton`), which needs one to six steps from the masses of the reference and, without
an earlier solution, from hinge multipliers that belong to them (`start`).
Where it fails (large W, steps of 1e6), the problem is heated: with c and W divided by a large tau it is easy,
and tau is lowered to one as fast as Newton's method can follow.  Every answer carries its duality gap
(`certificate`) and is the forward pass of a policy, so it is feasible to rounding.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import entry, rule
from omdpd.jit.pointers import borrow, flat, outlive
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_matrix, copy_vector
from omdpd.solvers.compiled.flow import flow_residual
from omdpd.solvers.compiled.kernel_step.certificate import occupancy_of_slack
from omdpd.solvers.compiled.kernel_step.newton import dual_newton
from omdpd.solvers.compiled.kernel_step.problem import (
    KernelProblem,
    heated,
    masses_of_mixture,
    water_filling,
    workspace,
    write_masses,
)
from omdpd.solvers.compiled.kernel_step.start import starting_multipliers
from omdpd.solvers.compiled.newton.certificate import ALMOST, FAILED, SOLVED
from omdpd.solvers.compiled.newton.heating import (
    COOLING,
    MAX_FACTOR,
    MIX,
    TOLERANCE_HEATED,
    Ladder,
    hottest,
    next_rung,
)
from omdpd.solvers.compiled.newton.multipliers import clip_multipliers, scaled_hinges

# The solvers stop at this relative gap; it leaves two orders to the 1e-10 that every step is held to.
STEP_TOLERANCE = 1e-12
# Largest relative gap of an answer called almost solved rather than failed.
ALMOST_GAP = 1e-8
# Newton steps at the wanted temperature, and at one on the way; and one more of either for so many states, since a
# large problem has more kinks to cross.
STEPS, STEPS_HEATED, STATES_PER_STEP = 40, 20, 12
# Newton steps in total after which the best certified point is returned: ten times what one temperature may take.
MAX_STEPS = 400


@entry
def solve_step(
    reference: Floats,
    loss: Floats,
    eta: float,
    p: Floats,
    mu: Floats,
    d: Floats,
    weights: Floats,
    tol: float,
    warm: bool,
    start: Floats,
    occupancy: Floats,
    values: Floats,
    multipliers: Floats,
) -> tuple[float, float, int, int, float]:
    """Solve the mirror step; return gap, scale, iterations, status and the largest violation of the flow equations.

    Parameters
    ----------
    reference, loss : (H, S, A)
        The occupancy whose masses start the method (it need not be feasible), and the loss.
    p, mu : (H, S, A, S), (S,)
        The kernel, of which the last step is not used, and the initial law.
    d, weights : (m, H, S, A), (m,)
        Hinges; m may be zero.  weights >= 0.
    tol : float
        Relative gap at which the problem counts as solved.
    warm, start : bool, (m,)
        If `warm`, start from these hinge multipliers.  An earlier V would not help: water-filling with the masses of
        the reference gives a better one, since it sees the present c.
    occupancy, values, multipliers : (H, S, A), (H, S), (m,)
        Written: q, the forward pass of a policy under p, and the dual variables V and xi; q is near
        [c - xi.d - V_h(s) + p.V_{h+1}]^+.

    The gap is certified, its rounding included; the scale is max(1, max_h range(V_h), 1e-5 H sum_j W_j max|d_j|).
    Iterations are Newton steps, the status is SOLVED (gap at most tol scale, or rounding), ALMOST (gap at most 1e-8
    scale) or FAILED.
    """
    H, S, A = loss.shape
    m = weights.size
    own_problem, size = posed(reference, loss, eta, p, mu, d, weights)
    xi, reached_xi = np.zeros(m), np.zeros(m)
    for j in range(m if warm else 0):
        xi[j] = min(start[j], eta * weights[j]) * size[j]
    own_work = workspace(H, S, A, m)
    target, work = borrow(own_problem), borrow(own_work)
    given = reference.reshape(H, S * A)
    mass = masses_of_mixture(target, given, MIX)
    if not warm and m > 0:
        starting_multipliers(target, mass, xi, work)
    problem, ladder, gap, scale, noise = target, Ladder(1.0, COOLING, 0.0), np.inf, 1.0, 0.0
    q, (best_q, best_V, best_xi) = occupancy.reshape(H, S * A), work.best
    steps, status, more = 0, FAILED, H * S // STATES_PER_STEP
    while steps < MAX_STEPS + 2 * more and ladder.factor < MAX_FACTOR:
        clip_multipliers(problem.W, xi)
        water_filling(problem, xi, mass, work.V, work.y, work.level)
        hot = ladder.tau > 1.0
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
            for j in range(m):
                reached_xi[j] = best_xi[j] * ladder.tau
            write_masses(best_q, mass)
        ladder = next_rung(ladder, answer.solved, hottest(flat(target.c), target.W))
        problem = heated(target, ladder.tau, work)
        for j in range(m):
            xi[j] = reached_xi[j] / ladder.tau if ladder.reached > 0.0 else 0.0
    gap += noise
    if not gap < np.inf:
        copy_matrix(occupancy_of_slack(target.p, mu, given), q)
        values[:], gap = 0.0, np.inf
    if status == FAILED and gap <= ALMOST_GAP * scale:
        status = ALMOST
    for j in range(m):
        multipliers[j] = multipliers[j] / size[j]
    outlive(own_problem, own_work)
    return gap, scale, steps, status, flow_residual(occupancy, p, mu)


@rule
def posed(
    reference: Floats, loss: Floats, eta: float, p: Floats, mu: Floats, d: Floats, weights: Floats
) -> tuple[KernelProblem, Floats]:
    """The problem by rows, and the units of its hinges."""
    H, S, A = loss.shape
    m = weights.size
    c, W = np.empty((H, S * A)), np.empty(m)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                c[h, s * A + a] = reference[h, s, a] - eta * loss[h, s, a]
    for j in range(m):
        W[j] = eta * weights[j]
    rows, size, weight = scaled_hinges(d.reshape(m, H * S * A), W)
    for j in range(m):
        W[j] = W[j] * size[j]
    return KernelProblem(c, p.reshape(H, S * A, S), mu, rows.reshape(H, S * A, m), W, weight), size
