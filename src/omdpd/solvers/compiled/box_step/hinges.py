"""Terms W [v]^+ with v = d.q: a border of the Newton system, one line per term.

v = above - below with slacks above >= 0 (multiplier zeta) and below >= 0 (multiplier xi), zeta + xi = W.  The row
formulas hold with c' = c - sum_j xi_j d_j.  Eliminating the slacks leaves one unknown dxi per term:

    M dV + B dxi = rhs,    B^T dV + (Phi + D^T Gamma^{-1} D) dxi = D^T Gamma^{-1} right - g
    phi = above/zeta + below/xi,    g = (above's correction - above zeta)/zeta - (below's - below xi)/xi + residual

with the measured residual above - below - v.  X = M^{-1} B costs one back-solve per term and iteration; the Schur
matrix is T_jk = d_j.P_k + Phi with P = (d - X_s + f.X)/gamma.  `tables` are the d_j, in the order of the rows.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import inner
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.storage import place

# Barrier weight of a hinge that cannot move at all: a slack of zero has no logarithm.
MIN_WEIGHT = 1e-12
# Newton's method in `centre_hinges` starts within a factor of two of the root, so a handful of steps reach the second
# number; the first only guards against what is not finite.
MAX_CENTRING, CENTRED = 40, 1e-14
# The Schur matrix is lifted by this part of sum_r d^2/gamma, a thousand roundings, and by so many times its measured
# asymmetry: dependent hinges leave nothing else on the diagonal.
LIFT, NOISE = 1e-13, 10.0
# A pivot of it below this part of its diagonal is rounding.
MIN_PIVOT, TINY = 1e-14, 1e-300


@inner
def price(tables, xi, base, out):
    """out = base - sum_j xi_j d_j; they may be the same."""
    for b in range(out.shape[0]):
        for n in range(out.shape[1]):
            out[b, n] = base[b, n]
    for j in range(tables.shape[0]):
        if xi[j] != 0.0:
            for b in range(out.shape[0]):
                for n in range(out.shape[1]):
                    out[b, n] -= xi[j] * tables[j, b, n]


@inner
def weigh_hinges(tables, rows, hinge):
    """Arguments v and barrier weights at the start, whose sum is returned; prices are zero.

    A weight is |d|.q, or how far v can move if that is less: beside a narrow box a hinge of weight one would be centred
    long after everything it depends on has reached its bounds.
    """
    total = 0.0
    for j in range(tables.shape[0]):
        v, size = 0.0, 0.0
        for b in range(tables.shape[1]):
            for n in range(tables.shape[2]):
                v += tables[j, b, n] * rows[slot.OCCUPANCY, b, n]
                size += abs(tables[j, b, n]) * rows[slot.OCCUPANCY, b, n]
        hinge[slot.VALUE, j] = v
        hinge[slot.BARRIER_WEIGHT, j] = max(min(size, hinge[slot.REACH, j]), MIN_WEIGHT)
        for each in (slot.XI, slot.ABOVE_MOVE, slot.BELOW_MOVE, slot.XI_MOVE):
            hinge[each, j] = 0.0
        total += 2.0 * hinge[slot.BARRIER_WEIGHT, j]
    return total


@inner
def centre_hinges(hinge, target, cap):
    """Every term at the point with above zeta = below xi = target weight, above - below = v and zeta + xi = W.

    The smaller slack x solves kappa/x + kappa/(x + |v|) = W, whose left side is convex: Newton's method climbs to the
    root from a lower bound.  Where W exceeds `cap` the point is centred for the cap and above - below = v is left to
    the iterations.
    """
    for j in range(hinge.shape[1]):
        v, weight = hinge[slot.VALUE, j], hinge[slot.WEIGHT, j]
        kappa, capped, size = target * hinge[slot.BARRIER_WEIGHT, j], min(weight, cap), abs(v)
        x = kappa / capped
        for _ in range(MAX_CENTRING):
            value = kappa / x + kappa / (x + size) - capped
            slope = kappa / (x * x) + kappa / ((x + size) * (x + size))
            x += value / slope
            if value <= CENTRED * slope * x:
                break
        hinge[slot.ABOVE, j] = x + size if v > 0.0 else x
        hinge[slot.BELOW, j] = x if v > 0.0 else x + size
        hinge[slot.XI, j] = kappa / hinge[slot.BELOW, j]
        hinge[slot.ZETA, j] = kappa / hinge[slot.ABOVE, j]
        if weight > capped:
            hinge[slot.ZETA, j] = weight - hinge[slot.XI, j]
            hinge[slot.ABOVE, j] = kappa / hinge[slot.ZETA, j]


@inner
def border(by_gamma, rows4, tables4, b, A, X):
    """X_j := B_j = sum_r (e_s - f) d_j/gamma, given f/gamma.  Blocks come in order."""
    m, H, S = X.shape
    nb, hb, R = rows4.shape[1] - 1, rows4.shape[2], rows4.shape[3]
    for j in range(m):
        if b == 0:
            for s in range(S):
                X[j, 0, s] = 0.0
        if b < nb:
            for t in range(S):
                for i in range(hb):
                    total = 0.0
                    for r in range(R):
                        total += by_gamma[t, i, r] * tables4[j, b, i, r]
                    X[j, b * hb + i + 1, t] = -total
        for i in range(hb):
            h = b * hb + i
            if h < H:
                for a in range(A):
                    for s in range(S):
                        X[j, h, s] += tables4[j, b, i, a * S + s] * rows4[slot.INVERSE_GAMMA, b, i, a * S + s]


@inner
def response(E5, rows4, right, A, x, out):
    """out = (right - x_s + f.x)/gamma, all of them (nb+1, hb, R): dq of a right-hand side and a move x of V."""
    H, S = x.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for r in range(R):
            out[b, i, r] = right[b, i, r]
        if b < nb:
            for t in range(S):
                following = x[h + 1, t]
                for r in range(R):
                    out[b, i, r] += E5[slot.PSEUDO_KERNEL, b, t, i, r] * following
        for a in range(A):
            for s in range(S):
                out[b, i, a * S + s] -= x[h, s]
        for r in range(R):
            out[b, i, r] *= rows4[slot.INVERSE_GAMMA, b, i, r]


@inner
def schur(tables, P, rows, hinge, full, factor):
    """Cholesky factor of T; its asymmetry before symmetrising measures the noise that the diagonal is lifted by."""
    m = tables.shape[0]
    for k in range(m):
        dots(tables, P[k], full[k])
    noise = 0.0
    for j in range(m):
        for k in range(j):
            noise = max(noise, abs(full[j, k] - full[k, j]))
    for j in range(m):
        curvature = 0.0
        for b in range(rows.shape[1]):
            for n in range(rows.shape[2]):
                curvature += tables[j, b, n] * tables[j, b, n] * rows[slot.INVERSE_GAMMA, b, n]
        phi = hinge[slot.ABOVE, j] / hinge[slot.ZETA, j] + hinge[slot.BELOW, j] / hinge[slot.XI, j]
        for k in range(j):
            factor[j, k] = 0.5 * (full[j, k] + full[k, j])
        factor[j, j] = full[j, j] + phi + (LIFT * curvature + NOISE * noise)
    for j in range(m):
        pivot, least = factor[j, j], MIN_PIVOT * factor[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        factor[j, j] = np.sqrt(max(pivot, max(least, TINY)))
        for later in range(j + 1, m):
            total = factor[later, j]
            for k in range(j):
                total -= factor[later, k] * factor[j, k]
            factor[later, j] = total / factor[j, j]


@inner
def dots(tables, x, out):
    """out_j = d_j . x."""
    for j in range(tables.shape[0]):
        total = 0.0
        for b in range(tables.shape[1]):
            for n in range(tables.shape[2]):
                total += tables[j, b, n] * x[b, n]
        out[j] = total


@inner
def solve_border(factor, x, g, X, dV):
    """x <- T^{-1} (x - g), the change of the prices, and dV -= sum_j x_j X_j."""
    m = x.size
    for j in range(m):
        x[j] -= g[j]
        for k in range(j):
            x[j] -= factor[j, k] * x[k]
        x[j] /= factor[j, j]
    for j in range(m - 1, -1, -1):
        for k in range(j + 1, m):
            x[j] -= factor[k, j] * x[k]
        x[j] /= factor[j, j]
    for j in range(m):
        for h in range(dV.shape[0]):
            for s in range(dV.shape[1]):
                dV[h, s] -= x[j] * X[j, h, s]


@inner
def aim_hinges(hinge, target, second):
    """Corrections (centring less the predictor's products, none of either in the predictor), residual and g."""
    for j in range(hinge.shape[1]):
        above, below, zeta, xi = hinge[slot.ABOVE, j], hinge[slot.BELOW, j], hinge[slot.ZETA, j], hinge[slot.XI, j]
        weight, dxi = hinge[slot.BARRIER_WEIGHT, j], hinge[slot.XI_MOVE, j]
        for_above = target * weight + second * hinge[slot.ABOVE_MOVE, j] * dxi
        for_below = target * weight - second * hinge[slot.BELOW_MOVE, j] * dxi
        residual = (above - below) - hinge[slot.VALUE, j]
        hinge[slot.ABOVE_CORRECTION, j] = for_above
        hinge[slot.BELOW_CORRECTION, j] = for_below
        hinge[slot.SPLIT_RESIDUAL, j] = residual
        hinge[slot.BORDER_RIGHT, j] = (for_above - above * zeta) / zeta - (for_below - below * xi) / xi + residual


@inner
def move_hinges(hinge, dxis, slope):
    """Moves of the slacks from dxi and the measured d.dq (`slope`); the larger slack closes above - below = v + ...

    Returns the greatest relative decrease of a slack or a multiplier, and the sum of the products of their moves.
    """
    most, second = 0.0, 0.0
    for j in range(hinge.shape[1]):
        above, below, zeta, xi = hinge[slot.ABOVE, j], hinge[slot.BELOW, j], hinge[slot.ZETA, j], hinge[slot.XI, j]
        dxi, residual = dxis[j], hinge[slot.SPLIT_RESIDUAL, j]
        if above <= below:
            above_move = (hinge[slot.ABOVE_CORRECTION, j] - above * zeta + above * dxi) / zeta
            below_move = above_move - slope[j] + residual
        else:
            below_move = (hinge[slot.BELOW_CORRECTION, j] - below * xi - below * dxi) / xi
            above_move = below_move + slope[j] - residual
        hinge[slot.ABOVE_MOVE, j], hinge[slot.BELOW_MOVE, j], hinge[slot.XI_MOVE, j] = above_move, below_move, dxi
        most = max(max(most, -above_move / above), max(-below_move / below, max(dxi / zeta, -dxi / xi)))
        second += below_move * dxi - above_move * dxi
    return most, second


@inner
def advance_hinges(hinge, step):
    """Move every term; the smaller multiplier moves and the other is W minus it: digits.

    Returns sum above zeta + below xi.
    """
    total = 0.0
    for j in range(hinge.shape[1]):
        hinge[slot.ABOVE, j] += step * hinge[slot.ABOVE_MOVE, j]
        hinge[slot.BELOW, j] += step * hinge[slot.BELOW_MOVE, j]
        if hinge[slot.ZETA, j] < hinge[slot.XI, j]:
            hinge[slot.ZETA, j] -= step * hinge[slot.XI_MOVE, j]
            hinge[slot.XI, j] = hinge[slot.WEIGHT, j] - hinge[slot.ZETA, j]
        else:
            hinge[slot.XI, j] += step * hinge[slot.XI_MOVE, j]
            hinge[slot.ZETA, j] = hinge[slot.WEIGHT, j] - hinge[slot.XI, j]
        total += hinge[slot.ABOVE, j] * hinge[slot.ZETA, j] + hinge[slot.BELOW, j] * hinge[slot.XI, j]
    return total
