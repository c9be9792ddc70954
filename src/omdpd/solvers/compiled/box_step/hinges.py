"""Terms W t + rho t^2 / 2 with t = [d.q + b]^+: a border of the Newton system, one line per term.

t >= 0 (multiplier zeta) and u = t - v >= 0 (multiplier xi), v = d.q + b, zeta + xi = W + rho t.  The row formulas hold
with c' = c - sum_j xi_j d_j.  Eliminating t and u leaves one unknown dxi per term:

    M dV + B dxi = rhs,    B^T dV + (Phi + D^T Gamma^{-1} D) dxi = D^T Gamma^{-1} R - g
    phi = t/(zeta + rho t) + u/xi,   g = (ct - t zeta - t rz)/(zeta + rho t) - (cu - u xi)/xi + ru

with the measured residuals ru = t - u - v and rz = W + rho t - zeta - xi.  X = M^{-1} B costs one back-solve per term
and iteration; the Schur matrix is T_jk = d_j.P_k + Phi with P = (d - X_s + f.X)/gamma.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.slots import FF, IG, Q, place
from omdpd.solvers.compiled.options import INNER, SUMS

# Slots of a term: data, slacks and multipliers, directions, corrector terms, work.
HW, HB, HR, T, U, ZETA, XI, DT_, DU, DZETA, DXI, CT, CU, V_, WT, G_, RU, RZ, REACH = range(19)
HINGE_SLOTS = 19


@njit(**INNER)
def price(D: Floats, xi: Floats, base: Floats, out: Floats) -> None:
    """out = base - sum_j xi_j d_j; they may be the same."""
    for b in range(out.shape[0]):
        for n in range(out.shape[1]):
            out[b, n] = base[b, n]
    for j in range(D.shape[0]):
        if xi[j] != 0.0:
            for b in range(out.shape[0]):
                for n in range(out.shape[1]):
                    out[b, n] -= xi[j] * D[j, b, n]


@njit(**INNER)
def weigh_hinges(D: Floats, rows: Floats, hinge: Floats) -> float:
    """Arguments v and barrier weights at the start, whose sum is returned; prices are zero.

    A weight is |d|.q, or how far v can move if that is less: beside a narrow box a hinge of weight one would be centred
    long after everything it depends on has reached its bounds.
    """
    total = 0.0
    for j in range(D.shape[0]):
        v, size = hinge[HB, j], 0.0
        for b in range(D.shape[1]):
            for n in range(D.shape[2]):
                v += D[j, b, n] * rows[Q, b, n]
                size += abs(D[j, b, n]) * rows[Q, b, n]
        hinge[V_, j] = v
        hinge[WT, j] = max(min(size, hinge[REACH, j]), 1e-12)
        for slot in (XI, DT_, DU, DZETA, DXI):
            hinge[slot, j] = 0.0
        total += 2.0 * hinge[WT, j]
    return total


@njit(**INNER)
def centre_hinges(hinge: Floats, target: float, cap: float) -> None:
    """Every term at the point with t zeta = u xi = target, t - u = v and zeta + xi = W + rho t.

    The smaller slack solves k/s + k/(s + |v|) = W + rho t, whose left side is convex: Newton's method climbs to the
    root from a lower bound.  Where W exceeds `cap` the point is centred for the cap and t - u = v is left to Newton.
    """
    for j in range(hinge.shape[1]):
        v = hinge[V_, j]
        weight, rho, kappa = hinge[HW, j], hinge[HR, j], target * hinge[WT, j]
        effective = min(weight, cap) if rho == 0.0 else weight
        positive, size = max(v, 0.0), abs(v)
        line = effective + rho * positive
        s = 2.0 * kappa / (line + np.sqrt(line * line + 4.0 * rho * kappa))
        for _ in range(40):
            value = kappa / s + kappa / (s + size) - line - rho * s
            slope = kappa / (s * s) + kappa / ((s + size) * (s + size)) + rho
            s += value / slope
            if value <= 1e-14 * slope * s:
                break
        small, large = s, s + size
        hinge[T, j] = large if v > 0.0 else small
        hinge[U, j] = small if v > 0.0 else large
        hinge[XI, j] = kappa / hinge[U, j]
        hinge[ZETA, j] = kappa / hinge[T, j]
        if weight > effective:
            hinge[ZETA, j] = weight - hinge[XI, j]
            hinge[T, j] = kappa / hinge[ZETA, j]


@njit(**SUMS)
def border(by_gamma: Floats, R4: Floats, D4: Floats, b: int, n_actions: int, X: Floats) -> None:
    """X_j := B_j = sum_r (e_s - f) d_j/gamma, given f/gamma.  Blocks come in order."""
    m, H, S = X.shape
    nb, hb, R = R4.shape[1] - 1, R4.shape[2], R4.shape[3]
    for j in range(m):
        if b == 0:
            for s in range(S):
                X[j, 0, s] = 0.0
        if b < nb:
            for t in range(S):
                for i in range(hb):
                    total = 0.0
                    for r in range(R):
                        total += by_gamma[t, i, r] * D4[j, b, i, r]
                    X[j, b * hb + i + 1, t] = -total
        for i in range(hb):
            h = b * hb + i
            if h < H:
                for a in range(n_actions):
                    for s in range(S):
                        X[j, h, s] += D4[j, b, i, a * S + s] * R4[IG, b, i, a * S + s]


@njit(**INNER)
def response(E5: Floats, R4: Floats, d: Floats, n_actions: int, x: Floats, out: Floats) -> None:
    """out = (d - x_s + f.x)/gamma, all of them (nb+1, hb, R)."""
    H, S = x.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for r in range(R):
            out[b, i, r] = d[b, i, r]
        if b < nb:
            for t in range(S):
                v = x[h + 1, t]
                for r in range(R):
                    out[b, i, r] += E5[FF, b, t, i, r] * v
        for a in range(n_actions):
            for s in range(S):
                out[b, i, a * S + s] -= x[h, s]
        for r in range(R):
            out[b, i, r] *= R4[IG, b, i, r]


@njit(**INNER)
def schur(D: Floats, P: Floats, rows: Floats, hinge: Floats, full: Floats, factor: Floats) -> None:
    """Cholesky factor of T; its asymmetry before symmetrising measures the noise that the diagonal is lifted by."""
    m = D.shape[0]
    for k in range(m):
        dots(D, P[k], full[k])
    noise = 0.0
    for j in range(m):
        for k in range(j):
            noise = max(noise, abs(full[j, k] - full[k, j]))
    for j in range(m):
        curvature = 0.0
        for b in range(rows.shape[1]):
            for n in range(rows.shape[2]):
                curvature += D[j, b, n] * D[j, b, n] * rows[IG, b, n]
        phi = hinge[T, j] / (hinge[ZETA, j] + hinge[HR, j] * hinge[T, j]) + hinge[U, j] / hinge[XI, j]
        for k in range(j):
            factor[j, k] = 0.5 * (full[j, k] + full[k, j])
        factor[j, j] = full[j, j] + phi + (1e-13 * curvature + 10.0 * noise)
    for j in range(m):
        pivot, least = factor[j, j], 1e-14 * factor[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        factor[j, j] = np.sqrt(max(pivot, max(least, 1e-300)))
        for i in range(j + 1, m):
            total = factor[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]


@njit(**SUMS)
def dots(D: Floats, x: Floats, out: Floats) -> None:
    """out_j = d_j . x."""
    for j in range(D.shape[0]):
        total = 0.0
        for b in range(D.shape[1]):
            for n in range(D.shape[2]):
                total += D[j, b, n] * x[b, n]
        out[j] = total


@njit(**INNER)
def settle(factor: Floats, x: Floats, g: Floats, X: Floats, dV: Floats) -> None:
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


@njit(**INNER)
def aim_hinges(hinge: Floats, target: float, second: float) -> None:
    """Corrector terms ct, cu (centring less the predictor's products, none of either in the predictor); g, ru, rz."""
    for j in range(hinge.shape[1]):
        t, u, zeta, xi = hinge[T, j], hinge[U, j], hinge[ZETA, j], hinge[XI, j]
        rho = hinge[HR, j]
        hinge[CT, j] = target * hinge[WT, j] - second * hinge[DT_, j] * hinge[DZETA, j]
        hinge[CU, j] = target * hinge[WT, j] - second * hinge[DU, j] * hinge[DXI, j]
        hinge[RU, j] = (t - u) - hinge[V_, j]
        # Without curvature zeta + xi = W is kept exactly, so its residual is rounding and must not be fed back.
        hinge[RZ, j] = hinge[HW, j] + rho * t - zeta - xi if rho > 0.0 else 0.0
        first = (hinge[CT, j] - t * zeta - t * hinge[RZ, j]) / (zeta + rho * t)
        hinge[G_, j] = first - (hinge[CU, j] - u * xi) / xi + hinge[RU, j]


@njit(**INNER)
def move_hinges(hinge: Floats, dxis: Floats, slope: Floats) -> tuple[float, float]:
    """dt, du, dzeta from dxi and the measured d.dq (`slope`); the larger slack closes t - u = v + ...

    Returns the greatest relative decrease of a slack or a multiplier, and sum dt dzeta + du dxi.
    """
    most, second = 0.0, 0.0
    for j in range(hinge.shape[1]):
        t, u, zeta, xi = hinge[T, j], hinge[U, j], hinge[ZETA, j], hinge[XI, j]
        rho, dxi = hinge[HR, j], dxis[j]
        if t <= u:
            dt = (hinge[CT, j] - t * zeta - t * hinge[RZ, j] + t * dxi) / (zeta + rho * t)
            du = dt - slope[j] + hinge[RU, j]
        else:
            du = (hinge[CU, j] - u * xi - u * dxi) / xi
            dt = du + slope[j] - hinge[RU, j]
        dzeta = rho * dt - dxi + hinge[RZ, j]
        hinge[DT_, j], hinge[DU, j], hinge[DZETA, j], hinge[DXI, j] = dt, du, dzeta, dxi
        most = max(max(most, -dt / t), max(-du / u, max(-dzeta / zeta, -dxi / xi)))
        second += dt * dzeta + du * dxi
    return most, second


@njit(**INNER)
def advance_hinges(hinge: Floats, step: float) -> None:
    """Move every term; without curvature the smaller multiplier moves and the other is W minus it: digits."""
    for j in range(hinge.shape[1]):
        hinge[T, j] += step * hinge[DT_, j]
        hinge[U, j] += step * hinge[DU, j]
        if hinge[HR, j] > 0.0:
            hinge[ZETA, j] += step * hinge[DZETA, j]
            hinge[XI, j] += step * hinge[DXI, j]
        elif hinge[ZETA, j] < hinge[XI, j]:
            hinge[ZETA, j] -= step * hinge[DXI, j]
            hinge[XI, j] = hinge[HW, j] - hinge[ZETA, j]
        else:
            hinge[XI, j] += step * hinge[DXI, j]
            hinge[ZETA, j] = hinge[HW, j] - hinge[XI, j]


@njit(**INNER)
def measure_hinges(hinge: Floats) -> float:
    """v = d.q + b, where d.q is in its slot; returns sum t zeta + u xi."""
    total = 0.0
    for j in range(hinge.shape[1]):
        hinge[V_, j] += hinge[HB, j]
        total += hinge[T, j] * hinge[ZETA, j] + hinge[U, j] * hinge[XI, j]
    return total
