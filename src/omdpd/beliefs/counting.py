"""What one more episode does to counts, and what the counts say of rewards, costs and the kernel.

Tables are written into arrays that callers have just made: an array that is returned costs ten times one that is handed
in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from omdpd.jit.decorators import checked_entry, entry, rule
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.boxes import tighten_row


def bernstein(p: Any, share: Any) -> Any:
    """Bernstein's half-width 2 sqrt(p(1-p) Lp/n) + (14/3) Lp/n of a mean p, share = Lp/n; of numbers or arrays."""
    return 2.0 * np.sqrt(p * (1.0 - p) * share) + (14.0 / 3.0) * share


half_width = rule(bernstein)


@rule
def interval(p: float, reach: float, n: float) -> tuple[float, float]:
    """p +- reach inside [0, 1], and all of it where nothing was seen."""
    return (max(p - reach, 0.0), min(p + reach, 1.0)) if n > 0.0 else (0.0, 1.0)


@entry
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


@entry
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


@entry
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


@entry
def box_bounds(transitions: Floats, scale: float, Lp: float, lower: Floats, upper: Floats) -> None:
    """Write the box of `scale` times Bernstein's half-width around p_hat, tightened, into the last two.

    The whole simplex where nothing was seen.
    """
    H, S, A, _ = transitions.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                n = transitions[h, s, a].sum()
                share = Lp / max(n, 1.0)
                for t in range(S):
                    p = transitions[h, s, a, t] / max(n, 1.0)
                    lower[h, s, a, t], upper[h, s, a, t] = interval(p, scale * half_width(p, share), n)
                tighten_row(lower[h, s, a], upper[h, s, a])


@entry
def write_box(transitions: Floats, reach: Floats, lower: Floats, upper: Floats) -> None:
    """Write the box of half-width `reach` (H, S, A, S) around p_hat, tightened, into the last two."""
    H, S, A, _ = transitions.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                n = transitions[h, s, a].sum()
                for t in range(S):
                    p = transitions[h, s, a, t] / max(n, 1.0)
                    lower[h, s, a, t], upper[h, s, a, t] = interval(p, reach[h, s, a, t], n)
                tighten_row(lower[h, s, a], upper[h, s, a])


@checked_entry
def bernstein_width(transitions: Floats, departures: Floats, transition: Floats, Lp: float) -> Floats:
    """The sum over t of Bernstein's half-widths, those of the confidence box of scale one."""
    H, S, A, _ = transitions.shape
    width = np.zeros((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                share = Lp / max(departures[h, s, a], 1.0)
                for t in range(S):
                    width[h, s, a] += half_width(transition[h, s, a, t], share)
    return width


@checked_entry
def iterated_log_width(departures: Floats, transition: Floats, constant: float) -> Floats:
    """phi sum_t sqrt(p) + 5 phi^2 with phi^2 = (2 ln ln max(2n, e) + constant) / max(n, 1)."""
    H, S, A, _ = transition.shape
    width = np.empty((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                n = departures[h, s, a]
                square = (2.0 * np.log(np.log(max(2.0 * n, math.e))) + constant) / max(n, 1.0)
                total = 0.0
                for t in range(S):
                    total += np.sqrt(transition[h, s, a, t])
                width[h, s, a] = np.sqrt(square) * total + 5.0 * square
    return width


@checked_entry
def has_doubled(visits: Floats, before: Floats) -> bool:
    """Whether some pair was met as often since `before` as until then (once is enough for a new pair)."""
    now, then = visits.ravel(), before.ravel()
    for i in range(now.size):
        if now[i] - then[i] >= max(then[i], 1.0):
            return True
    return False
