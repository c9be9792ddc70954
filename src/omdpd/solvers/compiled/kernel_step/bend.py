"""Bent Newton steps: where a line search cuts a step, keep of its linear model only the masses of the states.

theta has kinks wherever an action is taken up or given up, and near a deterministic policy there are some in every step
of the horizon.  For given masses, water filling finds the V that crosses all of them consistently.
"""

from __future__ import annotations

from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_matrix, copy_vector
from omdpd.solvers.compiled.kernel_step.problem import KernelProblem, KernelWork, water_filling
from omdpd.solvers.compiled.newton.line import SHORTER, TRIALS, Line, change_along_line, change_of_row
from omdpd.solvers.compiled.newton.multipliers import clip_multipliers


@rule
def bend(problem: KernelProblem, xi: Floats, dxi: Floats, line: Line, step: float, work: KernelWork) -> bool:
    """Move (V, xi, y) to a V by water filling with the masses of the linear model, if a length beats the line."""
    trial_V, mass, trial_y, trial_xi = work.trial
    wanted, noise = change_along_line(line, step)
    length = 1.0
    for _ in range(TRIALS):
        masses_of_model(work.q, work.w, work.dy, length, mass)
        for j in range(xi.size):
            trial_xi[j] = xi[j] + length * dxi[j]
        clip_multipliers(problem.W, trial_xi)
        water_filling(problem, trial_xi, mass, trial_V, trial_y, work.level)
        if change_to(problem.mu, work.y, trial_y, work.V, trial_V) < min(wanted, 0.0) - noise:
            copy_matrix(trial_V, work.V)
            copy_matrix(trial_y, work.y)
            copy_vector(trial_xi, xi)
            return True
        length *= SHORTER
    return False


@rule
def masses_of_model(q: Floats, w: Floats, dy: Floats, length: float, mass: Floats) -> None:
    """The states' masses after a step in the linear model, none below zero."""
    H, S = mass.shape
    A = q.shape[1] // S
    for h in range(H):
        for s in range(S):
            total = 0.0
            for a in range(A):
                r = s * A + a
                total += q[h, r] + length * w[h, r] * dy[h, r]
            mass[h, s] = max(total, 0.0)


@rule
def change_to(mu: Floats, y: Floats, moved: Floats, V: Floats, moved_V: Floats) -> float:
    """theta at another point less theta here."""
    total = 0.0
    for h in range(y.shape[0]):
        for r in range(y.shape[1]):
            total += change_of_row(y[h, r], moved[h, r])
    for s in range(mu.size):
        total += mu[s] * (moved_V[0, s] - V[0, s])
    return total
