"""Rows of the same (s, a) at different steps, estimated together: `solvers.compiled.sharing` by rows of a graph.

Counts come in the order (s, a, h): those of pair i are ``ends[i]:ends[i + 1]``, each with its step.  A pair of which
nothing was seen is at its base: n_h = 0 and T = a.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.scores import MIN_CHANCE


@njit(cache=True)
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


@njit(cache=True)
def table_rows(
    pairs: Integers, place: Integers, ends: Integers, sums: Floats, visits: Floats, m: float, base: float, a: float
) -> tuple[Floats, Floats, Floats]:
    """(x~, own, common), each (R,), of a table of means in [0, 1]: see `sharing.shared_table`."""
    level, total = np.empty(ends.size - 1), np.empty(ends.size - 1)
    for i in range(ends.size - 1):
        total[i], level[i] = a, a * base
        for k in range(ends[i], ends[i + 1]):
            f = m / (visits[k] + m)
            total[i] += f * visits[k]
            level[i] += f * sums[k]
    x, own, common = np.empty(pairs.size), np.empty(pairs.size), np.empty(pairs.size)
    for r in range(pairs.size):
        i, k = pairs[r], place[r]
        T, here = (total[i], level[i]) if i >= 0 else (a, a * base)
        n, met = (visits[k], sums[k]) if k >= 0 else (0.0, 0.0)
        own[r] = 1.0 / (n + m)
        common[r] = (m * own[r]) ** 2 / T
        x[r] = min(max((met + m * here / T) * own[r], 0.0), 1.0)
    return x, own, common


@njit(cache=True)
def kernel_rows(
    pairs: Integers, steps: Integers, place: Integers, ends: Integers, keys: Integers, visits: Floats,
    entries: Integers, source: Integers, group_ends: Integers, groups: Integers, moves: Integers, move_counts: Floats,
    H: int, m: float, a: float,
) -> tuple[Floats, Floats, Floats, Floats]:  # fmt: skip
    """(probabilities, spread, own, common) of the laws: see `sharing.shared_kernel`, whose base is the uniform share.

    Pair i was followed in ``groups[i]:groups[i + 1]``, and group g was counted in ``group_ends[g]:group_ends[g + 1]``
    of the moves, one per step; ``source[e]`` is the group of an entry.
    """
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
    probabilities, at = np.empty(source.size), group_ends[:-1].copy()
    spread, own, common = np.ones(pairs.size), np.full(pairs.size, 1.0 / a), np.zeros(pairs.size)
    for r in range(pairs.size):
        if steps[r] < H - 1:
            i, k = pairs[r], place[r]
            T, n = total[i] if i >= 0 else a, visits[k] if k >= 0 else 0.0
            own[r] = 1.0 / (n + m)
            common[r] = (m * own[r]) ** 2 / T
            spread[r] = m * a / T * own[r]
            for e in range(entries[r], entries[r + 1]):
                g = source[e]
                while at[g] < group_ends[g + 1] and moves[at[g]] % H < steps[r]:
                    at[g] += 1
                here = at[g] < group_ends[g + 1] and moves[at[g]] % H == steps[r]
                met = move_counts[at[g]] if here else 0.0
                probabilities[e] = (met + m * level[g] / T) * own[r]
    return probabilities, spread, own, common


@njit(cache=True)
def _by_step(keys: Integers, counts: Floats, group: int, H: int, found: Floats) -> None:
    """Write the counts of one group, whose keys are group H + h, into `found` by step; zero where there is none."""
    found[:] = 0.0
    for k in range(np.searchsorted(keys, group * H), np.searchsorted(keys, group * H + H)):
        found[keys[k] % H] = counts[k]


@njit(cache=True)
def kernel_row_scores(
    states: Integers, pairs: Integers, keys: Integers, visits: Floats, moves: Integers, move_counts: Floats,
    S: int, grid: Floats, a: float,
) -> Floats:  # fmt: skip
    """sum over the steps of one trajectory of ln p~_h(s'|s,a), for every m of the grid, from the counts before it."""
    H = states.size
    scores, n, met = np.zeros(grid.size), np.empty(H), np.empty(H)
    for h in range(H - 1):
        _by_step(keys, visits, pairs[h], H, n)
        _by_step(moves, move_counts, pairs[h] * S + states[h + 1], H, met)
        for i in range(grid.size):
            m = grid[i]
            T, level = a, a / S
            for g in range(H - 1):
                f = m / (n[g] + m)
                T += f * n[g]
                level += f * met[g]
            scores[i] += np.log((met[h] + m * level / T) / (n[h] + m))
    return scores


@njit(cache=True)
def table_row_scores(
    pairs: Integers, observed: Floats, keys: Integers, sums: Floats, visits: Floats, base: float,
    grid: Floats, trusts: Floats,
) -> Floats:  # fmt: skip
    """sum over one trajectory of x ln x~ + (1 - x) ln(1 - x~), for every (m, a) of the two grids: a proper score."""
    H = pairs.size
    scores, n, met = np.zeros((grid.size, trusts.size)), np.empty(H), np.empty(H)
    for h in range(H):
        _by_step(keys, visits, pairs[h], H, n)
        _by_step(keys, sums, pairs[h], H, met)
        for i in range(grid.size):
            m = grid[i]
            total, level = 0.0, 0.0
            for g in range(H):
                f = m / (n[g] + m)
                total += f * n[g]
                level += f * met[g]
            for j in range(trusts.size):
                expected = (level + trusts[j] * base) / (total + trusts[j])
                x = (met[h] + m * expected) / (n[h] + m)
                x = min(max(x, MIN_CHANCE), 1.0 - MIN_CHANCE)
                scores[i, j] += observed[h] * np.log(x) + (1.0 - observed[h]) * np.log(1.0 - x)
    return scores
