"""One mirror step over the flows of a layered graph, with hinges: the learner's case at thousands of states.

    minimise  sum_r copies_r / 2 (q_r - c_r)^2 + sum_j W_j [d_j.Q]^+     over the flows Q = copies q of the graph

Method: Newton on the dual (`newton`), each step by conjugate gradients of two sweeps an iteration (`active`), from the
masses of the reference and, where there is an earlier solution, from its hinge multipliers.  Where that fails (large W,
steps of 1e6), the problem is heated: with c and W divided by a large tau it is easy, and tau is lowered to one as fast
as Newton's method can follow.  Every answer carries its duality gap (`certificate`) and is the forward pass of a
policy, so it is feasible to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import entry
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays
from omdpd.solvers.compiled.graph_step.newton import dual_newton, workspace
from omdpd.solvers.compiled.graph_step.problem import (
    GraphProblem,
    heated,
    masses_of_mixture,
    masses_of_occupancy,
    occupancy_of_slack,
    water_filling,
)
from omdpd.solvers.compiled.newton.certificate import ALMOST, FAILED, SOLVED
from omdpd.solvers.compiled.newton.heating import COOLING, MAX_FACTOR, MIX, TOLERANCE_HEATED, Ladder, hottest, next_rung
from omdpd.solvers.compiled.newton.multipliers import clip_multipliers, scaled_hinges

# An answer whose relative gap is within this many tolerances is called almost solved rather than failed.
ALMOST_TOLERANCES = 100.0
# Newton steps at the wanted temperature, and at one on the way.
STEPS, STEPS_HEATED = 120, 40
# Newton steps in total after which the best certified point is returned.
MAX_STEPS = 800


class GraphSolution(NamedTuple):
    """What a solve returns: q (R,), V (N,), xi (m,), the certificate, Newton steps and gradient iterations, status."""

    q: Floats
    V: Floats
    xi: Floats
    gap: float
    scale: float
    steps: int
    gradients: int
    status: int


@entry
def solve_graph(
    g: Arrays, c: Floats, reference: Floats, d: Floats, W: Floats, tol: float, start: Floats
) -> GraphSolution:
    """Solve one step: c and reference (R,), d (m, R), W and the multipliers to start from (m,)."""
    rows, size, weight = scaled_hinges(d, W)
    target = GraphProblem(g=g, c=c, d=rows, W=W * size, weight=weight)
    work = workspace(g, W.size)
    xi = start * size
    mass = np.empty(g.members.size)
    masses_of_mixture(g, reference, MIX, mass)
    problem, ladder, reached_xi = target, Ladder(1.0, COOLING, 0.0), xi
    q, V, best_xi, gap, scale, noise = reference, mass, xi, np.inf, 1.0, 0.0
    steps, gradients = 0, 0
    while steps < MAX_STEPS and ladder.factor < MAX_FACTOR:
        clip_multipliers(problem.W, xi)
        water_filling(problem, xi, mass, work.V, work.y)
        hot = ladder.tau > 1.0
        accuracy, limit = (max(TOLERANCE_HEATED, tol), STEPS_HEATED) if hot else (tol, STEPS)
        answer = dual_newton(problem, xi, work, accuracy, limit)
        if not hot and answer.gap / answer.scale < gap / scale:
            q, V, best_xi = answer.q, answer.V, answer.xi
            gap, scale, noise = answer.gap, answer.scale, answer.noise
        steps += answer.steps
        gradients += answer.gradients
        if answer.solved and not hot:
            break
        if answer.solved:
            reached_xi = answer.xi * ladder.tau
            masses_of_occupancy(g, answer.q, mass)
        ladder = next_rung(ladder, answer.solved, hottest(target.c, target.W))
        problem = heated(target, ladder.tau)
        xi = reached_xi / ladder.tau if ladder.reached > 0.0 else np.zeros(W.size)
    gap += noise
    if not gap < np.inf:
        q, V, gap = np.empty(c.size), np.zeros(mass.size), np.inf
        occupancy_of_slack(g, reference, q, mass)
    # Rounding may have ended the solve above its tolerance; what is claimed is what the gap says.
    status = SOLVED if gap <= tol * scale else ALMOST if gap <= ALMOST_TOLERANCES * tol * scale else FAILED
    return GraphSolution(q, V, best_xi / size, gap, scale, steps, gradients, status)
