"""The block-tridiagonal matrix of the one-kernel mirror step: assembled, factorised, solved.

For row weights w_r >= 0, r = (h, s, a), and G V = (V_h(s) - p_r.V_{h+1})_r, the matrix is

    M = G^T diag(w) G,    M_{h,h} = diag_s(sum_a w) + sum_{r of step h-1} w p p^T,    M_{h,h+1}[s, :] = -sum_a w p_r.

It is positive definite as soon as every state has one row of positive weight, because the rows of any one
policy make G square, block triangular and of unit diagonal.  Block Cholesky forward in h:
L_h L_h^T = M_{h,h} - F_{h-1}^T F_{h-1},  F_h = L_h^{-1} M_{h,h+1}.

Blocks are addressed by their step h inside the whole array: a view per block would cost more than the
arithmetic when there are few states.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.kernel_step.problem import BLAS_FROM

# A pivot this small relative to its diagonal entry is rounding: it is replaced, which leaves that state where it is.
MIN_PIVOT = 1e-15
# What a pivot of a zero diagonal is compared with, and replaced by: its root can still be divided by.
TINY, REPLACED = 1e-300, 1e-290


@rule
def assemble(p: Floats, w: Floats, D: Floats, E: Floats, rows: Floats) -> None:
    """Write the diagonal blocks (H, S, S; lower triangles) and the off-diagonal blocks (H, S, S; the last unused).

    `rows` (S A, S) holds the rows of positive weight, times sqrt(w), of one step.
    """
    H, R = w.shape
    S = D.shape[1]
    A = R // S
    D[:] = 0.0
    E[:] = 0.0
    for h in range(H):
        count = 0
        for s in range(S):
            for a in range(A):
                r = s * A + a
                weight = w[h, r]
                if weight > 0.0:
                    D[h, s, s] += weight
                    if h + 1 < H and S < BLAS_FROM:
                        for i in range(S):
                            scaled = weight * p[h, r, i]
                            E[h, s, i] -= scaled
                            for j in range(i + 1):
                                D[h + 1, i, j] += scaled * p[h, r, j]
                    elif h + 1 < H:
                        root = np.sqrt(weight)
                        for t in range(S):
                            rows[count, t] = root * p[h, r, t]
                            E[h, s, t] -= weight * p[h, r, t]
                        count += 1
        if h + 1 < H and S >= BLAS_FROM:
            gram_of_rows(rows, count, D, h + 1)


@rule
def gram_of_rows(rows: Floats, count: int, D: Floats, h: int) -> None:
    """D_h := sum of the outer products of the first `count` rows."""
    np.dot(rows[:count].T, rows[:count], D[h])


@rule
def factorise(D: Floats, E: Floats) -> None:
    """Overwrite D by the factors L_h (lower triangles) and E by F_h."""
    H, S = D.shape[0], D.shape[1]
    for h in range(H):
        if h > 0 and S < BLAS_FROM:
            for k in range(S):
                for i in range(S):
                    factor = E[h - 1, k, i]
                    for j in range(i + 1):
                        D[h, i, j] -= factor * E[h - 1, k, j]
        elif h > 0:
            subtract_gram(D, E, h)
        cholesky(D, h)
        if h + 1 < H:
            divide_by_factor(D, E, h)


@rule
def subtract_gram(D: Floats, F: Floats, h: int) -> None:
    """D_h -= F_{h-1}^T F_{h-1} (lower triangle)."""
    gram = np.dot(F[h - 1].T, F[h - 1])
    for i in range(gram.shape[0]):
        for j in range(i + 1):
            D[h, i, j] -= gram[i, j]


@rule
def cholesky(D: Floats, h: int) -> None:
    """Overwrite the lower triangle of D_h by its Cholesky factor; tiny pivots are floored, never an error."""
    S = D.shape[1]
    for i in range(S):
        for j in range(i if h > 0 else 0):
            total = D[h, i, j]
            for k in range(j):
                total -= D[h, i, k] * D[h, j, k]
            D[h, i, j] = total / D[h, j, j]
        diagonal = D[h, i, i]
        pivot = diagonal
        # Nothing flows into the first step: its block is diagonal.
        for k in range(i if h > 0 else 0):
            pivot -= D[h, i, k] * D[h, i, k]
        if not pivot > MIN_PIVOT * abs(diagonal) + TINY:
            pivot = max(abs(diagonal), REPLACED)
        D[h, i, i] = np.sqrt(pivot)


@rule
def divide_by_factor(L: Floats, E: Floats, h: int) -> None:
    """E_h := L_h^{-1} E_h, four rows of E at a time to spare loads and stores."""
    S = E.shape[1]
    for i in range(S):
        k, last = 0, i if h > 0 else 0
        while k + 4 <= last:
            f0, f1, f2, f3 = L[h, i, k], L[h, i, k + 1], L[h, i, k + 2], L[h, i, k + 3]
            for j in range(S):
                E[h, i, j] -= (f0 * E[h, k, j] + f1 * E[h, k + 1, j]) + (f2 * E[h, k + 2, j] + f3 * E[h, k + 3, j])
            k += 4
        while k < last:
            factor = L[h, i, k]
            for j in range(S):
                E[h, i, j] -= factor * E[h, k, j]
            k += 1
        inverse = 1.0 / L[h, i, i]
        for j in range(S):
            E[h, i, j] *= inverse


@rule
def solve_blocks(L: Floats, F: Floats, X: Floats) -> None:
    """X := M^{-1} X for right-hand sides (H, k, S)."""
    H, width, S = X.shape
    for h in range(H):
        for j in range(width):
            if h > 0:
                for k in range(S):
                    factor = X[h - 1, j, k]
                    for i in range(S):
                        X[h, j, i] -= factor * F[h - 1, k, i]
            for i in range(S):
                total = X[h, j, i]
                for k in range(i if h > 0 else 0):
                    total -= L[h, i, k] * X[h, j, k]
                X[h, j, i] = total / L[h, i, i]
    for h in range(H - 1, -1, -1):
        for j in range(width):
            if h + 1 < H:
                for k in range(S):
                    total = 0.0
                    for i in range(S):
                        total += F[h, k, i] * X[h + 1, j, i]
                    X[h, j, k] -= total
            for i in range(S - 1, -1, -1):
                value = X[h, j, i] / L[h, i, i]
                X[h, j, i] = value
                for k in range(i if h > 0 else 0):
                    X[h, j, k] -= L[h, i, k] * value
