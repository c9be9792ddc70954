"""Bent Newton steps: where a line search cuts a step, keep of its linear model only the masses of the states.

theta has kinks wherever an action is taken up or given up, and near a deterministic policy there are some in every step
of the horizon.  For given masses, water filling finds the V that crosses all of them consistently.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_matrix, copy_vector
from omdpd.solvers.compiled.kernel_step.certificate import EPSILON
from omdpd.solvers.compiled.kernel_step.problem import MAX_EXPONENT, Problem, clip_multipliers, water_filling
from omdpd.solvers.compiled.options import INNER

# Lengths that are tried: the whole step, then this factor shorter each time.
TRIALS, SHORTER = 4, 0.4


@njit(**INNER)
def bend(
    problem: Problem,
    V: Floats,
    xi: Floats,
    y: Floats,
    q: Floats,
    w: Floats,
    dV: Floats,
    dxi: Floats,
    dy: Floats,
    step: float,
    level: Floats,
    trial: tuple[Floats, Floats, Floats, Floats],
) -> bool:
    """Move (V, xi, y) to a V by water filling with the masses of the linear model, if a length beats the line.

    q and w are the masses and weights of the model, `trial` scratch: V, masses, y, xi.
    """
    trial_V, mass, trial_y, trial_xi = trial
    wanted, noise = change_along_line(problem, y, dy, dV, step)
    length = 1.0
    for _ in range(TRIALS):
        masses_of_model(q, w, dy, length, mass)
        for j in range(xi.size):
            trial_xi[j] = xi[j] + length * dxi[j]
        clip_multipliers(problem, trial_xi)
        water_filling(problem, trial_xi, mass, trial_V, trial_y, level)
        if change_to(problem, y, trial_y, V, trial_V) < min(wanted, 0.0) - noise:
            copy_matrix(trial_V, V)
            copy_matrix(trial_y, y)
            copy_vector(trial_xi, xi)
            return True
        length *= SHORTER
    return False


@njit(**INNER)
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


@njit(**INNER)
def change_along_line(problem: Problem, y: Floats, dy: Floats, dV: Floats, step: float) -> tuple[float, float]:
    """theta after the step less theta before it, and its rounding."""
    total, size = 0.0, 0.0
    for h in range(y.shape[0]):
        for r in range(y.shape[1]):
            term = change_of_term(y[h, r], y[h, r] + step * dy[h, r], problem.kl)
            total += term
            size += abs(term)
    for s in range(problem.mu.size):
        total += step * problem.mu[s] * dV[0, s]
        size += abs(step * problem.mu[s] * dV[0, s])
    return total, 4.0 * EPSILON * size


@njit(**INNER)
def change_to(problem: Problem, y: Floats, moved: Floats, V: Floats, moved_V: Floats) -> float:
    """theta at another point less theta here."""
    total = 0.0
    for h in range(y.shape[0]):
        for r in range(y.shape[1]):
            total += change_of_term(y[h, r], moved[h, r], problem.kl)
    for s in range(problem.mu.size):
        total += problem.mu[s] * (moved_V[0, s] - V[0, s])
    return total


@njit(**INNER)
def change_of_term(before: float, after: float, kl: bool) -> float:
    """f(after) - f(before), with f = ([y]^+)^2 / 2 (Euclid) or e^y (KL)."""
    if kl:
        return np.exp(min(after, MAX_EXPONENT)) - np.exp(min(before, MAX_EXPONENT))
    left, right = max(before, 0.0), max(after, 0.0)
    return 0.5 * (right - left) * (right + left)
