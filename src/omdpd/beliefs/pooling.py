"""Rows of the same (s, a) at different steps, estimated together: in tables, and on the graph of what was visited.

The rows of a table x_h(s,a) scatter around a level of their own (s,a): x_h = level + e_h with Var(e_h) = v/m, where v
is the variance of one observation, and the level is as far from `base` as after `a` observations, Var = v/a.  Given n_h
observations with sum X_h per step, what is expected of a row, and the covariance of the errors of two steps, are

    f_h = m / (n_h + m),      T = a + sum_h f_h n_h,      level~ = (a base + sum_h f_h X_h) / T
    x~_h = (X_h + m level~) / (n_h + m),      Cov(h, g) = v ( 1{h = g} / (n_h + m)  +  f_h f_g / T )

(exactly so if everything is normal, and the best linear estimate otherwise).  Below, own_h = 1/(n_h + m),
common_h = f_h^2 / T, and the row is known as well as N_h = 1 / (own_h + common_h) observations of it alone would tell.
m = infinity pools the steps, m near 0 keeps them apart.

A table is a vector over its rows e = (h, s, a), R = S A of them a layer.  On a graph counts come in the order
(s, a, h): those of pair i are ``ends[i]:ends[i + 1]``, each with its step; a pair of which nothing was seen is at its
base.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.rules import TRUST, shared_mean, shared_parts
from omdpd.jit.decorators import checked_entry, rule
from omdpd.problem.arrays import Floats, Integers


@rule
def share_table(
    sums: Floats, visits: Floats, R: int, m: float, base: float, a: float, x: Floats, own: Floats, common: Floats
) -> None:
    """Write x~, own and common of a table of means in [0, 1]."""
    H = visits.size // R
    n, X, mean = visits.reshape((H, R)), sums.reshape((H, R)), x.reshape((H, R))
    alone, shared, work = own.reshape((H, R)), common.reshape((H, R)), np.empty((2, R))
    T, level = work[0], work[1]
    for r in range(R):
        T[r], level[r] = a, a * base
    for h in range(H):
        for r in range(R):
            f = m / (n[h, r] + m)
            T[r] += f * n[h, r]
            level[r] += f * X[h, r]
    for r in range(R):
        level[r] = m * level[r] / T[r]
    for h in range(H):
        for r in range(R):
            alone[h, r], shared[h, r] = shared_parts(n[h, r], m, T[r])
            mean[h, r] = shared_mean(X[h, r], level[r], alone[h, r])


@rule
def share_kernel(transitions: Floats, visits: Floats, R: int, m: float, p: Floats, own: Floats, common: Floats) -> None:
    """Write p~ (E, S), own and common: every entry as in `share_table` with base 1/S.

    The last step leads nowhere: its rows are uniform, own = 1/a and common = 0, and nothing reads them.
    """
    S, H, a = transitions.shape[1], visits.size // R, TRUST
    n, moves, law = visits.reshape((H, R)), transitions.reshape((H, R, S)), p.reshape((H, R, S))
    alone, shared, level = own.reshape((H, R)), common.reshape((H, R)), np.empty(S)
    for r in range(R):
        T = a
        for t in range(S):
            level[t] = a / S
        for h in range(H - 1):
            if n[h, r] > 0.0:
                f = m / (n[h, r] + m)
                T += f * n[h, r]
                for t in range(S):
                    level[t] += f * moves[h, r, t]
        for t in range(S):
            level[t] = m * level[t] / T
        for h in range(H - 1):
            alone[h, r], shared[h, r] = shared_parts(n[h, r], m, T)
            mass = 0.0
            for t in range(S):
                law[h, r, t] = (moves[h, r, t] + level[t]) * alone[h, r]
                mass += law[h, r, t]
            for t in range(S):
                law[h, r, t] = law[h, r, t] / mass
        alone[H - 1, r], shared[H - 1, r] = 1.0 / a, 0.0
        for t in range(S):
            law[H - 1, r, t] = 1.0 / S


@rule
def share_rows(
    pairs: Integers, place: Integers, ends: Integers, sums: Floats, visits: Floats, m: float, base: float, a: float,
    x: Floats, own: Floats, common: Floats,
) -> None:  # fmt: skip
    """`share_table` by rows of a graph: row e is of pair ``pairs[e]`` (or -1), its counts at ``place[e]`` (or -1)."""
    level, total = np.empty(ends.size - 1), np.empty(ends.size - 1)
    for i in range(ends.size - 1):
        total[i], level[i] = a, a * base
        for k in range(ends[i], ends[i + 1]):
            f = m / (visits[k] + m)
            total[i] += f * visits[k]
            level[i] += f * sums[k]
    for e in range(pairs.size):
        i, k = pairs[e], place[e]
        T, here = (total[i], level[i]) if i >= 0 else (a, a * base)
        n, met = (visits[k], sums[k]) if k >= 0 else (0.0, 0.0)
        own[e], common[e] = shared_parts(n, m, T)
        x[e] = shared_mean(met, m * here / T, own[e])


@checked_entry
def places(pairs: Integers, steps: Integers, ends: Integers, keys: Integers, H: int) -> Integers:
    """Where the counts of pair ``pairs[r]`` at step ``steps[r]`` are, or -1; `steps` ascend, keys mod H are steps."""
    found = np.full(pairs.size, -1)
    at = ends[:-1].copy()
    for r in range(pairs.size):
        i = pairs[r]
        if i >= 0:
            while at[i] < ends[i + 1] and keys[at[i]] % H < steps[r]:
                at[i] += 1
            if at[i] < ends[i + 1] and keys[at[i]] % H == steps[r]:
                found[r] = at[i]
    return found


@checked_entry
def share_laws(
    pairs: Integers, steps: Integers, place: Integers, ends: Integers, keys: Integers, visits: Floats,
    entries: Integers, source: Integers, group_ends: Integers, groups: Integers, moves: Integers, move_counts: Floats,
    H: int, m: float,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:  # fmt: skip
    """(probabilities, spread, own, common, counts) of the laws of a graph: `share_kernel` with a uniform base.

    `counts` are those of the entries.

    Pair i was followed in ``groups[i]:groups[i + 1]``, and group g was counted in ``group_ends[g]:group_ends[g + 1]``
    of the moves, one per step; ``source[e]`` is the group of an entry.
    """
    a = TRUST
    total, level = np.empty(ends.size - 1), np.zeros(group_ends.size - 1)
    for i in range(ends.size - 1):
        total[i] = a
        for k in range(ends[i], ends[i + 1]):
            if keys[k] % H < H - 1:
                total[i] += m / (visits[k] + m) * visits[k]
        for g in range(groups[i], groups[i + 1]):
            k = ends[i]
            for e in range(group_ends[g], group_ends[g + 1]):
                while keys[k] % H < moves[e] % H:
                    k += 1
                level[g] += m / (visits[k] + m) * move_counts[e]
    probabilities, counts, at = np.empty(source.size), np.zeros(source.size), group_ends[:-1].copy()
    spread, own, common = np.ones(pairs.size), np.full(pairs.size, 1.0 / a), np.zeros(pairs.size)
    for r in range(pairs.size):
        if steps[r] < H - 1:
            i, k = pairs[r], place[r]
            T, n = total[i] if i >= 0 else a, visits[k] if k >= 0 else 0.0
            own[r], common[r] = shared_parts(n, m, T)
            spread[r] = m * a / T * own[r]
            for e in range(entries[r], entries[r + 1]):
                g = source[e]
                while at[g] < group_ends[g + 1] and moves[at[g]] % H < steps[r]:
                    at[g] += 1
                here = at[g] < group_ends[g + 1] and moves[at[g]] % H == steps[r]
                counts[e] = move_counts[at[g]] if here else 0.0
                probabilities[e] = (counts[e] + m * level[g] / T) * own[r]
    return probabilities, spread, own, common, counts
