"""The boxes of all rows of a step at once: their centre, their support function, and the way back into them.

The greedy fill of `boxes`, with the rows in the innermost loop and bounds stored as (lower, width).
"""

from __future__ import annotations

from omdpd.jit.decorators import inline, inner
from omdpd.jit.pointers import assume_distinct
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.storage import place
from omdpd.solvers.compiled.boxes import sort_descending


@inner
def classify(E, b, narrow_row, narrow_entry, held, low, wide, room, share):
    """Working bounds of a block, room = 1 - sum l, and the centre of the box as a fraction of the width.

    Narrow entries keep their lower bound, rows whose widths sum to less than `narrow_row` their centre; if `held`, both
    keep what is in the kernel's slot.  Either way the width becomes zero and nothing is left to decide.  Bounds are
    tight: a row with room has two free entries or more.
    """
    assume_distinct()
    S, N = low.shape
    for n in range(N):
        room[n] = 1.0
        share[n] = 0.0
    for t in range(S):
        for n in range(N):
            width = E[slot.TRUE_WIDTH, b, t, n]
            low[t, n] = E[slot.KERNEL, b, t, n] if held and width < narrow_entry else E[slot.TRUE_LOWER, b, t, n]
            width = width if width >= narrow_entry else 0.0
            wide[t, n] = width
            room[n] -= low[t, n]
            share[n] += width
    for n in range(N):
        width = share[n]
        centre = min(max(room[n] / width, 0.0), 1.0) if width > 0.0 else 0.0
        share[n] = centre
        if width < narrow_row or centre <= 0.0 or centre >= 1.0 or room[n] <= 0.0:
            room[n] = 0.0
    for t in range(S):
        for n in range(N):
            fixed = room[n] == 0.0
            law = E[slot.KERNEL, b, t, n] if held else low[t, n] + share[n] * wide[t, n]
            low[t, n] = law if fixed else low[t, n]
            wide[t, n] = 0.0 if fixed else wide[t, n]


@inner
def any_narrow(E, rows, narrow_entry):
    """Whether an entry has more values than the one that the method worked with."""
    for b in range(E.shape[1]):
        for t in range(E.shape[2]):
            for n in range(E.shape[3]):
                width = E[slot.TRUE_WIDTH, b, t, n]
                if width > 0.0 and (rows[slot.ROOM, b, n] == 0.0 or width < narrow_entry):
                    return True
    return False


@inner
def best_laws(E5, h, H, V, order, rest):
    """Put into the kernel's slot, for every row of step h, the law of its box that is best for V_{h+1}."""
    b, i = place(h, H, E5.shape[3], E5.shape[1])
    begin_filling(E5, b, i, V, order, rest)
    for rank in range(order.size):
        t = order[rank]
        for r in range(rest.size):
            more = filled(E5, b, t, i, r, rest)
            E5[slot.KERNEL, b, t, i, r] = E5[slot.TRUE_LOWER, b, t, i, r] + more
            rest[r] -= more


@inner
def begin_filling(E5, b, i, V, order, rest):
    """Sort V downwards into `order`, and put the mass that the lower bounds leave over into `rest`; returns max V."""
    for rank in range(order.size):
        order[rank] = rank
    sort_descending(V, order)
    for r in range(rest.size):
        rest[r] = 1.0
    for t in range(order.size):
        for r in range(rest.size):
            rest[r] -= E5[slot.TRUE_LOWER, b, t, i, r]
    return V[order[0]]


@inline
def filled(E5, b, t, i, r, rest):
    """What row r pours into next state t above its lower bound."""
    return max(min(E5[slot.TRUE_WIDTH, b, t, i, r], rest[r]), 0.0)


@inner
def support(E5, h, values, order, sigma, rest):
    """sigma_r = max_{p in box_r} p.V_{h+1} for every row of step h, relative to max V_{h+1}, which is returned.

    Offsets by max V keep digits when V is large and flat.  After the last step there is nothing: zeros.
    """
    H, S = values.shape
    R = sigma.size
    for r in range(R):
        sigma[r] = 0.0
    if h + 1 == H:
        return 0.0
    b, i = place(h, H, E5.shape[3], E5.shape[1])
    V = values[h + 1]
    top = begin_filling(E5, b, i, V, order, rest)
    for rank in range(S):
        t = order[rank]
        drop = V[t] - top
        for r in range(R):
            sigma[r] += (E5[slot.TRUE_LOWER, b, t, i, r] + filled(E5, b, t, i, r, rest)) * drop
        for r in range(R):
            rest[r] -= filled(E5, b, t, i, r, rest)
    return top


@inner
def kernel_gap(E5, rows4, b, i, held, V, order, scratch):
    """Per row sigma (scratch 0) and sigma - p.V (scratch 1), relative to max V, which is returned.

    Rows whose kernel was the centre of their narrow box take its best member instead; `held` ones keep theirs.
    """
    S, R = V.size, scratch.shape[1]
    sigma, loss, rest = scratch[0], scratch[1], scratch[2]
    top = begin_filling(E5, b, i, V, order, rest)
    for r in range(R):
        sigma[r] = 0.0
        loss[r] = 0.0
    for rank in range(S):
        t = order[rank]
        drop = V[t] - top
        for r in range(R):
            best = E5[slot.TRUE_LOWER, b, t, i, r] + filled(E5, b, t, i, r, rest)
            if rows4[slot.ROOM, b, i, r] == 0.0 and not held:
                E5[slot.KERNEL, b, t, i, r] = best
        for r in range(R):
            sigma[r] += (E5[slot.TRUE_LOWER, b, t, i, r] + filled(E5, b, t, i, r, rest)) * drop
        for r in range(R):
            best = E5[slot.TRUE_LOWER, b, t, i, r] + filled(E5, b, t, i, r, rest)
            loss[r] += (best - E5[slot.KERNEL, b, t, i, r]) * drop
        for r in range(R):
            rest[r] -= filled(E5, b, t, i, r, rest)
    return top


@inner
def sum_to_one(low, wide, p, missing, above, room):
    """Move p between its bounds, then so that it sums to one: every entry by the same share of its room."""
    assume_distinct()
    S, N = p.shape
    for n in range(N):
        missing[n] = 1.0
        above[n] = 0.0
        room[n] = 0.0
    for t in range(S):
        for n in range(N):
            over = min(max(p[t, n] - low[t, n], 0.0), wide[t, n])
            p[t, n] = over
            missing[n] -= low[t, n] + over
            above[n] += over
            room[n] += wide[t, n] - over
    for n in range(N):
        most = room[n] if missing[n] > 0.0 else above[n]
        missing[n] = max(min(missing[n] / most, 1.0), -1.0) if most > 0.0 else 0.0
    for t in range(S):
        for n in range(N):
            over, share = p[t, n], missing[n]
            p[t, n] = low[t, n] + (over + share * ((wide[t, n] - over) if share > 0.0 else over))
