"""How far a direction may go, and how far the iterate is from complementary."""

from __future__ import annotations

from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.interior_layout import A, B, CA, CB, DN, DQ, DW, IW, IZ, LIVE, MS, NU, NW, OPTIONS, Q, W, WD, Z
from omdpd.kernels.interior_rows import REDUCE

# Maxima vectorise only if NaN is ruled out; a NaN shows in the sums instead, which do not rule it out.
EXTREME = {**OPTIONS, "fastmath": {"reassoc", "contract", "nsz", "nnan"}}


@njit(**REDUCE)
def complementarity(E: Floats, rows: Floats) -> float:
    """sum w a + z b + q nu."""
    nb, S, N = E.shape[1:]
    total = 0.0
    for b in range(nb):
        for t in range(S):
            for n in range(N):
                total += E[W, b, t, n] * E[A, b, t, n] + E[Z, b, t, n] * E[B, b, t, n]
    for b in range(nb + 1):
        for n in range(N):
            total += rows[Q, b, n] * rows[NU, b, n]
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


@njit(**EXTREME)
def affine_range(E: Floats, rows: Floats) -> tuple[float, float]:
    """Least and greatest relative move of a slack; a multiplier moves by -1 minus its slack's."""
    nb, S, N = E.shape[1:]
    least, most = 0.0, 0.0
    for b in range(nb):
        for t in range(S):
            for n in range(N):
                least = min(least, min(E[CA, b, t, n], E[CB, b, t, n]))
            for n in range(N):
                most = max(most, max(E[CA, b, t, n], E[CB, b, t, n]))
    for b in range(nb + 1):
        for n in range(N):
            if rows[LIVE, b, n] > 0.0:
                least = min(least, rows[DQ, b, n] / rows[Q, b, n])
            if rows[NU, b, n] > 0.0:
                most = max(most, rows[DQ, b, n] / rows[Q, b, n])
    return least, most


@njit(**REDUCE)
def affine_products(E: Floats, rows: Floats) -> float:
    """sum dw da + dz db + dq dnu of the predictor."""
    nb, S, N = E.shape[1:]
    total = 0.0
    for b in range(nb):
        for t in range(S):
            for n in range(N):
                x = E[CA, b, t, n]
                total -= E[W, b, t, n] * E[A, b, t, n] * (x * (1.0 + x))
            for n in range(N):
                y = E[CB, b, t, n]
                total -= E[Z, b, t, n] * E[B, b, t, n] * (y * (1.0 + y))
    for b in range(nb + 1):
        for n in range(N):
            if rows[NU, b, n] > 0.0:
                total -= rows[NU, b, n] * rows[DQ, b, n] * (1.0 + rows[DQ, b, n] / rows[Q, b, n])
    return total


@njit(**EXTREME)
def steepest(E: Floats, rows: Floats) -> float:
    """Greatest relative decrease of any positive quantity; one over it is the longest step."""
    nb, S, N = E.shape[1:]
    most = 0.0
    for b in range(nb):
        for t in range(S):
            for n in range(N):
                most = max(most, -E[DW, b, t, n] * E[IW, b, t, n])
            for n in range(N):
                most = max(most, (E[DW, b, t, n] - E[WD, b, t, n] * rows[DQ, b, n]) * E[IZ, b, t, n])
            for n in range(N):
                most = max(most, -E[CA, b, t, n] / E[A, b, t, n] if E[A, b, t, n] > 0.0 else 0.0)
            for n in range(N):
                most = max(most, -E[CB, b, t, n] / E[B, b, t, n] if E[B, b, t, n] > 0.0 else 0.0)
    for b in range(nb + 1):
        for n in range(N):
            if rows[LIVE, b, n] > 0.0:
                most = max(most, -rows[DQ, b, n] / rows[Q, b, n])
            if rows[NU, b, n] > 0.0:
                most = max(most, -rows[DN, b, n] / rows[NU, b, n])
    return most
