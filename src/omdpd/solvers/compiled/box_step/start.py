"""Where the method starts: a strictly feasible flow, values that fit it, centred multipliers.

The flow follows the reference policy (mixed with the uniform one) through the centre of every box, or through a point
near an earlier solution's kernel, so it is feasible from the first iteration.  The values solve, backward in h,

    sum_a [ c + sigma(V_{h+1}) - V_h(s) ]^+ = mass_h(s)   (Euclid),    V = log sum_a exp(c + sigma) - log mass   (KL)

with the state masses of the reference: the exact dual optimum if those masses were the right ones.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.slots import (
    DEAD_MASS,
    FF,
    IW,
    IZ,
    LIVE,
    LO,
    MS,
    NW,
    RT,
    S1,
    S2,
    S3,
    SL,
    WD,
    Extent,
    Q,
    place,
    sum_to_one,
    support,
)
from omdpd.solvers.compiled.options import INNER, SUMS
from omdpd.solvers.compiled.pointers import assume_distinct

# Share of the box's centre in a warm start: the earlier kernel sits on faces of the box, the start must not.
WARM_CENTRE = 0.1
# Sum of the widths of a row below which q >= 0 is stated on its own.
NARROW = 0.02


@njit(**INNER)
def start_kernel(E: Floats, E5: Floats, rows: Floats, warm: bool, p_warm: Floats) -> None:
    """Slot FF: a kernel strictly inside every box; slot S1 of the rows holds the centre's fraction."""
    nb, S, N = E.shape[1:]
    for b in range(nb):
        for t in range(S):
            for n in range(N):
                E[FF, b, t, n] = E[LO, b, t, n] + rows[S1, b, n] * E[WD, b, t, n]
    if not warm:
        return
    hb, H, n_actions = E5.shape[3], p_warm.shape[0], p_warm.shape[2]
    for h in range(H - 1):
        b, i = place(h, H, hb, nb)
        for t in range(S):
            for s in range(S):
                for a in range(n_actions):
                    r = a * S + s
                    low = E5[LO, b, t, i, r]
                    old = min(max(p_warm[h, s, a, t], low), low + E5[WD, b, t, i, r])
                    E5[FF, b, t, i, r] = (1.0 - WARM_CENTRE) * old + WARM_CENTRE * E5[FF, b, t, i, r]
    for b in range(nb):
        s1, s2, s3 = rows[S1, b], rows[S2, b], rows[S3, b]
        sum_to_one(E[LO, b], E[WD, b], E[FF, b], s1, s2, s3)


@njit(**INNER)
def start_flow(E5: Floats, R4: Floats, reference: Floats, mu: Floats, mix: float, mass: Floats, masses: Floats) -> None:
    """q of the mixed reference policy under slot FF and its `mass`, the `masses` of the reference.

    Dead rows get q = 0, weights zero.
    """
    H, S, n_actions = reference.shape
    nb, hb = E5.shape[1], E5.shape[3]
    for s in range(S):
        mass[0, s] = mu[s]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for s in range(S):
            total = 0.0
            for a in range(n_actions):
                total += max(reference[h, s, a], 0.0)
            masses[h, s] = total
            live = mass[h, s] > DEAD_MASS
            for a in range(n_actions):
                r = a * S + s
                share = max(reference[h, s, a], 0.0) / total if total > 0.0 else 1.0 / n_actions
                R4[Q, b, i, r] = mass[h, s] * ((1.0 - mix) * share + mix / n_actions) if live else 0.0
                R4[MS, b, i, r] = mass[h, s] if live else 0.0
                R4[LIVE, b, i, r] = 1.0 if live else 0.0
                R4[RT, b, i, r] = 0.0
        if h + 1 < H:
            for t in range(S):
                total = 0.0
                for r in range(S * n_actions):
                    total += R4[Q, b, i, r] * E5[FF, b, t, i, r]
                mass[h + 1, t] = total


@njit(**SUMS)
def start_slacks(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    width: Floats,
    weight: Floats,
    wide: Floats,
    w: Floats,
    z: Floats,
    iw: Floats,
    iz: Floats,
) -> float:
    """w, z and their inverses in a block; an upper bound that the lower ones imply has no slack (1/z = 0).

    The slacks of a wide row keep q positive; those of a narrow one weigh too little, so q >= 0 gets its own multiplier.
    Returns the sum of the barrier weights: m_s (u - l) per slack and m_s per sign constraint.
    """
    assume_distinct()
    S, N = extent
    total = 0.0
    for n in range(N):
        width[n] = 0.0
    for t in range(S):
        for n in range(N):
            width[n] += wide[t, n]
    for n in range(N):
        weight[n] = rows[MS, b, n] if width[n] < NARROW else 0.0
        total += weight[n]
    for t in range(S):
        for n in range(N):
            q = rows[Q, b, n]
            free = wide[t, n] > 0.0 and q > 0.0
            room = wide[t, n] if free else 0.0
            above = E[FF, b, t, n] - E[LO, b, t, n]
            bound = room < rows[SL, b, n] * (1.0 - 1e-10) - 4e-16 and free
            wide[t, n] = room
            w[t, n] = above * q if free else 0.0
            iw[t, n] = 1.0 / (above * q) if free else 0.0
            z[t, n] = (room - above) * q if bound else 1.0
            iz[t, n] = 1.0 / ((room - above) * q) if bound else 0.0
            total += rows[MS, b, n] * room * (2.0 if bound else 1.0)
    return total


@njit(**INNER)
def start_multipliers(
    E: Floats,
    rows: Floats,
    b: int,
    extent: Extent,
    ahead: Floats,
    target: float,
    a: Floats,
    c: Floats,
    tau: Floats,
    nu: Floats,
) -> None:
    """Centred multipliers a = target wt / w, b = target wt / z, nu = target wt / q, and tau = p.V, in a block."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        tau[n] = 0.0
        nu[n] = target * rows[NW, b, n] / rows[Q, b, n] if rows[NW, b, n] > 0.0 else 0.0
    for t in range(S):
        for n in range(N):
            centre = target * rows[MS, b, n] * E[WD, b, t, n]
            a[t, n] = centre * E[IW, b, t, n]
            c[t, n] = centre * E[IZ, b, t, n]
            tau[n] += E[FF, b, t, n] * ahead[t, n]


@njit(**INNER)
def water_fill(
    E5: Floats, gain: Floats, n_actions: int, mass: Floats, kl: bool, V: Floats, order: np.ndarray, scratch: Floats
) -> float:
    """V backward in h from the gains of the rows (nb+1, hb, R) and the state masses; mass 0 gives max_a.

    Returns the largest V_s - (c + sigma) over the states with mass: how large multipliers of q >= 0 become.
    """
    H, S = V.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    sigma, rest = scratch[0], scratch[1]
    deepest = 0.0
    for h in range(H - 1, -1, -1):
        b, i = place(h, H, hb, nb)
        top = support(E5, h, V, order, sigma, rest)
        for r in range(R):
            sigma[r] += gain[b, i, r] + top
        for s in range(S):
            V[h, s] = level(sigma, s, S, n_actions, mass[h, s], kl)
            for a in range(n_actions):
                if mass[h, s] > 0.0:
                    deepest = max(deepest, V[h, s] - sigma[a * S + s])
    return deepest


@njit(**INNER)
def level(gain: Floats, s: int, S: int, n_actions: int, mass: float, kl: bool) -> float:
    """The V with sum_a [g_a - V]^+ = mass, or log sum_a e^{g_a} - log mass, over the rows of state s."""
    best = -np.inf
    for a in range(n_actions):
        best = max(best, gain[a * S + s])
    if kl:
        total = 0.0
        for a in range(n_actions):
            total += np.exp(gain[a * S + s] - best)
        return best + np.log(total) - np.log(max(mass, 1e-12))
    if mass <= 0.0:
        return best
    # Newton's method on a convex piecewise linear function: it climbs to the root in at most A steps.
    V = best - mass
    for _ in range(n_actions):
        total, count = -mass, 0
        for a in range(n_actions):
            if gain[a * S + s] > V:
                total += gain[a * S + s]
                count += 1
        if count == 0 or total <= V * count:
            break
        V = total / count
    return V


@njit(**INNER)
def value_range(V: Floats, mass: Floats) -> float:
    """max_h of the spread of V_h over the reachable states."""
    H, S = V.shape
    widest = 0.0
    for h in range(H):
        low, high = np.inf, -np.inf
        for s in range(S):
            if mass[h, s] > DEAD_MASS:
                low = min(low, V[h, s])
                high = max(high, V[h, s])
        if high > low:
            widest = max(widest, high - low)
    return widest
