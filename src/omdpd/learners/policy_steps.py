"""One step of policy optimisation: truncated values, the greedy and the soft-max policy of them, exponential weights.

Tables and policies are (H, S, A), kernels (H, S, A, S), costs (I, H, S, A); the kernel's last step is never used.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry
from omdpd.problem.arrays import Floats

# How closely a price is searched: some fifty halvings, beyond which rounding decides.
PRICE_ERROR = 1e-15


@checked_entry
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


@checked_entry
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


@checked_entry
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


@checked_entry
def least_price(
    transition: Floats, reward: Floats, cost: Floats, others: Floats, alpha: float, most: float, initial: Floats
) -> float:
    """The least price in [0, most] of the first table at which `soft_policy` costs at most zero; `most` if none does.

    `others` are the prices of the tables after the first.  Bisection brackets the price to `PRICE_ERROR` of `most`; the
    answer is the end that is enough.
    """
    prices = np.zeros(len(cost))
    prices[1:] = others
    if soft_policy(transition, reward, cost, prices, alpha, initial)[1][0] <= 0.0:
        return 0.0
    low, high = 0.0, most
    while high - low > PRICE_ERROR * most:
        prices[0] = 0.5 * (low + high)
        if soft_policy(transition, reward, cost, prices, alpha, initial)[1][0] <= 0.0:
            high = prices[0]
        else:
            low = prices[0]
    return high


@checked_entry
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


@checked_entry
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
