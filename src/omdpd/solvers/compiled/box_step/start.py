"""Where the method starts: a strictly feasible flow, values that fit it, centred multipliers.

The flow follows the reference policy (mixed with the uniform one) through the centre of every box, so it is feasible
from the first iteration.  The values solve, backward in h,

    sum_a [ c + sigma(V_{h+1}) - V_h(s) ]^+ = mass_h(s)   (Euclid),    V = log sum_a exp(c + sigma) - log mass   (KL)

with the state masses of the reference: the exact dual optimum if those masses were the right ones.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import inner
from omdpd.jit.pointers import assume_distinct
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.laws import support
from omdpd.solvers.compiled.box_step.storage import place
from omdpd.solvers.compiled.levels import log_sum_exp, water_level

# Less start mass than this cannot move the objective: the state is treated as unreachable.
DEAD_MASS = 1e-30
# Sum of the widths of a row below which q >= 0 is stated on its own.
NARROW_ROW = 0.02
# An upper bound counts as implied by the lower ones when it is this close to what they leave: relatively, and in
# roundings of a number of size one.
IMPLIED, ROUNDED = 1e-10, 4e-16
# KL: a state of less mass starts as if it had this much; the logarithm of a smaller one would set the scale of V.
MIN_KL_MASS = 1e-12


@inner
def start_kernel(E, rows, b, p):
    """The centre of every box of a block."""
    assume_distinct()
    S, N = p.shape
    for t in range(S):
        for n in range(N):
            p[t, n] = E[slot.LOWER, b, t, n] + rows[slot.CENTRE, b, n] * E[slot.WIDTH, b, t, n]


@inner
def start_flow(E5, rows4, reference, mu, mix, mass, wanted):
    """q of the mixed reference policy under the start kernel and its `mass`; `wanted`, the masses of the reference.

    Dead rows get q = 0, weights zero.
    """
    H, S, A = reference.shape
    nb, hb = E5.shape[1], E5.shape[3]
    for s in range(S):
        mass[0, s] = mu[s]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += max(reference[h, s, a], 0.0)
            wanted[h, s] = total
            live = mass[h, s] > DEAD_MASS
            for a in range(A):
                r = a * S + s
                share = max(reference[h, s, a], 0.0) / total if total > 0.0 else 1.0 / A
                rows4[slot.OCCUPANCY, b, i, r] = mass[h, s] * ((1.0 - mix) * share + mix / A) if live else 0.0
                rows4[slot.START_MASS, b, i, r] = mass[h, s] if live else 0.0
                rows4[slot.LIVE, b, i, r] = 1.0 if live else 0.0
                rows4[slot.SUM_RESIDUAL, b, i, r] = 0.0
        if h + 1 < H:
            for t in range(S):
                total = 0.0
                for r in range(S * A):
                    total += rows4[slot.OCCUPANCY, b, i, r] * E5[slot.START_KERNEL, b, t, i, r]
                mass[h + 1, t] = total


@inner
def start_slacks(E, rows, b, extent, width, weight, wide, low_slack, high_slack, low_inverse, high_inverse):
    """Slacks and their inverses in a block; an upper bound that the lower ones imply has no slack (inverse 0).

    The slacks of a wide row keep q positive; those of a narrow one weigh too little, so q >= 0 gets its own multiplier.
    Returns the sum of the barrier weights: mass times (u - l) per slack, and mass per sign constraint.
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
        weight[n] = rows[slot.START_MASS, b, n] if width[n] < NARROW_ROW else 0.0
        total += weight[n]
    for t in range(S):
        for n in range(N):
            q = rows[slot.OCCUPANCY, b, n]
            free = wide[t, n] > 0.0 and q > 0.0
            room = wide[t, n] if free else 0.0
            above = E[slot.START_KERNEL, b, t, n] - E[slot.LOWER, b, t, n]
            bound = room < rows[slot.ROOM, b, n] * (1.0 - IMPLIED) - ROUNDED and free
            wide[t, n] = room
            low_slack[t, n] = above * q if free else 0.0
            low_inverse[t, n] = 1.0 / (above * q) if free else 0.0
            high_slack[t, n] = (room - above) * q if bound else 1.0
            high_inverse[t, n] = 1.0 / ((room - above) * q) if bound else 0.0
            total += rows[slot.START_MASS, b, n] * room * (2.0 if bound else 1.0)
    return total


@inner
def start_multipliers(E, rows, b, extent, ahead, target, low_multiplier, high_multiplier, tau, nu):
    """Centred multipliers, target times barrier weight over slack, and tau = p.V, in a block."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        tau[n] = 0.0
        weight = rows[slot.SIGN_WEIGHT, b, n]
        nu[n] = target * weight / rows[slot.OCCUPANCY, b, n] if weight > 0.0 else 0.0
    for t in range(S):
        for n in range(N):
            centre = target * rows[slot.START_MASS, b, n] * E[slot.WIDTH, b, t, n]
            low_multiplier[t, n] = centre * E[slot.LOW_INVERSE, b, t, n]
            high_multiplier[t, n] = centre * E[slot.HIGH_INVERSE, b, t, n]
            tau[n] += E[slot.START_KERNEL, b, t, n] * ahead[t, n]


@inner
def water_fill(E5, gain, A, mass, kl, V, order, scratch):
    """V backward in h from the gains of the rows (nb+1, hb, R) and the state masses; mass 0 gives max_a.

    Returns the largest V_s - (c + sigma) over the states with mass: how large multipliers of q >= 0 become.
    """
    H, S = V.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    sigma, rest, gains = scratch[0], scratch[1], scratch[2, :A]
    deepest = 0.0
    for h in range(H - 1, -1, -1):
        b, i = place(h, H, hb, nb)
        top = support(E5, h, V, order, sigma, rest)
        for r in range(R):
            sigma[r] += gain[b, i, r] + top
        for s in range(S):
            for a in range(A):
                gains[a] = sigma[a * S + s]
            if kl:
                V[h, s] = log_sum_exp(gains) - np.log(max(mass[h, s], MIN_KL_MASS))
            else:
                V[h, s] = water_level(gains, mass[h, s])
            if mass[h, s] > 0.0:
                for a in range(A):
                    deepest = max(deepest, V[h, s] - sigma[a * S + s])
    return deepest


@inner
def value_range(V, mass):
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
