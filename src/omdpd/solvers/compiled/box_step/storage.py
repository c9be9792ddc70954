"""Storage of the interior-point method: one array for the entries (s,a,s'), one for the rows (s,a).

A row is r = a S + s, padded to a multiple of eight so that every loop over rows is a whole number of vectors.
The entries of row r live at ``E[slot, b, t, n]``: block b, next state t, and n = i R + r for the i-th step of
the block.  A small problem is one block of all its steps (long loops), a large one has a block per step (blocks
that fit the cache, matrices that BLAS can read).  Rows live at ``rows[slot, b, n]``; block ``nb`` is the last step,
which has rows but no entries.  ``E5``, ``rows4`` and ``spare4`` are the same memory with n split into (i, r).

Every loop of the method runs over n, in vectors; see `pointers.assume_distinct`.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import inline, inner
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step import slots as slot

# Doubles in the widest vector of today's processors, and in a cache line.
LANES = 8
# Blocks of about this many rows keep the working set of one loop in the first-level cache.
ROWS_PER_BLOCK = 640
# From this many states on, products of S x S blocks are worth a call to BLAS, which wants one step per block.
BLAS_STATES = 16

Extent = tuple[int, int]


class Storage(NamedTuple):
    """Entries, rows, and two slots of entries for one block at a time; each also by step."""

    E: Floats
    E5: Floats
    rows: Floats
    rows4: Floats
    spare: Floats
    spare4: Floats


def pages(H: int, S: int, A: int) -> Floats:
    """What `allocate` takes its storage from; kept by the thread that asks, since the system is slow to give pages."""
    R = padded(S * A)
    size = R * ((slot.ENTRY_SLOTS * (H - 1) + 2 * max(H - 1, 1)) * S + slot.ROW_SLOTS * 2 * H)
    held: Floats | None = getattr(_kept, "pages", None)
    if held is None or held.size < size:
        raw = np.empty(size + LANES)
        # A vector that crosses a cache line takes two loads.
        first = -raw.ctypes.data // raw.itemsize % LANES
        held = _kept.pages = raw[first : first + size]
    return held


_kept = threading.local()


def padded(rows: int) -> int:
    """The next multiple of a vector."""
    return (rows + LANES - 1) // LANES * LANES


@inner
def allocate(taken, H, S, A):
    """Storage with rows of zeros; entries keep what an earlier solve left."""
    R = (S * A + LANES - 1) // LANES * LANES
    steps = H - 1
    if steps > 0 and S < BLAS_STATES and steps * R <= ROWS_PER_BLOCK:
        nb, hb = 1, steps
    else:
        nb, hb = steps, 1
    N = hb * R
    one, two, three = slot.ENTRY_SLOTS * nb * S * N, 2 * S * N, slot.ROW_SLOTS * (nb + 1) * N
    entries, pair, rest = taken[:one], taken[one : one + two], taken[one + two : one + two + three]
    rest[:] = 0.0
    return Storage(
        E=entries.reshape((slot.ENTRY_SLOTS, nb, S, N)),
        E5=entries.reshape((slot.ENTRY_SLOTS, nb, S, hb, R)),
        rows=rest.reshape((slot.ROW_SLOTS, nb + 1, N)),
        rows4=rest.reshape((slot.ROW_SLOTS, nb + 1, hb, R)),
        spare=pair.reshape((2, S, N)),
        spare4=pair.reshape((2, S, hb, R)),
    )


@inner
def place(h, H, hb, nb):
    """Block and position of step h."""
    if h == H - 1:
        return nb, 0
    return h // hb, h % hb


@inline
def extent(E5, b):
    """Next states and columns of a block; the last step has no next states."""
    nb, S, hb, R = E5.shape[1:]
    return (S, hb * R) if b < nb else (0, R)


@inner
def load(E5, rows4, c, lower, upper, shift):
    """Copy bounds and c into storage; c loses its mean per step, kept in `shift`.

    Every step of an occupancy sums to one, so a constant per step moves no minimiser; it would only cost digits of V.
    """
    H, S, A = c.shape
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        shift[h] = 0.0
        if h < H - 1:
            for t in range(S):
                for r in range(S * A, R):
                    E5[slot.TRUE_LOWER, b, t, i, r] = 0.0
                    E5[slot.TRUE_WIDTH, b, t, i, r] = 0.0
        for s in range(S):
            for a in range(A):
                shift[h] += c[h, s, a] / (S * A)
        for s in range(S):
            for a in range(A):
                r = a * S + s
                rows4[slot.BASE_C, b, i, r] = c[h, s, a] - shift[h]
                rows4[slot.LIVE, b, i, r] = 1.0
                if h < H - 1:
                    for t in range(S):
                        E5[slot.TRUE_LOWER, b, t, i, r] = lower[h, s, a, t]
                        E5[slot.TRUE_WIDTH, b, t, i, r] = max(upper[h, s, a, t] - lower[h, s, a, t], 0.0)


@inner
def copy_out(E5, rows4, V, xi, q, p, values, prices):
    """Certified occupancy and kernel in the caller's layout, values and prices."""
    H, S, A = q.shape
    for j in range(xi.size):
        prices[j] = xi[j]
    for h in range(H):
        b, i = place(h, H, E5.shape[3], E5.shape[1])
        for s in range(S):
            values[h, s] = V[h, s]
            for a in range(A):
                q[h, s, a] = rows4[slot.CERTIFIED, b, i, a * S + s]
                if h + 1 < H:
                    for t in range(S):
                        p[h, s, a, t] = E5[slot.KERNEL, b, t, i, a * S + s]
