"""The two learners as plain loops, written from their definition and not from the library.

Every episode is worked out again from the raw feedback with plain NumPy and the general QP solver, and compared with
what the learner did.  The learner's own occupancies are taken over once they have been checked, so that the general
solver's inaccuracy does not add up.
"""

from __future__ import annotations

import math

import numpy as np

from omdpd.problem.setting import FullFeedback
from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.regions import Box, Kernel
from tests.references.general_qp import general_step
from tests.references.instances import forward, kernel_inside, random_policy

DELTA = 0.01
# The general solver stops at 1e-11; relative to the size of the objective its answer is good to this.
ACCURACY = 1e-8


class PlainCounts:
    """Sums over what was met, one entry at a time."""

    def __init__(self, H, S, A, I):  # noqa: E741
        self.n, self.moves = np.zeros((H, S, A)), np.zeros((H, S, A, S))
        self.reward, self.cost = np.zeros((H, S, A)), np.zeros((I, H, S, A))

    def add(self, feedback):
        states, actions = feedback.trajectory.states, feedback.trajectory.actions
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            self.n[h, s, a] += 1
            self.reward[h, s, a] += feedback.rewards[h]
            if not isinstance(feedback, FullFeedback):
                self.cost[:, h, s, a] += feedback.costs[:, h]
            if h + 1 < len(states):
                self.moves[h, s, a, states[h + 1]] += 1


def logarithms(shape, n_constraints, K):
    """L = ln(6 (I+1) SAHK / delta) and Lp = ln(6 SAHK / delta)."""
    size = math.prod(shape) * K / DELTA
    return math.log(6 * (n_constraints + 1) * size), math.log(6 * size)


def box_of(counts, scale, Lp):
    """p_hat +- scale (2 sqrt(p_hat (1 - p_hat) Lp / n) + 14/3 Lp / n), the whole simplex where n = 0."""
    H, S, A = counts.n.shape
    lower, upper = np.zeros((H, S, A, S)), np.ones((H, S, A, S))
    for h, s, a in np.argwhere(counts.moves.sum(-1) > 0):
        n = counts.moves[h, s, a].sum()
        p = counts.moves[h, s, a] / n
        reach = scale * (2 * np.sqrt(p * (1 - p) * Lp / n) + 14 / 3 * Lp / n)
        lower[h, s, a], upper[h, s, a] = np.maximum(p - reach, 0), np.minimum(p + reach, 1)
    return Box(*tighten(lower, upper))


def kernel_of(counts):
    """p_hat, uniform where n = 0."""
    H, S, A = counts.n.shape
    p = np.full((H, S, A, S), 1 / S)
    for h, s, a in np.argwhere(counts.moves.sum(-1) > 0):
        p[h, s, a] = counts.moves[h, s, a] / counts.moves[h, s, a].sum()
    return Kernel(p)


def optimistic_tables(counts, K):
    """(r~, d~, cost that counts, margin, region) of the small box: r bonus .2, d bonus 0, p scale .005, clipped."""
    I = len(counts.cost)  # noqa: E741
    L, Lp = logarithms(counts.n.shape, I, K)
    seen, n = counts.n > 0, np.maximum(counts.n, 1)
    r = np.where(seen, np.clip(counts.reward / n + 0.2 * np.sqrt(L / n), 0, 1), 1.0)
    d = np.where(seen, np.clip(counts.cost / n, -1, 1), -1.0)
    return r, d, d, np.zeros(counts.n.shape), box_of(counts, 0.005, Lp)


def cautious_tables(kappa):
    """The same for p_hat alone: r^ + .1 sqrt(L/n) + 1/n, two pseudo-observations and kappa sqrt(L/n) on cost."""

    def tables(counts, K):
        I = len(counts.cost)  # noqa: E741
        L, _ = logarithms(counts.n.shape, I, K)
        seen, n = counts.n > 0, np.maximum(counts.n, 1)
        r = np.where(seen, counts.reward / n, 1.0) + 0.1 * np.sqrt(L / n) + 1 / n
        d = np.where(seen, np.clip(counts.cost / (counts.n + 2) + kappa * np.sqrt(L / n), -1, 1), 0.0)
        return r, d, counts.cost / n, kappa * np.sqrt(L / n), kernel_of(counts)

    return tables


def theory_tables(counts, K):
    """r^ + sqrt(L/n), d^ - sqrt(L/n) with n v 1, unclipped, and the box at scale 1."""
    L, Lp = logarithms(counts.n.shape, len(counts.cost), K)
    n = np.maximum(counts.n, 1)
    return counts.reward / n + np.sqrt(L / n), counts.cost / n - np.sqrt(L / n), box_of(counts, 1.0, Lp)


def remember(kept, table, capacity):
    """Put a table last; of parallel ones the larger stays; capacity 0 keeps the last; zero tables are not kept."""
    if capacity == 0:
        return [table] if np.abs(table).max() > 0 else []
    if np.abs(table).max() == 0:
        return kept
    for i, known in enumerate(kept):
        if np.allclose(known / np.abs(known).max(), table / np.abs(table).max(), rtol=0, atol=1e-12):
            larger = table if np.abs(table).max() > np.abs(known).max() else known
            return [*kept[:i], *kept[i + 1 :], larger]
    return [*kept, table][-capacity:]


def distance(x, y):
    """1/2 |x - y|^2."""
    return 0.5 * float(((x - y) ** 2).sum())


def dot(x, y):
    """<x, y>."""
    return float((x * y).sum())


class Solves:
    """Checks an occupancy against the general solver's, as a minimiser of eta f + D(., reference)."""

    def __init__(self, region, mu, reference, eta):
        self.region, self.mu, self.reference, self.eta = region, mu, reference, eta

    def check(self, q, r, hinges):
        """`hinges` is a list of (weight, table); f(q) = -r.q + sum w [d.q]^+."""
        tables = np.array([d for _, d in hinges]).reshape(len(hinges), *r.shape)
        weights = np.array([w for w, _ in hinges])
        expected, _ = general_step(self.region, self.mu, self.reference, -r, self.eta, tables, weights)
        slack = ACCURACY * max(1.0, self.eta * (1.0 + weights.sum()))
        mine, theirs = self.objective(q, r, hinges), self.objective(expected, r, hinges)
        assert mine <= theirs + slack, (mine, theirs)
        assert distance(q, expected) <= 2.0 * slack
        assert abs(q.sum() - len(r)) < 1e-9
        assert q.min() >= -1e-12

    def objective(self, q, r, hinges):
        return self.eta * surrogate(q, r, hinges) + distance(q, self.reference)


def surrogate(q, r, hinges):
    """-r.q + sum w [d.q]^+."""
    return -dot(r, q) + sum(w * max(dot(d, q), 0.0) for w, d in hinges)


def follow_proximal(learner, state, cmdp, tables_of, episodes, feedback_of, *, memory=8, first_k=1, rng):
    """Check `episodes` episodes of ProximalOMDPD line by line, from `state` on; returns (state, what happened).

    `tables_of(counts, K)` gives (r~, d~, cost that counts, margin, region); `feedback_of(policy, k)` plays an episode.
    """
    setting = state.setting
    H, S, A = setting.shape
    I, mu = setting.n_constraints, setting.mu  # noqa: E741
    full = setting.feedback == "full"
    counts, kept = PlainCounts(H, S, A, I), [[] for _ in range(I)]
    V, eta = np.zeros(I), float(H)
    q_hat = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), mu)
    q_before, moved, skipped, slowest = None, 0, 0, 0.0
    for k in range(first_k, first_k + episodes):
        K = setting.n_episodes if setting.n_episodes is not None else max(k, 256)
        gamma = 16 / math.sqrt(I * H * K)
        # 1
        r, d, counted, width, region = tables_of(counts, K)
        b = 0.0 if q_before is None else dot(q_before, width)
        lift = [[table + b / H * np.abs(table).max() for table in tables] for tables in kept]
        # 2
        w = np.minimum(np.minimum(np.exp(gamma * V), 1e6), 1e4 / eta)
        m = [(w[i], d[i]) for i in range(I)] if not full else [(w[i], t) for i in range(I) for t in lift[i]]
        q = state.q
        assert np.allclose(state.V, V, rtol=1e-12, atol=1e-14), k
        assert math.isclose(state.eta, eta, rel_tol=1e-9), k
        assert np.allclose(state.q_hat, q_hat, rtol=0, atol=1e-12), k
        assert np.allclose(state.believed.reward, r, rtol=0, atol=1e-12), k
        assert state.k == k - 1
        Solves(region, mu, q_hat, eta).check(q, r, m)
        # 3
        policy = learner.policy(state)
        mass = q.sum(-1, keepdims=True)
        seen = mass > 1e-9  # below, a mass is what the solver leaves of zero
        assert np.allclose(policy, np.where(seen, q / np.where(seen, mass, 1), 1 / A), rtol=0, atol=1e-12)
        feedback = feedback_of(policy, k)
        after = [remember(kept[i], feedback.cost[i], memory) for i in range(I)] if full else kept
        # 4
        met = feedback.cost if full else counted
        paid = np.array([max(dot(met[i], q), 0.0) for i in range(I)])
        paid[paid <= 1e-7 * np.maximum(1.0, H * np.abs(met).reshape(I, -1).max(axis=1))] = 0.0
        V = V + paid
        moved += bool(paid.any())
        w_after = np.minimum(np.minimum(np.exp(gamma * V), 1e6), 1e4 / eta)
        # 5
        lift = [[table + b / H * np.abs(table).max() for table in tables] for tables in after]
        f = [(w_after[i], d[i]) for i in range(I)] if not full else [(w_after[i], t) for i in range(I) for t in lift[i]]
        log_before = learner.report(state).log.solves
        state = learner.update(state, feedback)
        spent = learner.report(state).log.solves - log_before
        if as_set(f) == as_set(m):
            skipped += 1
            assert spent == 1
            q_hat_after = q
        else:
            assert spent == 2
            q_hat_after = state.q_hat
            Solves(region, mu, q_hat, eta).check(q_hat_after, r, f)
        # 6
        change = (surrogate(q, r, f) - surrogate(q, r, m)) - (
            surrogate(q_hat_after, r, f) - surrogate(q_hat_after, r, m)
        )
        delta = change - (distance(q_hat_after, q) + distance(q, q_hat)) / eta
        # The per-episode inequality, at random points of the set.
        for _ in range(5):
            p = region.transition if isinstance(region, Kernel) else kernel_inside(rng, region)
            u = forward(random_policy(rng, H, S, A), p, mu)
            left = surrogate(q, r, f) - surrogate(u, r, f)
            right = (distance(u, q_hat) - distance(u, q_hat_after)) / eta + delta
            assert left <= right + 1e-6 * max(1.0, 1.0 / eta), (k, left, right)
        eta = 1 / (1 / eta + max(delta, 0.0) / (H / 16))
        slowest = max(slowest, delta)
        counts.add(feedback)
        q_before, q_hat, kept = q, q_hat_after, after
        for i in range(I if full else 0):
            assert len(state.memory[i].tables) == len(kept[i])
            assert all(np.array_equal(x, y) for x, y in zip(state.memory[i].tables, kept[i], strict=True))
    return state, {"moved": moved, "skipped": skipped, "surprise": slowest}


def as_set(hinges):
    """Hinges as a set: the order of remembered tables does not matter."""
    return {(w, d.tobytes()) for w, d in hinges}
