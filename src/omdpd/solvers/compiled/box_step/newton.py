"""The Newton matrix in V: block tridiagonal, one S x S block per step, factored by Cholesky.

    M_{h,h}     = diag_s( sum_a 1/gamma ) + sum over the rows r of step h-1 of  f f^T/gamma + diag(d) - d d^T/theta
    M_{h,h+1}   = - sum_a f_r / gamma_r   in row s

With L_h the factor of the h-th pivot block: K_h = L_h^{-1}, G_h = K_h M_{h,h+1}, next pivot M_{h+1,h+1} - G_h^T G_h.
Keeping K_h makes every solve a sequence of matrix-vector products, which beats substitution at every size.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step.slots import BLAS_STATES, DD, FF, IG, LIVE
from omdpd.solvers.compiled.options import INLINE, INLINE_SUMS, INNER, SUMS

# Shift of a pivot relative to the diagonal, and the smallest pivot accepted.
SHIFT = 1e-14


@njit(**INLINE_SUMS)
def gram_small(E5: Floats, b: int, by_gamma: Floats, by_theta: Floats, D: Floats) -> None:
    """Lower triangles of sum_r f f^T/gamma - d d^T/theta, by plain sums."""
    _, S, hb, R = E5.shape[1:]
    for i in range(hb):
        for t in range(S):
            for u in range(t + 1):
                total = 0.0
                for r in range(R):
                    total += by_gamma[t, i, r] * E5[FF, b, u, i, r] - by_theta[t, i, r] * E5[DD, b, u, i, r]
                D[b * hb + i + 1, t, u] = total


@njit(**INNER)
def gram_large(E: Floats, b: int, by_gamma: Floats, by_theta: Floats, D: Floats, work: Floats) -> None:
    """The same by matrix products; a block is one step here."""
    np.dot(by_gamma, E[FF, b].T, D[b + 1])
    np.dot(by_theta, E[DD, b].T, work)
    for t in range(work.shape[0]):
        for u in range(work.shape[0]):
            D[b + 1, t, u] -= work[t, u]


@njit(**INLINE)
def couple(E5: Floats, R4: Floats, b: int, by_gamma: Floats, n_actions: int, D: Floats, off: Floats) -> None:
    """Diagonal terms, and the blocks beside the diagonal (transposed); unreachable states get a unit diagonal.

    Blocks come in order: a step's own terms are added to what the step before has set.
    """
    H, S = D.shape[0], D.shape[1]
    nb, hb = E5.shape[1], E5.shape[3]
    if b == 0:
        for s in range(S):
            for t in range(S):
                D[0, s, t] = 0.0
    if b < nb:
        for i in range(hb):
            h = b * hb + i
            for t in range(S):
                D[h + 1, t, t] += total_of(E5, DD, b, t, i)
                for s in range(S):
                    off[h, t, s] = -by_gamma[t, i, s]
                for a in range(1, n_actions):
                    for s in range(S):
                        off[h, t, s] -= by_gamma[t, i, a * S + s]
    for i in range(hb):
        h = b * hb + i
        if h < H:
            for s in range(S):
                for a in range(n_actions):
                    D[h, s, s] += R4[IG, b, i, a * S + s]
                if R4[LIVE, b, i, s] == 0.0:
                    D[h, s, s] = 1.0


@njit(**INLINE_SUMS)
def total_of(E5: Floats, slot: int, b: int, t: int, i: int) -> float:
    """Sum over the rows of one step."""
    total = 0.0
    for r in range(E5.shape[4]):
        total += E5[slot, b, t, i, r]
    return total


@njit(**INNER)
def pivot_root(value: float, diagonal: float) -> float:
    """Square root of a pivot, kept away from zero by rounding of the diagonal it came from."""
    return np.sqrt(max(value, max(1e-15 * diagonal, 1e-300)))


@njit(**INLINE)
def factor_small(D: Floats, off: Floats, K: Floats, G: Floats, floor: float) -> None:
    """Block Cholesky forward in h by scalar sums, which beat vectors while S is a handful.

    `floor` is the curvature a state without any is given.  L overwrites the lower triangle of D.
    """
    H, S = D.shape[0], D.shape[1]
    for h in range(H):
        for j in range(S):
            diagonal = D[h, j, j]
            total = diagonal + SHIFT * (diagonal + floor)
            for k in range(j):
                total -= D[h, j, k] * D[h, j, k]
            inverse = 1.0 / pivot_root(total, diagonal)
            K[h, j, j] = inverse
            for i in range(j + 1, S):
                total = D[h, i, j]
                for k in range(j):
                    total -= D[h, i, k] * D[h, j, k]
                D[h, i, j] = total * inverse
        for j in range(S):
            for i in range(j + 1, S):
                total = 0.0
                for k in range(j, i):
                    total -= D[h, i, k] * K[h, k, j]
                K[h, i, j] = total * K[h, i, i]
        if h + 1 < H:
            for t in range(S):
                for i in range(S):
                    total = 0.0
                    for k in range(i + 1):
                        total += K[h, i, k] * off[h, t, k]
                    G[h, i, t] = total
            for t in range(S):
                for u in range(t + 1):
                    total = D[h + 1, t, u]
                    for k in range(S):
                        total -= G[h, k, t] * G[h, k, u]
                    D[h + 1, t, u] = total


@njit(**SUMS)
def invert_factor(D: Floats, K: Floats, floor: float) -> None:
    """K = L^{-1} for the Cholesky factor of the lower triangle of D, which L overwrites; row by row, in vectors."""
    S = D.shape[0]
    for j in range(S):
        diagonal = D[j, j]
        total = diagonal + SHIFT * (diagonal + floor)
        for k in range(j):
            total -= D[j, k] * D[j, k]
        inverse = 1.0 / pivot_root(total, diagonal)
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


@njit(**INNER)
def factor_large(D: Floats, off: Floats, K: Floats, G: Floats, work: Floats, floor: float) -> None:
    """The same with matrix products."""
    H, S = D.shape[0], D.shape[1]
    for h in range(H):
        invert_factor(D[h], K[h], floor)
        if h + 1 < H:
            np.dot(K[h], off[h].T, G[h])
            np.dot(G[h].T, G[h], work)
            for t in range(S):
                for u in range(t + 1):
                    D[h + 1, t, u] -= work[t, u]


@njit(**INNER)
def solve_small(K: Floats, G: Floats, x: Floats, line: Floats) -> None:
    """x <- M^{-1} x in place, by scalar sums."""
    H, S = x.shape
    for h in range(H):
        for s in range(S):
            total = x[h, s]
            if h > 0:
                for k in range(S):
                    total -= G[h - 1, k, s] * x[h - 1, k]
            line[s] = total
        for s in range(S):
            total = 0.0
            for k in range(s + 1):
                total += K[h, s, k] * line[k]
            x[h, s] = total
    for h in range(H - 1, -1, -1):
        for s in range(S):
            total = x[h, s]
            if h + 1 < H:
                for k in range(S):
                    total -= G[h, s, k] * x[h + 1, k]
            line[s] = total
        for s in range(S):
            total = 0.0
            for k in range(s, S):
                total += K[h, k, s] * line[k]
            x[h, s] = total


@njit(**SUMS)
def solve_large(K: Floats, G: Floats, x: Floats, line: Floats) -> None:
    """x <- M^{-1} x in place, by products along the rows of K and G."""
    H, S = x.shape
    for h in range(H):
        for s in range(S):
            line[s] = x[h, s]
        if h > 0:
            for k in range(S):
                scale = x[h - 1, k]
                for s in range(S):
                    line[s] -= G[h - 1, k, s] * scale
        for s in range(S):
            total = 0.0
            for k in range(s + 1):
                total += K[h, s, k] * line[k]
            x[h, s] = total
    for h in range(H - 1, -1, -1):
        for s in range(S):
            total = x[h, s]
            if h + 1 < H:
                for k in range(S):
                    total -= G[h, s, k] * x[h + 1, k]
            line[s] = total
        for s in range(S):
            x[h, s] = 0.0
        for k in range(S):
            scale = line[k]
            for s in range(k + 1):
                x[h, s] += K[h, k, s] * scale


@njit(**INNER)
def solve(K: Floats, G: Floats, x: Floats, line: Floats) -> None:
    """x <- M^{-1} x, in place; `line` is scratch of length S."""
    if x.shape[1] < BLAS_STATES:
        solve_small(K, G, x, line)
    else:
        solve_large(K, G, x, line)
