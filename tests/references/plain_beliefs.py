"""What the learners should believe, from the description of it and in plain NumPy: no kernel of ours is called here.

Tables are (H, S, A), laws (H, S, A, S), several tables (n, H, S, A).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

# Weights m between steps, and a of costs; a of rewards and laws is 1.  Every number of this file is written out once
# more than in the library, so that a slip there is seen here.
WEIGHTS = (0.5, 1, 2, 5, 10, 30, 100, 1000, 10_000)
COST_TRUSTS = (2, 10, 50, 250, 1000)
ONE_STEP = 1e12


class Shared(NamedTuple):
    """A table of means with the two parts of its error, and the noise of one observation."""

    mean: np.ndarray
    own: np.ndarray
    common: np.ndarray
    noise: np.ndarray

    @property
    def size(self):
        """How many observations of a row alone would tell as much, at least one."""
        return np.maximum(1 / (self.own + self.common), 1)


class Beliefs(NamedTuple):
    """The kernel with the two parts of its error, rewards without a bonus, costs, and what the bonus needs besides."""

    p: np.ndarray
    own: np.ndarray
    common: np.ndarray
    reward: Shared
    costs: tuple[Shared, ...]
    m: float
    optimistic_reward: float
    min_variance: float


class Past:
    """Counts, squares and scores, one episode at a time."""

    def __init__(self, H, S, A, I):  # noqa: E741
        self.visits, self.transitions = np.zeros((H, S, A)), np.zeros((H, S, A, S))
        self.reward_sum, self.cost_sum = np.zeros((H, S, A)), np.zeros((I, H, S, A))
        self.reward_squares, self.cost_squares = np.zeros((H, S, A)), np.zeros((I, H, S, A))
        self.kernel_score, self.reward_score = np.zeros(9), np.zeros((9, 1))
        self.cost_score = np.zeros((I, 9, 5))

    def add(self, states, actions, rewards, costs):
        """One more episode; `costs` (I, H), or none."""
        H = len(states)
        at = (np.arange(H), states, actions)
        for k, m in enumerate(WEIGHTS):  # what was expected before anything of it was counted
            p, _, _ = shared_kernel(self.transitions, self.visits, m)
            self.kernel_score[k] += np.log([p[h, states[h], actions[h], states[h + 1]] for h in range(H - 1)]).sum()
            self.reward_score[k, 0] += self._score(self.reward_sum, m, 1, at, rewards)
            for i, d in enumerate(costs):
                for j, a in enumerate(COST_TRUSTS):
                    self.cost_score[i, k, j] += self._score(self.units(i), m, a, at, (d + 1) / 2)
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            self.visits[h, s, a] += 1
            self.reward_sum[h, s, a] += rewards[h]
            self.reward_squares[h, s, a] += rewards[h] ** 2
            for i, d in enumerate(costs):
                self.cost_sum[i, h, s, a] += d[h]
                self.cost_squares[i, h, s, a] += ((d[h] + 1) / 2) ** 2
            if h + 1 < H:
                self.transitions[h, s, a, states[h + 1]] += 1

    def _score(self, sums, m, a, at, seen):
        x = np.clip(shared_table(sums, self.visits, m, self.overall(sums), a)[0][at], 1e-3, 1 - 1e-3)
        return (seen * np.log(x) + (1 - seen) * np.log(1 - x)).sum()

    def units(self, i):
        """Sums of u = (d + 1)/2."""
        return (self.cost_sum[i] + self.visits) / 2

    def overall(self, sums):
        """The mean of everything, with one observation of 1/2 more."""
        return (sums.sum() + 0.5) / (self.visits.sum() + 1)

    def beliefs(self, bandit, stationary=False, persistence=0.0):
        """Everything that is estimated from this past, without prices and margins (0.2: no persistence)."""
        n, x = self.visits, self.reward_sum
        p, own, common = shared_kernel(self.transitions, n, ONE_STEP if stationary else best_weight(self.kernel_score))
        rows = np.array([1.0, *(x[n > 0] / n[n > 0])])
        mean, coin = rows.mean(), noise_share(x, self.reward_squares, n)
        optimistic_reward, m = (
            min(mean + 2 * rows.std(), 1),
            ONE_STEP if stationary else best_weight(self.reward_score[:, 0]),
        )
        r, *errors = shared_table(x, n, m, mean if persistence > 0 else optimistic_reward, 1)
        min_variance = coin * max(mean * (1 - mean) if mean < 0.5 else 0.25, 1e-4)
        costs = tuple(self._cost(i, stationary) for i in range(len(self.cost_sum) if bandit else 0))
        return Beliefs(
            p, own, common, Shared(r, *errors, coin * r * (1 - r)), costs, m, optimistic_reward, min_variance
        )

    def _cost(self, i, stationary):
        sums, (m, a) = self.units(i), best_pair(self.cost_score[i])
        m = ONE_STEP if stationary else m
        u, *errors = shared_table(sums, self.visits, m, self.overall(sums), a)
        return Shared(2 * u - 1, *errors, 4 * noise_share(sums, self.cost_squares[i], self.visits) * u * (1 - u))


def shared_table(sums, n, m, base, a):
    """(mean, own, common): x_h = level + e_h, Var(e_h) = v/m, Var(level) = v/a, from n_h observations of each."""
    f = m / (n + m)
    T = a + (f * n).sum(0)
    level = (a * base + (f * sums).sum(0)) / T
    return np.clip((sums + m * level) / (n + m), 0, 1), 1 / (n + m), f**2 / T


def shared_kernel(moves, n, m):
    """(p, own, common): every entry like a table whose base is 1/S; nothing is known of the last step."""
    S = moves.shape[-1]
    p, own, common = np.full(moves.shape, 1 / S), np.ones(n.shape), np.zeros(n.shape)
    for t in range(S):
        p[:-1, ..., t], own[:-1], common[:-1] = shared_table(moves[:-1, ..., t], n[:-1], m, 1 / S, 1)
    return p / p.sum(-1, keepdims=True), own, common


def best_weight(score):
    """The largest m within one nat of the best."""
    return WEIGHTS[np.flatnonzero(score >= score.max() - 1)[-1]]


def best_pair(score):
    """(m, a): the same, then the a that was best with it."""
    k = np.flatnonzero(score.max(1) >= score.max() - 1)[-1]
    return WEIGHTS[k], COST_TRUSTS[score[k].argmax()]


def noise_share(sums, squares, n):
    """How much of a coin's variance observations have, one fair coin beside them."""
    seen = n >= 2
    x = sums[seen] / n[seen]
    found, coin = (squares[seen] - n[seen] * x**2).clip(0).sum(), (n[seen] * x * (1 - x)).clip(0).sum()
    return min((0.25 + found) / (0.25 + coin), 1)


def bonus(beliefs, n, prices, tables, past=None, persistence=0.0):
    """The bonus on r - sum_j price_j d_j, on a row's own and on what follows it; with persistence one that grows.

    Rows with less than a thirtieth of their even share have at least what their own `past` says, and a bonus on it.
    """
    r, optimistic_reward, min_variance = beliefs.reward, beliefs.optimistic_reward, beliefs.min_variance
    c = sum((x**2 * d.noise / d.size for x, d in zip(prices, beliefs.costs, strict=False)), np.zeros(n.shape))
    n_r, n_p = np.maximum(1 / (r.own + r.common), 1), np.maximum(1 / (beliefs.own + beliefs.common), 1)
    earned = r.mean - sum((x * d for x, d in zip(prices, tables, strict=True)), np.zeros(n.shape))
    dear, even = min(1, sum(prices)), n[0].sum() / (n.size * np.maximum(n, 0.5))
    row = None if persistence > 0 else settled_row(beliefs, n, c)
    b, V = np.empty(n.shape), np.zeros(n.shape[1])
    for h in reversed(range(len(n))):
        p = beliefs.p[h] if h + 1 < len(n) else 0 * beliefs.p[h]
        mean = p @ V
        spread = variance_of(p, V) / n_p[h]
        reach = np.minimum(0.5 / n_p[h], 1) * (V.max() - mean)
        own = np.maximum(r.noise[h], min_variance * 40 / (40 + n_r[h]))
        if row is not None:
            value = (
                0.5 * np.sqrt(own / n_r[h] + c[h] + spread) + optimistic_reward * np.minimum(0.5 / n_r[h], 1) + reach
            )
            b[h] = row[h] + dear * np.maximum(value - row[h], 0)
        else:
            due = persistence**2 * np.log(np.maximum(even[h], 1))
            b[h] = np.sqrt((0.64 + due) * (own / (n_r[h] + 1) + c[h] + 0.4 * spread))
            b[h] += np.maximum(optimistic_reward - r.mean[h], 0) / n_r[h] + dear * reach
            due = np.log(np.maximum(even[h] / 30, 1))
            extra = persistence * math.sqrt(5) / 2 * (0.5 + sum(prices if beliefs.costs else ()))
            if past is not None:
                word = own_word(beliefs, past, h, V, prices, tables) + extra * np.sqrt(due / np.maximum(n[h], 0.5))
                b[h] = np.where(due > 0, np.maximum(b[h], word), b[h])
        V = (earned[h] + b[h] + mean).max(-1)
    return b


def settled_row(beliefs, n, c):
    """What version 0.2 adds to every row by itself."""
    r, optimistic_reward = beliefs.reward, beliefs.optimistic_reward
    n_x = np.maximum(n + beliefs.m / (beliefs.m + 10) * np.maximum(1 / (r.own + r.common) - n, 0), 0.1)
    row = 0.8 * np.sqrt(np.maximum(r.noise, beliefs.min_variance * 40 / (40 + n_x)) / np.maximum(n_x, 1) + c)
    return (
        row
        + optimistic_reward * np.minimum(0.5 / n_x, 1)
        + 0.75 * np.maximum(optimistic_reward - r.mean, 0) / (n_x + 0.75)
    )


def own_word(beliefs, past, h, V, prices, tables):
    """What the rows of step h have seen themselves of r - sum_j price_j d_j + V, beyond what is believed of them."""
    n = np.maximum(past.visits[h], 1)
    p = beliefs.p[h] if h + 1 < len(past.visits) else 0 * beliefs.p[h]
    more = past.reward_sum[h] / n - beliefs.reward.mean[h] + past.transitions[h] @ V / n - p @ V
    for i, price in enumerate(prices if beliefs.costs else ()):
        more = more + price * (tables[i][h] - past.cost_sum[i][h] / n)
    return np.where(past.visits[h] > 0, more, 0.0)


def variance_of(p, V):
    """Of V under every law: around its mean, so that it is nothing where V is the same everywhere."""
    return (p * (V - (p @ V)[..., None]) ** 2).sum(-1)


def standard_error(beliefs, q, d, observed=None):
    """Of d.q for the plan q: errors of one (s, a) that its steps share are added before they are squared."""
    policy, C = conditional(q), np.zeros(q.shape[1])
    spread = np.zeros(q.shape)
    for h in reversed(range(len(q))):
        p = beliefs.p[h] if h + 1 < len(q) else 0 * beliefs.p[h]
        spread[h] = variance_of(p, C)
        C = (policy[h] * (d[h] + p @ C)).sum(-1)
    variance = noise_variance(q, spread, beliefs.own, beliefs.common)
    if observed is not None:
        variance += noise_variance(q, observed.noise, observed.own, observed.common)
    return math.sqrt(variance)


def noise_variance(q, noise, own, common):
    """Of x.q where every row of x is known up to noise."""
    return (q**2 * noise * own).sum() + ((q * np.sqrt(noise * common)).sum(0) ** 2).sum()


def conditional(q):
    """The policy of an occupancy, uniform where there is none."""
    mass = np.maximum(q, 0).sum(-1, keepdims=True)
    return np.where(mass > 1e-9, np.maximum(q, 0) / np.where(mass > 1e-9, mass, 1), 1 / q.shape[-1])


def share_after(share, exceeded, revealed):
    """The share of the margin that is asked for, after a plan that exceeds it or does not."""
    if exceeded and revealed and share <= 0.05:
        return max(share - 0.05, -1)
    if exceeded:
        return max(0.8 * share, 0.05)
    return share + 0.025 if share < 0.05 else min(1.1 * share, 1)


def distance(kept, table):
    """How far a table is from the nearest kept one, as a share of its largest entry."""
    size = np.abs(table).max()
    return min(np.abs(table - each).max() for each in kept) / size if size > 0 else 0.0


def drift(now, before):
    """sum_h (H-1-h) max_{s,a} |p_h - p_before_h|_1, h from 0."""
    moved = np.abs(now - before).sum(-1).max(axis=(1, 2))
    return sum((len(now) - 1 - h) * each for h, each in enumerate(moved))


# ------------------------------------------------------------------------------------------- the other estimators
def pooled(visits, transitions, reward_sum, cost_sum):
    """The same counts, all steps' at every step."""
    n = len(visits)
    first = [np.repeat(x.sum(0, keepdims=True), n, axis=0) for x in (visits, transitions, reward_sum)]
    return *first, np.repeat(cost_sum.sum(1, keepdims=True), n, axis=1)


def empirical(n, moves, rewards, costs, L, kappa=0.02):
    """(r~, d~, d_hat, margin, p_hat) of p_hat alone: bonus .1 sqrt(L/n) + 1/n, two costs of zero more, a margin."""
    seen, below = n > 0, np.maximum(n, 1)
    width = np.sqrt(L / below)
    reward = np.where(seen, rewards / below, 1) + 0.1 * width + 1 / below
    cost = np.where(seen, np.clip(costs / (n + 2) + kappa * width, -1, 1), 0)
    return reward, cost, costs / below, kappa * width, mean_law(moves)


def optimistic(n, rewards, costs, L, reward_scale, cost_scale, practical):
    """(r~, d~): means plus and minus bonuses; the practical form trusts what it has not seen, and is clipped."""
    below = np.maximum(n, 1)
    reward, cost = rewards / below + reward_scale * np.sqrt(L / below), costs / below - cost_scale * np.sqrt(L / below)
    if practical:
        reward, cost = np.where(n > 0, reward.clip(0, 1), 1), np.where(n > 0, cost.clip(-1, 1), -1)
    return reward, cost


def bernstein_box(moves, scale, Lp):
    """(lower, upper): p_hat +- scale (2 sqrt(p(1-p) Lp/n) + 14/3 Lp/n), cut to what a law can have."""
    n, p = moves.sum(-1, keepdims=True), mean_law(moves)
    share = Lp / np.maximum(n, 1)
    reach = scale * (2 * np.sqrt(p * (1 - p) * share) + 14 / 3 * share)
    low, high = np.where(n > 0, (p - reach).clip(0), 0), np.where(n > 0, (p + reach).clip(None, 1), 1)
    others_low, others_high = low.sum(-1, keepdims=True) - low, high.sum(-1, keepdims=True) - high
    return np.maximum(low, 1 - others_high), np.minimum(high, 1 - others_low)


def mean_law(moves):
    """p_hat, uniform where nothing was seen."""
    n = moves.sum(-1, keepdims=True)
    return np.where(n > 0, moves / np.maximum(n, 1), 1 / moves.shape[-1])
