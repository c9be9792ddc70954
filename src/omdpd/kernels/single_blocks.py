"""The block-tridiagonal matrix of the one-kernel mirror step: assembled, factorised, solved.

For row weights w_r >= 0, r = (h, s, a), and G V = (V_h(s) - p_r.V_{h+1})_r, the matrix is

    M = G^T diag(w) G,    M_{h,h} = diag_s(sum_a w) + sum_{r of step h-1} w p p^T,    M_{h,h+1}[s, :] = -sum_a w p_r.

It is positive definite as soon as every state has one row of positive weight, because the rows of any one
policy make G square, block triangular and of unit diagonal.  Block Cholesky forward in h:
L_h L_h^T = M_{h,h} - F_{h-1}^T F_{h-1},  F_h = L_h^{-1} M_{h,h+1}.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.arrays import Floats

# From this many states on, matrix products go to BLAS; below, its call overhead exceeds the work.
BLAS_FROM = 16
# A pivot this small relative to its diagonal entry is rounding: it is replaced, which leaves that state where it is.
PIVOT_FLOOR = 1e-15


@njit(cache=True, error_model="numpy")
def assemble(p: Floats, w: Floats, D: Floats, E: Floats, rows: Floats) -> None:
    """Write the diagonal blocks (H, S, S; lower triangles) and the off-diagonal blocks (H, S, S; the last unused)."""
    H, S, A = w.shape
    D[0] = 0.0
    for h in range(H):
        for s in range(S):
            for a in range(A):
                D[h, s, s] += w[h, s, a]
        if h + 1 < H:
            if S < BLAS_FROM:
                add_rows(p[h], w[h], D[h + 1], E[h])
            else:
                add_rows_blas(p[h], w[h], D[h + 1], E[h], rows)


@njit(cache=True, error_model="numpy")
def add_rows(p: Floats, w: Floats, D: Floats, E: Floats) -> None:
    """D := sum_r w p p^T (lower triangle) and E[s] := -sum_a w p, by plain loops."""
    S, A = w.shape
    D[:] = 0.0
    E[:] = 0.0
    for s in range(S):
        for a in range(A):
            weight = w[s, a]
            if weight > 0.0:
                row = p[s, a]
                for i in range(S):
                    scaled = weight * row[i]
                    E[s, i] -= scaled
                    for j in range(i + 1):
                        D[i, j] += scaled * row[j]


@njit(cache=True, error_model="numpy")
def add_rows_blas(p: Floats, w: Floats, D: Floats, E: Floats, rows: Floats) -> None:
    """The same by one matrix product over the rows of positive weight, gathered into `rows` (S A, S)."""
    S, A = w.shape
    E[:] = 0.0
    count = 0
    for s in range(S):
        for a in range(A):
            weight = w[s, a]
            if weight > 0.0:
                root = np.sqrt(weight)
                for t in range(S):
                    entry = root * p[s, a, t]
                    rows[count, t] = entry
                    E[s, t] -= root * entry
                count += 1
    used = rows[:count]
    np.dot(used.T, used, D)


@njit(cache=True, error_model="numpy")
def factorise(D: Floats, E: Floats) -> None:
    """Overwrite D by the factors L_h (lower triangles) and E by F_h."""
    H, S = D.shape[0], D.shape[1]
    for h in range(H):
        if h > 0:
            subtract_gram(D[h], E[h - 1])
        cholesky(D[h])
        if h + 1 < H:
            solve_lower(D[h], E[h], S)


@njit(cache=True, error_model="numpy")
def subtract_gram(D: Floats, F: Floats) -> None:
    """D -= F^T F (lower triangle)."""
    S = D.shape[0]
    if S < BLAS_FROM:
        for k in range(S):
            for i in range(S):
                factor = F[k, i]
                for j in range(i + 1):
                    D[i, j] -= factor * F[k, j]
    else:
        D -= np.dot(F.T, F)


@njit(cache=True, error_model="numpy")
def cholesky(D: Floats) -> None:
    """Overwrite the lower triangle of D by its Cholesky factor; tiny pivots are floored, never an error."""
    S = D.shape[0]
    for j in range(S):
        diagonal = D[j, j]
        pivot = diagonal
        for k in range(j):
            pivot -= D[j, k] * D[j, k]
        floor = PIVOT_FLOOR * abs(diagonal) + 1e-300
        if not pivot > floor:
            pivot = max(abs(diagonal), 1e-290)
        root = np.sqrt(pivot)
        D[j, j] = root
        for i in range(j + 1, S):
            total = D[i, j]
            for k in range(j):
                total -= D[i, k] * D[j, k]
            D[i, j] = total / root


@njit(cache=True, error_model="numpy")
def solve_lower(L: Floats, X: Floats, width: int) -> None:
    """X := L^{-1} X for the first `width` columns."""
    S = L.shape[0]
    for i in range(S):
        for k in range(i):
            factor = L[i, k]
            for j in range(width):
                X[i, j] -= factor * X[k, j]
        inverse = 1.0 / L[i, i]
        for j in range(width):
            X[i, j] *= inverse


@njit(cache=True, error_model="numpy")
def solve_upper(L: Floats, X: Floats, width: int) -> None:
    """X := L^{-T} X for the first `width` columns."""
    S = L.shape[0]
    for i in range(S - 1, -1, -1):
        inverse = 1.0 / L[i, i]
        for j in range(width):
            X[i, j] *= inverse
        for k in range(i):
            factor = L[i, k]
            for j in range(width):
                X[k, j] -= factor * X[i, j]


@njit(cache=True, error_model="numpy")
def solve_blocks(L: Floats, F: Floats, X: Floats) -> None:
    """X := M^{-1} X for right-hand sides (H, S, k), all in one pass over the factor."""
    H, S, width = X.shape
    for h in range(H):
        if h > 0:
            for k in range(S):
                for i in range(S):
                    factor = F[h - 1, k, i]
                    for j in range(width):
                        X[h, i, j] -= factor * X[h - 1, k, j]
        solve_lower(L[h], X[h], width)
    for h in range(H - 1, -1, -1):
        if h + 1 < H:
            for k in range(S):
                for i in range(S):
                    factor = F[h, k, i]
                    for j in range(width):
                        X[h, k, j] -= factor * X[h + 1, i, j]
        solve_upper(L[h], X[h], width)
