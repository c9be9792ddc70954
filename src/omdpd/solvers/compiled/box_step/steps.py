"""How far a direction may go, and how far the iterate is from complementary.

A running maximum is kept per row: the compiler does not vectorise a maximum over everything.
"""

from __future__ import annotations

from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.slots import (
    CN,
    DQ,
    DW,
    IW,
    IZ,
    LIVE,
    NU,
    WD,
    A,
    B,
    Extent,
    Q,
    W,
    Z,
)
from omdpd.solvers.compiled.options import INLINE, INLINE_SUMS, INNER
from omdpd.solvers.compiled.pointers import assume_distinct


@njit(**INLINE_SUMS)
def affine_moves(E: Floats, rows: Floats, b: int, extent: Extent, by_q: Floats, most: Floats) -> tuple[float, float]:
    """Relative moves dq/q of the predictor; how far these and dw/w, dz/z let the step go; sum dw da + dz db + dq dnu.

    A multiplier moves by -1 minus its slack's x, so the limit is the largest max(-x, 1 + x) = 1/2 + |x + 1/2|.
    A row without a multiplier of its own only limits the step where q falls.
    """
    assume_distinct()
    S, N = extent
    total = 0.0
    for n in range(N):
        x = rows[DQ, b, n] / rows[Q, b, n] if rows[LIVE, b, n] > 0.0 else 0.0
        x = x if rows[NU, b, n] > 0.0 else min(x, 0.0)
        by_q[n] = x
        most[n] = abs(x + 0.5)
        total -= rows[NU, b, n] * rows[Q, b, n] * (x * (1.0 + x))
    for t in range(S):
        for n in range(N):
            x = E[DW, b, t, n] * E[IW, b, t, n]
            y = (E[WD, b, t, n] * rows[DQ, b, n] - E[DW, b, t, n]) * E[IZ, b, t, n]
            total -= E[W, b, t, n] * E[A, b, t, n] * (x * (1.0 + x)) + E[Z, b, t, n] * E[B, b, t, n] * (y * (1.0 + y))
            x, y = abs(x + 0.5), abs(y + 0.5)
            x = x if x > y else y
            most[n] = x if x > most[n] else most[n]
    return 0.5 + largest(most, N), total


@njit(**INNER)
def largest(values: Floats, N: int) -> float:
    """Largest of the first N, or zero."""
    most = 0.0
    for n in range(N):
        if values[n] > most:
            most = values[n]
    return most


@njit(**INLINE)
def multiplier_moves(
    E: Floats, rows: Floats, b: int, extent: Extent, da: Floats, db: Floats, dnu: Floats, most: Floats
) -> float:
    """da, db, which come as the corrector terms, and dnu; returns the greatest relative decrease of anything."""
    assume_distinct()
    S, N = extent
    for n in range(N):
        x = rows[DQ, b, n] / rows[Q, b, n] if rows[LIVE, b, n] > 0.0 else 0.0
        nu = rows[NU, b, n]
        move = rows[CN, b, n] - nu * (1.0 + x) if nu > 0.0 else 0.0
        dnu[n] = move
        ratio = -move / nu if nu > 0.0 else 0.0
        most[n] = ratio if ratio > -x else -x
    for t in range(S):
        for n in range(N):
            x = -E[DW, b, t, n] * E[IW, b, t, n]
            y = (E[DW, b, t, n] - E[WD, b, t, n] * rows[DQ, b, n]) * E[IZ, b, t, n]
            up = da[t, n] - E[A, b, t, n] * (1.0 - x)
            down = db[t, n] - E[B, b, t, n] * (1.0 - y)
            da[t, n] = up
            db[t, n] = down
            # One division serves both multipliers.
            a = E[A, b, t, n] if E[A, b, t, n] > 0.0 else 1.0
            c = E[B, b, t, n] if E[B, b, t, n] > 0.0 else 1.0
            up, down = -up * c, -down * a
            fall = (up if up > down else down) / (a * c)
            x = x if x > y else y
            x = x if x > fall else fall
            most[n] = x if x > most[n] else most[n]
    return largest(most, N)
