"""Whole episodes over laws that are lists of successors: every sweep costs as much as there are entries.

Laws come as pointers, successors and probabilities (`problem/laws.py`), tables as (n, S, A) with n = H steps or one for
all, deterministic policies as codes (H, S).  Sums run in the order in which `flow.py` runs over a table, so that both
give the same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import checked_entry
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import Successors

# What a policy plays at every step and state, (H, S), in a byte or two: 2 a, and 1 more where it never comes.
Codes = npt.NDArray[np.unsignedinteger]


@checked_entry
def listed_occupancy(
    pointers: Integers, successors: Successors, probabilities: Floats, policy: Floats, initial: Floats
) -> Floats:
    """Occupancy of `policy` (H, S, A), by one forward pass over the states that have mass."""
    H, S, A = policy.shape
    last = (pointers.size - 1) // (S * A) - 1
    q = np.zeros((H, S, A))
    mass = initial.copy()
    for h in range(H):
        following = np.zeros(S)
        for s in range(S):
            if mass[s] == 0.0:
                continue
            for a in range(A):
                q[h, s, a] = mass[s] * policy[h, s, a]
                if h + 1 < H and q[h, s, a] > 0.0:
                    row = (min(h, last) * S + s) * A + a
                    for k in range(pointers[row], pointers[row + 1]):
                        following[successors[k]] += q[h, s, a] * probabilities[k]
        mass = following
    return q


@checked_entry
def listed_values(
    pointers: Integers, successors: Successors, probabilities: Floats, policy: Floats, table: Floats
) -> Floats:
    """V_h(s) of `policy` for one table (n, S, A), by one backward pass; row H is zero."""
    H, S, A = policy.shape
    last = (pointers.size - 1) // (S * A) - 1
    values = np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        g = min(h, table.shape[0] - 1)
        for s in range(S):
            total = 0.0
            for a in range(A):
                value = table[g, s, a]
                if h + 1 < H:
                    row = (min(h, last) * S + s) * A + a
                    for k in range(pointers[row], pointers[row + 1]):
                        value += probabilities[k] * values[h + 1, successors[k]]
                total += policy[h, s, a] * value
            values[h, s] = total
    return values


@checked_entry
def listed_choices(
    pointers: Integers,
    successors: Successors,
    probabilities: Floats,
    reward: Floats,
    tables: Floats,
    weights: Floats,
    codes: Codes,
) -> Floats:
    """argmax_pi V^pi(w_0 r + sum_j w_j d_j): writes the codes of its actions (the first on ties), returns V_0 (S,).

    `reward` (n, S, A), `tables` (m, n', S, A), `weights` (1 + m,).
    """
    _, S, A = reward.shape
    horizon = codes.shape[0]
    last = (pointers.size - 1) // (S * A) - 1
    values, before, summed = np.zeros(S), np.empty(S), np.empty((S, A))
    for h in range(horizon - 1, -1, -1):
        g, f = min(h, reward.shape[0] - 1), min(h, tables.shape[1] - 1)
        if h + 1 == horizon or max(reward.shape[0], tables.shape[1]) > 1:
            for s in range(S):
                for a in range(A):
                    summed[s, a] = weights[0] * reward[g, s, a]
                    for j in range(tables.shape[0]):
                        summed[s, a] += weights[1 + j] * tables[j, f, s, a]
        first = min(h, last) * S * A
        for s in range(S):
            best, chosen = -np.inf, 0
            for a in range(A):
                value = summed[s, a]
                if h + 1 < horizon:
                    row = first + s * A + a
                    for k in range(pointers[row], pointers[row + 1]):
                        value += probabilities[k] * values[successors[k]]
                if value > best:
                    best, chosen = value, a
            codes[h, s] = 2 * chosen
            before[s] = best
        values, before = before, values
    return values


@checked_entry
def listed_totals(
    pointers: Integers,
    successors: Successors,
    probabilities: Floats,
    codes: Codes,
    places: Integers,
    rows: Floats,
    initial: Floats,
    reward: Floats,
    tables: Floats,
) -> Floats:
    """What a policy earns and costs: (r.q, d_1.q, ..., d_m.q), by one forward pass.

    It plays its codes, and draws by `rows` (n, A) at `places` h S + s (n,), ascending.
    """
    horizon, S = codes.shape
    A = reward.shape[2]
    last = (pointers.size - 1) // (S * A) - 1
    totals = np.zeros(1 + tables.shape[0])
    mass, place = initial.copy(), 0
    for h in range(horizon):
        following = np.zeros(S)
        g, f = min(h, reward.shape[0] - 1), min(h, tables.shape[1] - 1)
        for s in range(S):
            if mass[s] == 0.0:
                continue
            while place < places.size and places[place] < h * S + s:
                place += 1
            draws = place < places.size and places[place] == h * S + s
            for a in range(A) if draws else range(codes[h, s] >> 1, (codes[h, s] >> 1) + 1):
                played = mass[s] * rows[place, a] if draws else mass[s]
                totals[0] += played * reward[g, s, a]
                for j in range(tables.shape[0]):
                    totals[1 + j] += played * tables[j, f, s, a]
                if h + 1 < horizon and played > 0.0:
                    row = (min(h, last) * S + s) * A + a
                    for k in range(pointers[row], pointers[row + 1]):
                        following[successors[k]] += played * probabilities[k]
        mass = following
    return totals


@checked_entry
def listed_mixture(
    pointers: Integers,
    successors: Successors,
    probabilities: Floats,
    codes: Codes,
    others: Codes,
    shares: Floats,
    initial: Floats,
    occupancy: Floats,
    places: Integers,
    rows: Floats,
    write: bool,
) -> int:
    """Where a mixture draws: the first of `shares` (n,) plays `codes`, the rest `others` (n - 1, H, S).

    Returns the number N of such places.  With `write` it writes them; in `rows` (N, A + 1) the probabilities there, and
    how likely an episode comes there; in `codes` those of a policy with the mixture's occupancy, which plays as the
    first where no episode comes; and `occupancy` (H, S, A), unless it is empty.
    """
    horizon, S = codes.shape
    A, n, found = rows.shape[1] - 1, shares.size, 0
    last = (pointers.size - 1) // (S * A) - 1
    mass, here = np.empty((S, n)), np.zeros(A)
    for s in range(S):
        for i in range(n):
            mass[s, i] = shares[i] * initial[s]
    for h in range(horizon):
        following = np.zeros((S, n))
        for s in range(S):
            first, draws, total = -1, False, 0.0
            for i in range(n):
                if mass[s, i] == 0.0:
                    continue
                a = int(codes[h, s] if i == 0 else others[i - 1, h, s]) >> 1
                draws, first = draws or (first >= 0 and a != first), a if first < 0 else first
                here[a] += mass[s, i]
                total += mass[s, i]
                if h + 1 < horizon:
                    row = (min(h, last) * S + s) * A + a
                    for k in range(pointers[row], pointers[row + 1]):
                        following[successors[k], i] += mass[s, i] * probabilities[k]
            if write:
                codes[h, s] = 2 * first if first >= 0 else codes[h, s] | 1
            if draws and write:
                places[found], rows[found, A] = h * S + s, total
            for a in range(A if first >= 0 else 0):
                if draws and write:
                    rows[found, a] = here[a] / total
                if write and occupancy.size > 0:
                    occupancy[h, s, a] += here[a]
                here[a] = 0.0
            found += draws
        mass = following
    return found


@checked_entry
def listed_climb(
    pointers: Integers, successors: Successors, probabilities: Floats, table: Floats, discount: float, order: Integers,
    value: Floats,
) -> float:  # fmt: skip
    """Raise v(s) (S,) to max_a (r + gamma P v), in place and in this order of states; the largest rise.

    `table` is (S, A).
    """
    A, most = table.shape[1], 0.0
    for s in order:
        best = value[s]
        for a in range(A):
            total = 0.0
            for k in range(pointers[s * A + a], pointers[s * A + a + 1]):
                total += probabilities[k] * value[successors[k]]
            best = max(best, table[s, a] + discount * total)
        most = max(most, best - value[s])
        value[s] = best
    return most
