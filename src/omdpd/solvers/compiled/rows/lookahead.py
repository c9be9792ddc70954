"""`solvers.compiled.lookahead` on a layered graph: one sweep over its rows each.

The arrays of a graph come in the order layers, rows, entries, successors, probabilities, spread, members.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.flow import NO_MASS
from omdpd.solvers.compiled.lookahead import FIRST, VALUE_SCALE


@njit(cache=True)
def row_groups(layers: Integers, rows: Integers, states: Integers, actions: Integers, S: int, A: int) -> Integers:
    """One number for the rows of one (s, a), of one state's unseen actions, and of all other states, over layers."""
    groups = np.empty(actions.size, np.int64)
    for i in range(layers[-1]):
        for r in range(rows[i], rows[i + 1]):
            s, a = states[i], actions[r]
            groups[r] = S * A + S if s < 0 else S * A + s if a < 0 else s * A + a
    return groups


@njit(cache=True)
def kernel_row_variance(
    layers: Integers, rows: Integers, entries: Integers, successors: Integers, probabilities: Floats, spread: Floats,
    members: Floats, copies: Floats, S: int, groups: Integers, n_groups: int,
    q: Floats, cost: Floats, own: Floats, common: Floats,
) -> float:  # fmt: skip
    """Variance of cost.q that is due to the kernel, to first order: see `lookahead.kernel_variance`."""
    ahead, linear, size = np.zeros(layers[-1]), np.zeros(n_groups), np.zeros(n_groups)
    total = 0.0
    for h in range(layers.size - 2, -1, -1):
        first, second = _moments(layers, members, ahead, h + 1, S)
        for i in range(layers[h], layers[h + 1]):
            mass, pairs = 0.0, 0.0
            for r in range(rows[i], rows[i + 1]):
                mass += copies[r] * max(q[r], 0.0)
                pairs += copies[r]
            for r in range(rows[i], rows[i + 1]):
                mean, square = _ahead(entries, successors, probabilities, spread, ahead, r, first, second)
                variance = max(square - mean * mean, 0.0)
                total += copies[r] * q[r] * q[r] * variance * own[r]
                linear[groups[r]] += q[r] * np.sqrt(variance * common[r])
                size[groups[r]] = copies[r]
                share = max(q[r], 0.0) / mass if mass > NO_MASS else 1.0 / pairs
                ahead[i] += copies[r] * share * (cost[r] + mean)
    for g in range(n_groups):
        total += size[g] * linear[g] * linear[g]
    return total


@njit(cache=True)
def noise_row_variance(
    q: Floats, copies: Floats, groups: Integers, n_groups: int, noise: Floats, own: Floats, common: Floats
) -> float:
    """Variance of cost.q that is due to the noise of observed costs: see `lookahead.noise_variance`."""
    total, linear, size = 0.0, np.zeros(n_groups), np.zeros(n_groups)
    for r in range(q.size):
        total += copies[r] * q[r] * q[r] * noise[r] * own[r]
        linear[groups[r]] += q[r] * np.sqrt(noise[r] * common[r])
        size[groups[r]] = copies[r]
    for g in range(n_groups):
        total += size[g] * linear[g] * linear[g]
    return total


@njit(cache=True)
def lagrangian_row_bonus(
    layers: Integers, rows: Integers, entries: Integers, successors: Integers, probabilities: Floats, spread: Floats,
    members: Floats, S: int,
    table: Floats, row: Floats, variance: Floats, reach: Floats, size: Floats, share: float,
) -> Floats:  # fmt: skip
    """The bonus of every row of the Lagrangian `table`: see `lookahead.lagrangian_bonus`."""
    bonus, ahead = np.empty(table.size), np.zeros(layers[-1])
    for h in range(layers.size - 2, -1, -1):
        first, second = _moments(layers, members, ahead, h + 1, S)
        highest = ahead[layers[h + 1] : layers[h + 2]].max() if h + 2 < layers.size else 0.0
        for i in range(layers[h], layers[h + 1]):
            ahead[i] = -np.inf
            for r in range(rows[i], rows[i + 1]):
                mean, square = _ahead(entries, successors, probabilities, spread, ahead, r, first, second)
                value = VALUE_SCALE * np.sqrt(variance[r] + max(square - mean * mean, 0.0) / size[r]) + reach[r]
                value += min(FIRST / size[r], 1.0) * (highest - mean)
                bonus[r] = row[r] + share * max(value - row[r], 0.0)
                ahead[i] = max(ahead[i], table[r] + bonus[r] + mean)
    return bonus


@njit(cache=True)
def _moments(layers: Integers, members: Floats, ahead: Floats, h: int, S: int) -> tuple[float, float]:
    """Mean and mean square of what is ahead under the uniform law over layer h; zero after the last one."""
    first, second = 0.0, 0.0
    if h + 1 < layers.size:
        for i in range(layers[h], layers[h + 1]):
            first += members[i] * ahead[i]
            second += members[i] * ahead[i] * ahead[i]
    return first / S, second / S


@njit(cache=True)
def _ahead(
    entries: Integers, successors: Integers, probabilities: Floats, spread: Floats, ahead: Floats, r: int,
    first: float, second: float,
) -> tuple[float, float]:  # fmt: skip
    """Mean and mean square of what is ahead under the law of row r."""
    mean, square = spread[r] * first, spread[r] * second
    for e in range(entries[r], entries[r + 1]):
        x = ahead[successors[e]]
        mean += probabilities[e] * x
        square += probabilities[e] * x * x
    return mean, square


@njit(cache=True)
def row_drift(
    layers: Integers, rows: Integers, entries: Integers, successors: Integers, probabilities: Floats, spread: Floats,
    states: Integers, parent: Integers, old_entries: Integers, old_successors: Integers, old_probabilities: Floats,
    old_spread: Floats, old_states: Integers, S: int,
) -> float:  # fmt: skip
    """sum_h (H-1-h) max |p_h - p_before_h|_1 over the rows, h from 0: see `sharing.kernel_drift`.

    `parent` is the row that a row was part of before.  Entries lead to states that stand apart, in both graphs, and who
    followed once is among those who follow now.
    """
    H = layers.size - 1
    change, total = np.zeros(S), 0.0
    for h in range(H - 1):
        worst = 0.0
        for r in range(rows[layers[h]], rows[layers[h + 1]]):
            o = parent[r]
            for e in range(entries[r], entries[r + 1]):
                change[states[successors[e]]] += probabilities[e]
            for e in range(old_entries[o], old_entries[o + 1]):
                change[old_states[old_successors[e]]] -= old_probabilities[e]
            even = (spread[r] - old_spread[o]) / S
            moved = (S - (entries[r + 1] - entries[r])) * abs(even)
            for e in range(entries[r], entries[r + 1]):
                moved += abs(change[states[successors[e]]] + even)
                change[states[successors[e]]] = 0.0
            worst = max(worst, moved)
        total += (H - 1 - h) * worst
    return total
