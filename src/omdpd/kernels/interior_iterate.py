"""One iteration of Mehrotra's predictor-corrector method on the mirror step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.interior_hinges import (
    G_,
    V_,
    XI,
    add_bias,
    advance_hinges,
    border,
    correct_hinges,
    dots,
    dots_of,
    forget_corrections,
    hinge_directions,
    hinge_products,
    hinge_residuals,
    hinge_steepest,
    price,
    response,
    schur,
    solve_schur,
)
from omdpd.kernels.interior_layout import (
    BLAS_STATES,
    CA,
    CB,
    CN,
    DD,
    DN,
    DQ,
    DT,
    DW,
    FF,
    GLUE,
    HQ,
    IG,
    INLINE,
    ITH,
    IW,
    IZ,
    KT,
    LIVE,
    LO,
    NU,
    OPTIONS,
    RES,
    RG,
    RR,
    RT,
    RX,
    S1,
    S2,
    S3,
    T0,
    TAU,
    VS,
    WD,
    A,
    B,
    C,
    Q,
    W,
    Z,
    assume_distinct,
    extent,
)
from omdpd.kernels.interior_newton import couple, factor_large, factor_small, gram_large, gram_small, scale_rows, solve
from omdpd.kernels.interior_rows import (
    advance,
    balance,
    corrector_terms,
    directions,
    moved_terms,
    outflow_terms,
    predictor_terms,
    spread_next,
    spread_own,
    weigh,
)
from omdpd.kernels.interior_steps import (
    affine_moves,
    complementarity,
    multiplier_moves,
)


class Store(NamedTuple):
    """Everything an iteration reads and writes; see `interior_layout` for E and rows.

    All fields are borrowed, see `interior_layout.borrow`.
    """

    E: Floats
    E5: Floats
    rows: Floats
    R4: Floats
    over: Floats
    over4: Floats
    mu: Floats
    V: Floats
    dV: Floats
    extra: Floats
    D: Floats
    off: Floats
    K: Floats
    G: Floats
    square: Floats
    line: Floats
    hinge: Floats
    d: Floats
    X: Floats
    P: Floats
    reply: Floats
    full: Floats
    lower: Floats
    short: Floats
    dxi: Floats


# A proximal term on the entries, relative to the range of V: without it rounding in V is magnified by 1e10.
PROXIMAL = 1e-8
# The step stays off the boundary by at least this factor.
LONGEST = 1.0 - 1e-5
# In KL, log q is asked to fall by at most this much per iteration.
FALL = -3.0


@njit(**INLINE)
def stationarity(
    E: Floats,
    rows: Floats,
    b: int,
    extent: tuple[int, int],
    kl: bool,
    ahead: Floats,
    priced: Floats,
    residual: Floats,
    curvature: Floats,
) -> None:
    """Curvature of every row and minus its residual, a and b left out of the latter; slot VS holds V_s.

    Euclid: c - V_s + tau - q.  KL, with delta = c - V_s + tau - sum(l a - u b) + nu - log q: where q must grow, log q
    is linearised; where it must shrink, q = exp(.) is.  Either alone diverges.  A fixed entry has no a, b: its
    multiplier is the one that makes V - tau vanish, and enters the sum in their place; `ahead` holds V.
    """
    assume_distinct()
    S, N = extent
    if not kl:
        for n in range(N):
            q, nu = rows[Q, b, n], rows[NU, b, n]
            residual[n] = rows[C, b, n] + (rows[TAU, b, n] - rows[VS, b, n]) - q
            curvature[n] = 1.0 + nu / q if nu > 0.0 else 1.0
        return
    for n in range(N):
        priced[n] = -rows[NU, b, n]
    for t in range(S):
        for n in range(N):
            low, wide = E[LO, b, t, n], E[WD, b, t, n]
            free = low * E[A, b, t, n] - (low + wide) * E[B, b, t, n]
            priced[n] += free if wide > 0.0 else low * (rows[TAU, b, n] - ahead[t, n])
    for n in range(N):
        if rows[LIVE, b, n] > 0.0:
            q = rows[Q, b, n]
            delta = rows[C, b, n] + (rows[TAU, b, n] - rows[VS, b, n]) - priced[n] - np.log(q)
            slope = 1.0 if delta >= 0.0 else np.exp(-max(delta, FALL))
            curvature[n] = (slope + rows[NU, b, n]) / q
            residual[n] = (delta if delta >= 0.0 else 1.0 - slope) + priced[n]


@njit(**GLUE)
def build(w: Store, n_actions: int, kl: bool, reg: float, floor: float) -> None:
    """Factor the Newton matrix of the current point, border included; dV is the predictor's right-hand side."""
    E, E5, rows, R4, D, off, square, V, dV = w.E, w.E5, w.rows, w.R4, w.D, w.off, w.square, w.V, w.dV
    hinges = w.d.reshape((w.d.shape[0],) + R4.shape[1:])
    begin_balance(w.mu, dV)
    clear_first(w.X)
    nb, over = E.shape[1], w.over4
    for b in range(nb + 1):
        e, size = min(b, nb - 1), extent(E5, b)
        s1, s2, s3 = rows[S1, b], rows[S2, b], rows[S3, b]
        spread_own(R4[VS, b], b, V)
        if kl and b < nb:
            spread_next(over[1], b, V)
        stationarity(E, rows, b, size, kl, w.over[1], s1, rows[RES, b], rows[HQ, b])
        weigh(E, rows, b, size, reg, E[DD, e], E[FF, e], s1, s2, s3, rows[ITH, b], rows[KT, b], rows[IG, b])
        if b < nb:
            scale_rows(E, rows, b, w.over[0], w.over[1])
            if D.shape[1] < BLAS_STATES:
                gram_small(E5, b, over[0], over[1], D)
            else:
                gram_large(E, b, w.over[0], w.over[1], D, square)
        couple(E5, R4, b, over[0], n_actions, D, off)
        border(over[0], R4, hinges, b, n_actions, w.X)
        if b < nb:
            spread_next(E5[RX, b], b, V)
        predictor_terms(E, rows, b, size, E[RX, e], s1, s2, rows[RR, b], rows[T0, b])
        outflow_terms(E, rows, b, size, w.over[0], rows[RG, b])
        balance(w.over4[0], R4, b, n_actions, dV)
    if D.shape[1] < BLAS_STATES:
        factor_small(D, off, w.K, w.G, floor)
    else:
        factor_large(D, off, w.K, w.G, square, floor)
    if w.d.shape[0] > 0:
        P = w.P
        replies = P.reshape(hinges.shape)
        for j in range(P.shape[0]):
            solve(w.K, w.G, w.X[j], w.line)
        for b in range(nb + 1):
            for j in range(P.shape[0]):
                response(E5, R4, b, hinges[j], n_actions, w.X[j], replies[j])
        schur(w.d, P, rows, w.hinge, w.full, w.lower)


@njit(**OPTIONS)
def begin_balance(mu: Floats, out: Floats) -> None:
    """out_0 = -mu."""
    for s in range(mu.size):
        out[0, s] = -mu[s]


@njit(**OPTIONS)
def clear_first(X: Floats) -> None:
    """X_{j,0} = 0."""
    for j in range(X.shape[0]):
        for s in range(X.shape[2]):
            X[j, 0, s] = 0.0


@njit(**OPTIONS)
def add_prices(rows: Floats, d: Floats, sign: float, change: Floats) -> None:
    """R += sign sum_j change_j d_j."""
    for j in range(change.size):
        for b in range(rows.shape[1]):
            for n in range(rows.shape[2]):
                rows[RR, b, n] += sign * change[j] * d[j, b, n]


@njit(**OPTIONS)
def shift_values(dV: Floats, X: Floats, change: Floats) -> None:
    """dV -= sum_j change_j X_j."""
    for j in range(change.size):
        for h in range(dV.shape[0]):
            for s in range(dV.shape[1]):
                dV[h, s] -= change[j] * X[j, h, s]


@njit(**GLUE)
def solve_values(w: Store, n_actions: int) -> None:
    """dV and dxi from the right-hand side in dV and the terms R, g; R then holds the change of prices too."""
    dV = w.dV
    solve(w.K, w.G, dV, w.line)
    if w.d.shape[0] > 0:
        rows, reply, dxi = w.rows, w.reply, w.dxi
        for b in range(w.E.shape[1] + 1):
            response(w.E5, w.R4, b, w.R4[RR], n_actions, dV, reply)
        dots_of(w.d, reply.reshape(rows.shape[1:]), dxi)
        subtract(dxi, w.hinge[G_])
        solve_schur(w.lower, dxi)
        shift_values(dV, w.X, dxi)
        add_prices(rows, w.d, -1.0, dxi)


@njit(**GLUE)
def move(w: Store, b: int) -> None:
    """dq, dtau, dw of a block."""
    E, E5, rows, R4, dV = w.E, w.E5, w.rows, w.R4, w.dV
    e, size = min(b, E.shape[1] - 1), extent(E5, b)
    spread_own(R4[S3, b], b, dV)
    if b < E.shape[1]:
        spread_next(w.over4[1], b, dV)
    directions(E, rows, b, size, w.over[1], rows[S1, b], rows[S2, b], E[DW, e], rows[DQ, b], rows[DT, b])


@njit(**GLUE)
def refine(w: Store, n_actions: int) -> None:
    """Measure how far the moved flow is from balance and add the Newton step that removes it to dV and dxi."""
    E, E5, rows, R4, dV, extra = w.E, w.E5, w.rows, w.R4, w.dV, w.extra
    begin_balance(w.mu, extra)
    for b in range(E.shape[1] + 1):
        move(w, b)
        moved_terms(E, rows, b, extent(E5, b), w.over[0], rows[RG, b])
        balance(w.over4[0], R4, b, n_actions, extra)
    solve(w.K, w.G, extra, w.line)
    add_scaled(dV, 1.0, extra)
    if w.d.shape[0] > 0:
        d, reply, short, dxi = w.d, w.reply, w.short, w.dxi
        clear(reply)
        for b in range(E.shape[1] + 1):
            response(E5, R4, b, reply, n_actions, extra, reply)
        dots_of(d, reply.reshape(rows.shape[1:]), short)
        solve_schur(w.lower, short)
        shift_values(dV, w.X, short)
        add_prices(rows, d, -1.0, short)
        for j in range(short.size):
            dxi[j] += short[j]


@njit(**GLUE)
def measure(w: Store) -> float:
    """Total complementarity; hinge arguments and prices are renewed on the way."""
    rows = w.rows
    total = 0.0
    for b in range(rows.shape[1]):
        total += complementarity(w.E, rows, b)
    return total + measure_hinges(w)


@njit(**GLUE)
def measure_hinges(w: Store) -> float:
    """The part of the hinges in the complementarity, with their arguments and prices renewed."""
    total = 0.0
    if w.d.shape[0] > 0:
        d, hinge = w.d, w.hinge
        dots(d, w.rows, Q, hinge[V_])
        add_bias(hinge)
        price(d, hinge[XI], w.rows)
        total = hinge_products(hinge)[0]
    return total


@njit(**GLUE)
def iterate(
    w: Store, n_actions: int, kl: bool, vs: float, now: float, weight: float, careful: bool, astray: bool
) -> tuple[float, float]:
    """Predictor, corrector, step; returns the step length (zero or NaN: it broke down) and the new complementarity.

    An iterate that went astray is only centred.  Everything that can be done with one block is done before the next
    one is touched.
    """
    E, E5, rows, R4, hinge, V, dV = w.E, w.E5, w.rows, w.R4, w.hinge, w.V, w.dV
    hinged, blocks = hinge.shape[1] > 0, rows.shape[1]
    build(w, n_actions, kl, PROXIMAL * vs, 1.0 / vs)
    if hinged:
        forget_corrections(hinge)
        hinge_residuals(hinge)
    solve_values(w, n_actions)
    limit, second = 0.0, 0.0
    for b in range(blocks):
        e, size = min(b, E.shape[1] - 1), extent(E5, b)
        move(w, b)
        reach, products = affine_moves(E, rows, b, size, E[CA, e], E[CB, e], rows[S1, b], rows[S2, b])
        limit = max(limit, reach)
        second += products
    if hinged:
        dots(w.d, rows, DQ, w.short)
        hinge_directions(hinge, w.dxi, w.short)
        limit = max(limit, hinge_steepest(hinge))
        second += hinge_products(hinge)[1]
    step = min(1.0, 1.0 / limit)
    reached = (1.0 - step) * now + step * step * second
    sigma = min(max((max(reached, 0.0) / now) ** 3, 1e-8), 1.0)
    second = 0.0 if astray else 1.0
    target = (1.0 if astray else sigma) * now / weight

    if hinged:
        add_prices(rows, w.d, 1.0, w.dxi)
        correct_hinges(hinge, target, second)
        hinge_residuals(hinge)
    begin_balance(w.mu, dV)
    for b in range(blocks):
        e, size, s2, s3 = min(b, E.shape[1] - 1), extent(E5, b), rows[S2, b], rows[S3, b]
        terms = E[CA, e], E[CB, e], E[RX, e], rows[CN, b], s2, s3, rows[RR, b], rows[T0, b]
        corrector_terms(E, rows, b, size, target, second, *terms)
        outflow_terms(E, rows, b, size, w.over[0], rows[RG, b])
        balance(w.over4[0], R4, b, n_actions, dV)
    solve_values(w, n_actions)
    if careful:
        refine(w, n_actions)
    limit = 1e-300
    for b in range(blocks):
        e, size = min(b, E.shape[1] - 1), extent(E5, b)
        move(w, b)
        limit = max(limit, multiplier_moves(E, rows, b, size, E[CA, e], E[CB, e], rows[DN, b], rows[S2, b]))
    if hinged:
        dots(w.d, rows, DQ, w.short)
        hinge_directions(hinge, w.dxi, w.short)
        limit = max(limit, hinge_steepest(hinge))
    step = min(1.0, min(max(1.0 - 0.1 * now / vs, 0.99), LONGEST) / limit)
    if not (np.isfinite(reached) and np.isfinite(add_up(dV))):
        return 0.0, now
    total = 0.0
    for b in range(blocks):
        e, size = min(b, E.shape[1] - 1), extent(E5, b)
        q, tau, nu, rt = rows[Q, b], rows[TAU, b], rows[NU, b], rows[RT, b]
        slacks = E[W, e], E[Z, e], E[A, e], E[B, e], E[IW, e], E[IZ, e]
        total += advance(E, rows, b, size, step, q, tau, nu, rt, *slacks)
    if hinged:
        advance_hinges(hinge, step)
    add_scaled(V, step, dV)
    return step, total + measure_hinges(w)


@njit(**OPTIONS)
def subtract(x: Floats, y: Floats) -> None:
    """x -= y."""
    for j in range(x.size):
        x[j] -= y[j]


@njit(**OPTIONS)
def add_scaled(x: Floats, scale: float, y: Floats) -> None:
    """x += scale y."""
    for h in range(x.shape[0]):
        for s in range(x.shape[1]):
            x[h, s] += scale * y[h, s]


@njit(**OPTIONS)
def add_up(x: Floats) -> float:
    """Sum, to see whether everything is finite."""
    total = 0.0
    for h in range(x.shape[0]):
        for s in range(x.shape[1]):
            total += x[h, s]
    return total


@njit(**OPTIONS)
def clear(x: Floats) -> None:
    """x = 0."""
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            for r in range(x.shape[2]):
                x[b, i, r] = 0.0
