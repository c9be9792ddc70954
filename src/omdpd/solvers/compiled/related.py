"""Compiled pieces of the related work: a truncated greedy pass, upper occupancies of one trajectory, doubled counts.

Sizes as everywhere: policies and tables (H, S, A), kernels (H, S, A, S), costs (I, H, S, A).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.boxes import best_kernel


@njit(cache=True)
def truncated_greedy(
    transition: Floats, reward: Floats, cost: Floats, prices: Floats, initial: Floats
) -> tuple[Floats, Floats]:
    """Backward induction on truncated values of reward and costs at once: the greedy policy, its truncated costs (I,).

    Q_r = min(r + p V_r, H - h), Q_i = clip(d_i + p V_i, -(H - h), H - h), and the action maximises Q_r - prices . Q.
    """
    H, S, A = reward.shape
    n = len(prices)
    policy = np.zeros((H, S, A))
    V = np.zeros((n + 1, S))
    Q = np.empty(n + 1)
    for h in range(H - 1, -1, -1):
        bound = float(H - h)
        now = np.zeros((n + 1, S))
        for s in range(S):
            best, chosen = -np.inf, 0
            for a in range(A):
                Q[n] = reward[h, s, a]
                for i in range(n):
                    Q[i] = cost[i, h, s, a]
                for t in range(S):
                    for i in range(n + 1):
                        Q[i] += transition[h, s, a, t] * V[i, t]
                Q[n] = min(Q[n], bound)
                score = Q[n]
                for i in range(n):
                    Q[i] = min(max(Q[i], -bound), bound)
                    score -= prices[i] * Q[i]
                if score > best:
                    best, chosen = score, a
                    now[:, s] = Q
            policy[h, s, chosen] = 1.0
        V = now
    return policy, V[:n] @ initial


@njit(cache=True)
def visited_bound(
    policy: Floats, lower: Floats, upper: Floats, initial: Floats, states: Integers, actions: Integers
) -> Floats:
    """max over kernels in the box of q_h(s_h, a_h), (H,): upper occupancies of one trajectory's pairs alone."""
    H, S, A = policy.shape
    bound = np.empty(H)
    for h in range(H):
        reach = np.zeros(S)
        reach[states[h]] = 1.0
        for g in range(h - 1, -1, -1):
            kernel = best_kernel(lower[g], upper[g], reach)
            earlier = np.zeros(S)
            for x in range(S):
                for a in range(A):
                    for t in range(S):
                        earlier[x] += policy[g, x, a] * kernel[x, a, t] * reach[t]
            reach = earlier
        bound[h] = (initial * reach).sum() * policy[h, states[h], actions[h]]
    return bound


@njit(cache=True)
def has_doubled(visits: Floats, before: Floats) -> bool:
    """Whether some pair was met as often since `before` as until then (once is enough for a new pair)."""
    now, then = visits.ravel(), before.ravel()
    for i in range(now.size):
        if now[i] - then[i] >= max(then[i], 1.0):
            return True
    return False


@njit(cache=True)
def soft_policy(
    transition: Floats, reward: Floats, cost: Floats, prices: Floats, alpha: float, initial: Floats
) -> tuple[Floats, Floats]:
    """Backward induction with soft-max policies on truncated values: the policy, and its truncated costs (I,).

    Q_r = min(r + p V_r, H - h), Q_i = max(d_i + p V_i, -(H - h)), and pi(a|s) ~ exp(alpha (Q_r - prices . Q)).
    """
    H, S, A = reward.shape
    n = len(prices)
    policy = np.zeros((H, S, A))
    V = np.zeros((n + 1, S))
    Q = np.empty((A, n + 1))
    for h in range(H - 1, -1, -1):
        left = float(H - h)
        now = np.zeros((n + 1, S))
        for s in range(S):
            largest = -np.inf
            for a in range(A):
                for i in range(n):
                    Q[a, i] = cost[i, h, s, a]
                Q[a, n] = reward[h, s, a]
                if h + 1 < H:
                    for t in range(S):
                        for i in range(n + 1):
                            Q[a, i] += transition[h, s, a, t] * V[i, t]
                score = 0.0
                for i in range(n):
                    Q[a, i] = min(max(Q[a, i], -left), left)
                    score -= prices[i] * Q[a, i]
                Q[a, n] = min(Q[a, n], left)
                policy[h, s, a] = alpha * (score + Q[a, n])
                largest = max(largest, policy[h, s, a])
            total = 0.0
            for a in range(A):
                policy[h, s, a] = np.exp(max(policy[h, s, a] - largest, -690.0))
                total += policy[h, s, a]
            for a in range(A):
                policy[h, s, a] /= total
                for i in range(n + 1):
                    now[i, s] += policy[h, s, a] * Q[a, i]
        V = now
    return policy, V[:n] @ initial


@njit(cache=True)
def least_price(transition: Floats, reward: Floats, cost: Floats, alpha: float, most: float, initial: Floats) -> float:
    """The least price in [0, most] of one constraint at which `soft_policy` costs at most zero; `most` if none does.

    By bisection to a 65 000th of `most`; the answer itself is a price that is enough.
    """
    prices = np.zeros(1)
    if soft_policy(transition, reward, cost, prices, alpha, initial)[1][0] <= 0.0:
        return 0.0
    low, high = 0.0, most
    for _ in range(16):
        prices[0] = 0.5 * (low + high)
        if soft_policy(transition, reward, cost, prices, alpha, initial)[1][0] <= 0.0:
            high = prices[0]
        else:
            low = prices[0]
    return high
