"""A graph of what was visited as the tables that it stands for: plain loops, for comparison with dense learners."""

import numpy as np


def rows_of_table(graph, shape):
    """The row that stands for every (h, s, a), or -1 where none does (states in which no episode starts)."""
    H, S, A = shape
    table = np.full(shape, -1)
    for h in range(H):
        numbers = {int(graph.states[i]): i for i in range(graph.layers[h], graph.layers[h + 1])}
        for s in range(S):
            i = numbers.get(s, numbers.get(-1))
            if i is None:
                continue
            actions = {int(graph.actions[r]): r for r in range(graph.rows[i], graph.rows[i + 1])}
            for a in range(A):
                table[h, s, a] = actions.get(a, actions.get(-1))
    return table


def expanded(values, graph, shape, nowhere=0.0):
    """Numbers by row (..., R) as tables (..., H, S, A)."""
    table = rows_of_table(graph, shape)
    return np.where(table >= 0, values[..., table], nowhere)


def expanded_kernel(graph, shape):
    """The laws (H, S, A, S); uniform at the last step and where no row is."""
    H, S, A = shape
    p = np.full((H, S, A, S), 1.0 / S)
    for (h, s, a), r in np.ndenumerate(rows_of_table(graph, shape)):
        if r >= 0 and h + 1 < H:
            p[h, s, a] = graph.spread[r] / S
            for e in range(graph.entries[r], graph.entries[r + 1]):
                t = graph.states[graph.successors[e]]
                assert t >= 0
                assert graph.layers[h + 1] <= graph.successors[e] < graph.layers[h + 2]
                p[h, s, a, t] += graph.probabilities[e]
    return p
