"""How far a direction may go, and how far the iterate is from complementary.

A running maximum is kept per row: the compiler does not vectorise a maximum over everything.
"""

from __future__ import annotations

from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.interior_layout import (
    CA,
    CB,
    CN,
    DN,
    DQ,
    DV,
    DW,
    IW,
    IZ,
    LIVE,
    MS,
    NU,
    NW,
    OPTIONS,
    S1,
    S2,
    WD,
    YY,
    A,
    B,
    Q,
    W,
    Z,
)
from omdpd.kernels.interior_rows import REDUCE


@njit(**REDUCE)
def complementarity(E: Floats, rows: Floats, b: int) -> float:
    """sum w a + z b + q nu."""
    nb, S, N = E.shape[1:]
    total = 0.0
    for n in range(N):
        total += rows[Q, b, n] * rows[NU, b, n]
    if b < nb:
        for t in range(S):
            for n in range(N):
                total += E[W, b, t, n] * E[A, b, t, n] + E[Z, b, t, n] * E[B, b, t, n]
    return total


@njit(**REDUCE)
def total_weight(E: Floats, rows: Floats) -> float:
    """Sum of the barrier weights m_s (u - l) per slack and m_s per sign constraint."""
    nb, S, N = E.shape[1:]
    total = 0.0
    for b in range(nb):
        for t in range(S):
            for n in range(N):
                two = 2.0 if E[IZ, b, t, n] > 0.0 else 1.0
                total += rows[MS, b, n] * E[WD, b, t, n] * two
    for b in range(nb + 1):
        for n in range(N):
            total += rows[NW, b, n]
    return total


@njit(**OPTIONS)
def affine_moves(E: Floats, rows: Floats, b: int) -> float:
    """Relative moves of the slacks, slots CA = dw/w, CB = dz/z, S1 = dq/q, and how far they let the step go.

    A multiplier moves by -1 minus its slack's x, so the limit is the largest max(-x, 1 + x) = 1/2 + |x + 1/2|.
    A row without a multiplier of its own only limits the step where q falls.
    """
    nb, S, N = E.shape[1:]
    for n in range(N):
        x = rows[DQ, b, n] / rows[Q, b, n]
        x = x if rows[LIVE, b, n] > 0.0 else 0.0
        rows[S1, b, n] = x if rows[NU, b, n] > 0.0 else min(x, 0.0)
    for n in range(N):
        rows[S2, b, n] = abs(rows[S1, b, n] + 0.5)
    if b < nb:
        for t in range(S):
            for n in range(N):
                E[CA, b, t, n] = E[DW, b, t, n] * E[IW, b, t, n]
            for n in range(N):
                E[CB, b, t, n] = (E[WD, b, t, n] * rows[DQ, b, n] - E[DW, b, t, n]) * E[IZ, b, t, n]
            for n in range(N):
                x, y = abs(E[CA, b, t, n] + 0.5), abs(E[CB, b, t, n] + 0.5)
                x = x if x > y else y
                rows[S2, b, n] = x if x > rows[S2, b, n] else rows[S2, b, n]
    return 0.5 + largest(rows, b, S2)


@njit(**OPTIONS)
def largest(rows: Floats, b: int, slot: int) -> float:
    """Largest entry of a slot, or zero."""
    most = 0.0
    for n in range(rows.shape[2]):
        if rows[slot, b, n] > most:
            most = rows[slot, b, n]
    return most


@njit(**REDUCE)
def affine_products(E: Floats, rows: Floats, b: int) -> float:
    """sum dw da + dz db + dq dnu of the predictor."""
    nb, S, N = E.shape[1:]
    total = 0.0
    for n in range(N):
        x = rows[S1, b, n]
        total -= rows[NU, b, n] * rows[Q, b, n] * (x * (1.0 + x))
    if b < nb:
        for t in range(S):
            for n in range(N):
                x = E[CA, b, t, n]
                total -= E[W, b, t, n] * E[A, b, t, n] * (x * (1.0 + x))
            for n in range(N):
                y = E[CB, b, t, n]
                total -= E[Z, b, t, n] * E[B, b, t, n] * (y * (1.0 + y))
    return total


@njit(**OPTIONS)
def correct_signs(rows: Floats, b: int, target: float, second: float) -> None:
    """Corrector term of nu; slot S1 holds dq/q of the predictor."""
    for n in range(rows.shape[2]):
        x = rows[S1, b, n]
        term = target * rows[NW, b, n] / rows[Q, b, n] + second * rows[NU, b, n] * (x * (1.0 + x))
        rows[CN, b, n] = term if rows[NW, b, n] > 0.0 else 0.0


@njit(**OPTIONS)
def multiplier_moves(E: Floats, rows: Floats, b: int) -> float:
    """Slots CA, CB, DN: da, db, dnu from the corrector terms; returns the greatest relative decrease."""
    nb, S, N = E.shape[1:]
    for n in range(N):
        x = rows[DQ, b, n] / rows[Q, b, n]
        rows[S1, b, n] = x if rows[LIVE, b, n] > 0.0 else 0.0
    for n in range(N):
        nu = rows[NU, b, n]
        rows[DN, b, n] = rows[CN, b, n] - nu * (1.0 + rows[S1, b, n]) if nu > 0.0 else 0.0
    for n in range(N):
        ratio = -rows[DN, b, n] / rows[NU, b, n]
        ratio = ratio if rows[NU, b, n] > 0.0 else 0.0
        rows[S2, b, n] = ratio if ratio > -rows[S1, b, n] else -rows[S1, b, n]
    if b < nb:
        for t in range(S):
            for n in range(N):
                E[YY, b, t, n] = (E[DW, b, t, n] - E[WD, b, t, n] * rows[DQ, b, n]) * E[IZ, b, t, n]
            for n in range(N):
                E[CA, b, t, n] -= E[A, b, t, n] * (1.0 + E[DW, b, t, n] * E[IW, b, t, n])
            for n in range(N):
                E[CB, b, t, n] -= E[B, b, t, n] * (1.0 - E[YY, b, t, n])
            # One division serves both multipliers.
            for n in range(N):
                a = E[A, b, t, n] if E[A, b, t, n] > 0.0 else 1.0
                c = E[B, b, t, n] if E[B, b, t, n] > 0.0 else 1.0
                da, db = -E[CA, b, t, n] * c, -E[CB, b, t, n] * a
                E[DV, b, t, n] = (da if da > db else db) / (a * c)
            for n in range(N):
                x = -E[DW, b, t, n] * E[IW, b, t, n]
                x = x if x > E[YY, b, t, n] else E[YY, b, t, n]
                x = x if x > E[DV, b, t, n] else E[DV, b, t, n]
                rows[S2, b, n] = x if x > rows[S2, b, n] else rows[S2, b, n]
    return largest(rows, b, S2)
