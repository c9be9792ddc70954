"""One iteration of Mehrotra's predictor-corrector method on the mirror step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.interior_hinges import (
    CT,
    CU,
    DXI,
    G_,
    V_,
    HB,
    advance_hinges,
    border,
    correct_hinges,
    dots,
    dots_of,
    hinge_directions,
    hinge_products,
    hinge_residuals,
    hinge_steepest,
    price,
    response,
    schur,
    solve_schur,
    XI,
)
from omdpd.kernels.interior_layout import (
    A,
    B,
    BLAS_STATES,
    C,
    CN,
    DN,
    DQ,
    GLUE,
    HQ,
    LIVE,
    LO,
    NU,
    NW,
    OPTIONS,
    Q,
    RES,
    RR,
    S1,
    TAU,
    VS,
    WD,
)
from omdpd.kernels.interior_newton import couple, factor, gram_large, gram_small, scale_rows, solve
from omdpd.kernels.interior_rows import (
    advance,
    balance,
    corrector_terms,
    directions,
    moved_terms,
    multiplier_moves,
    outflow_terms,
    predictor_terms,
    relative_moves,
    spread_own,
    weigh,
)
from omdpd.kernels.interior_steps import affine_products, affine_range, complementarity, steepest


class Store(NamedTuple):
    """Everything an iteration reads and writes; see `interior_layout` for E and rows."""

    E: Floats
    E5: Floats
    rows: Floats
    R4: Floats
    mu: Floats
    V: Floats
    dV: Floats
    extra: Floats
    D: Floats
    off: Floats
    K: Floats
    G: Floats
    square: Floats
    hinge: Floats
    d: Floats
    X: Floats
    P: Floats
    reply: Floats
    full: Floats
    lower: Floats
    short: Floats


# A proximal term on the entries, relative to the range of V: without it rounding in V is magnified by 1e10.
PROXIMAL = 1e-8
# The step stays off the boundary by at least this factor.
LONGEST = 1.0 - 1e-5
# In KL, log q is asked to fall by at most this much per iteration.
FALL = -3.0


@njit(**OPTIONS)
def stationarity(E: Floats, rows: Floats, R4: Floats, V: Floats, kl: bool) -> None:
    """Curvature HQ and minus the residual RES of every row, a and b left out of the latter.

    Euclid: RES = c - V_s + tau - q.  KL, with delta = c - V_s + tau - sum(l a - u b) - log q: where q must grow,
    log q is linearised; where it must shrink, q = exp(.) is.  Either alone diverges.
    """
    spread_own(R4, VS, V)
    nb, S, N = E.shape[1:]
    if not kl:
        for b in range(nb + 1):
            for n in range(N):
                rows[RES, b, n] = rows[C, b, n] + (rows[TAU, b, n] - rows[VS, b, n]) - rows[Q, b, n]
            for n in range(N):
                nu = rows[NU, b, n]
                rows[HQ, b, n] = 1.0 + nu / rows[Q, b, n] if nu > 0.0 else 1.0
        return
    for b in range(nb + 1):
        for n in range(N):
            rows[S1, b, n] = 0.0
        if b < nb:
            for t in range(S):
                for n in range(N):
                    upper = E[LO, b, t, n] + E[WD, b, t, n]
                    rows[S1, b, n] += E[LO, b, t, n] * E[A, b, t, n] - upper * E[B, b, t, n]
        for n in range(N):
            if rows[LIVE, b, n] > 0.0:
                q = rows[Q, b, n]
                delta = rows[C, b, n] + (rows[TAU, b, n] - rows[VS, b, n]) - rows[S1, b, n] - np.log(q)
                if delta >= 0.0:
                    rows[HQ, b, n] = 1.0 / q
                    rows[RES, b, n] = delta + rows[S1, b, n]
                else:
                    growth = np.exp(-max(delta, FALL))
                    rows[HQ, b, n] = growth / q
                    rows[RES, b, n] = 1.0 - growth + rows[S1, b, n]


@njit(**GLUE)
def build(w: Store, n_actions: int, reg: float, floor: float) -> None:
    """Factor the Newton matrix of the current point, border included."""
    weigh(w.E, w.rows, reg)
    scale_rows(w.E, w.rows)
    if w.V.shape[1] < BLAS_STATES:
        gram_small(w.E5, w.D)
    else:
        gram_large(w.E, w.D, w.square)
    couple(w.E5, w.R4, n_actions, w.D, w.off)
    factor(w.D, w.off, w.K, w.G, w.square, floor)
    if w.d.shape[0] > 0:
        border(w.E5, w.R4, w.rows, w.d, n_actions, w.K, w.G, w.X, w.P)
        schur(w.d, w.P, w.rows, w.hinge, w.full, w.lower)


@njit(**GLUE)
def net_outflow(w: Store, n_actions: int, out: Floats) -> None:
    """Outflow minus inflow minus mu of the flow in slots YY and RG, zero at unreachable states."""
    H, S = out.shape
    nb, hb = w.E5.shape[1], w.E5.shape[3]
    balance(w.E5, w.R4, S, n_actions, out)
    for s in range(S):
        out[0, s] -= w.mu[s]
    for h in range(H):
        b, i = (nb, 0) if h == H - 1 else (h // hb, h % hb)
        for s in range(S):
            if w.R4[LIVE, b, i, s] == 0.0:
                out[h, s] = 0.0


@njit(**OPTIONS)
def add_prices(w: Store, sign: float, change: Floats) -> None:
    """R += sign sum_j change_j d_j."""
    for j in range(change.size):
        for b in range(w.rows.shape[1]):
            for n in range(w.rows.shape[2]):
                w.rows[RR, b, n] += sign * change[j] * w.d[j, b, n]


@njit(**OPTIONS)
def shift_values(w: Store, change: Floats) -> None:
    """dV -= sum_j change_j X_j."""
    for j in range(change.size):
        for h in range(w.V.shape[0]):
            for s in range(w.V.shape[1]):
                w.dV[h, s] -= change[j] * w.X[j, h, s]


@njit(**GLUE)
def direct(w: Store, n_actions: int) -> None:
    """All directions for the terms rx, R, t0, g in store."""
    outflow_terms(w.E, w.rows)
    net_outflow(w, n_actions, w.dV)
    solve(w.K, w.G, w.dV)
    m = w.d.shape[0]
    if m > 0:
        response(w.E5, w.R4, w.R4[RR], n_actions, w.dV, w.reply)
        dots_of(w.d, w.reply.reshape(w.rows.shape[1:]), w.hinge[DXI])
        for j in range(m):
            w.hinge[DXI, j] -= w.hinge[G_, j]
        solve_schur(w.lower, w.hinge[DXI])
        shift_values(w, w.hinge[DXI])
        add_prices(w, -1.0, w.hinge[DXI])
    directions(w.E, w.E5, w.rows, w.R4, w.dV)
    if m > 0:
        dots(w.d, w.rows, DQ, w.short)
        hinge_directions(w.hinge, w.short)


@njit(**GLUE)
def refine(w: Store, n_actions: int) -> None:
    """Measure how far the moved flow is from balance and take the Newton step that removes it."""
    moved_terms(w.E, w.rows)
    net_outflow(w, n_actions, w.extra)
    solve(w.K, w.G, w.extra)
    m = w.d.shape[0]
    if m > 0:
        w.reply[:] = 0.0
        response(w.E5, w.R4, w.reply, n_actions, w.extra, w.reply)
        dots_of(w.d, w.reply.reshape(w.rows.shape[1:]), w.short)
        solve_schur(w.lower, w.short)
        shift_values(w, w.short)
        add_prices(w, -1.0, w.short)
        for j in range(m):
            w.hinge[DXI, j] += w.short[j]
    for h in range(w.V.shape[0]):
        for s in range(w.V.shape[1]):
            w.dV[h, s] += w.extra[h, s]
    directions(w.E, w.E5, w.rows, w.R4, w.dV)
    if m > 0:
        dots(w.d, w.rows, DQ, w.short)
        hinge_directions(w.hinge, w.short)


@njit(**OPTIONS)
def correct_signs(rows: Floats, target: float) -> None:
    """Corrector term of nu."""
    for b in range(rows.shape[1]):
        for n in range(rows.shape[2]):
            if rows[NW, b, n] > 0.0:
                x = rows[DQ, b, n] / rows[Q, b, n]
                rows[CN, b, n] = target * rows[NW, b, n] / rows[Q, b, n] + rows[NU, b, n] * (x * (1.0 + x))
            else:
                rows[CN, b, n] = 0.0


@njit(**OPTIONS)
def move_signs(rows: Floats) -> None:
    """dnu."""
    for b in range(rows.shape[1]):
        for n in range(rows.shape[2]):
            nu = rows[NU, b, n]
            rows[DN, b, n] = rows[CN, b, n] - nu * (1.0 + rows[DQ, b, n] / rows[Q, b, n]) if nu > 0.0 else 0.0


@njit(**GLUE)
def measure(w: Store) -> float:
    """Total complementarity; hinge arguments and prices are renewed on the way."""
    total = complementarity(w.E, w.rows)
    if w.d.shape[0] > 0:
        dots(w.d, w.rows, Q, w.hinge[V_])
        for j in range(w.d.shape[0]):
            w.hinge[V_, j] += w.hinge[HB, j]
        total += hinge_products(w.hinge)[0]
    price(w.d, w.hinge[XI], w.rows)
    return total


@njit(**GLUE)
def predict(w: Store, n_actions: int, kl: bool, vs: float, now: float) -> float:
    """Affine direction; returns the complementarity it would reach."""
    stationarity(w.E, w.rows, w.R4, w.V, kl)
    build(w, n_actions, PROXIMAL * vs, 1.0 / vs)
    w.hinge[CT] = 0.0
    w.hinge[CU] = 0.0
    hinge_residuals(w.hinge)
    predictor_terms(w.E, w.E5, w.rows, w.V)
    direct(w, n_actions)
    relative_moves(w.E, w.rows)
    least, most = affine_range(w.E, w.rows)
    second = affine_products(w.E, w.rows) + hinge_products(w.hinge)[1]
    step = min(1.0, 1.0 / max(max(-least, 1.0 + most), hinge_steepest(w.hinge)))
    return (1.0 - step) * now + step * step * second


@njit(**GLUE)
def iterate(w: Store, n_actions: int, kl: bool, vs: float, now: float, weight: float, careful: bool) -> float:
    """Predictor, corrector, step; returns the step length (zero or NaN: the iteration broke down)."""
    reached = predict(w, n_actions, kl, vs, now)
    sigma = min(max((max(reached, 0.0) / now) ** 3, 1e-8), 1.0)
    target = sigma * now / weight
    add_prices(w, 1.0, w.hinge[DXI])
    correct_signs(w.rows, target)
    corrector_terms(w.E, w.rows, target)
    correct_hinges(w.hinge, target)
    hinge_residuals(w.hinge)
    direct(w, n_actions)
    if careful:
        refine(w, n_actions)
    move_signs(w.rows)
    multiplier_moves(w.E, w.rows)
    longest = max(steepest(w.E, w.rows), hinge_steepest(w.hinge))
    step = min(1.0, min(max(1.0 - 0.1 * now / vs, 0.99), LONGEST) / max(longest, 1e-300))
    if not (np.isfinite(reached) and np.isfinite(w.dV.sum())):
        return 0.0
    advance(w.E, w.rows, step)
    advance_hinges(w.hinge, step)
    for h in range(w.V.shape[0]):
        for s in range(w.V.shape[1]):
            w.V[h, s] += step * w.dV[h, s]
    return step
