import numpy as np

from omdpd.beliefs.bonuses import IteratedLogBonus
from omdpd.learners.uopt_rpgpd import UOptRPGPD
from omdpd.problem.setting import Setting
from tests.references.lessons import UNIFORM, A, H, I, K, S, lessons
from tests.references.policy_by_hand import bonus_tables, cut_of_entropy, evaluate, exponential

# Without a margin for the kernel a few dozen episodes are enough for the multipliers to move.
SCALES = (0.2, 0.0, 0.0)


def test_episodes_go_line_by_line():
    learner, pi, lam = UOptRPGPD(*SCALES), UNIFORM, np.zeros(I)
    for k, each in enumerate(lessons(learner, 40)):
        assert np.allclose(learner.policy(each.before), pi, rtol=0, atol=1e-10)
        assert np.allclose(each.before.lam, lam, rtol=0, atol=1e-10)
        r, d, p = bonus_tables(each.counts, K, SCALES)
        eta, tau = (k + 3) ** -0.53, (k + 3) ** -0.4
        Q, _ = evaluate(pi, p, r, tau, 0.0, cut_of_entropy(tau, A))
        for i in range(I):
            Q = Q - lam[i] * evaluate(pi, p, d[i], 0.0, -1.0, 1.0)[0]
        pi = exponential(pi, Q, eta, 1 - eta * tau)
        cost = np.array([each.mu @ evaluate(pi, p, d[i], 0.0, -1.0, 1.0)[1] for i in range(I)])
        lam = np.maximum(lam + eta * (cost - tau * lam), 0.0)
    assert lam.max() > 0.0


def test_the_published_bonus_is_an_option_and_k_need_not_be_known():
    learner = UOptRPGPD.published()
    assert isinstance(learner.bonus, IteratedLogBonus)
    state = learner.init(Setting(H, S, A))
    assert np.allclose(learner.policy(state), 1 / A)
