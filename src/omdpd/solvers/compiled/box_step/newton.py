"""The Newton matrix in V: block tridiagonal, one S x S block per step, factored by Cholesky.

    M_{h,h}     = diag_s( sum_a 1/gamma ) + sum over the rows r of step h-1 of  f f^T/gamma + diag(d) - d d^T/theta
    M_{h,h+1}   = - sum_a f_r / gamma_r   in row s

Rows and columns of a block are states: s, t and u.  With L_h the factor of the h-th pivot block: K_h = L_h^{-1},
G_h = K_h M_{h,h+1}, next pivot M_{h+1,h+1} - G_h^T G_h.  Keeping K_h makes every solve a sequence of matrix-vector
products, which beats substitution at every size.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import inline, inner
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.storage import BLAS_STATES

# A pivot is lifted by this part of its diagonal, about a hundred roundings.
SHIFT = 1e-14
# And it is at least this part of it: what is below is rounding.
MIN_PIVOT = 1e-15
# Where the diagonal itself is zero, the root of this is still a number to divide by.
TINY = 1e-300


@inline
def gram_small(E5, b, by_gamma, by_theta, M):
    """Lower triangles of sum_r f f^T/gamma - d d^T/theta, by plain sums."""
    _, S, hb, R = E5.shape[1:]
    for i in range(hb):
        for t in range(S):
            for u in range(t + 1):
                total = 0.0
                for r in range(R):
                    f, d = E5[slot.PSEUDO_KERNEL, b, u, i, r], E5[slot.NEWTON_WEIGHT, b, u, i, r]
                    total += by_gamma[t, i, r] * f - by_theta[t, i, r] * d
                M[b * hb + i + 1, t, u] = total


@inner
def gram_large(E, b, by_gamma, by_theta, M, work):
    """The same by matrix products; a block is one step here."""
    np.dot(by_gamma, E[slot.PSEUDO_KERNEL, b].T, M[b + 1])
    np.dot(by_theta, E[slot.NEWTON_WEIGHT, b].T, work)
    for t in range(work.shape[0]):
        for u in range(work.shape[0]):
            M[b + 1, t, u] -= work[t, u]


@inline
def couple(E5, rows4, b, by_gamma, A, M, off):
    """Diagonal terms, and the blocks beside the diagonal (transposed); unreachable states get a unit diagonal.

    Blocks come in order: a step's own terms are added to what the step before has set.
    """
    H, S = M.shape[0], M.shape[1]
    nb, hb = E5.shape[1], E5.shape[3]
    if b == 0:
        for s in range(S):
            for t in range(S):
                M[0, s, t] = 0.0
    if b < nb:
        for i in range(hb):
            h = b * hb + i
            for t in range(S):
                M[h + 1, t, t] += total_weight(E5, b, t, i)
                for s in range(S):
                    off[h, t, s] = -by_gamma[t, i, s]
                for a in range(1, A):
                    for s in range(S):
                        off[h, t, s] -= by_gamma[t, i, a * S + s]
    for i in range(hb):
        h = b * hb + i
        if h < H:
            for s in range(S):
                for a in range(A):
                    M[h, s, s] += rows4[slot.INVERSE_GAMMA, b, i, a * S + s]
                if rows4[slot.LIVE, b, i, s] == 0.0:
                    M[h, s, s] = 1.0


@inline
def total_weight(E5, b, t, i):
    """Sum of d over the rows of one step."""
    total = 0.0
    for r in range(E5.shape[4]):
        total += E5[slot.NEWTON_WEIGHT, b, t, i, r]
    return total


@inner
def pivot_root(value, diagonal):
    """Square root of a pivot, kept away from zero by rounding of the diagonal it came from."""
    return np.sqrt(max(value, max(MIN_PIVOT * diagonal, TINY)))


@inline
def factor_small(M, off, K, G, min_curvature):
    """Block Cholesky forward in h by scalar sums, which beat vectors while S is a handful.

    `min_curvature` is the curvature a state without any is given.  L overwrites the lower triangle of M.
    """
    H, S = M.shape[0], M.shape[1]
    for h in range(H):
        for s in range(S):
            diagonal = M[h, s, s]
            total = diagonal + SHIFT * (diagonal + min_curvature)
            for u in range(s):
                total -= M[h, s, u] * M[h, s, u]
            inverse = 1.0 / pivot_root(total, diagonal)
            K[h, s, s] = inverse
            for t in range(s + 1, S):
                total = M[h, t, s]
                for u in range(s):
                    total -= M[h, t, u] * M[h, s, u]
                M[h, t, s] = total * inverse
        for s in range(S):
            for t in range(s + 1, S):
                total = 0.0
                for u in range(s, t):
                    total -= M[h, t, u] * K[h, u, s]
                K[h, t, s] = total * K[h, t, t]
        if h + 1 < H:
            for t in range(S):
                for s in range(S):
                    total = 0.0
                    for u in range(s + 1):
                        total += K[h, s, u] * off[h, t, u]
                    G[h, s, t] = total
            for t in range(S):
                for u in range(t + 1):
                    total = M[h + 1, t, u]
                    for s in range(S):
                        total -= G[h, s, t] * G[h, s, u]
                    M[h + 1, t, u] = total


@inner
def invert_factor(M, K, min_curvature):
    """K = L^{-1} for the Cholesky factor of the lower triangle of M, which L overwrites; row by row, in vectors."""
    S = M.shape[0]
    for s in range(S):
        diagonal = M[s, s]
        total = diagonal + SHIFT * (diagonal + min_curvature)
        for u in range(s):
            total -= M[s, u] * M[s, u]
        inverse = 1.0 / pivot_root(total, diagonal)
        for t in range(s + 1, S):
            total = M[t, s]
            for u in range(s):
                total -= M[t, u] * M[s, u]
            M[t, s] = total * inverse
        for t in range(S):
            K[s, t] = 0.0
        for t in range(s):
            scale = -M[s, t] * inverse
            for u in range(t + 1):
                K[s, u] += scale * K[t, u]
        K[s, s] = inverse


@inner
def factor_large(M, off, K, G, work, min_curvature):
    """The same with matrix products."""
    H, S = M.shape[0], M.shape[1]
    for h in range(H):
        invert_factor(M[h], K[h], min_curvature)
        if h + 1 < H:
            np.dot(K[h], off[h].T, G[h])
            np.dot(G[h].T, G[h], work)
            for t in range(S):
                for u in range(t + 1):
                    M[h + 1, t, u] -= work[t, u]


@inner
def solve_small(K, G, x, line):
    """x <- M^{-1} x in place, by scalar sums."""
    H, S = x.shape
    for h in range(H):
        for s in range(S):
            total = x[h, s]
            if h > 0:
                for t in range(S):
                    total -= G[h - 1, t, s] * x[h - 1, t]
            line[s] = total
        for s in range(S):
            total = 0.0
            for t in range(s + 1):
                total += K[h, s, t] * line[t]
            x[h, s] = total
    for h in range(H - 1, -1, -1):
        for s in range(S):
            total = x[h, s]
            if h + 1 < H:
                for t in range(S):
                    total -= G[h, s, t] * x[h + 1, t]
            line[s] = total
        for s in range(S):
            total = 0.0
            for t in range(s, S):
                total += K[h, t, s] * line[t]
            x[h, s] = total


@inner
def solve_large(K, G, x, line):
    """x <- M^{-1} x in place, by products along the rows of K and G."""
    H, S = x.shape
    for h in range(H):
        for s in range(S):
            line[s] = x[h, s]
        if h > 0:
            for t in range(S):
                scale = x[h - 1, t]
                for s in range(S):
                    line[s] -= G[h - 1, t, s] * scale
        for s in range(S):
            total = 0.0
            for t in range(s + 1):
                total += K[h, s, t] * line[t]
            x[h, s] = total
    for h in range(H - 1, -1, -1):
        for s in range(S):
            total = x[h, s]
            if h + 1 < H:
                for t in range(S):
                    total -= G[h, s, t] * x[h + 1, t]
            line[s] = total
        for s in range(S):
            x[h, s] = 0.0
        for t in range(S):
            scale = line[t]
            for s in range(t + 1):
                x[h, s] += K[h, t, s] * scale


@inner
def solve(K, G, x, line):
    """x <- M^{-1} x, in place; `line` is scratch of length S."""
    if x.shape[1] < BLAS_STATES:
        solve_small(K, G, x, line)
    else:
        solve_large(K, G, x, line)
