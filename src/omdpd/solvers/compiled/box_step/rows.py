"""Newton quantities and directions of every row, in closed form.

Row (h,s,a) has q, tau (multiplier of sum_t x_t = q), low slacks w = x - l q and high slacks z = u q - x with
multipliers w*, z* >= 0 and, where the kernel is known or at the last step, nu >= 0 for q >= 0.  With
d = 1 / (w*/w + z*/z + reg):

    f = l + (z*/z)(u-l) d - (kappa/theta) d,   theta = sum d,   kappa = sum (l + (z*/z)(u-l) d) - 1        (sum f = 1)
    gamma = curvature + nu/q + sum (w*/w)(z*/z)(u-l)^2 d + kappa^2/theta

and the Newton system in V is  M = sum_r (e_s - f)(e_s - f)^T / gamma + diag(d) - d d^T / theta.
The small term reg keeps d finite on entries strictly inside their bounds.

Every function works on one block b, so that an iteration can do all it has to do with a block while the block is in
the cache; block nb has rows, but no entries.  What a function only reads it finds in E and rows; every slot that it
changes is handed to it as an array of its own (`pointers.assume_distinct`).
"""

from __future__ import annotations

from omdpd.jit.decorators import inline, inner
from omdpd.jit.pointers import assume_distinct
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.entries import sum_of_vector


@inner
def spread(V, b, own, ahead):
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
                value = V[b * hb + i + 1, t]
                for r in range(R):
                    ahead[t, i, r] = value


@inline
def weigh(E, rows, b, extent, reg, d, f, theta, kappa, omega, inverse_theta, ratio, inverse_gamma, by_gamma, by_theta):
    """d, f, 1/theta, kappa/theta, 1/gamma, f/gamma and d/theta; the curvature comes with that of q >= 0."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        theta[n] = 0.0
        kappa[n] = -rows[slot.ROOM, b, n]
        omega[n] = rows[slot.CURVATURE, b, n]
    for t in range(S):
        for n in range(N):
            low = E[slot.LOW_MULTIPLIER, b, t, n] * E[slot.LOW_INVERSE, b, t, n]
            high = E[slot.HIGH_MULTIPLIER, b, t, n] * E[slot.HIGH_INVERSE, b, t, n]
            wide = E[slot.WIDTH, b, t, n]
            weight = 1.0 / (low + high + reg) if wide > 0.0 else 0.0
            lift = high * wide * weight
            d[t, n] = weight
            f[t, n] = lift
            theta[n] += weight
            kappa[n] += lift
            omega[n] += low * lift * wide
    for n in range(N):
        inverse = 1.0 / theta[n] if theta[n] > 0.0 else 0.0
        inverse_theta[n] = inverse
        ratio[n] = kappa[n] * inverse
        gamma = omega[n] + kappa[n] * (kappa[n] * inverse)
        inverse_gamma[n] = 1.0 / gamma if rows[slot.LIVE, b, n] > 0.0 else 0.0
    for t in range(S):
        for n in range(N):
            kernel = f[t, n] + (E[slot.LOWER, b, t, n] - ratio[n] * d[t, n])
            f[t, n] = kernel
            by_gamma[t, n] = kernel * inverse_gamma[n]
            by_theta[t, n] = d[t, n] * inverse_theta[n]


@inline
def predictor_terms(E, rows, b, extent, force, pull, level, right, tau_offset):
    """Force (which comes as V), right-hand side and offset of tau of the affine direction."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        pull[n] = 0.0
        level[n] = -rows[slot.SUM_RESIDUAL, b, n]
    for t in range(S):
        # V - tau first: both are large, their difference is not.
        for n in range(N):
            pushed = force[t, n] - rows[slot.TAU, b, n]
            force[t, n] = pushed
            pull[n] += E[slot.PSEUDO_KERNEL, b, t, n] * pushed
            level[n] += E[slot.NEWTON_WEIGHT, b, t, n] * pushed
    for n in range(N):
        tau_offset[n] = level[n] * rows[slot.INVERSE_THETA, b, n]
        right[n] = rows[slot.RESIDUAL, b, n] + pull[n] + rows[slot.KAPPA_BY_THETA, b, n] * rows[slot.SUM_RESIDUAL, b, n]


@inline
def corrector_terms(
    E, rows, b, extent, target, second, low_correction, high_correction, force, nu_correction, pull, level, right,
    tau_offset,
):  # fmt: skip
    """Add centring and second-order terms to force, right-hand side and offset of tau.

    The low correction is (target weight - dw dw*)/w with dw* = -w* (1 + dw/w), so
    target weight / w + w* (dw/w)(1 + dw/w).  The products count `second` times: once, or not at all.
    """
    assume_distinct()
    S, N = extent
    for n in range(N):
        ratio = rows[slot.OCCUPANCY_RATIO, b, n]
        centring = target * rows[slot.SIGN_WEIGHT, b, n] / rows[slot.OCCUPANCY, b, n]
        term = centring + second * rows[slot.NU, b, n] * (ratio * (1.0 + ratio))
        nu_correction[n] = term if rows[slot.SIGN_WEIGHT, b, n] > 0.0 else 0.0
        pull[n] = nu_correction[n]
        level[n] = 0.0
    for t in range(S):
        for n in range(N):
            move, wide = E[slot.LOW_SLACK_MOVE, b, t, n], E[slot.WIDTH, b, t, n]
            low_ratio = move * E[slot.LOW_INVERSE, b, t, n]
            high_ratio = (wide * rows[slot.OCCUPANCY_MOVE, b, n] - move) * E[slot.HIGH_INVERSE, b, t, n]
            centre = target * rows[slot.START_MASS, b, n] * wide
            low_product = second * E[slot.LOW_MULTIPLIER, b, t, n] * (low_ratio * (1.0 + low_ratio))
            high_product = second * E[slot.HIGH_MULTIPLIER, b, t, n] * (high_ratio * (1.0 + high_ratio))
            up = centre * E[slot.LOW_INVERSE, b, t, n] + low_product
            down = centre * E[slot.HIGH_INVERSE, b, t, n] + high_product
            lift = E[slot.PSEUDO_KERNEL, b, t, n] - E[slot.LOWER, b, t, n]
            low_correction[t, n] = up
            high_correction[t, n] = down
            force[t, n] += up - down
            pull[n] += lift * up + (wide - lift) * down
            level[n] += E[slot.NEWTON_WEIGHT, b, t, n] * (up - down)
    for n in range(N):
        tau_offset[n] += level[n] * rows[slot.INVERSE_THETA, b, n]
        right[n] += pull[n]


@inner
def outflow_terms(E, rows, b, extent, x, dq):
    """x after the step that leaves V alone, and the dq of that step."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        dq[n] = rows[slot.RIGHT, b, n] * rows[slot.INVERSE_GAMMA, b, n]
    for t in range(S):
        for n in range(N):
            push = E[slot.NEWTON_WEIGHT, b, t, n] * (E[slot.FORCE, b, t, n] - rows[slot.TAU_OFFSET, b, n])
            here = E[slot.LOW_SLACK, b, t, n] + E[slot.LOWER, b, t, n] * rows[slot.OCCUPANCY, b, n]
            x[t, n] = (push + E[slot.PSEUDO_KERNEL, b, t, n] * dq[n]) + here


@inner
def moved_terms(E, rows, b, extent, x, dq):
    """x after the whole step, and its dq."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        dq[n] = rows[slot.OCCUPANCY_MOVE, b, n]
    for t in range(S):
        for n in range(N):
            q = rows[slot.OCCUPANCY, b, n] + rows[slot.OCCUPANCY_MOVE, b, n]
            x[t, n] = E[slot.LOW_SLACK, b, t, n] + E[slot.LOW_SLACK_MOVE, b, t, n] + E[slot.LOWER, b, t, n] * q


@inner
def balance(x, rows4, b, A, mu, out):
    """Outflow minus inflow of x: adds the outflow of the block's steps, sets the inflow of the next ones.

    Blocks come in order; unreachable states get zero.
    """
    H, S = out.shape
    nb, hb, R = rows4.shape[1] - 1, rows4.shape[2], rows4.shape[3]
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
            for a in range(A):
                for s in range(S):
                    r = a * S + s
                    out[h, s] += rows4[slot.FLOW_MOVE, b, i, r] + rows4[slot.OCCUPANCY, b, i, r]
            for s in range(S):
                if rows4[slot.LIVE, b, i, s] == 0.0:
                    out[h, s] = 0.0


@inner
def directions(E, rows, b, extent, ahead, pull, level, dw, dq, dtau):
    """dq, dtau, dw from dV of the own state (its slot) and of the next (`ahead`).

    The last pass restores sum dw = residual + (1 - sum l) dq to rounding.
    """
    assume_distinct()
    S, N = extent
    for n in range(N):
        pull[n] = rows[slot.RIGHT, b, n] - rows[slot.OWN_VALUE, b, n]
        level[n] = 0.0
    for t in range(S):
        for n in range(N):
            pull[n] += E[slot.PSEUDO_KERNEL, b, t, n] * ahead[t, n]
            level[n] += E[slot.NEWTON_WEIGHT, b, t, n] * ahead[t, n]
    for n in range(N):
        dq[n] = pull[n] * rows[slot.INVERSE_GAMMA, b, n]
        # From here on level is d.dV / theta and pull what is missing in sum dw.
        level[n] *= rows[slot.INVERSE_THETA, b, n]
        dtau[n] = rows[slot.TAU_OFFSET, b, n] + level[n] + rows[slot.KAPPA_BY_THETA, b, n] * dq[n]
        pull[n] = rows[slot.SUM_RESIDUAL, b, n] + dq[n] * rows[slot.ROOM, b, n]
    for t in range(S):
        for n in range(N):
            force = (E[slot.FORCE, b, t, n] - rows[slot.TAU_OFFSET, b, n]) + (ahead[t, n] - level[n])
            move = (
                E[slot.NEWTON_WEIGHT, b, t, n] * force
                + (E[slot.PSEUDO_KERNEL, b, t, n] - E[slot.LOWER, b, t, n]) * dq[n]
            )
            dw[t, n] = move
            pull[n] -= move
    for n in range(N):
        pull[n] *= rows[slot.INVERSE_THETA, b, n]
    for t in range(S):
        for n in range(N):
            dw[t, n] += E[slot.NEWTON_WEIGHT, b, t, n] * pull[n]


@inline
def advance(
    E, rows, b, extent, step, q, tau, nu, residual, products, low_slack, high_slack, low_multiplier, high_multiplier,
    low_inverse, high_inverse,
):  # fmt: skip
    """Move every entry and row; renew the inverses and the row residual q (1 - sum l) - sum w.

    Returns the new complementarity sum w w* + z z* + q nu.
    """
    assume_distinct()
    S, N = extent
    for n in range(N):
        q[n] += step * rows[slot.OCCUPANCY_MOVE, b, n]
        tau[n] += step * rows[slot.TAU_MOVE, b, n]
        nu[n] += step * rows[slot.NU_MOVE, b, n]
        residual[n] = q[n] * rows[slot.ROOM, b, n]
        products[n] = q[n] * nu[n]
    for t in range(S):
        for n in range(N):
            move = E[slot.LOW_SLACK_MOVE, b, t, n]
            low = low_slack[t, n] + step * move
            high = high_slack[t, n] + step * (E[slot.WIDTH, b, t, n] * rows[slot.OCCUPANCY_MOVE, b, n] - move)
            low_slack[t, n] = low
            high_slack[t, n] = high
            up = low_multiplier[t, n] + step * E[slot.LOW_MULTIPLIER_MOVE, b, t, n]
            down = high_multiplier[t, n] + step * E[slot.HIGH_MULTIPLIER_MOVE, b, t, n]
            low_multiplier[t, n] = up
            high_multiplier[t, n] = down
            products[n] += low * up + high * down
            residual[n] -= low
            low_inverse[t, n] = 1.0 / low if low_inverse[t, n] > 0.0 else 0.0
            high_inverse[t, n] = 1.0 / high if high_inverse[t, n] > 0.0 else 0.0
    for n in range(N):
        residual[n] = residual[n] if rows[slot.INVERSE_THETA, b, n] > 0.0 else 0.0
    return sum_of_vector(products[:N])
