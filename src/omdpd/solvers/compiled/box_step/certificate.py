"""A feasible point from an iterate, and a duality gap that is computed without cancellation.

For any V, any xi and any policy and kernel in the box with occupancy q, with c' = c - sum_j xi_j d_j,
y = c' - V_h(s) + sigma(V_{h+1}) and v_j = d_j.q, primal minus dual value is a sum of non-negative terms:

    Euclid   1/2 (q - [y]^+)^2 + q ([y]^+ - y) + q (sigma - p.V_{h+1})                       over the rows
    KL       q (e^delta - 1 - delta) + q (sigma - p.V_{h+1}),  delta = y - log q               over the rows
    hinges   (W - xi) v  if v > 0,  -xi v  otherwise

(mu.V_1 telescopes into the rows, which removes every large term.)  An upper bound of what the rounding of q can
do to the hinge terms is part of the gap: at large W it dominates.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import inner
from omdpd.jit.pointers import assume_distinct
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.laws import kernel_gap
from omdpd.solvers.compiled.box_step.start import DEAD_MASS
from omdpd.solvers.compiled.box_step.storage import place

# q of a forward pass is off by a few units in the last place, relative to each entry.
SUM_ROUNDING = 4.0 * 2.220446049250313e-16
# KL: what a state without mass adds to V, so that e^y is zero in the objective; e^-50 is 2e-22.
UNREACHABLE_BONUS = 50.0
# The largest exponent whose power is a double, and where e^x - 1 - x would lose more digits than its series.
MAX_EXPONENT, SERIES_BELOW = 700.0, 1e-2
# 2^27 + 1 splits a double into halves of 26 bits.
SPLIT = 134217729.0


@inner
def recover_kernel(E, rows, b, p):
    """p = l + w/q of a block, which still has to be moved into the true box."""
    assume_distinct()
    S, N = p.shape
    for t in range(S):
        for n in range(N):
            q = rows[slot.OCCUPANCY, b, n]
            p[t, n] = E[slot.LOWER, b, t, n] + (E[slot.LOW_SLACK, b, t, n] / q if q > 0.0 else 0.0)


@inner
def backward(E5, rows4, A, mass, kl, held, V, order, scratch):
    """Dual slack y and sigma - p.V of every row; states without mass get the V that makes every y <= 0."""
    H, S = V.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    for h in range(H - 1, -1, -1):
        b, i = place(h, H, hb, nb)
        top = 0.0
        if h + 1 < H:
            top = kernel_gap(E5, rows4, b, i, held, V[h + 1], order, scratch)
        else:
            for r in range(R):
                scratch[0, r] = 0.0
                scratch[1, r] = 0.0
        for s in range(S):
            if mass[h, s] <= DEAD_MASS:
                best = -np.inf
                for a in range(A):
                    best = max(best, rows4[slot.C, b, i, a * S + s] + (scratch[0, a * S + s] + top))
                V[h, s] = best + (UNREACHABLE_BONUS if kl else 0.0)
            for a in range(A):
                r = a * S + s
                rows4[slot.DUAL_SLACK, b, i, r] = rows4[slot.C, b, i, r] + ((top - V[h, s]) + scratch[0, r])
                rows4[slot.KERNEL_LOSS, b, i, r] = max(scratch[1, r], 0.0)


@inner
def forward(E5, rows4, A, mu, flow):
    """The certified occupancy: of the iterate's policy under the kernel in its slot; `flow` gets the state masses."""
    H, S = flow.shape
    nb, hb = E5.shape[1], E5.shape[3]
    for s in range(S):
        flow[0, s] = mu[s]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += rows4[slot.OCCUPANCY, b, i, a * S + s]
            for a in range(A):
                r = a * S + s
                share = rows4[slot.OCCUPANCY, b, i, r] / total if total > 0.0 else 1.0 / A
                rows4[slot.CERTIFIED, b, i, r] = flow[h, s] * share
        if h + 1 < H:
            for t in range(S):
                total = 0.0
                for r in range(S * A):
                    total += rows4[slot.CERTIFIED, b, i, r] * E5[slot.KERNEL, b, t, i, r]
                flow[h + 1, t] = total


@inner
def row_gap(rows4, H, n_rows, kl):
    """Sum of the rows' terms."""
    nb, hb = rows4.shape[1] - 1, rows4.shape[2]
    total = 0.0
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for r in range(n_rows):
            q, y = rows4[slot.CERTIFIED, b, i, r], rows4[slot.DUAL_SLACK, b, i, r]
            if kl:
                term = divergence_gap(q, y)
            else:
                positive = max(y, 0.0)
                term = 0.5 * (q - positive) ** 2 + q * (positive - y)
            total += term + q * rows4[slot.KERNEL_LOSS, b, i, r]
    return total


@inner
def divergence_gap(q, y):
    """q log q - q - q y + e^y, written in delta = y - log q where q > 0."""
    if q <= 0.0:
        return np.exp(min(y, MAX_EXPONENT))
    delta = y - np.log(q)
    if abs(delta) < SERIES_BELOW:
        series = 1.0 / 6.0 + delta * (1.0 / 24.0 + delta * (1.0 / 120.0 + delta / 720.0))
        return q * (delta * delta * (0.5 + delta * series))
    return q * (np.exp(min(delta, MAX_EXPONENT)) - 1.0 - delta)


@inner
def hinge_gaps(tables, rows, data, xi):
    """Sum of the hinges' terms; v is summed in twice the working precision (Dekker's product, Knuth's sum)."""
    gap = 0.0
    for j in range(xi.size):
        high, low, size = 0.0, 0.0, 0.0
        for b in range(rows.shape[1]):
            for n in range(rows.shape[2]):
                one, two = tables[j, b, n], rows[slot.CERTIFIED, b, n]
                product = one * two
                one_split, two_split = SPLIT * one, SPLIT * two
                one_high, two_high = one_split - (one_split - one), two_split - (two_split - two)
                one_low, two_low = one - one_high, two - two_high
                low += one_low * two_low - (((product - one_high * two_high) - one_low * two_high) - one_high * two_low)
                total = high + product
                part = total - high
                low += (high - (total - part)) + (product - part)
                high = total
                size += abs(product)
        gap += hinge_gap(high + low, size, xi[j], data[slot.WEIGHT, j])
    return gap


@inner
def hinge_gap(v, size, xi, weight):
    """One hinge's term, with the most that rounding of v by `SUM_ROUNDING` times `size` can add."""
    error = SUM_ROUNDING * size
    worst = 0.0
    for point in (v - error, v, v + error):
        worst = max(worst, (weight - xi) * point if point > 0.0 else -xi * point)
    return worst
