"""Doors into rules that only compiled code calls: tables (H, S, A) in, tables out.

They are compiled where they are used first, and not kept: what is kept would not see that a rule has changed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.beliefs import pooling, rows


def plainly(rule):
    """A rule of numbers as Python sees it, compiled or not."""
    return getattr(rule, "py_func", rule)


@njit
def _shared_table(sums, n, R, m, base, a, out):
    pooling.share_table(sums, n, R, m, base, a, out[0], out[1], out[2])


@njit
def _shared_kernel(moves, n, R, m, p, out):
    pooling.share_kernel(moves, n, R, m, p, out[0], out[1])


@njit
def _variances(H, S, A, p, q, chosen, cost, noise, own, common, found):
    g, errors = rows.Tables(H, S, A, p), rows.Errors(own, common)
    found[0] = rows.cost_variance(g, q, chosen, cost, errors)
    found[1] = rows.noise_variance(g, q, noise, errors, np.empty((2, q.size)))


@njit
def _reward(H, S, A, p, own, common, met, costs, moves, mean, errors, numbers, cost_noise, prices, tables, out):
    expected = rows.Expected(mean, errors[0], errors[1], numbers[0], numbers[1], numbers[2], numbers[3])
    seen = rows.Own(met[0], met[1], costs, rows.Tables(H, S, A, moves), numbers[5], H * S * A, numbers[6])
    rows.write_reward(
        rows.Tables(H, S, A, p), rows.Errors(own, common), seen, expected, cost_noise, rows.Charged(prices, tables),
        numbers[4], out,
    )  # fmt: skip


def shared_table(sums, n, m, base, a):
    """(mean, own, common)."""
    out = np.empty((3, n.size))
    _shared_table(sums.ravel(), n.ravel(), n[0].size, float(m), float(base), float(a), out)
    return out.reshape(3, *n.shape)


def shared_kernel(moves, n, m):
    """(p, own, common)."""
    p, out, S = np.empty((n.size, moves.shape[-1])), np.empty((2, n.size)), moves.shape[-1]
    _shared_kernel(moves.reshape(-1, S), n.ravel(), n[0].size, float(m), p, out)
    return p.reshape(moves.shape), *out.reshape(2, *n.shape)


def variances(p, q, chosen, cost, noise, own, common):
    """The variance of cost.q that is due to the kernel, and that of a table with this noise and these errors."""
    found, vectors = np.empty(2), [x.ravel() for x in (q, chosen, cost, noise, own, common)]
    _variances(*q.shape, p.reshape(q.size, -1), *vectors, found)
    return found


def reward_with_bonus(beliefs, coin, visits, cost_noise, prices, tables, exploration=1.0, past=None, persistence=0.0):
    """r~ of `plain_beliefs.Beliefs` whose rewards have this share of a coin's noise; `past` is what rows saw."""
    b, r, out, E = beliefs, beliefs.reward, np.empty(visits.size), visits.size
    numbers = np.array(
        [coin, b.m, b.optimistic_reward, b.min_variance, exploration, visits[0].sum(), persistence], dtype=float
    )
    errors, p = np.array([r.own.ravel(), r.common.ravel()]), b.p.reshape(E, -1)
    met, costs, moves = np.array([visits.ravel(), 0 * visits.ravel()]), np.zeros((0, E)), 0 * p
    if past is not None:
        met[1], costs, moves = past.reward_sum.ravel(), past.cost_sum.reshape(-1, E), past.transitions.reshape(E, -1)
    _reward(
        *visits.shape, p, b.own.ravel(), b.common.ravel(), met, costs, moves, r.mean.ravel(), errors, numbers,
        cost_noise.ravel(), np.asarray(prices, dtype=float), tables.reshape(len(prices), E), out,
    )  # fmt: skip
    return out.reshape(visits.shape)
