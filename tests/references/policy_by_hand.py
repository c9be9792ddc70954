"""Policy optimisation in plain NumPy: twins of `compiled.policies` and of the bonuses, from their formulas."""

from __future__ import annotations

import math

import numpy as np

from tests.references.plain_loop import kernel_of, logarithms


def evaluate(policy, p, table, tau=0.0, least=-np.inf, most=np.inf):
    """Q and V(s at step 0) with every Q_h cut to [least (H-h), most (H-h)], entropy of temperature tau in V."""
    H, S, A = policy.shape
    Q, V = np.zeros((H, S, A)), np.zeros(S)
    for h in reversed(range(H)):
        follow = p[h] @ V if h + 1 < H else 0.0
        Q[h] = np.clip(table[h] + follow, least * (H - h), most * (H - h))
        V = (policy[h] * (Q[h] - tau * np.log(policy[h]))).sum(-1)
    return Q, V


def exponential(policy, gains, eta, kept=1.0):
    """policy^kept exp(eta gains), normalised."""
    weights = policy**kept * np.exp(eta * (gains - gains.max(axis=-1, keepdims=True)))
    return weights / weights.sum(axis=-1, keepdims=True)


def bonus_tables(counts, K, scales=(0.2, 0.0, 0.005)):
    """r~, d~ and p_hat: means, scale sqrt(L/n), scale H (summed half-widths of the box), cut to what is left."""
    H = len(counts.n)
    L, Lp = logarithms(counts.n.shape, len(counts.cost), K)
    p = kernel_of(counts).transition
    n = np.maximum(counts.n, 1)
    width = np.zeros(counts.n.shape)
    for h in range(H - 1):
        share = Lp / np.maximum(counts.moves[h].sum(-1, keepdims=True), 1)
        width[h] = (2 * np.sqrt(p[h] * (1 - p[h]) * share) + 14 / 3 * share).sum(-1)
    left = np.arange(H, 0, -1.0)[:, None, None]
    r = np.minimum(np.minimum(counts.reward / n + scales[0] * np.sqrt(L / n), 1) + scales[2] * H * width, left)
    d = np.maximum(np.maximum(counts.cost / n - scales[1] * np.sqrt(L / n), -1) - scales[2] * H * width, -left)
    return np.where(counts.n > 0, r, left), np.where(counts.n > 0, d, -left), p


def cut_of_entropy(tau, A):
    """What a step can bring with the entropy's allowance."""
    return 1.0 + tau * math.log(A)
