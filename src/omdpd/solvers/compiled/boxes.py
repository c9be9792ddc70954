"""Confidence boxes: the best kernel inside one, and planning that may choose it.

A row's box is B = {p : lower <= p <= upper, sum p = 1}.  Its support function sigma(W) = max_{p in B} p.W
is reached greedily: start at `lower` and pour the rest into the states of largest W first.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry, checked_inner, entry, inner
from omdpd.problem.arrays import Floats, Integers

# How far a belief may be off and still count as right: rounding.
BELIEF_ROUNDING = 1e-12


@checked_entry
def tighten(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The smallest bounds with the same box: every bound is reached by some law in it.

    Shapes (..., S); the box must contain a law.
    """
    S = lower.shape[-1]
    low = lower.copy().reshape(-1, S)
    high = upper.copy().reshape(-1, S)
    for row in range(low.shape[0]):
        tighten_row(low[row], high[row])
    return low.reshape(lower.shape), high.reshape(upper.shape)


@inner
def tighten_row(low: Floats, high: Floats) -> None:
    """Tighten the bounds (S,) of one law, in place."""
    sum_low, sum_high = low.sum(), high.sum()
    for t in range(low.size):
        old_low, old_high = low[t], high[t]
        high[t] = max(old_low, min(old_high, 1.0 - (sum_low - old_low)))
        low[t] = min(old_high, max(old_low, 1.0 - (sum_high - old_high)))


@checked_entry
def fill_row(lower: Floats, upper: Floats, order: Integers, row: Floats) -> None:
    """Write into `row` the law of the box that puts most mass on the states first in `order`."""
    rest = 1.0
    for t in range(lower.size):
        row[t] = lower[t]
        rest -= lower[t]
    for k in range(order.size):
        t = order[k]
        more = min(upper[t] - lower[t], rest)
        if more > 0.0:
            row[t] += more
            rest -= more


@inner
def support(lower: Floats, upper: Floats, h: int, s: int, a: int, values: Floats, order: Integers) -> float:
    """max_p p.values over the box of one row of (H, S, A, S) bounds, `order` sorting the values downwards."""
    rest, value = 1.0, 0.0
    for t in range(values.size):
        rest -= lower[h, s, a, t]
        value += lower[h, s, a, t] * values[t]
    for k in range(order.size):
        if rest <= 0.0:
            break
        t = order[k]
        more = min(upper[h, s, a, t] - lower[h, s, a, t], rest)
        value += more * values[t]
        rest -= more
    return value


@inner
def sort_descending(values: Floats, order: Integers) -> None:
    """Make `order` sort the values downwards, by insertion: S is small and the order changes little between steps."""
    for k in range(1, order.size):
        t = order[k]
        place = k
        while place > 0 and values[order[place - 1]] < values[t]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = t


@checked_entry
def best_kernel(lower: Floats, upper: Floats, values: Floats) -> Floats:
    """For every row of one step, shapes (S, A, S): the p in its box that maximises p.values.

    Pass ``-values`` for the worst kernel.
    """
    S, A, n = lower.shape
    order = np.argsort(-values)
    kernel = np.empty((S, A, n))
    for s in range(S):
        for a in range(A):
            fill_row(lower[s, a], upper[s, a], order, kernel[s, a])
    return kernel


@checked_entry
def optimistic_policy(lower: Floats, upper: Floats, reward: Floats) -> tuple[Floats, Floats, Floats]:
    """argmax over policies and kernels in the box of V(reward): policy, kernel, values (H+1, S)."""
    H, S, A = reward.shape
    policy = np.zeros((H, S, A))
    kernel = np.empty(lower.shape)
    values = np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        kernel[h] = best_kernel(lower[h], upper[h], values[h + 1])
        for s in range(S):
            best, chosen = -np.inf, 0
            for a in range(A):
                action_value = reward[h, s, a]
                for t in range(S):
                    action_value += kernel[h, s, a, t] * values[h + 1, t]
                if action_value > best:
                    best, chosen = action_value, a
            policy[h, s, chosen] = 1.0
            values[h, s] = best
    return policy, kernel, values


@checked_entry
def box_values_of_policy(policy: Floats, lower: Floats, upper: Floats, reward: Floats) -> tuple[Floats, Floats]:
    """max over kernels in the box of V^policy(reward): kernel and values (H+1, S).  Negate the reward for the least."""
    H, S, A = reward.shape
    kernel = np.empty(lower.shape)
    values = np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        kernel[h] = best_kernel(lower[h], upper[h], values[h + 1])
        for s in range(S):
            for a in range(A):
                action_value = reward[h, s, a]
                for t in range(S):
                    action_value += kernel[h, s, a, t] * values[h + 1, t]
                values[h, s] += policy[h, s, a] * action_value
    return kernel, values


@entry
def inside(lower: Floats, upper: Floats, transition: Floats) -> bool:
    """Whether lower <= p <= upper at every step but the last, up to rounding; stops at the first entry that is not."""
    H, S, A, _ = transition.shape
    for h in range(H - 1):
        for s in range(S):
            for a in range(A):
                for t in range(S):
                    p = transition[h, s, a, t]
                    if not lower[h, s, a, t] - BELIEF_ROUNDING <= p <= upper[h, s, a, t] + BELIEF_ROUNDING:
                        return False
    return True


@checked_entry
def visited_bound(
    policy: Floats, lower: Floats, upper: Floats, initial: Floats, states: Integers, actions: Integers
) -> Floats:
    """max over kernels in the box of q_h(s_h, a_h), (H,): upper occupancies of one trajectory's pairs alone."""
    H, S, _ = policy.shape
    bound, order, work = np.empty(H), np.arange(S), np.zeros((2, S))
    for h in range(H):
        mass = extreme_mass(policy, lower, upper, initial, h, states[h], 1.0, order, work)
        bound[h] = mass * policy[h, states[h], actions[h]]
    return bound


@checked_entry
def occupancy_range(policy: Floats, lower: Floats, upper: Floats, mu: Floats) -> tuple[Floats, Floats]:
    """Entry by entry, the least and the largest q_h(s, a) of `policy` under any kernel in the (tightened) box."""
    H, S, A = policy.shape
    least, most = np.empty((H, S, A)), np.empty((H, S, A))
    order, work = np.arange(S), np.zeros((2, S))
    for h in range(H):
        for s in range(S):
            high = extreme_mass(policy, lower, upper, mu, h, s, 1.0, order, work)
            low = -extreme_mass(policy, lower, upper, mu, h, s, -1.0, order, work)
            for a in range(A):
                most[h, s, a], least[h, s, a] = high * policy[h, s, a], low * policy[h, s, a]
    return least, most


@checked_inner
def extreme_mass(policy, lower, upper, mu, h, s, sign, order: Integers, work) -> float:
    """The largest chance of state s at step h under a kernel in the box; with sign -1 the negative of the least."""
    reach, earlier = work[0], work[1]
    one_before(policy, upper if sign > 0.0 else lower, h, s, sign, reach)
    for g in range(h - 2, -1, -1):
        step_back(policy, lower, upper, g, reach, order, earlier)
        reach[:] = earlier
    mass = 0.0
    for x in range(reach.size):
        mass += mu[x] * reach[x]
    return mass


@checked_entry
def one_before(policy, bound, h, s, sign, reach) -> None:
    """reach(x) = sign sum_a pi_{h-1}(a|x) bound(s|x, a), the extreme chance of s at step h; sign 1{x = s} if h = 0."""
    for x in range(reach.size):
        reach[x] = 0.0
        if h > 0:
            for a in range(policy.shape[2]):
                reach[x] += sign * policy[h - 1, x, a] * bound[h - 1, x, a, s]
    if h == 0:
        reach[s] = sign


@checked_entry
def step_back(policy, lower, upper, h, values, order: Integers, earlier) -> None:
    """earlier(s) = sum_a pi_h(a|s) max_{p in the box} p.values."""
    sort_descending(values, order)
    for s in range(values.size):
        earlier[s] = 0.0
        for a in range(policy.shape[2]):
            if policy[h, s, a] > 0.0:
                earlier[s] += policy[h, s, a] * support(lower, upper, h, s, a, values, order)


@checked_entry
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
