import math

import numpy as np
import pytest

from omdpd.learners.episode_safe import EpisodeSafe
from omdpd.play.scene import known_safe_policy
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts, logarithms
from tests.references.policy_by_hand import bonus_tables

H, S, A, K = 4, 3, 2, 60


def soft(p, r, b, d, price, alpha, mu):
    """The soft-max pass of the three value functions, with whole arrays; b comes with its factor, apart."""
    (factor, bonus), V, policy = b, np.zeros((3, S)), np.zeros((H, S, A))
    for h in range(H - 1, -1, -1):
        Q = np.stack([r[h], bonus[h], d[h]]) + (p[h] @ V[:, None, :, None])[..., 0]
        Q = np.stack([np.minimum(Q[0], H - h), *np.clip(Q[1:], -(H - h), H - h)])
        score = alpha * (Q[0] + factor * Q[1] - price * Q[2])
        weights = np.exp(score - score.max(axis=1, keepdims=True))
        policy[h] = weights / weights.sum(axis=1, keepdims=True)
        V = (policy[h] * Q).sum(-1)
    return policy, float(mu @ V[2])


@pytest.mark.parametrize("c", [0.0, 0.3])
def test_the_least_price_that_is_surely_safe_is_played_or_else_the_safe_policy(c):
    cmdp = random_cmdp(np.random.default_rng(2), H, S, A, 1, budget=0.4)
    safe = known_safe_policy("EpisodeSafe", cmdp)
    learner = EpisodeSafe(0.2, 0.02, 0.0, cost_transition_scale=0.001, alpha=30.0, most=50.0, compensation=c, safe=safe)
    setting, rng = cmdp.setting(K, "bandit"), np.random.default_rng(1)
    state, counts = learner.init(setting), PlainCounts(H, S, A, 1)
    assert np.array_equal(learner.policy(state), safe.policy)
    fell_back = planned = 0
    L, Lp = logarithms((H, S, A), 1, K)
    for _ in range(K):
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
        r, _, p = bonus_tables(counts, K, (0.2, 0.0, 0.0))
        d, b = np.zeros((H, S, A)), np.zeros((H, S, A))
        for h, s, a in np.ndindex(H, S, A):
            n, m = counts.n[h, s, a], counts.moves[h, s, a].sum()
            mean = counts.cost[0, h, s, a] / max(n, 1)
            width = sum(2 * math.sqrt(x * (1 - x) * Lp / max(m, 1)) + 14 / 3 * Lp / max(m, 1) for x in p[h, s, a])
            kernel = 0.001 * H * width if h < H - 1 else 0.0
            d[h, s, a] = min(min(mean + 0.02 * math.sqrt(L / n), 1.0) + kernel, H - h) if n else H - h
            b[h, s, a] = d[h, s, a] - mean
        repaid = c * H / safe.room, b
        policy, cost = soft(p, r, repaid, d, state.price, 30.0, setting.mu)
        if cost > 0.0:
            fell_back += 1
            assert state.price == 50.0
            assert np.array_equal(learner.policy(state), safe.policy)
        else:
            planned += 1
            assert np.allclose(learner.policy(state), policy, atol=1e-8)
            if state.price > 0.0:
                assert soft(p, r, repaid, d, state.price - 1e-9, 30.0, setting.mu)[1] > -1e-9
    assert learner.report(state).infeasible == fell_back
    assert planned > 0


def test_a_wider_margin_for_the_kernel_makes_costs_dearer():
    cmdp = random_cmdp(np.random.default_rng(2), H, S, A, 1, budget=0.4)
    setting = cmdp.setting(K, "bandit")
    state = EpisodeSafe(safe=known_safe_policy("EpisodeSafe", cmdp))
    counts = state.init(setting).counts
    for seed in range(20):
        counts = counts.add(bandit(np.random.default_rng(seed), cmdp, np.full((H, S, A), 1 / A)))
    plain, wide = (EpisodeSafe(cost_transition_scale=c).pessimistic(setting, counts, 20) for c in (0.0, 0.01))
    assert np.all(wide >= plain)
    assert np.any(wide[:, :-1] > plain[:, :-1])
    assert np.array_equal(wide[:, -1], plain[:, -1])
