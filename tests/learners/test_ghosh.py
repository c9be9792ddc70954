import math

import numpy as np
import pytest

from omdpd.learners.ghosh import GhoshZhouShroff
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts
from tests.references.policy_by_hand import bonus_tables

H, S, A = 4, 3, 2
K, ROOM = 60, 0.8
SCALES = (0.2, 0.0, 0.0)


def soft(p, r, d, price, alpha, mu):
    """The soft-max pass for one constraint, with whole arrays."""
    V_r, V_d, policy = np.zeros(S), np.zeros(S), np.zeros((H, S, A))
    for h in range(H - 1, -1, -1):
        Q_r = np.minimum(r[h] + p[h] @ V_r, H - h)
        Q_d = np.clip(d[h] + p[h] @ V_d, -(H - h), H - h)
        score = alpha * (Q_r - price * Q_d)
        weights = np.exp(score - score.max(axis=1, keepdims=True))
        policy[h] = weights / weights.sum(axis=1, keepdims=True)
        V_r, V_d = (policy[h] * Q_r).sum(1), (policy[h] * Q_d).sum(1)
    return policy, float(mu @ V_d)


@pytest.mark.parametrize("dual", ["average", "hard"])
def test_policies_and_prices_are_worked_out_again(dual):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, 1, budget=-0.6)
    learner = GhoshZhouShroff(*SCALES, room=ROOM, alpha_scale=5.0, dual_scale=20.0, dual=dual)
    setting, rng = cmdp.setting(K, "bandit"), np.random.default_rng(1)
    state, counts, Y = learner.init(setting), PlainCounts(H, S, A, 1), 0.0
    xi = 2 * H / ROOM
    alpha = 5.0 * math.log(A) * math.sqrt(K) / (2 * (1 + xi + H))
    priced = 0
    for _ in range(K):
        r, d, p = bonus_tables(counts, K, SCALES)
        if dual == "hard":
            Y = float(state.prices[0])
            policy, cost = soft(p, r, d[0], Y, alpha, setting.mu)
            assert cost <= 1e-9 or pytest.approx(xi) == Y
            if Y > 0.0:
                priced += 1
                assert soft(p, r, d[0], Y - 1e-9, alpha, setting.mu)[1] > -1e-9
        else:
            assert state.prices[0] == pytest.approx(Y, abs=1e-9)
            policy, cost = soft(p, r, d[0], Y, alpha, setting.mu)
            Y = min(max(Y + 20.0 * xi / math.sqrt(K * H**2) * cost, 0.0), xi)
            priced += Y > 0.0
        assert np.allclose(learner.policy(state), policy, atol=1e-8)
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
    assert priced > 0
