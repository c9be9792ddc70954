import math

import numpy as np
import pytest

from omdpd.learners.optpess_primal_dual import OptPessPrimalDual
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts, kernel_of

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 60


def plain_greedy(p, r, d, prices, mu):
    """The truncated backward pass, one state at a time."""
    V_r, V_d, policy = np.zeros(S), np.zeros((I, S)), np.zeros((H, S, A))
    for h in range(H - 1, -1, -1):
        left = H - h
        Q_r = np.minimum(r[h] + p[h] @ V_r, left)
        Q_d = np.array([np.clip(d[i, h] + p[h] @ V_d[i], -left, left) for i in range(I)])
        score = Q_r - np.tensordot(prices, Q_d, axes=1)
        chosen = score.argmax(axis=1)
        policy[h, np.arange(S), chosen] = 1.0
        V_r, V_d = Q_r[np.arange(S), chosen], Q_d[:, np.arange(S), chosen]
    return policy, V_d @ mu


def test_plans_and_dual_are_worked_out_again():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.6)
    learner = OptPessPrimalDual(0.2, 0.1, 0.01, tightening_scale=1e-3, room=0.3)
    setting = cmdp.setting(K, "bandit")
    rng = np.random.default_rng(1)
    state, counts, lam = learner.init(setting), PlainCounts(H, S, A, I), np.zeros(I)
    Z = math.log(16 * S**2 * A * H * K / 0.01)
    priced = 0
    for k in range(1, 31):
        n = np.maximum(counts.n, 1)
        beta = np.sqrt(Z / n)
        r = counts.reward / n + (0.2 + 0.01 * H * S) * beta
        d = counts.cost / n - (0.1 + 0.01 * H * S) * beta
        policy, costs = plain_greedy(kernel_of(counts).transition, r, d, lam / (0.3 * H * math.sqrt(k)), setting.mu)
        assert np.array_equal(learner.policy(state), policy)
        met = bandit(rng, cmdp, policy)
        counts.add(met)
        log = math.log(k / 0.01)
        eps = 1e-3 * 5 * H**2 * math.sqrt(S**3 * A) * (log + 1) / math.sqrt(k * log)
        lam = np.maximum(lam + costs + eps, 0.0)
        priced += bool(lam.any())
        state = learner.update(state, met)
        assert np.allclose(state.lam, lam, atol=1e-10)
    assert priced
    assert learner.report(state).weight == pytest.approx(lam.max() / (0.3 * H * math.sqrt(31)))
