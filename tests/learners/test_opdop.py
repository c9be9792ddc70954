import math

import numpy as np
import pytest

from omdpd.learners.opdop import OPDOP
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts, kernel_of, logarithms
from tests.references.trivial_world import BEST, late_averages

H, S, A = 4, 3, 2
K = 60


def evaluate(policy, p, table):
    """Q clipped to [0, H - h], and the first values."""
    Q, V = np.zeros((H, S, A)), np.zeros(S)
    for h in range(H - 1, -1, -1):
        Q[h] = np.clip(table[h] + p[h] @ V, 0.0, H - h)
        V = (policy[h] * Q[h]).sum(axis=1)
    return Q, V


@pytest.mark.parametrize("ridge", [True, False])
def test_exponential_weights_and_dual_are_worked_out_again(ridge):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, 1, budget=-1.0)
    learner = OPDOP(0.2, 0.02, 0.002, primal_scale=30.0, dual_scale=40.0, room=0.8, ridge=ridge)
    setting = cmdp.setting(K, "bandit")
    rng = np.random.default_rng(1)
    state, counts = learner.init(setting), PlainCounts(H, S, A, 1)
    policy, Y, duals = np.full((H, S, A), 1 / A), 0.0, []
    L, _ = logarithms((H, S, A), 1, K)
    for _ in range(K):
        assert np.allclose(learner.policy(state), policy, atol=1e-10)
        met = bandit(rng, cmdp, policy)
        counts.add(met)
        n = counts.n + 1 if ridge else np.maximum(counts.n, 1)
        p = counts.moves / (counts.moves.sum(-1, keepdims=True) + 1) if ridge else kernel_of(counts).transition
        extra = 0.002 * H * np.sqrt(S * L / n)
        r = counts.reward / n + 0.2 * np.sqrt(L / n) + extra
        g = (counts.n - counts.cost[0]) / 2 / n + 0.02 * np.sqrt(L / n) + extra
        for h, s, a in np.argwhere((counts.n == 0) & (not ridge)):
            r[h, s, a] = g[h, s, a] = H - h
        Q_r, _ = evaluate(policy, p, r)
        Q_g, V_g = evaluate(policy, p, g)
        alpha = 30 * math.sqrt(math.log(A) / (H**2 * K))
        raw = ((1 - 1 / K) * policy + 1 / (K * A)) * np.exp(alpha * (Q_r + Y * Q_g))
        policy = raw / raw.sum(-1, keepdims=True)
        Y = min(max(Y + 40 / math.sqrt(K) * (H / 2 - setting.mu @ V_g), 0.0), 2 * H / 0.4)
        duals.append(Y)
        state = learner.update(state, met)
        assert state.dual == pytest.approx(Y, abs=1e-9)
    assert max(duals) > 0.0
    assert learner.report(state).weight == pytest.approx(Y / 2)


def test_a_pair_that_was_never_seen_is_worth_all_that_is_left_however_small_the_bonus():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, 1)
    met = bandit(np.random.default_rng(1), cmdp, np.full((H, S, A), 1 / A))
    left = np.arange(H, 0, -1.0)[:, None, None] * np.ones((H, S, A))
    for learner, optimistic in (
        (OPDOP(0.0, 0.0, 0.0, room=1.0), True),
        (OPDOP(0.0, 0.0, 0.0, room=1.0, ridge=True), False),
    ):
        state = learner.update(learner.init(cmdp.setting(K, "bandit")), met)
        Q_r, Q_g, _ = learner._evaluate(state, state.counts)
        unseen = state.counts.visits == 0.0
        assert np.array_equal(Q_r[unseen], left[unseen]) == optimistic
        assert np.array_equal(Q_g[unseen], left[unseen]) == optimistic


@pytest.mark.slow
def test_regret_per_episode_falls_with_the_number_of_episodes():
    values = [late_averages(OPDOP(room=1.2), "bandit", episodes)[0] for episodes in (200, 6400)]
    assert abs(BEST - values[1]) < abs(BEST - values[0])
