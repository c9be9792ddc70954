"""Newton quantities and directions of every row, in closed form.

Row (h,s,a) has q, tau (multiplier of sum_t x_t = q), slacks w = x - l q, z = u q - x with multipliers a, b >= 0 and,
where the kernel is known or at the last step, nu >= 0 for q >= 0.  With D = a/w + b/z + reg and d = 1/D:

    f = l + (b/z)(u-l) d - (kappa/theta) d,   theta = sum d,   kappa = sum (l + (b/z)(u-l) d) - 1        (sum f = 1)
    gamma = Hq + nu/q + sum (a/w)(b/z)(u-l)^2 d + kappa^2/theta

and the Newton system in V is  M = sum_r (e_s - f)(e_s - f)^T / gamma + diag(d) - d d^T / theta.
The small term reg keeps d finite on entries strictly inside their bounds.

Every function works on one block b, so that an iteration can do all it has to do with a block while the block is in
the cache; block nb has rows, but no entries.  What a function only reads it finds in E and rows; every slot that it
changes is handed to it as an array of its own (`pointers.assume_distinct`).
"""

from __future__ import annotations

from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.slots import (
    CA,
    CB,
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
    MS,
    NU,
    NW,
    RES,
    RG,
    RR,
    RT,
    RX,
    S1,
    S3,
    SL,
    T0,
    TAU,
    WD,
    A,
    B,
    Extent,
    Q,
    W,
)
from omdpd.solvers.compiled.options import INLINE, INLINE_SUMS, INNER, SUMS
from omdpd.solvers.compiled.pointers import assume_distinct


@njit(**INNER)
def spread(V: Floats, b: int, own: Floats, ahead: Floats) -> None:
    """Give the rows (hb, R) of a block the value of their own state, its entries (S, hb, R) that of the next."""
    H, S = V.shape
    hb, R = own.shape
    for i in range(hb):
        h = b * hb + i
        if h < H:
            r = 0
            while r + S <= R:
                for s in range(S):
                    own[i, r + s] = V[h, s]
                r += S
    if b * hb < H - 1:
        for t in range(S):
            for i in range(hb):
                v = V[b * hb + i + 1, t]
                for r in range(R):
                    ahead[t, i, r] = v


@njit(**INLINE)
def weigh(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    reg: float,
    d: Floats,
    f: Floats,
    theta: Floats,
    kappa: Floats,
    omega: Floats,
    inverse_theta: Floats,
    ratio: Floats,
    inverse_gamma: Floats,
    by_gamma: Floats,
    by_theta: Floats,
) -> None:
    """d, f, 1/theta, kappa/theta, 1/gamma, f/gamma and d/theta; the curvature of the objective is in slot HQ."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        theta[n] = 0.0
        kappa[n] = -rows[SL, b, n]
        omega[n] = rows[HQ, b, n]
    for t in range(S):
        for n in range(N):
            aw, bz, wide = E[A, b, t, n] * E[IW, b, t, n], E[B, b, t, n] * E[IZ, b, t, n], E[WD, b, t, n]
            weight = 1.0 / (aw + bz + reg) if wide > 0.0 else 0.0
            lift = bz * wide * weight
            d[t, n] = weight
            f[t, n] = lift
            theta[n] += weight
            kappa[n] += lift
            omega[n] += aw * lift * wide
    for n in range(N):
        inverse = 1.0 / theta[n] if theta[n] > 0.0 else 0.0
        inverse_theta[n] = inverse
        ratio[n] = kappa[n] * inverse
        gamma = omega[n] + kappa[n] * (kappa[n] * inverse)
        inverse_gamma[n] = 1.0 / gamma if rows[LIVE, b, n] > 0.0 else 0.0
    for t in range(S):
        for n in range(N):
            kernel = f[t, n] + (E[LO, b, t, n] - ratio[n] * d[t, n])
            f[t, n] = kernel
            by_gamma[t, n] = kernel * inverse_gamma[n]
            by_theta[t, n] = d[t, n] * inverse_theta[n]


@njit(**INLINE)
def predictor_terms(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    rx: Floats,
    pull: Floats,
    level: Floats,
    R: Floats,
    t0: Floats,
) -> None:
    """rx, which comes as V, R and t0 of the affine direction.

    Slot RES holds minus the residual of stationarity without a, b.
    """
    assume_distinct()
    S, N = extent
    for n in range(N):
        pull[n] = 0.0
        level[n] = -rows[RT, b, n]
    for t in range(S):
        # V - tau first: both are large, their difference is not.
        for n in range(N):
            x = rx[t, n] - rows[TAU, b, n]
            rx[t, n] = x
            pull[n] += E[FF, b, t, n] * x
            level[n] += E[DD, b, t, n] * x
    for n in range(N):
        t0[n] = level[n] * rows[ITH, b, n]
        R[n] = rows[RES, b, n] + pull[n] + rows[KT, b, n] * rows[RT, b, n]


@njit(**INLINE)
def corrector_terms(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    target: float,
    second: float,
    ca: Floats,
    cb: Floats,
    rx: Floats,
    cn: Floats,
    pull: Floats,
    level: Floats,
    R: Floats,
    t0: Floats,
) -> None:
    """Add centring and second-order terms to rx, R and t0; slot S1 holds dq/q of the predictor.

    ca = (target wt - dw da)/w with da = -a (1 + dw/w), so  ca = target wt / w + a (dw/w)(1 + dw/w).
    The products count `second` times: once, or not at all.
    """
    assume_distinct()
    S, N = extent
    for n in range(N):
        x = rows[S1, b, n]
        term = target * rows[NW, b, n] / rows[Q, b, n] + second * rows[NU, b, n] * (x * (1.0 + x))
        cn[n] = term if rows[NW, b, n] > 0.0 else 0.0
        pull[n] = cn[n]
        level[n] = 0.0
    for t in range(S):
        for n in range(N):
            move, wide = E[DW, b, t, n], E[WD, b, t, n]
            x, y = move * E[IW, b, t, n], (wide * rows[DQ, b, n] - move) * E[IZ, b, t, n]
            centre = target * rows[MS, b, n] * wide
            up = centre * E[IW, b, t, n] + second * E[A, b, t, n] * (x * (1.0 + x))
            down = centre * E[IZ, b, t, n] + second * E[B, b, t, n] * (y * (1.0 + y))
            lift = E[FF, b, t, n] - E[LO, b, t, n]
            ca[t, n] = up
            cb[t, n] = down
            rx[t, n] += up - down
            pull[n] += lift * up + (wide - lift) * down
            level[n] += E[DD, b, t, n] * (up - down)
    for n in range(N):
        t0[n] += level[n] * rows[ITH, b, n]
        R[n] += pull[n]


@njit(**INNER)
def outflow_terms(E: Floats, rows: Floats, b: int, extent: Extent, x: Floats, dq: Floats) -> None:
    """x after the step that leaves V alone, and the dq of that step."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        dq[n] = rows[RR, b, n] * rows[IG, b, n]
    for t in range(S):
        for n in range(N):
            move = E[DD, b, t, n] * (E[RX, b, t, n] - rows[T0, b, n]) + E[FF, b, t, n] * dq[n]
            x[t, n] = move + (E[W, b, t, n] + E[LO, b, t, n] * rows[Q, b, n])


@njit(**INNER)
def moved_terms(E: Floats, rows: Floats, b: int, extent: Extent, x: Floats, dq: Floats) -> None:
    """x after the whole step, and its dq."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        dq[n] = rows[DQ, b, n]
    for t in range(S):
        for n in range(N):
            x[t, n] = E[W, b, t, n] + E[DW, b, t, n] + E[LO, b, t, n] * (rows[Q, b, n] + rows[DQ, b, n])


@njit(**SUMS)
def balance(x: Floats, R4: Floats, b: int, n_actions: int, mu: Floats, out: Floats) -> None:
    """Outflow minus inflow of x and slot RG: adds the outflow of the block's steps, sets the inflow of the next ones.

    Blocks come in order; unreachable states get zero.
    """
    H, S = out.shape
    nb, hb, R = R4.shape[1] - 1, R4.shape[2], R4.shape[3]
    if b == 0:
        for s in range(S):
            out[0, s] = -mu[s]
    if b < nb:
        for t in range(S):
            for i in range(hb):
                total = 0.0
                for r in range(R):
                    total += x[t, i, r]
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


@njit(**INNER)
def directions(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    ahead: Floats,
    pull: Floats,
    level: Floats,
    dw: Floats,
    dq: Floats,
    dtau: Floats,
) -> None:
    """dq, dtau, dw from dV of the own state (slot S3) and of the next (`ahead`).

    The last pass restores sum dw = rt + (1 - sum l) dq to rounding.
    """
    assume_distinct()
    S, N = extent
    for n in range(N):
        pull[n] = rows[RR, b, n] - rows[S3, b, n]
        level[n] = 0.0
    for t in range(S):
        for n in range(N):
            pull[n] += E[FF, b, t, n] * ahead[t, n]
            level[n] += E[DD, b, t, n] * ahead[t, n]
    for n in range(N):
        dq[n] = pull[n] * rows[IG, b, n]
        # From here on level is m = d.dV / theta and pull what is missing in sum dw.
        level[n] *= rows[ITH, b, n]
        dtau[n] = rows[T0, b, n] + level[n] + rows[KT, b, n] * dq[n]
        pull[n] = rows[RT, b, n] + dq[n] * rows[SL, b, n]
    for t in range(S):
        for n in range(N):
            force = (E[RX, b, t, n] - rows[T0, b, n]) + (ahead[t, n] - level[n])
            move = E[DD, b, t, n] * force + (E[FF, b, t, n] - E[LO, b, t, n]) * dq[n]
            dw[t, n] = move
            pull[n] -= move
    for n in range(N):
        pull[n] *= rows[ITH, b, n]
    for t in range(S):
        for n in range(N):
            dw[t, n] += E[DD, b, t, n] * pull[n]


@njit(**INLINE_SUMS)
def advance(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    step: float,
    q: Floats,
    tau: Floats,
    nu: Floats,
    rt: Floats,
    w: Floats,
    z: Floats,
    a: Floats,
    c: Floats,
    iw: Floats,
    iz: Floats,
) -> float:
    """Move every entry and row; renew the inverses and the row residual rt = q (1 - sum l) - sum w.

    Returns the new complementarity sum w a + z b + q nu.
    """
    assume_distinct()
    S, N = extent
    total = 0.0
    for n in range(N):
        q[n] += step * rows[DQ, b, n]
        tau[n] += step * rows[DT, b, n]
        nu[n] += step * rows[DN, b, n]
        rt[n] = q[n] * rows[SL, b, n]
        total += q[n] * nu[n]
    for t in range(S):
        for n in range(N):
            move = E[DW, b, t, n]
            low = w[t, n] + step * move
            high = z[t, n] + step * (E[WD, b, t, n] * rows[DQ, b, n] - move)
            w[t, n] = low
            z[t, n] = high
            up = a[t, n] + step * E[CA, b, t, n]
            down = c[t, n] + step * E[CB, b, t, n]
            a[t, n] = up
            c[t, n] = down
            total += low * up + high * down
            rt[n] -= low
            iw[t, n] = 1.0 / low if iw[t, n] > 0.0 else 0.0
            iz[t, n] = 1.0 / high if iz[t, n] > 0.0 else 0.0
    for n in range(N):
        rt[n] = rt[n] if rows[ITH, b, n] > 0.0 else 0.0
    return total
