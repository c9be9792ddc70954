"""How far a believed kernel moved between two episodes, in tables and on graphs."""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import entry
from omdpd.problem.arrays import Floats, Integers


@entry
def table_drift(p: Floats, before: Floats, H: int) -> float:
    """sum_h (H-1-h) max |p_h - p_before_h|_1, h from 0: bounds how far, in L1, any policy's occupancy moves."""
    E, S = p.shape
    R, total = E // H, 0.0
    for h in range(H - 1):
        worst = 0.0
        for e in range(h * R, (h + 1) * R):
            moved = 0.0
            for t in range(S):
                moved += abs(p[e, t] - before[e, t])
            worst = max(worst, moved)
        total += (H - 1 - h) * worst
    return total


@entry
def row_drift(
    layers: Integers, rows: Integers, entries: Integers, successors: Integers, probabilities: Floats, spread: Floats,
    states: Integers, parent: Integers, old_entries: Integers, old_successors: Integers, old_probabilities: Floats,
    old_spread: Floats, old_states: Integers, S: int,
) -> float:  # fmt: skip
    """sum_h (H-1-h) max |p_h - p_before_h|_1 over the rows, h from 0: `table_drift` of graphs.

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
