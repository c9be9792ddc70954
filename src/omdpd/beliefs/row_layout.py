"""The rows of a layered graph, from what was visited: what each stands for, where it leads, which row it was before.

A layer lists its states that stand apart in the order of their numbers, then one state for all others (number -1); a
state lists its actions that stand apart in the order of their numbers, then one row for all others (number -1).
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.flow import NO_MASS

OTHERS = -1


@checked_entry
def skeleton(
    pairs: Integers, begin: Integers, end: Integers, start: Integers, kept: Integers, plain: bool, S: int, A: int
) -> tuple[Integers, Integers, Integers, Integers, Integers, Integers, Floats, Floats]:
    """(steps, layers, rows, states, actions, visited, members, copies) of the graph in which what was seen is apart.

    The pairs s A + a seen in layer h are ``pairs[begin[h]:end[h]]``, sorted.  Layer 0 has the states of `start` and no
    others; every later one has the states seen in it, those of `kept`, and the rest as one.  With `plain` every state
    and every action stands apart in every layer.  ``visited[r]`` is a row's place in `pairs`, or -1, ``steps[r]`` its
    layer.
    """
    H = begin.size
    n_states, n_rows, n, r = 0, 0, 0, 0
    for h in range(H):
        seen, others = end[h] - begin[h], start.size if h == 0 else kept.size
        n_states += S if plain else seen + others + 1
        n_rows += S * A if plain else 2 * seen + others + 1
    layers, rows, states = np.empty(H + 1, np.int64), np.empty(n_states + 1, np.int64), np.empty(n_states, np.int64)
    actions, visited, steps = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    members, copies = np.empty(n_states), np.empty(n_rows)
    for h in range(H):
        layers[h] = n
        named = start if h == 0 else kept
        i, j = begin[h], 0
        while True:
            s = n - layers[h]
            if not plain:
                s = named[j] if j < named.size else S
                if h > 0 and i < end[h]:
                    s = min(s, pairs[i] // A)
            if s >= S:
                break
            while j < named.size and named[j] <= s:
                j += 1
            while i < end[h] and pairs[i] // A < s:  # seen elsewhere, but no episode starts there
                i += 1
            states[n], members[n], rows[n] = s, 1.0, r
            left = A
            for a in range(A):
                seen_here = i < end[h] and pairs[i] == s * A + a
                if seen_here or plain:
                    actions[r], copies[r], steps[r] = a, 1.0, h
                    visited[r] = i if seen_here else OTHERS
                    i += seen_here
                    left -= 1
                    r += 1
            if left > 0:
                actions[r], copies[r], steps[r], visited[r] = OTHERS, left, h, OTHERS
                r += 1
            n += 1
        rest = S - (n - layers[h])
        if h > 0 and rest > 0:
            states[n], members[n], rows[n] = OTHERS, rest, r
            actions[r], copies[r], steps[r], visited[r] = OTHERS, rest * A, h, OTHERS
            n += 1
            r += 1
    layers[H], rows[n] = n, r
    return (
        steps[:r].copy(), layers, rows[: n + 1].copy(), states[:n].copy(),
        actions[:r].copy(), visited[:r].copy(), members[:n].copy(), copies[:r].copy(),
    )  # fmt: skip


@checked_entry
def successor_lists(
    layers: Integers, rows: Integers, states: Integers, visited: Integers, ends: Integers, following: Integers, S: int
) -> tuple[Integers, Integers, Integers]:
    """(entries, successors, source): where each row leads; ``source[e]`` is the entry's place in `following`.

    The row in place i of what was visited was followed by the true states ``following[ends[i]:ends[i + 1]]``, each of
    which stands apart in the next layer.  The last layer leads nowhere.
    """
    H = layers.size - 1
    last = rows[layers[H - 1]]
    entries = np.zeros(visited.size + 1, np.int64)
    for r in range(visited.size):
        found = ends[visited[r] + 1] - ends[visited[r]] if visited[r] >= 0 and r < last else 0
        entries[r + 1] = entries[r] + found
    successors, source = np.empty(entries[-1], np.int64), np.empty(entries[-1], np.int64)
    number = np.full(S, OTHERS)
    for h in range(H - 1):
        for i in range(layers[h + 1], layers[h + 2]):
            if states[i] >= 0:
                number[states[i]] = i
        for r in range(rows[layers[h]], rows[layers[h + 1]]):
            for e in range(entries[r], entries[r + 1]):
                source[e] = ends[visited[r]] + e - entries[r]
                successors[e] = number[following[source[e]]]
    return entries, successors, source


@checked_entry
def parents(
    layers: Integers, rows: Integers, states: Integers, actions: Integers,
    old_layers: Integers, old_rows: Integers, old_states: Integers, old_actions: Integers,
) -> Integers:  # fmt: skip
    """The row of an older graph that each row was a part of: rows only ever split."""
    parent = np.empty(actions.size, np.int64)
    for h in range(layers.size - 1):
        o, others = old_layers[h], old_layers[h + 1] - 1
        for i in range(layers[h], layers[h + 1]):
            while o < others and old_states[o] < states[i]:
                o += 1
            if old_states[o] != states[i]:
                parent[rows[i] : rows[i + 1]] = old_rows[others]
                continue
            p, unseen = old_rows[o], old_rows[o + 1] - 1
            for r in range(rows[i], rows[i + 1]):
                while p < unseen and old_actions[p] < actions[r]:
                    p += 1
                parent[r] = p if old_actions[p] == actions[r] else unseen
    return parent


@checked_entry
def row_policy(
    layers: Integers, rows: Integers, states: Integers, actions: Integers, copies: Floats, q: Floats, S: int, A: int
) -> Floats:
    """The policy (H, S, A) of an occupancy by rows: uniform where a state has no mass to speak of, or is not apart."""
    H = layers.size - 1
    policy = np.full((H, S, A), 1.0 / A)
    for h in range(H):
        for i in range(layers[h], layers[h + 1]):
            if states[i] >= 0:
                _law(rows[i], rows[i + 1], actions, copies, q, policy[h, states[i]])
    return policy


@checked_entry
def _law(first: int, last: int, actions: Integers, copies: Floats, q: Floats, law: Floats) -> None:
    """Write the law over actions of the state with rows first:last into `law`, which is uniform before."""
    total = 0.0
    for r in range(first, last):
        total += copies[r] * max(q[r], 0.0)
    if total > NO_MASS:
        if actions[last - 1] == OTHERS:
            law[:] = max(q[last - 1], 0.0) / total
        for r in range(first, last):
            if actions[r] >= 0:
                law[actions[r]] = max(q[r], 0.0) / total


@checked_entry
def law_at(
    layers: Integers, rows: Integers, states: Integers, actions: Integers, copies: Floats, q: Floats,
    A: int, h: int, s: int,
) -> Floats:  # fmt: skip
    """The law (A,) over actions at one step and state, by bisection: what `row_policy` says there."""
    law = np.full(A, 1.0 / A)
    low, high = layers[h], layers[h + 1]
    if high > low and states[high - 1] == OTHERS:
        high -= 1
    i = low + np.searchsorted(states[low:high], s)
    if i < high and states[i] == s:
        _law(rows[i], rows[i + 1], actions, copies, q, law)
    return law
