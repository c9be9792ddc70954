"""Whole episodes over laws that are lists of successors: every sweep costs as much as there are entries.

Laws come as pointers, successors and probabilities (`problem/laws.py`), tables as (n, S, A) with n = H steps or one for
all.  Sums run in the order in which `flow.py` runs over a table, so that both give the same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import checked_entry
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.laws import Successors

Choices = npt.NDArray[np.int32]


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
def listed_residual(
    pointers: Integers, successors: Successors, probabilities: Floats, occupancy: Floats, initial: Floats
) -> float:
    """Largest violation of the flow equations and of q >= 0."""
    H, S, A = occupancy.shape
    last = (pointers.size - 1) // (S * A) - 1
    worst = 0.0
    inflow = initial.copy()
    for h in range(H):
        following = np.zeros(S)
        for s in range(S):
            balance = -inflow[s]
            for a in range(A):
                balance += occupancy[h, s, a]
                worst = max(worst, -occupancy[h, s, a])
                if h + 1 < H and occupancy[h, s, a] != 0.0:
                    row = (min(h, last) * S + s) * A + a
                    for k in range(pointers[row], pointers[row + 1]):
                        following[successors[k]] += occupancy[h, s, a] * probabilities[k]
            worst = max(worst, abs(balance))
        inflow = following
    return worst


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
    horizon: int,
) -> tuple[Choices, Floats]:
    """argmax_pi V^pi(w_0 r + sum_j w_j d_j): the action of every step and state (first on ties), and V_0 (S,).

    `reward` (n, S, A), `tables` (m, n', S, A), `weights` (1 + m,).
    """
    _, S, A = reward.shape
    last = (pointers.size - 1) // (S * A) - 1
    choices = np.empty((horizon, S), dtype=np.int32)
    values, before = np.zeros(S), np.empty(S)
    for h in range(horizon - 1, -1, -1):
        g, f = min(h, reward.shape[0] - 1), min(h, tables.shape[1] - 1)
        for s in range(S):
            best, chosen = -np.inf, 0
            for a in range(A):
                value = weights[0] * reward[g, s, a]
                for j in range(tables.shape[0]):
                    value += weights[1 + j] * tables[j, f, s, a]
                if h + 1 < horizon:
                    row = (min(h, last) * S + s) * A + a
                    for k in range(pointers[row], pointers[row + 1]):
                        value += probabilities[k] * values[successors[k]]
                if value > best:
                    best, chosen = value, a
            choices[h, s] = chosen
            before[s] = best
        values, before = before, values
    return choices, values


@checked_entry
def listed_totals(
    pointers: Integers,
    successors: Successors,
    probabilities: Floats,
    choices: Choices,
    initial: Floats,
    reward: Floats,
    tables: Floats,
) -> Floats:
    """What a deterministic policy earns and costs: (r.q, d_1.q, ..., d_m.q), by one forward pass."""
    horizon, S = choices.shape
    A = reward.shape[2]
    last = (pointers.size - 1) // (S * A) - 1
    totals = np.zeros(1 + tables.shape[0])
    mass = initial.copy()
    for h in range(horizon):
        following = np.zeros(S)
        g, f = min(h, reward.shape[0] - 1), min(h, tables.shape[1] - 1)
        for s in range(S):
            if mass[s] == 0.0:
                continue
            a = choices[h, s]
            totals[0] += mass[s] * reward[g, s, a]
            for j in range(tables.shape[0]):
                totals[1 + j] += mass[s] * tables[j, f, s, a]
            if h + 1 < horizon:
                row = (min(h, last) * S + s) * A + a
                for k in range(pointers[row], pointers[row + 1]):
                    following[successors[k]] += mass[s] * probabilities[k]
        mass = following
    return totals


@checked_entry
def add_occupancy(
    pointers: Integers,
    successors: Successors,
    probabilities: Floats,
    choices: Choices,
    initial: Floats,
    weight: float,
    occupancy: Floats,
) -> None:
    """occupancy += weight times the occupancy of a deterministic policy."""
    horizon, S, A = occupancy.shape
    last = (pointers.size - 1) // (S * A) - 1
    mass = weight * initial
    for h in range(horizon):
        following = np.zeros(S)
        for s in range(S):
            if mass[s] == 0.0:
                continue
            a = choices[h, s]
            occupancy[h, s, a] += mass[s]
            if h + 1 < horizon:
                row = (min(h, last) * S + s) * A + a
                for k in range(pointers[row], pointers[row + 1]):
                    following[successors[k]] += mass[s] * probabilities[k]
        mass = following


@checked_entry
def policy_of_mixture(occupancy: Floats, choices: Choices) -> Floats:
    """pi_h(a|s) = q_h(s,a) / q_h(s) of an exact occupancy; where a state has no mass, the action of `choices`."""
    H, S, A = occupancy.shape
    policy = np.zeros((H, S, A))
    for h in range(H):
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += occupancy[h, s, a]
            for a in range(A):
                if total > 0.0:
                    policy[h, s, a] = occupancy[h, s, a] / total
            if total <= 0.0:
                policy[h, s, choices[h, s]] = 1.0
    return policy
