import numpy as np

from omdpd.learners.regularized import RegularizedPrimalDual
from tests.references.lessons import UNIFORM, A, H, I, K, lessons
from tests.references.policy_by_hand import bonus_tables, cut_of_entropy, evaluate, exponential

ROOM = 0.5
# Without a margin for the kernel a few dozen episodes are enough for the multipliers to move.
SCALES = (0.2, 0.0, 0.0)


def test_episodes_go_line_by_line():
    learner = RegularizedPrimalDual(*SCALES, room=ROOM, eta_scale=3.0, tau_scale=0.5)
    pi, lam = UNIFORM, np.zeros(I)
    eta, tau = 3.0 * K ** (-5 / 7), 0.5 * K ** (-1 / 7)
    for each in lessons(learner, 40):
        assert np.allclose(learner.policy(each.before), pi, rtol=0, atol=1e-10)
        assert np.allclose(each.before.lam, lam, rtol=0, atol=1e-10)
        r, d, p = bonus_tables(each.counts, K, SCALES)
        Q, _ = evaluate(pi, p, r, tau, 0.0, cut_of_entropy(tau, A))
        new = lam.copy()
        for i in range(I):
            Q_i, V_i = evaluate(pi, p, d[i], 0.0, -1.0, 1.0)
            Q = Q - lam[i] * Q_i
            new[i] = np.clip((1 - eta * tau) * lam[i] + eta * each.mu @ V_i, 0.0, H / ROOM)
        # pi^(1 - eta tau) exp(eta Q) is one step of exponential weights on Q - tau ln pi.
        pi, lam = exponential(pi, Q - tau * np.log(pi), eta), new
    assert lam.max() > 0.0
