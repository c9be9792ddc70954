"""The Newton matrix in V: block tridiagonal, one S x S block per step, factored by Cholesky.

    M_{h,h}     = diag_s( sum_a 1/gamma ) + sum over the rows r of step h-1 of  f f^T/gamma + diag(d) - d d^T/theta
    M_{h,h+1}   = - sum_a f_r / gamma_r   in row s

With L_h the factor of the h-th pivot block: K_h = L_h^{-1}, G_h = K_h M_{h,h+1}, next pivot M_{h+1,h+1} - G_h^T G_h.
Keeping K_h makes every solve a sequence of matrix-vector products, which beats substitution at every size.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.arrays import Floats
from omdpd.kernels.interior_layout import BLAS_STATES, DD, DV, FF, IG, ITH, LIVE, OPTIONS, YY
from omdpd.kernels.interior_rows import REDUCE

# Shift of a pivot relative to the diagonal, and the smallest pivot accepted.
SHIFT = 1e-14


@njit(**OPTIONS)
def scale_rows(E: Floats, rows: Floats) -> None:
    """Slots YY = f/gamma and DV = d/theta."""
    nb, S, N = E.shape[1:]
    for b in range(nb):
        for t in range(S):
            for n in range(N):
                E[YY, b, t, n] = E[FF, b, t, n] * rows[IG, b, n]
            for n in range(N):
                E[DV, b, t, n] = E[DD, b, t, n] * rows[ITH, b, n]


@njit(**REDUCE)
def gram_small(E5: Floats, D: Floats) -> None:
    """Lower triangles of sum_r f f^T/gamma - d d^T/theta, by plain sums."""
    nb, S, hb, R = E5.shape[1:]
    for b in range(nb):
        for i in range(hb):
            for t in range(S):
                for u in range(t + 1):
                    total = 0.0
                    for r in range(R):
                        total += E5[YY, b, t, i, r] * E5[FF, b, u, i, r] - E5[DV, b, t, i, r] * E5[DD, b, u, i, r]
                    D[b * hb + i + 1, t, u] = total


@njit(**OPTIONS)
def gram_large(E: Floats, D: Floats, work: Floats) -> None:
    """The same by matrix products; a block is one step here."""
    nb = E.shape[1]
    for b in range(nb):
        np.dot(E[YY, b], E[FF, b].T, D[b + 1])
        np.dot(E[DV, b], E[DD, b].T, work)
        for t in range(work.shape[0]):
            for u in range(work.shape[0]):
                D[b + 1, t, u] -= work[t, u]


@njit(**REDUCE)
def couple(E5: Floats, R4: Floats, n_actions: int, D: Floats, off: Floats) -> None:
    """Diagonal terms and the blocks beside the diagonal; unreachable states get a unit diagonal."""
    H, S = D.shape[0], D.shape[1]
    nb, hb, R = E5.shape[1], E5.shape[3], E5.shape[4]
    for s in range(S):
        for t in range(S):
            D[0, s, t] = 0.0
    for h in range(H - 1):
        b, i = h // hb, h % hb
        for t in range(S):
            total = 0.0
            for r in range(R):
                total += E5[DD, b, t, i, r]
            D[h + 1, t, t] += total
        for s in range(S):
            for t in range(S):
                off[h, s, t] = 0.0
        for t in range(S):
            for a in range(n_actions):
                for s in range(S):
                    off[h, s, t] -= E5[YY, b, t, i, a * S + s]
    for h in range(H):
        b, i = (nb, 0) if h == H - 1 else (h // hb, h % hb)
        for s in range(S):
            for a in range(n_actions):
                D[h, s, s] += R4[IG, b, i, a * S + s]
            if R4[LIVE, b, i, s] == 0.0:
                D[h, s, s] = 1.0


@njit(**REDUCE)
def invert_factor(D: Floats, K: Floats, floor: float) -> None:
    """K = L^{-1} for the Cholesky factor of the lower triangle of D, which L overwrites."""
    S = D.shape[0]
    for j in range(S):
        pivot = D[j, j] + SHIFT * (D[j, j] + floor)
        least = pivot * 1e-15
        for k in range(j):
            pivot -= D[j, k] * D[j, k]
        pivot = np.sqrt(max(pivot, max(least, 1e-300)))
        D[j, j] = pivot
        inverse = 1.0 / pivot
        for i in range(j + 1, S):
            total = D[i, j]
            for k in range(j):
                total -= D[i, k] * D[j, k]
            D[i, j] = total * inverse
        for k in range(S):
            K[j, k] = 0.0
        for k in range(j):
            scale = -D[j, k] * inverse
            for i in range(k + 1):
                K[j, i] += scale * K[k, i]
        K[j, j] = inverse


@njit(**REDUCE)
def couple_small(K: Floats, off: Floats, G: Floats, following: Floats) -> None:
    """G = K off and following -= G^T G (lower triangle)."""
    S = K.shape[0]
    for i in range(S):
        for t in range(S):
            G[i, t] = 0.0
        for k in range(i + 1):
            for t in range(S):
                G[i, t] += K[i, k] * off[k, t]
    for k in range(S):
        for t in range(S):
            for u in range(t + 1):
                following[t, u] -= G[k, t] * G[k, u]


@njit(**OPTIONS)
def factor(D: Floats, off: Floats, K: Floats, G: Floats, work: Floats, floor: float) -> None:
    """Block Cholesky forward in h; `floor` is the curvature a state without any is given."""
    H, S = D.shape[0], D.shape[1]
    for h in range(H):
        invert_factor(D[h], K[h], floor)
        if h + 1 < H:
            if S < BLAS_STATES:
                couple_small(K[h], off[h], G[h], D[h + 1])
            else:
                np.dot(K[h], off[h], G[h])
                np.dot(G[h].T, G[h], work)
                for t in range(S):
                    for u in range(t + 1):
                        D[h + 1, t, u] -= work[t, u]


@njit(**REDUCE)
def solve(K: Floats, G: Floats, x: Floats) -> None:
    """x <- M^{-1} x, in place."""
    H, S = x.shape
    work = np.empty(S)
    for h in range(H):
        for s in range(S):
            work[s] = x[h, s]
        if h > 0:
            for k in range(S):
                scale = x[h - 1, k]
                for s in range(S):
                    work[s] -= G[h - 1, k, s] * scale
        for s in range(S):
            total = 0.0
            for k in range(s + 1):
                total += K[h, s, k] * work[k]
            x[h, s] = total
    for h in range(H - 1, -1, -1):
        for s in range(S):
            total = x[h, s]
            if h + 1 < H:
                for k in range(S):
                    total -= G[h, s, k] * x[h + 1, k]
            work[s] = total
        for s in range(S):
            x[h, s] = 0.0
        for k in range(S):
            scale = work[k]
            for s in range(k + 1):
                x[h, s] += K[h, k, s] * scale
