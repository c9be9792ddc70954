"""Hinges before the first iteration: their units, which of them can matter, and storage for those that do."""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.solvers.compiled.box_step.hinges import HB, HINGE_SLOTS, HR, HW, REACH
from omdpd.solvers.compiled.box_step.slots import place, support
from omdpd.solvers.compiled.options import INNER

# A hinge of weight W is known to W 1e-16, hence counts in the unit of the gap.
HINGE_UNIT = 1e-5
# A hinge that can change the objective by less than this part of the tolerance is left out.
NEGLIGIBLE = 1e-3
# A hinge that seems to move by less than this part of its largest entry is looked at from both sides.
SHORT = 0.1


@njit(**INNER)
def load_hinges(R4, d, W, b, rho):
    """Hinges in storage order, each divided by the power of two nearest max|d|, which is exact.

    Also their part in the gap's unit.
    """
    m, H, S, n_actions = d.shape
    nb, hb, R = R4.shape[1] - 1, R4.shape[2], R4.shape[3]
    terms = np.zeros((m, nb + 1, hb * R))
    data, floor = np.zeros((6, m)), 0.0
    for j in range(m):
        largest = 0.0
        for h in range(H):
            for s in range(S):
                for a in range(n_actions):
                    largest = max(largest, abs(d[j, h, s, a]))
        unit = 2.0 ** np.floor(np.log2(largest) + 0.5) if largest > 0.0 else 1.0
        data[0, j], data[1, j], data[2, j] = W[j] * unit, b[j] / unit, rho[j] * unit * unit
        data[3, j], data[4, j] = unit, largest / unit
        floor += HINGE_UNIT * H * W[j] * largest
        for h in range(H):
            block, i = place(h, H, hb, nb)
            for s in range(S):
                for a in range(n_actions):
                    terms[j, block, i * R + a * S + s] = d[j, h, s, a] / unit
    return terms, data, np.zeros(m), floor


@njit(**INNER)
def presolve(E5, R4, task):
    """Indices of the hinges that can go either way; the others are priced once and for all (`task.xi`).

    By dynamic programming: v <= 0 on all of Q means xi = 0; v >= 0 on all of Q and no curvature means xi = W.
    One of the two is ruled out by the sign of v at the reference.  `task.data[5]` gets how far v can move.
    """
    m, S, n_actions = task.terms.shape[0], task.mu.size, task.reference.shape[2]
    V = np.zeros(task.mass.shape)
    H = V.shape[0]
    keep = np.empty(m, dtype=np.int64)
    kept = 0
    for j in range(m):
        weight, bias, rho, size = task.data[0, j], task.data[1, j], task.data[2, j], task.data[4, j]
        reach = max(bias, 0.0) + H * size
        if size == 0.0:
            task.xi[j] = weight + rho * bias if bias > 0.0 else 0.0
            continue
        if weight * reach + 0.5 * rho * reach * reach <= NEGLIGIBLE * task.tol:
            continue
        v = bias
        for h in range(H):
            block, i = place(h, H, R4.shape[2], R4.shape[1] - 1)
            for s in range(S):
                for a in range(n_actions):
                    v += task.terms[j, block, i * R4.shape[3] + a * S + s] * task.reference[h, s, a]
        sign = -1.0 if v > 0.0 else 1.0
        most = farthest(E5, R4, task, j, sign, V)
        if most <= 0.0 and v <= 0.0:
            continue
        if most <= 0.0 and rho == 0.0:
            task.xi[j] = weight
            continue
        reach = most + abs(v)
        if reach < SHORT * size:
            reach = most + farthest(E5, R4, task, j, -sign, V)
        task.data[5, j] = reach
        keep[kept] = j
        kept += 1
    return keep[:kept]


@njit(**INNER)
def farthest(E5, R4, task, j, sign, V):
    """max over Q of sign v_j, by dynamic programming; V is scratch."""
    H, S = V.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    sigma, rest = task.scratch[0], task.scratch[1]
    for h in range(H - 1, -1, -1):
        b, i = place(h, H, hb, nb)
        top = support(E5, h, V, task.order, sigma, rest)
        for s in range(S):
            V[h, s] = -np.inf
            for r in range(s, S * task.reference.shape[2], S):
                V[h, s] = max(V[h, s], sign * task.terms[j, b, i * R + r] + (sigma[r] + top))
    most = sign * task.data[1, j]
    for s in range(V.shape[1]):
        most += task.mu[s] * V[0, s]
    return most


@njit(**INNER)
def select_hinges(terms, data, keep):
    """The hinges that presolve kept."""
    m = keep.size
    hinge = np.zeros((HINGE_SLOTS, m))
    kept = np.empty((m, terms.shape[1], terms.shape[2]))
    for k in range(m):
        j = keep[k]
        hinge[HW, k], hinge[HB, k], hinge[HR, k], hinge[REACH, k] = data[0, j], data[1, j], data[2, j], data[5, j]
        for block in range(terms.shape[1]):
            for n in range(terms.shape[2]):
                kept[k, block, n] = terms[keep[k], block, n]
    return hinge, kept
