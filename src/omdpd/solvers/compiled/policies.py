"""Policy optimisation in one episode: truncated evaluation, exponential weights, bonuses, bounds on occupancies.

Tables and policies are (H, S, A); the kernel's last step is never used.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.boxes import sort_descending, support


@njit(cache=True)
def truncated_values(
    policy: Floats, transition: Floats, table: Floats, temperature: float, least: float, most: float
) -> tuple[Floats, Floats]:
    """Evaluate a policy with every Q_h cut to [least (H-h), most (H-h)]: (Q, V), shapes (H, S, A) and (H+1, S).

    Q_h = cut( table_h + p V_{h+1} ),    V_h(s) = sum_a pi(a|s) ( Q_h(s,a) - temperature ln pi(a|s) )
    """
    H, S, A = policy.shape
    Q, V = np.empty((H, S, A)), np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                value = table[h, s, a]
                if h + 1 < H:
                    for t in range(S):
                        value += transition[h, s, a, t] * V[h + 1, t]
                value = min(max(value, least * (H - h)), most * (H - h))
                Q[h, s, a] = value
                share = policy[h, s, a]
                if share > 0.0:
                    V[h, s] += share * value
                    if temperature > 0.0:
                        V[h, s] -= temperature * share * np.log(share)
    return Q, V


@njit(cache=True)
def tilted(logits: Floats, gains: Floats, eta: float, kept: float) -> Floats:
    """kept * logits + eta * gains, shifted so that exp of it sums to one over actions: the next log-policy."""
    H, S, A = logits.shape
    result = np.empty((H, S, A))
    for h in range(H):
        for s in range(S):
            largest = -np.inf
            for a in range(A):
                result[h, s, a] = kept * logits[h, s, a] + eta * gains[h, s, a]
                largest = max(largest, result[h, s, a])
            total = 0.0
            for a in range(A):
                total += np.exp(result[h, s, a] - largest)
            for a in range(A):
                result[h, s, a] -= largest + np.log(total)
    return result


@njit(cache=True)
def policy_of_logits(logits: Floats) -> Floats:
    """exp(logits), rows scaled to one; a probability below 1e-300 is zero."""
    H, S, A = logits.shape
    policy = np.empty((H, S, A))
    for h in range(H):
        for s in range(S):
            total = 0.0
            for a in range(A):
                policy[h, s, a] = np.exp(logits[h, s, a]) if logits[h, s, a] > -690.0 else 0.0
                total += policy[h, s, a]
            for a in range(A):
                policy[h, s, a] /= total
    return policy


@njit(cache=True)
def bernstein_width(transitions: Floats, departures: Floats, transition: Floats, Lp: float) -> Floats:
    """sum_t ( 2 sqrt(p(1-p) Lp/n) + (14/3) Lp/n ): the summed half-widths of the confidence box of scale one."""
    H, S, A, _ = transitions.shape
    width = np.zeros((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                share = Lp / max(departures[h, s, a], 1.0)
                for t in range(S):
                    p = transition[h, s, a, t]
                    width[h, s, a] += 2.0 * np.sqrt(p * (1.0 - p) * share) + (14.0 / 3.0) * share
    return width


@njit(cache=True)
def iterated_log_width(departures: Floats, transition: Floats, constant: float) -> Floats:
    """phi sum_t sqrt(p) + 5 phi^2 with phi^2 = (2 ln ln max(2n, e) + constant) / max(n, 1)."""
    H, S, A, _ = transition.shape
    width = np.empty((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                n = departures[h, s, a]
                square = (2.0 * np.log(np.log(max(2.0 * n, np.e))) + constant) / max(n, 1.0)
                total = 0.0
                for t in range(S):
                    total += np.sqrt(transition[h, s, a, t])
                width[h, s, a] = np.sqrt(square) * total + 5.0 * square
    return width


@njit(cache=True)
def occupancy_range(policy: Floats, lower: Floats, upper: Floats, mu: Floats) -> tuple[Floats, Floats]:
    """Entry by entry, the least and the largest q_h(s, a) of `policy` under any kernel in the (tightened) box."""
    H, S, A = policy.shape
    least, most = np.empty((H, S, A)), np.empty((H, S, A))
    order = np.arange(S)
    reach, earlier = np.zeros(S), np.zeros(S)
    for h in range(H):
        for s in range(S):
            for sign in (1.0, -1.0):
                # With sign -1 the negative of the reach is maximised, which makes the reach least.
                one_before(policy, upper if sign > 0.0 else lower, h, s, sign, reach)
                for g in range(h - 2, -1, -1):
                    step_back(policy, lower, upper, g, reach, order, earlier)
                    reach[:] = earlier
                mass = 0.0
                for x in range(S):
                    mass += mu[x] * reach[x]
                for a in range(A):
                    if sign > 0.0:
                        most[h, s, a] = mass * policy[h, s, a]
                    else:
                        least[h, s, a] = -mass * policy[h, s, a]
    return least, most


@njit(cache=True)
def one_before(policy, bound, h, s, sign, reach) -> None:
    """reach(x) = sign sum_a pi_{h-1}(a|x) bound(s|x, a), the extreme chance of s at step h; sign 1{x = s} if h = 0."""
    for x in range(reach.size):
        reach[x] = 0.0
        if h > 0:
            for a in range(policy.shape[2]):
                reach[x] += sign * policy[h - 1, x, a] * bound[h - 1, x, a, s]
    if h == 0:
        reach[s] = sign


@njit(cache=True)
def step_back(policy, lower, upper, h, values, order: Integers, earlier) -> None:
    """earlier(s) = sum_a pi_h(a|s) max_{p in the box} p.values."""
    sort_descending(values, order)
    for s in range(values.size):
        earlier[s] = 0.0
        for a in range(policy.shape[2]):
            if policy[h, s, a] > 0.0:
                earlier[s] += policy[h, s, a] * support(lower, upper, h, s, a, values, order)


@njit(cache=True)
def dilated_bonus(policy: Floats, lower: Floats, upper: Floats, bonus: Floats, dilation: float) -> Floats:
    """B_h(s,a) = bonus_h(s) + dilation max_{p in the box} sum_t p(t) sum_a' pi_{h+1}(a'|t) B_{h+1}(t, a')."""
    H, S, A = policy.shape
    B = np.empty((H, S, A))
    values, now = np.zeros(S), np.zeros(S)
    order = np.arange(S)
    for h in range(H - 1, -1, -1):
        sort_descending(values, order)
        for s in range(S):
            now[s] = 0.0
            for a in range(A):
                B[h, s, a] = bonus[h, s]
                if h + 1 < H:
                    B[h, s, a] += dilation * support(lower, upper, h, s, a, values, order)
                now[s] += policy[h, s, a] * B[h, s, a]
        values[:] = now
    return B
