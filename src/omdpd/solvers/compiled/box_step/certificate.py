"""A feasible point from an iterate, and a duality gap that is computed without cancellation.

For any V, any xi and any policy and kernel in the box with occupancy q, with c' = c - sum_j xi_j d_j,
y = c' - V_h(s) + sigma(V_{h+1}) and v_j = d_j.q + b_j, primal minus dual value is a sum of non-negative terms:

    Euclid   1/2 (q - [y]^+)^2 + q ([y]^+ - y) + q (sigma - p.V_{h+1})                       over the rows
    KL       q (e^r - 1 - r) + q (sigma - p.V_{h+1}),  r = y - log q                          over the rows
    hinges   W v + rho v^2/2 - xi v + ([xi - W]^+)^2 / (2 rho)  if v > 0,  without the first two terms otherwise

(mu.V_1 telescopes into the rows, which removes every large term.)  An upper bound of what the rounding of q can
do to the hinge terms is part of the gap: at large W it dominates.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.slots import (
    LO,
    PP,
    RP,
    S2,
    S3,
    SL,
    TL,
    TW,
    C,
    Q,
    W,
    place,
    sort_down,
)
from omdpd.solvers.compiled.options import INNER
from omdpd.solvers.compiled.pointers import assume_distinct

# q of a forward pass is off by a few units in the last place, relative to each entry.
ROUNDING = 4.0 * 2.220446049250313e-16
# log q of a value below the smallest double; its term in the objective is zero.
UNREACHABLE_BONUS = 50.0


@njit(**INNER)
def recover_kernel(E: Floats, rows: Floats, b: int, p: Floats) -> None:
    """p = l + w/q of a block, which still has to be moved into the true box."""
    assume_distinct()
    S, N = p.shape
    for t in range(S):
        for n in range(N):
            q = rows[Q, b, n]
            p[t, n] = E[LO, b, t, n] + (E[W, b, t, n] / q if q > 0.0 else 0.0)


@njit(**INNER)
def kernel_gap(E5: Floats, R4: Floats, b: int, i: int, V: Floats, order: np.ndarray, scratch: Floats) -> float:
    """Per row sigma (scratch 0) and sigma - p.V (scratch 1), relative to max V, which is returned.

    Rows whose kernel was held fixed because their box is narrow take its best member instead.
    """
    S, R = V.size, scratch.shape[1]
    sigma, slack, rest = scratch[0], scratch[1], scratch[2]
    sort_down(V, order)
    top = V[order[0]]
    for r in range(R):
        sigma[r] = 0.0
        slack[r] = 0.0
        rest[r] = 1.0
    for t in range(S):
        for r in range(R):
            rest[r] -= E5[TL, b, t, i, r]
    for k in range(S):
        t = order[k]
        drop = V[t] - top
        for r in range(R):
            best = E5[TL, b, t, i, r] + max(min(E5[TW, b, t, i, r], rest[r]), 0.0)
            if R4[SL, b, i, r] == 0.0:
                E5[PP, b, t, i, r] = best
        for r in range(R):
            best = E5[TL, b, t, i, r] + max(min(E5[TW, b, t, i, r], rest[r]), 0.0)
            sigma[r] += best * drop
        for r in range(R):
            best = E5[TL, b, t, i, r] + max(min(E5[TW, b, t, i, r], rest[r]), 0.0)
            slack[r] += (best - E5[PP, b, t, i, r]) * drop
        for r in range(R):
            rest[r] -= max(min(E5[TW, b, t, i, r], rest[r]), 0.0)
    return top


@njit(**INNER)
def backward(
    E5: Floats,
    R4: Floats,
    n_actions: int,
    mass: Floats,
    dead: float,
    kl: bool,
    V: Floats,
    order: np.ndarray,
    scratch: Floats,
) -> None:
    """Slots S2 = y and S3 = sigma - p.V of every row; states without mass get the V that makes every y <= 0."""
    H, S = V.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    for h in range(H - 1, -1, -1):
        b, i = place(h, H, hb, nb)
        top = 0.0
        if h + 1 < H:
            top = kernel_gap(E5, R4, b, i, V[h + 1], order, scratch)
        else:
            for r in range(R):
                scratch[0, r] = 0.0
                scratch[1, r] = 0.0
        for s in range(S):
            if mass[h, s] <= dead:
                best = -np.inf
                for a in range(n_actions):
                    best = max(best, R4[C, b, i, a * S + s] + (scratch[0, a * S + s] + top))
                V[h, s] = best + (UNREACHABLE_BONUS if kl else 0.0)
            for a in range(n_actions):
                r = a * S + s
                R4[S2, b, i, r] = R4[C, b, i, r] + ((top - V[h, s]) + scratch[0, r])
                R4[S3, b, i, r] = max(scratch[1, r], 0.0)


@njit(**INNER)
def forward(E5: Floats, R4: Floats, n_actions: int, mu: Floats, flow: Floats) -> None:
    """Slot RP: the occupancy of the policy of slot Q under the kernel of slot PP; `flow` gets the state masses."""
    H, S = flow.shape
    nb, hb = E5.shape[1], E5.shape[3]
    for s in range(S):
        flow[0, s] = mu[s]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for s in range(S):
            total = 0.0
            for a in range(n_actions):
                total += R4[Q, b, i, a * S + s]
            for a in range(n_actions):
                r = a * S + s
                R4[RP, b, i, r] = flow[h, s] * (R4[Q, b, i, r] / total if total > 0.0 else 1.0 / n_actions)
        if h + 1 < H:
            for t in range(S):
                total = 0.0
                for r in range(S * n_actions):
                    total += R4[RP, b, i, r] * E5[PP, b, t, i, r]
                flow[h + 1, t] = total


@njit(**INNER)
def row_gap(R4: Floats, H: int, n_rows: int, kl: bool) -> float:
    """Sum of the rows' terms."""
    nb, hb = R4.shape[1] - 1, R4.shape[2]
    total = 0.0
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for r in range(n_rows):
            q, y = R4[RP, b, i, r], R4[S2, b, i, r]
            if kl:
                term = divergence_gap(q, y)
            else:
                positive = max(y, 0.0)
                term = 0.5 * (q - positive) ** 2 + q * (positive - y)
            total += term + q * R4[S3, b, i, r]
    return total


@njit(**INNER)
def divergence_gap(q: float, y: float) -> float:
    """q log q - q - q y + e^y, written in r = y - log q where q > 0."""
    if q <= 0.0:
        return np.exp(min(y, 700.0))
    r = y - np.log(q)
    if abs(r) < 1e-2:
        return q * (r * r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))))
    return q * (np.exp(min(r, 700.0)) - 1.0 - r)


@njit(**INNER)
def hinge_gaps(terms: Floats, rows: Floats, data: Floats, xi: Floats) -> float:
    """Sum of the hinges' terms; v is summed in twice the working precision (Dekker's product, Knuth's sum)."""
    split = 134217729.0
    gap = 0.0
    for j in range(xi.size):
        high, low, size = data[1, j], 0.0, abs(data[1, j])
        for b in range(rows.shape[1]):
            for n in range(rows.shape[2]):
                x, y = terms[j, b, n], rows[RP, b, n]
                p = x * y
                xs, ys = split * x, split * y
                xh, yh = xs - (xs - x), ys - (ys - y)
                xl, yl = x - xh, y - yh
                low += xl * yl - (((p - xh * yh) - xl * yh) - xh * yl)
                total = high + p
                part = total - high
                low += (high - (total - part)) + (p - part)
                high = total
                size += abs(p)
        gap += hinge_gap(high + low, size, xi[j], data[0, j], data[2, j])
    return gap


@njit(**INNER)
def hinge_gap(v: float, size: float, xi: float, weight: float, rho: float) -> float:
    """One hinge's term, with the most that rounding of v by `ROUNDING` times `size` can add."""
    error = ROUNDING * size
    over = max(xi - weight, 0.0)
    curve = over * over / (2.0 * rho) if rho > 0.0 else 0.0
    worst = 0.0
    for point in (v - error, v, v + error):
        if point > 0.0 and xi > weight and rho > 0.0:
            term = 0.5 * rho * (point - over / rho) ** 2
        elif point > 0.0:
            term = (weight - xi) * point + 0.5 * rho * point * point
        else:
            term = -xi * point + curve
        worst = max(worst, term)
    return worst
