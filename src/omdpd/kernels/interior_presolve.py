"""Hinges before the first iteration: their units, which of them can matter, and storage for those that do."""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.kernels.interior_hinges import HB, HINGE_SLOTS, HR, HW, REACH
from omdpd.kernels.interior_layout import OPTIONS, place
from omdpd.kernels.interior_start import water_fill

# A hinge of weight W is known to W 1e-16, hence counts in the unit of the gap.
HINGE_UNIT = 1e-5
# A hinge that can change the objective by less than this part of the tolerance is left out.
NEGLIGIBLE = 1e-3
# A hinge that seems to move by less than this part of its largest entry is looked at from both sides.
SHORT = 0.1


@njit(**OPTIONS)
def load_hinges(R4, d, W, b, rho):
    """Hinges in storage order, each divided by the power of two nearest max|d|, which is exact."""
    m, H, S, n_actions = d.shape
    nb, hb, R = R4.shape[1] - 1, R4.shape[2], R4.shape[3]
    terms = np.zeros((m, nb + 1, hb * R))
    data = np.zeros((6, m))
    for j in range(m):
        largest = 0.0
        for h in range(H):
            for s in range(S):
                for a in range(n_actions):
                    largest = max(largest, abs(d[j, h, s, a]))
        unit = 2.0 ** np.round(np.log2(largest)) if largest > 0.0 else 1.0
        data[0, j], data[1, j], data[2, j] = W[j] * unit, b[j] / unit, rho[j] * unit * unit
        data[3, j], data[4, j] = unit, largest / unit
        for h in range(H):
            block, i = place(h, H, hb, nb)
            for s in range(S):
                for a in range(n_actions):
                    terms[j, block, i * R + a * S + s] = d[j, h, s, a] / unit
    return terms, data, np.zeros(m)


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def farthest(E5, R4, task, j, sign, V):
    """max over Q of sign v_j, by dynamic programming; V is scratch."""
    for block in range(R4.shape[1]):
        for n in range(task.terms.shape[2]):
            task.gain[block, n] = sign * task.terms[j, block, n]
    n_actions = task.reference.shape[2]
    water_fill(E5, task.gain.reshape(R4.shape[1:]), n_actions, task.mass, False, V, task.order, task.scratch)
    most = sign * task.data[1, j]
    for s in range(V.shape[1]):
        most += task.mu[s] * V[0, s]
    return most


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def hinge_floor(data, H):
    """The part of the gap's unit that hinges are responsible for."""
    total = 0.0
    for j in range(data.shape[1]):
        total += HINGE_UNIT * H * data[0, j] * data[4, j]
    return total
