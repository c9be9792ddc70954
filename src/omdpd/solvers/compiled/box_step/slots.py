"""Storage of the interior-point method: one array for the entries (s,a,s'), one for the rows (s,a).

A row is r = a S + s, padded to a multiple of eight so that every loop over rows is a whole number of vectors.
The entries of row r live at ``E[slot, b, t, n]``: block b, next state t, and n = i R + r for the i-th step of
the block.  A small problem is one block of all its steps (long loops), a large one has a block per step (blocks
that fit the cache, matrices that BLAS can read).  Rows live at ``rows[slot, b, n]``; block ``nb`` is the last step,
which has rows but no entries.

Every loop of the method runs over n, in vectors; see `pointers.assume_distinct`.
"""

from __future__ import annotations

import threading

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.options import INLINE, INNER
from omdpd.solvers.compiled.pointers import assume_distinct

# Slots of an entry: true bounds (lower, width), bounds the method works with, slacks w = x - l q and z = u q - x,
# their multipliers, inverses, Newton weights d, pseudo-kernel f, right-hand sides, corrector terms, directions.
TL, TW, LO, WD, W, Z, A, B, IW, IZ, DD, FF, RX, CA, CB, DW = range(16)
ENTRY_SLOTS = 16
# Between iterations no direction is needed: the kernel of a certificate takes its place.
PP = DW

# Slots of a row: q, tau, nu, c, weights, Newton quantities, directions, work space.
Q, TAU, NU, C, C0, MS, NW, LIVE, SL, ITH, KT, IG, RES, RR, RG, T0, RT, DQ, DT, DN, CN, S1, S2, S3, HQ, RP = range(26)
ROW_SLOTS = 26

Extent = tuple[int, int]

LANES = 8
# Blocks of about this many rows keep the working set of one loop in the first-level cache.
ROWS_PER_BLOCK = 640
# From this many states on, products of S x S blocks are worth a call to BLAS, which wants one step per block.
BLAS_STATES = 16
# An entry this narrow has one possible value to working precision.
NARROW_ENTRY = 1e-13
# Less start mass than this cannot move the objective: the state is treated as unreachable.
DEAD_MASS = 1e-30


def memory(H: int, S: int, n_actions: int) -> Floats:
    """What `allocate` takes its storage from; kept by the thread that asks, since the system is slow to give pages."""
    R = (S * n_actions + LANES - 1) // LANES * LANES
    size = R * ((ENTRY_SLOTS * (H - 1) + 2 * max(H - 1, 1)) * S + ROW_SLOTS * 2 * H)
    held: Floats | None = getattr(_kept, "memory", None)
    if held is None or held.size < size:
        raw = np.empty(size + LANES)
        # A vector that crosses a cache line takes two loads.
        first = -raw.ctypes.data // raw.itemsize % LANES
        held = _kept.memory = raw[first : first + size]
    return held


_kept = threading.local()


@njit(**INNER)
def allocate(memory: Floats, H: int, S: int, n_actions: int) -> tuple[Floats, Floats, Floats]:
    """Storage of the entries, of the rows (zero), and two slots of entries for one block at a time."""
    R = (S * n_actions + LANES - 1) // LANES * LANES
    steps = H - 1
    if steps > 0 and S < BLAS_STATES and steps * R <= ROWS_PER_BLOCK:
        nb, N = 1, steps * R
    else:
        nb, N = steps, R
    one, two, three = ENTRY_SLOTS * nb * S * N, 2 * S * N, ROW_SLOTS * (nb + 1) * N
    memory[one + two : one + two + three] = 0.0
    return (
        memory[:one].reshape((ENTRY_SLOTS, nb, S, N)),
        memory[one + two : one + two + three].reshape((ROW_SLOTS, nb + 1, N)),
        memory[one : one + two].reshape((2, S, N)),
    )


@njit(**INNER)
def by_step(E: Floats, rows: Floats, over: Floats, n_actions: int) -> tuple[Floats, Floats, Floats]:
    """The same memory with n split into (step in block, row)."""
    nb, S, N = E.shape[1:]
    R = (S * n_actions + LANES - 1) // LANES * LANES
    hb = N // R
    return (
        E.reshape((ENTRY_SLOTS, nb, S, hb, R)),
        rows.reshape((ROW_SLOTS, nb + 1, hb, R)),
        over.reshape((2, S, hb, R)),
    )


@njit(**INNER)
def place(h: int, H: int, hb: int, nb: int) -> tuple[int, int]:
    """Block and position of step h."""
    if h == H - 1:
        return nb, 0
    return h // hb, h % hb


@njit(**INLINE)
def extent(E5: Floats, b: int) -> Extent:
    """Next states and rows of a block; the last step has no next states."""
    nb, S, hb, R = E5.shape[1:]
    return (S, hb * R) if b < nb else (0, R)


@njit(**INNER)
def load(E5: Floats, R4: Floats, c: Floats, lower: Floats, upper: Floats, shift: Floats) -> None:
    """Copy bounds and c into storage; c loses its mean per step, kept in `shift`.

    Every step of an occupancy sums to one, so a constant per step moves no minimiser; it would only cost digits of V.
    """
    H, S, n_actions = c.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        shift[h] = 0.0
        if h < H - 1:
            for t in range(S):
                for r in range(S * n_actions, R):
                    E5[TL, b, t, i, r] = 0.0
                    E5[TW, b, t, i, r] = 0.0
        for s in range(S):
            for a in range(n_actions):
                shift[h] += c[h, s, a] / (S * n_actions)
        for s in range(S):
            for a in range(n_actions):
                r = a * S + s
                R4[C0, b, i, r] = c[h, s, a] - shift[h]
                R4[LIVE, b, i, r] = 1.0
                if h < H - 1:
                    for t in range(S):
                        E5[TL, b, t, i, r] = lower[h, s, a, t]
                        E5[TW, b, t, i, r] = max(upper[h, s, a, t] - lower[h, s, a, t], 0.0)


@njit(**INNER)
def classify(E: Floats, b: int, narrow: float, low: Floats, wide: Floats, room: Floats, share: Floats) -> None:
    """Working bounds of a block, room = 1 - sum l, and the centre of the box as a fraction of the width.

    Narrow entries keep their lower bound, rows whose widths sum to less than `narrow` their centre; either way the
    width becomes zero and nothing is left to decide.  Bounds are tight: a row with room has two free entries or more.
    """
    assume_distinct()
    S, N = low.shape
    for n in range(N):
        room[n] = 1.0
        share[n] = 0.0
    for t in range(S):
        for n in range(N):
            width = E[TW, b, t, n]
            width = width if width >= NARROW_ENTRY else 0.0
            low[t, n] = E[TL, b, t, n]
            wide[t, n] = width
            room[n] -= E[TL, b, t, n]
            share[n] += width
    for n in range(N):
        width = share[n]
        centre = min(max(room[n] / width, 0.0), 1.0) if width > 0.0 else 0.0
        share[n] = centre
        if width < narrow or centre <= 0.0 or centre >= 1.0 or room[n] <= 0.0:
            room[n] = 0.0
    for t in range(S):
        for n in range(N):
            fixed = room[n] == 0.0
            low[t, n] += share[n] * wide[t, n] if fixed else 0.0
            wide[t, n] = 0.0 if fixed else wide[t, n]


@njit(**INNER)
def sort_down(values: Floats, order: np.ndarray) -> None:
    """Order of decreasing values, by insertion: S is small and the order changes little from step to step."""
    for k in range(order.size):
        order[k] = k
    for k in range(1, order.size):
        item = order[k]
        j = k - 1
        while j >= 0 and values[order[j]] < values[item]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item


@njit(**INNER)
def support(E5: Floats, h: int, values: Floats, order: np.ndarray, sigma: Floats, rest: Floats) -> float:
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
    sort_down(V, order)
    top = V[order[0]]
    for r in range(R):
        rest[r] = 1.0
    for t in range(S):
        for r in range(R):
            rest[r] -= E5[TL, b, t, i, r]
    for k in range(S):
        t = order[k]
        drop = V[t] - top
        for r in range(R):
            more = max(min(E5[TW, b, t, i, r], rest[r]), 0.0)
            sigma[r] += (E5[TL, b, t, i, r] + more) * drop
        for r in range(R):
            rest[r] -= max(min(E5[TW, b, t, i, r], rest[r]), 0.0)
    return top


@njit(**INNER)
def sum_to_one(low: Floats, wide: Floats, p: Floats, missing: Floats, above: Floats, room: Floats) -> None:
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
