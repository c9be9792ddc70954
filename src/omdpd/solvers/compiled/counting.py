"""What one more episode does to counts, and what the counts say of rewards, costs and the kernel.

Tables are written into arrays that callers have just made: an array that is returned costs ten times one that is handed
in.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.boxes import tighten_row
from omdpd.solvers.compiled.options import ENTRY


@njit(**ENTRY)
def add_counts(
    visits: Floats,
    transitions: Floats,
    reward_sum: Floats,
    cost_sum: Floats,
    S: int,
    A: int,
    states: Integers,
    actions: Integers,
    rewards: Floats,
    costs: Floats,
) -> None:
    """Add one episode to counts over rows e = (h, s, a), in place; `costs` (I, H), or none where none are summed."""
    H = len(states)
    for h in range(H):
        e = (h * S + states[h]) * A + actions[h]
        visits[e] += 1.0
        reward_sum[e] += rewards[h]
        if h + 1 < H:
            transitions[e, states[h + 1]] += 1.0
        for i in range(len(costs)):
            cost_sum[i, e] += costs[i, h]


@njit(**ENTRY)
def empirical_tables(
    visits: Floats,
    transitions: Floats,
    reward_sum: Floats,
    cost_sum: Floats,
    L: float,
    kappa: float,
    reward_scale: float,
    one_over_n: float,
    pseudo: float,
    reward: Floats,
    cost: Floats,
    mean: Floats,
    margin: Floats,
    p: Floats,
) -> None:
    """Write r~, d~, d_hat, the margin and p_hat of an empirical estimator into the last five.

    r~ = r_hat + reward_scale sqrt(L/n) + one_over_n/n and d~ = clip(sum / (n + pseudo) + kappa sqrt(L/n), -1, 1);
    n = 0 counts as n = 1 with r_hat = 1 and d~ = 0.  The margin is kappa sqrt(L/n); p_hat is uniform where no next
    state was seen.
    """
    H, S, A = visits.shape
    m = len(cost_sum)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                seen = visits[h, s, a]
                n = max(seen, 1.0)
                width = np.sqrt(L / n)
                reward[h, s, a] = reward_sum[h, s, a] / n if seen > 0.0 else 1.0
                reward[h, s, a] = reward[h, s, a] + reward_scale * width + one_over_n / n
                margin[h, s, a] = kappa * width
                for i in range(m):
                    total = cost_sum[i, h, s, a]
                    shrunk = total / max(seen + pseudo, 1.0)
                    cost[i, h, s, a] = min(max(shrunk + kappa * width, -1.0), 1.0) if seen > 0.0 else 0.0
                    mean[i, h, s, a] = total / n
                left = 0.0
                for t in range(S):
                    left += transitions[h, s, a, t]
                for t in range(S):
                    p[h, s, a, t] = transitions[h, s, a, t] / left if left > 0.0 else 1.0 / S


@njit(**ENTRY)
def optimistic_tables(
    visits: Floats,
    reward_sum: Floats,
    cost_sum: Floats,
    L: float,
    reward_scale: float,
    cost_scale: float,
    clip: bool,
    trusting: bool,
    reward: Floats,
    cost: Floats,
) -> None:
    """Write r~ = r_hat + reward_scale sqrt(L/n) and d~ = d_hat - cost_scale sqrt(L/n) into the last two.

    `clip` cuts them to [0, 1] and [-1, 1]; with `trusting` a pair that was never met has r~ = 1 and d~ = -1.
    """
    H, S, A = visits.shape
    m = len(cost_sum)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                seen = visits[h, s, a]
                trusted = trusting and seen == 0.0
                n = max(seen, 1.0)
                width = np.sqrt(L / n)
                r = 1.0 if trusted else reward_sum[h, s, a] / n + reward_scale * width
                reward[h, s, a] = min(max(r, 0.0), 1.0) if clip else r
                for i in range(m):
                    d = -1.0 if trusted else cost_sum[i, h, s, a] / n - cost_scale * width
                    cost[i, h, s, a] = min(max(d, -1.0), 1.0) if clip else d


@njit(**ENTRY)
def box_bounds(transitions: Floats, scale: float, Lp: float, lower: Floats, upper: Floats) -> None:
    """Write the box of half-width scale (2 sqrt(p(1-p) Lp/n) + (14/3) Lp/n) around p_hat, tightened, into the last two.

    The whole simplex where nothing was seen.
    """
    H, S, A, _ = transitions.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                n = 0.0
                for t in range(S):
                    n += transitions[h, s, a, t]
                share = Lp / max(n, 1.0)
                for t in range(S):
                    p = transitions[h, s, a, t] / max(n, 1.0)
                    reach = scale * (2.0 * np.sqrt(p * (1.0 - p) * share) + (14.0 / 3.0) * share)
                    lower[h, s, a, t] = max(p - reach, 0.0) if n > 0.0 else 0.0
                    upper[h, s, a, t] = min(p + reach, 1.0) if n > 0.0 else 1.0
                tighten_row(lower[h, s, a], upper[h, s, a])
