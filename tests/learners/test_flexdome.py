import numpy as np
import pytest

from omdpd.learners.flexdome import FlexDOME
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts
from tests.references.policy_by_hand import bonus_tables, cut_of_entropy, evaluate, exponential

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K, ROOM = 50, 0.5
SCALES = (0.2, 0.0, 0.0)


@pytest.mark.parametrize("power", [1 / 6, 1 / 8])
def test_episodes_go_line_by_line_and_the_dual_sees_the_margin(power):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.8)
    learner, rng = (
        FlexDOME(*SCALES, room=ROOM, eta_scale=3.0, tau_scale=0.5, margin_scale=0.8, power=power),
        np.random.default_rng(1),
    )
    setting = cmdp.setting(K, "bandit")
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    pi, lam = np.full((H, S, A), 1 / A), np.zeros(I)
    for k in range(30):
        assert np.allclose(learner.policy(state), pi, rtol=0, atol=1e-10)
        assert np.allclose(state.lam, lam, rtol=0, atol=1e-10)
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
        r, d, p = bonus_tables(counts, K, SCALES)
        tau = 0.5 * (k + 1) ** -power
        eta, eps = min(3.0 * (k + 1) ** (-2 / 3), 1 / tau), 0.5 * ROOM * 0.8 * (k + 1) ** -power
        Q, _ = evaluate(pi, p, r, tau, 0.0, cut_of_entropy(tau, A))
        cost = np.zeros(I)
        for i in range(I):
            Q_i, V_i = evaluate(pi, p, d[i], 0.0, -1.0, 1.0)
            Q, cost[i] = Q - lam[i] * Q_i, setting.mu @ V_i
        pi = exponential(pi, Q, eta, 1 - eta * tau)
        lam = np.clip((1 - eta * tau) * lam + eta * (cost + eps), 0.0, H / ROOM)
    assert lam.max() > 0.0
