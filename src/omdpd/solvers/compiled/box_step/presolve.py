"""Hinges before the first iteration: their units, which of them can matter, and storage for those that do."""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import inner
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.laws import support
from omdpd.solvers.compiled.box_step.storage import place

# A hinge of weight W is known to W 1e-16, hence counts in the unit of the gap.
HINGE_UNIT = 1e-5
# A hinge that can change the objective by less than this part of the tolerance is left out.
NEGLIGIBLE = 1e-3
# A hinge that seems to move by less than this part of its largest entry is looked at from both sides.
SHORT = 0.1


@inner
def load_hinges(rows4, d, W):
    """Hinges in storage order, each divided by the power of two nearest max|d|, which is exact.

    Also their part in the gap's unit.
    """
    m, H, S, A = d.shape
    nb, hb, R = rows4.shape[1] - 1, rows4.shape[2], rows4.shape[3]
    tables = np.zeros((m, nb + 1, hb * R))
    data, gap_unit = np.zeros((slot.DATA_SLOTS, m)), 0.0
    for j in range(m):
        largest = 0.0
        for h in range(H):
            for s in range(S):
                for a in range(A):
                    largest = max(largest, abs(d[j, h, s, a]))
        unit = 2.0 ** np.floor(np.log2(largest) + 0.5) if largest > 0.0 else 1.0
        data[slot.WEIGHT, j], data[slot.UNIT, j], data[slot.SIZE, j] = W[j] * unit, unit, largest / unit
        gap_unit += HINGE_UNIT * H * W[j] * largest
        for h in range(H):
            b, i = place(h, H, hb, nb)
            for s in range(S):
                for a in range(A):
                    tables[j, b, i * R + a * S + s] = d[j, h, s, a] / unit
    return tables, data, gap_unit


@inner
def presolve(E5, problem):
    """Indices of the hinges that can go either way; the others are priced once and for all (`problem.xi`).

    By dynamic programming: v <= 0 on all of Q means xi = 0; v >= 0 on all of Q means xi = W.  One of the two is ruled
    out by the sign of v at the reference.  `problem.data` gets how far v can move.
    """
    H, S, A = problem.reference.shape
    m, nb, hb, R = problem.tables.shape[0], E5.shape[1], E5.shape[3], E5.shape[4]
    V = np.zeros(problem.mass.shape)
    keep = np.empty(m, dtype=np.int64)
    kept = 0
    for j in range(m):
        weight, size = problem.data[slot.WEIGHT, j], problem.data[slot.SIZE, j]
        if weight * (H * size) <= NEGLIGIBLE * problem.tol:
            continue
        v = 0.0
        for h in range(H):
            b, i = place(h, H, hb, nb)
            for s in range(S):
                for a in range(A):
                    v += problem.tables[j, b, i * R + a * S + s] * problem.reference[h, s, a]
        sign = -1.0 if v > 0.0 else 1.0
        farthest = max_value(E5, problem, j, sign, V)
        if farthest <= 0.0:
            problem.xi[j] = weight if v > 0.0 else 0.0
            continue
        reach = farthest + abs(v)
        if reach < SHORT * size:
            reach = farthest + max_value(E5, problem, j, -sign, V)
        problem.data[slot.REACH, j] = reach
        keep[kept] = j
        kept += 1
    return keep[:kept]


@inner
def max_value(E5, problem, j, sign, V):
    """max over Q of sign v_j, by dynamic programming; V is scratch."""
    H, S, A = problem.reference.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    sigma, rest = problem.scratch[0], problem.scratch[1]
    for h in range(H - 1, -1, -1):
        b, i = place(h, H, hb, nb)
        top = support(E5, h, V, problem.order, sigma, rest)
        for s in range(S):
            V[h, s] = -np.inf
            for r in range(s, S * A, S):
                V[h, s] = max(V[h, s], sign * problem.tables[j, b, i * R + r] + (sigma[r] + top))
    total = 0.0
    for s in range(S):
        total += problem.mu[s] * V[0, s]
    return total


@inner
def select_hinges(tables, data, keep):
    """The hinges that presolve kept."""
    m = keep.size
    hinge = np.zeros((slot.HINGE_SLOTS, m))
    kept = np.empty((m, tables.shape[1], tables.shape[2]))
    for k in range(m):
        for each in range(slot.DATA_SLOTS):
            hinge[each, k] = data[each, keep[k]]
        for b in range(tables.shape[1]):
            for n in range(tables.shape[2]):
                kept[k, b, n] = tables[keep[k], b, n]
    return hinge, kept
