"""The mirror step over the occupancy polytope of one known kernel."""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.single_certificate import Best, occupancy_of_slack, offer
from omdpd.kernels.single_newton import dual_newton, workspace
from omdpd.kernels.single_problem import Problem, clip_multipliers, dual_slack, scaled_hinges, water_filling

SOLVED, INACCURATE, FAILED = 0, 1, 2
# Share of the uniform policy in the start.
MIX = 0.01
NEWTON_LIMIT = 40
HOMOTOPY_LIMIT = 400


@njit(cache=True, error_model="numpy")
def solve_single(c, reference, p, mu, d, W, b, rho, kl, tol, warm, V_warm, xi_warm):
    H, S, A = c.shape
    m = W.size
    last, size = scaled_hinges(d)
    problem = Problem(c, p, mu, last, W * size, b / size, rho * size**2, kl)
    work = workspace(H, S, A, m)
    V, xi = np.empty((H, S)), np.zeros(m)
    if warm:
        xi[:] = xi_warm * size
        clip_multipliers(problem, xi)
    mass = mixed_masses(problem, reference, MIX)
    water_filling(problem, xi, mass, V)
    best = Best(np.empty((H, S, A)), V.copy(), xi.copy(), np.array([np.inf, 1.0, 0.0]))
    iterations = 0
    tau, factor = 1.0, 0.1
    good_tau = -1.0
    solved = False
    scratch = Best(np.empty((H, S, A)), V.copy(), xi.copy(), np.array([np.inf, 1.0, 0.0]))
    while True:
        if tau == 1.0:
            spent, solved = dual_newton(problem, V, xi, work, best, tol, NEWTON_LIMIT)
            iterations += spent
            stage = solved
        else:
            scratch.numbers[0] = np.inf
            softer = Problem(c / tau, p, mu, last, problem.W / tau, problem.b, problem.rho / tau, kl)
            spent, stage = dual_newton(softer, V, xi, work, scratch, 1e-6, 20)
            iterations += spent
        if solved or iterations > HOMOTOPY_LIMIT or factor > 0.8:
            break
        if good_tau < 0.0 and not stage:
            # first: start the homotopy hot
            if tau > 1.0:
                break
            tau = 1.0
            tau = max(tau, np.abs(c).max())
            for j in range(m):
                tau = max(tau, problem.W[j], problem.rho[j])
            if tau == 1.0:
                tau = 10.0
            xi[:] = 0.0
            softer = Problem(c / tau, p, mu, last, problem.W / tau, problem.b, problem.rho / tau, kl)
            water_filling(softer, xi, mass, V)
            continue
        if stage:
            good_tau = tau
            scratch.xi[:] *= tau
            mass[:] = 0.0
            for h in range(H):
                for s in range(S):
                    for a in range(A):
                        mass[h, s] += scratch.q[h, s, a]
            factor = max(factor * factor, 1e-2)
        else:
            factor = np.sqrt(factor)
        tau = max(1.0, good_tau * factor)
        xi[:] = scratch.xi / tau
        softer = Problem(c / tau, p, mu, last, problem.W / tau, problem.b, problem.rho / tau, kl)
        clip_multipliers(softer, xi)
        water_filling(softer, xi, mass, V)
    gap, scale, noise = best.numbers
    if solved:
        status = SOLVED
    else:
        status = INACCURATE if gap + noise <= 1e-8 * scale else FAILED
    return best.q, best.V, best.xi / size, gap + noise, scale, iterations, status


@njit(cache=True, error_model="numpy")
def mixed_masses(problem, reference, mix):
    """State masses (H, S) of the policy of `reference` mixed with the uniform one."""
    H, S, A = reference.shape
    mass = np.zeros((H, S))
    mass[0] = problem.mu
    for h in range(H - 1):
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += max(reference[h, s, a], 0.0)
            for a in range(A):
                share = max(reference[h, s, a], 0.0) / total if total > 0.0 else 1.0 / A
                flow = mass[h, s] * ((1.0 - mix) * share + mix / A)
                if flow > 0.0:
                    for t in range(S):
                        mass[h + 1, t] += flow * problem.p[h, s, a, t]
    return mass
