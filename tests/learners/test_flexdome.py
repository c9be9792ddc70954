import numpy as np
import pytest

from omdpd.learners.flexdome import FlexDOME
from tests.references.lessons import UNIFORM, A, H, I, K, lessons
from tests.references.policy_by_hand import bonus_tables, cut_of_entropy, evaluate, exponential

ROOM = 0.5
SCALES = (0.2, 0.0, 0.0)


@pytest.mark.parametrize("power", [1 / 6, 1 / 8])
def test_episodes_go_line_by_line_and_the_dual_sees_the_margin(power):
    learner = FlexDOME(*SCALES, room=ROOM, eta_scale=3.0, tau_scale=0.5, margin_scale=0.8, power=power)
    pi, lam = UNIFORM, np.zeros(I)
    for k, each in enumerate(lessons(learner, 30)):
        assert np.allclose(learner.policy(each.before), pi, rtol=0, atol=1e-10)
        assert np.allclose(each.before.lam, lam, rtol=0, atol=1e-10)
        r, d, p = bonus_tables(each.counts, K, SCALES)
        tau = 0.5 * (k + 1) ** -power
        eta, eps = min(3.0 * (k + 1) ** (-2 / 3), 1 / tau), 0.5 * ROOM * 0.8 * (k + 1) ** -power
        Q, _ = evaluate(pi, p, r, tau, 0.0, cut_of_entropy(tau, A))
        cost = np.zeros(I)
        for i in range(I):
            Q_i, V_i = evaluate(pi, p, d[i], 0.0, -1.0, 1.0)
            Q, cost[i] = Q - lam[i] * Q_i, each.mu @ V_i
        pi = exponential(pi, Q, eta, 1 - eta * tau)
        lam = np.clip((1 - eta * tau) * lam + eta * (cost + eps), 0.0, H / ROOM)
    assert lam.max() > 0.0
