"""One iteration of Mehrotra's predictor-corrector method on the mirror step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.hinges import (
    G_,
    V_,
    XI,
    advance_hinges,
    aim_hinges,
    border,
    dots,
    measure_hinges,
    move_hinges,
    price,
    response,
    schur,
    settle,
)
from omdpd.solvers.compiled.box_step.newton import couple, factor_large, factor_small, gram_large, gram_small, solve
from omdpd.solvers.compiled.box_step.rows import (
    advance,
    balance,
    corrector_terms,
    directions,
    moved_terms,
    outflow_terms,
    predictor_terms,
    spread,
    weigh,
)
from omdpd.solvers.compiled.box_step.slots import (
    BLAS_STATES,
    C0,
    CA,
    CB,
    CN,
    DD,
    DN,
    DQ,
    DT,
    DW,
    FF,
    HQ,
    IG,
    ITH,
    IW,
    IZ,
    KT,
    LIVE,
    LO,
    NU,
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
    WD,
    A,
    B,
    C,
    Extent,
    Q,
    W,
    Z,
    extent,
)
from omdpd.solvers.compiled.box_step.steps import affine_moves, multiplier_moves
from omdpd.solvers.compiled.options import GLUE, INLINE, INNER
from omdpd.solvers.compiled.pointers import assume_distinct


class Store(NamedTuple):
    """Everything an iteration reads and writes; see `interior_layout` for E and rows.

    All fields are borrowed, see `pointers.borrow`.
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
    reply4: Floats
    full: Floats
    lower: Floats
    short: Floats
    dxi: Floats
    none: Floats
    idle: Floats


# A proximal term on the entries, relative to the range of V: without it rounding in V is magnified by 1e10.
PROXIMAL = 1e-8
# The step stays off the boundary by at least this factor.
LONGEST = 1.0 - 1e-5


@njit(**INLINE)
def stationarity(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    kl: bool,
    ahead: Floats,
    priced: Floats,
    residual: Floats,
    curvature: Floats,
) -> None:
    """Curvature of every row and minus its residual, a and b left out of the latter.

    Euclid: c - V_s + tau - q.  KL: c - V_s + tau - log q; adding - sum(l a - u b) + nu makes it delta, and the row's
    answer to a change dy of its exponent is q e^(delta + dy).  Where q must grow, log q is linearised: curvature 1/q.
    Where it must shrink, the secant of the answer between dy = 0 and dy = -delta takes its place: curvature
    delta / (e^delta - 1) / q.  Then q stays positive at dy = 0, and yet a state that has to keep its mass moves V by
    all of delta, be it in the thousands; a tangent at either end does only one of the two.  A fixed entry has no a, b:
    its multiplier is the one that makes V - tau vanish, and enters the sum in their place.  V: slot S3 and `ahead`.
    """
    assume_distinct()
    S, N = extent
    if not kl:
        for n in range(N):
            q, nu = rows[Q, b, n], rows[NU, b, n]
            residual[n] = rows[C, b, n] + (rows[TAU, b, n] - rows[S3, b, n]) - q
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
            residual[n] = rows[C, b, n] + (rows[TAU, b, n] - rows[S3, b, n]) - np.log(q)
            delta = residual[n] - priced[n]
            slope = 1.0 if delta >= 0.0 else delta / np.expm1(delta)
            curvature[n] = (slope + rows[NU, b, n]) / q


@njit(**GLUE)
def build(w: Store, n_actions: int, kl: bool, reg: float, floor: float) -> None:
    """Factor the Newton matrix of the current point, border included; dV is the predictor's right-hand side."""
    E, E5, rows, R4, D, off, V, over, over4 = w.E, w.E5, w.rows, w.R4, w.D, w.off, w.V, w.over, w.over4
    hinges = w.d.reshape((w.d.shape[0],) + R4.shape[1:])
    nb, small = E.shape[1], D.shape[1] < BLAS_STATES
    for b in range(nb + 1):
        e, size = min(b, nb - 1), extent(E5, b)
        s1, s2, s3 = rows[S1, b], rows[S2, b], rows[S3, b]
        spread(V, b, R4[S3, b], E5[RX, e])
        stationarity(E, rows, b, size, kl, E[RX, e], s1, rows[RES, b], rows[HQ, b])
        weights = rows[ITH, b], rows[KT, b], rows[IG, b], over[0], over[1]
        weigh(E, rows, b, size, reg, E[DD, e], E[FF, e], s1, s2, s3, *weights)
        if b < nb:
            if small:
                gram_small(E5, b, over4[0], over4[1], D)
            else:
                gram_large(E, b, over[0], over[1], D, w.square)
        couple(E5, R4, b, over4[0], n_actions, D, off)
        border(over4[0], R4, hinges, b, n_actions, w.X)
        predictor_terms(E, rows, b, size, E[RX, e], s1, s2, rows[RR, b], rows[T0, b])
        outflow_terms(E, rows, b, size, over[0], rows[RG, b])
        balance(over4[0], R4, b, n_actions, w.mu, w.dV)
    if small:
        factor_small(D, off, w.K, w.G, floor)
    else:
        factor_large(D, off, w.K, w.G, w.square, floor)
    if w.d.shape[0] > 0:
        replies = w.P.reshape(hinges.shape)
        for j in range(w.P.shape[0]):
            solve(w.K, w.G, w.X[j], w.line)
            response(E5, R4, hinges[j], n_actions, w.X[j], replies[j])
        schur(w.d, w.P, rows, w.hinge, w.full, w.lower)


@njit(**INNER)
def add_prices(R: Floats, d: Floats, sign: float, change: Floats) -> None:
    """R += sign sum_j change_j d_j."""
    for j in range(change.size):
        for b in range(R.shape[0]):
            for n in range(R.shape[1]):
                R[b, n] += sign * change[j] * d[j, b, n]


@njit(**GLUE)
def solve_values(w: Store, n_actions: int) -> None:
    """dV and dxi from the right-hand side in dV and the terms R, g; R then holds the change of prices too."""
    solve(w.K, w.G, w.dV, w.line)
    if w.d.shape[0] > 0:
        response(w.E5, w.R4, w.R4[RR], n_actions, w.dV, w.reply4)
        dots(w.d, w.reply, w.dxi)
        settle(w.lower, w.dxi, w.hinge[G_], w.X, w.dV)
        add_prices(w.rows[RR], w.d, -1.0, w.dxi)


@njit(**GLUE)
def refine(w: Store, n_actions: int) -> None:
    """Measure how far the moved flow is from balance and add the Newton step that removes it to dV and dxi."""
    E, rows, dV = w.E, w.rows, w.dV
    for b in range(rows.shape[1]):
        e, size = min(b, E.shape[1] - 1), extent(w.E5, b)
        spread(dV, b, w.R4[S3, b], w.over4[1])
        directions(E, rows, b, size, w.over[1], rows[S1, b], rows[S2, b], E[DW, e], rows[DQ, b], rows[DT, b])
        moved_terms(E, rows, b, size, w.over[0], rows[RG, b])
        balance(w.over4[0], w.R4, b, n_actions, w.mu, w.extra)
    solve(w.K, w.G, w.extra, w.line)
    add_scaled(dV, 1.0, w.extra)
    if w.d.shape[0] > 0:
        response(w.E5, w.R4, w.idle, n_actions, w.extra, w.reply4)
        dots(w.d, w.reply, w.short)
        settle(w.lower, w.short, w.none, w.X, dV)
        add_prices(rows[RR], w.d, -1.0, w.short)
        for j in range(w.short.size):
            w.dxi[j] += w.short[j]


@njit(**GLUE)
def iterate(
    w: Store, n_actions: int, kl: bool, vs: float, now: float, weight: float, careful: bool, astray: bool
) -> tuple[float, float]:
    """Predictor, corrector, step; returns the step length (zero: it broke down) and the new complementarity.

    An iterate that went astray is only centred.  Everything that can be done with one block is done before the next
    one is touched.
    """
    E, E5, rows, hinge, dV = w.E, w.E5, w.rows, w.hinge, w.dV
    hinged, blocks, last = hinge.shape[1] > 0, rows.shape[1], E.shape[1] - 1
    build(w, n_actions, kl, PROXIMAL * vs, 1.0 / vs)
    aim_hinges(hinge, 0.0, 0.0)
    solve_values(w, n_actions)
    limit, second = 0.0, 0.0
    for b in range(blocks):
        e, size, s1, s2 = min(b, last), extent(E5, b), rows[S1, b], rows[S2, b]
        spread(dV, b, w.R4[S3, b], w.over4[1])
        directions(E, rows, b, size, w.over[1], s1, s2, E[DW, e], rows[DQ, b], rows[DT, b])
        reach, products = affine_moves(E, rows, b, size, s1, s2)
        limit = max(limit, reach)
        second += products
    if hinged:
        dots(w.d, rows[DQ], w.short)
        reach, products = move_hinges(hinge, w.dxi, w.short)
        limit = max(limit, reach)
        second += products
    step = min(1.0, 1.0 / limit)
    reached = (1.0 - step) * now + step * step * second
    sigma = min(max((max(reached, 0.0) / now) ** 3, 1e-8), 1.0)
    second = 0.0 if astray else 1.0
    target = (1.0 if astray else sigma) * now / weight

    if hinged:
        add_prices(rows[RR], w.d, 1.0, w.dxi)
        aim_hinges(hinge, target, second)
    for b in range(blocks):
        e, size, s2, s3 = min(b, last), extent(E5, b), rows[S2, b], rows[S3, b]
        terms = E[CA, e], E[CB, e], E[RX, e], rows[CN, b], s2, s3, rows[RR, b], rows[T0, b]
        corrector_terms(E, rows, b, size, target, second, *terms)
        outflow_terms(E, rows, b, size, w.over[0], rows[RG, b])
        balance(w.over4[0], w.R4, b, n_actions, w.mu, dV)
    solve_values(w, n_actions)
    if careful:
        refine(w, n_actions)
    limit = 1e-300
    for b in range(blocks):
        e, size, s1, s2 = min(b, last), extent(E5, b), rows[S1, b], rows[S2, b]
        spread(dV, b, w.R4[S3, b], w.over4[1])
        directions(E, rows, b, size, w.over[1], s1, s2, E[DW, e], rows[DQ, b], rows[DT, b])
        limit = max(limit, multiplier_moves(E, rows, b, size, E[CA, e], E[CB, e], rows[DN, b], s2))
    if hinged:
        dots(w.d, rows[DQ], w.short)
        limit = max(limit, move_hinges(hinge, w.dxi, w.short)[0])
    step = min(1.0, min(max(1.0 - 0.1 * now / vs, 0.99), LONGEST) / limit)
    if not np.isfinite(reached + dV.sum()):
        return 0.0, now
    total = 0.0
    for b in range(blocks):
        e, size = min(b, last), extent(E5, b)
        q, tau, nu, rt = rows[Q, b], rows[TAU, b], rows[NU, b], rows[RT, b]
        slacks = E[W, e], E[Z, e], E[A, e], E[B, e], E[IW, e], E[IZ, e]
        total += advance(E, rows, b, size, step, q, tau, nu, rt, *slacks)
    add_scaled(w.V, step, dV)
    if hinged:
        advance_hinges(hinge, step)
        dots(w.d, rows[Q], hinge[V_])
        price(w.d, hinge[XI], rows[C0], rows[C])
        total += measure_hinges(hinge)
    return step, total


@njit(**INNER)
def add_scaled(x: Floats, scale: float, y: Floats) -> None:
    """x += scale y."""
    for h in range(x.shape[0]):
        for s in range(x.shape[1]):
            x[h, s] += scale * y[h, s]
