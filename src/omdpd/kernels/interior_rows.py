"""Newton quantities and directions of every row, in closed form.

Row (h,s,a) has q, tau (multiplier of sum_t x_t = q), slacks w = x - l q, z = u q - x with multipliers a, b >= 0 and,
where the kernel is known or at the last step, nu >= 0 for q >= 0.  With D = a/w + b/z + reg and d = 1/D:

    f = l + (b/z)(u-l) d - (kappa/theta) d,   theta = sum d,   kappa = sum (l + (b/z)(u-l) d) - 1        (sum f = 1)
    gamma = Hq + nu/q + sum (a/w)(b/z)(u-l)^2 d + kappa^2/theta

and the Newton system in V is  M = sum_r (e_s - f)(e_s - f)^T / gamma + diag(d) - d d^T / theta.
The small term reg keeps d finite on entries strictly inside their bounds.

Every function works on one block b, so that an iteration can do all it has to do with a block while the block is in
the cache; block nb has rows, but no entries.
"""

from __future__ import annotations

from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.interior_layout import (
    CA,
    CB,
    CN,
    DD,
    DN,
    DQ,
    DT,
    DV,
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
    MM,
    MS,
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
    SL,
    T0,
    TAU,
    WD,
    YY,
    A,
    B,
    Q,
    W,
    Z,
)

# Sums and maxima are vectorised only if their order is free; no differences of large numbers live in these functions.
REDUCE = {**OPTIONS, "fastmath": {"reassoc", "contract", "nsz"}}


@njit(**OPTIONS)
def weigh(E: Floats, rows: Floats, b: int, reg: float) -> None:
    """d, f, kappa/theta and 1/gamma of every row; the curvature of the objective is in slot HQ."""
    nb, S, N = E.shape[1:]
    for slot in (S1, S2, S3):
        for n in range(N):
            rows[slot, b, n] = 0.0
    if b < nb:
        for t in range(S):
            for n in range(N):
                d = 1.0 / (E[A, b, t, n] * E[IW, b, t, n] + E[B, b, t, n] * E[IZ, b, t, n] + reg)
                E[DD, b, t, n] = d if E[WD, b, t, n] > 0.0 else 0.0
            for n in range(N):
                E[FF, b, t, n] = E[B, b, t, n] * E[IZ, b, t, n] * E[WD, b, t, n] * E[DD, b, t, n]
            for n in range(N):
                rows[S1, b, n] += E[DD, b, t, n]
            for n in range(N):
                rows[S2, b, n] += E[FF, b, t, n]
            for n in range(N):
                rows[S3, b, n] += E[A, b, t, n] * E[IW, b, t, n] * E[FF, b, t, n] * E[WD, b, t, n]
        for n in range(N):
            theta = rows[S1, b, n]
            rows[ITH, b, n] = 1.0 / theta if theta > 0.0 else 0.0
        for n in range(N):
            rows[KT, b, n] = (rows[S2, b, n] - rows[SL, b, n]) * rows[ITH, b, n]
        for n in range(N):
            rows[S3, b, n] += (rows[S2, b, n] - rows[SL, b, n]) * rows[KT, b, n]
        for t in range(S):
            for n in range(N):
                E[FF, b, t, n] += E[LO, b, t, n] - rows[KT, b, n] * E[DD, b, t, n]
    for n in range(N):
        curvature = rows[HQ, b, n] + rows[S3, b, n]
        rows[IG, b, n] = rows[LIVE, b, n] / curvature if rows[LIVE, b, n] > 0.0 else 0.0


@njit(**OPTIONS)
def spread_next(E5: Floats, b: int, slot: int, V: Floats) -> None:
    """Give every entry the value of its next state."""
    _, S, hb, R = E5.shape[1:]
    for t in range(S):
        for i in range(hb):
            v = V[b * hb + i + 1, t]
            for r in range(R):
                E5[slot, b, t, i, r] = v


@njit(**OPTIONS)
def spread_own(R4: Floats, b: int, slot: int, V: Floats) -> None:
    """Give every row the value of its own state."""
    H, S = V.shape
    hb, R = R4.shape[2], R4.shape[3]
    for i in range(hb):
        h = b * hb + i
        if h < H:
            r = 0
            while r + S <= R:
                for s in range(S):
                    R4[slot, b, i, r + s] = V[h, s]
                r += S


@njit(**OPTIONS)
def predictor_terms(E: Floats, E5: Floats, rows: Floats, b: int, V: Floats) -> None:
    """rx, R and t0 of the affine direction; slot RES holds minus the row's stationarity residual without a, b."""
    nb, S, N = E.shape[1:]
    if b == nb:
        for n in range(N):
            rows[RR, b, n] = rows[RES, b, n]
        return
    spread_next(E5, b, RX, V)
    for slot in (S1, S2):
        for n in range(N):
            rows[slot, b, n] = 0.0
    for t in range(S):
        # V - tau first: both are large, their difference is not.
        for n in range(N):
            E[RX, b, t, n] -= rows[TAU, b, n]
        for n in range(N):
            rows[S1, b, n] += E[FF, b, t, n] * E[RX, b, t, n]
        for n in range(N):
            rows[S2, b, n] += E[DD, b, t, n] * E[RX, b, t, n]
    for n in range(N):
        rows[T0, b, n] = (rows[S2, b, n] - rows[RT, b, n]) * rows[ITH, b, n]
    for n in range(N):
        rows[RR, b, n] = rows[RES, b, n] + rows[S1, b, n] + rows[KT, b, n] * rows[RT, b, n]


@njit(**OPTIONS)
def corrector_terms(E: Floats, rows: Floats, b: int, target: float, second: float) -> None:
    """Add centring and second-order terms to rx, R and t0; slots CA, CB hold dw/w and dz/z of the predictor.

    ca = (target wt - dw da)/w with da = -a (1 + dw/w), so  ca = target wt / w + a (dw/w)(1 + dw/w).
    The products count `second` times: once, or not at all.
    """
    nb, S, N = E.shape[1:]
    if b == nb:
        for n in range(N):
            rows[RR, b, n] += rows[CN, b, n]
        return
    for slot in (S1, S2):
        for n in range(N):
            rows[slot, b, n] = 0.0
    for t in range(S):
        for n in range(N):
            x = E[CA, b, t, n]
            centre = target * rows[MS, b, n] * E[WD, b, t, n]
            E[CA, b, t, n] = centre * E[IW, b, t, n] + second * E[A, b, t, n] * (x * (1.0 + x))
        for n in range(N):
            y = E[CB, b, t, n]
            centre = target * rows[MS, b, n] * E[WD, b, t, n]
            E[CB, b, t, n] = centre * E[IZ, b, t, n] + second * E[B, b, t, n] * (y * (1.0 + y))
        for n in range(N):
            lift = E[FF, b, t, n] - E[LO, b, t, n]
            rows[S1, b, n] += lift * E[CA, b, t, n] + (E[WD, b, t, n] - lift) * E[CB, b, t, n]
        for n in range(N):
            rows[S2, b, n] += E[DD, b, t, n] * (E[CA, b, t, n] - E[CB, b, t, n])
        for n in range(N):
            E[RX, b, t, n] += E[CA, b, t, n] - E[CB, b, t, n]
    for n in range(N):
        rows[T0, b, n] += rows[S2, b, n] * rows[ITH, b, n]
    for n in range(N):
        rows[RR, b, n] += rows[S1, b, n] + rows[CN, b, n]


@njit(**OPTIONS)
def outflow_terms(E: Floats, rows: Floats, b: int) -> None:
    """Slot YY: x_t after the step that leaves V alone; slot RG: the same for q, less q itself."""
    nb, S, N = E.shape[1:]
    for n in range(N):
        rows[RG, b, n] = rows[RR, b, n] * rows[IG, b, n]
    if b < nb:
        for t in range(S):
            for n in range(N):
                move = E[DD, b, t, n] * (E[RX, b, t, n] - rows[T0, b, n]) + E[FF, b, t, n] * rows[RG, b, n]
                E[YY, b, t, n] = move + (E[W, b, t, n] + E[LO, b, t, n] * rows[Q, b, n])


@njit(**OPTIONS)
def moved_terms(E: Floats, rows: Floats, b: int) -> None:
    """Slot YY: x_t after the whole step; slot RG: dq."""
    nb, S, N = E.shape[1:]
    for n in range(N):
        rows[RG, b, n] = rows[DQ, b, n]
    if b < nb:
        for t in range(S):
            for n in range(N):
                q = rows[Q, b, n] + rows[DQ, b, n]
                E[YY, b, t, n] = E[W, b, t, n] + E[DW, b, t, n] + E[LO, b, t, n] * q


@njit(**REDUCE)
def balance(E5: Floats, R4: Floats, b: int, n_actions: int, out: Floats) -> None:
    """Outflow minus inflow of slots YY and RG: adds the outflow of the block's steps, sets the inflow of the next ones.

    Blocks come in order, and out_0 is minus the initial law before the first; unreachable states get zero.
    """
    H, S = out.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    if b < nb:
        for t in range(S):
            for i in range(hb):
                total = 0.0
                for r in range(R):
                    total += E5[YY, b, t, i, r]
                out[b * hb + i + 1, t] = -total
    for i in range(hb):
        h = b * hb + i
        if h < H:
            for a in range(n_actions):
                for s in range(S):
                    r = a * S + s
                    out[h, s] += R4[RG, b, i, r] + R4[Q, b, i, r]
            for s in range(S):
                if R4[LIVE, b, i, s] == 0.0:
                    out[h, s] = 0.0


@njit(**OPTIONS)
def directions(E: Floats, E5: Floats, rows: Floats, R4: Floats, b: int, dV: Floats) -> None:
    """dq, dtau, dw for given dV; the last pass restores sum dw = rt + (1 - sum l) dq to rounding."""
    spread_own(R4, b, S3, dV)
    nb, S, N = E.shape[1:]
    if b == nb:
        for n in range(N):
            rows[DQ, b, n] = (rows[RR, b, n] - rows[S3, b, n]) * rows[IG, b, n]
        return
    spread_next(E5, b, DV, dV)
    for slot in (S1, S2):
        for n in range(N):
            rows[slot, b, n] = 0.0
    for t in range(S):
        for n in range(N):
            rows[S1, b, n] += E[FF, b, t, n] * E[DV, b, t, n]
        for n in range(N):
            rows[S2, b, n] += E[DD, b, t, n] * E[DV, b, t, n]
    for n in range(N):
        rows[DQ, b, n] = (rows[RR, b, n] - rows[S3, b, n] + rows[S1, b, n]) * rows[IG, b, n]
    for n in range(N):
        rows[MM, b, n] = rows[S2, b, n] * rows[ITH, b, n]
    for n in range(N):
        rows[DT, b, n] = rows[T0, b, n] + rows[MM, b, n] + rows[KT, b, n] * rows[DQ, b, n]
    for n in range(N):
        rows[S2, b, n] = rows[RT, b, n] + rows[DQ, b, n] * rows[SL, b, n]
    for t in range(S):
        for n in range(N):
            pull = (E[RX, b, t, n] - rows[T0, b, n]) + (E[DV, b, t, n] - rows[MM, b, n])
            E[DW, b, t, n] = E[DD, b, t, n] * pull + (E[FF, b, t, n] - E[LO, b, t, n]) * rows[DQ, b, n]
        for n in range(N):
            rows[S2, b, n] -= E[DW, b, t, n]
    for n in range(N):
        rows[S2, b, n] *= rows[ITH, b, n]
    for t in range(S):
        for n in range(N):
            E[DW, b, t, n] += E[DD, b, t, n] * rows[S2, b, n]


@njit(**OPTIONS)
def advance(E: Floats, rows: Floats, b: int, step: float) -> None:
    """Move every entry and row; renew the inverses and the row residual rt = q (1 - sum l) - sum w."""
    nb, S, N = E.shape[1:]
    for slot, move in ((Q, DQ), (TAU, DT), (NU, DN)):
        for n in range(N):
            rows[slot, b, n] += step * rows[move, b, n]
    if b == nb:
        return
    for n in range(N):
        rows[RT, b, n] = rows[Q, b, n] * rows[SL, b, n]
    for t in range(S):
        for n in range(N):
            E[W, b, t, n] += step * E[DW, b, t, n]
        for n in range(N):
            E[Z, b, t, n] += step * (E[WD, b, t, n] * rows[DQ, b, n] - E[DW, b, t, n])
        for n in range(N):
            E[A, b, t, n] += step * E[CA, b, t, n]
        for n in range(N):
            E[B, b, t, n] += step * E[CB, b, t, n]
        for n in range(N):
            rows[RT, b, n] -= E[W, b, t, n]
        for n in range(N):
            E[IW, b, t, n] = 1.0 / E[W, b, t, n] if E[IW, b, t, n] > 0.0 else 0.0
        for n in range(N):
            E[IZ, b, t, n] = 1.0 / E[Z, b, t, n] if E[IZ, b, t, n] > 0.0 else 0.0
    for n in range(N):
        rows[RT, b, n] = rows[RT, b, n] if rows[ITH, b, n] > 0.0 else 0.0
