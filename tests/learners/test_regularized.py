import numpy as np

from omdpd.learners.regularized import RegularizedPrimalDual
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts
from tests.references.policy_by_hand import bonus_tables, cut_of_entropy, evaluate, exponential

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K, ROOM = 50, 0.5
# Without a margin for the kernel a few dozen episodes are enough for the multipliers to move.
SCALES = (0.2, 0.0, 0.0)


def test_episodes_go_line_by_line():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.8)
    learner = RegularizedPrimalDual(*SCALES, room=ROOM, eta_scale=3.0, tau_scale=0.5)
    rng = np.random.default_rng(1)
    setting = cmdp.setting(K, "bandit")
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    pi, lam = np.full((H, S, A), 1 / A), np.zeros(I)
    eta, tau = 3.0 * K ** (-5 / 7), 0.5 * K ** (-1 / 7)
    for _ in range(40):
        assert np.allclose(learner.policy(state), pi, rtol=0, atol=1e-10)
        assert np.allclose(state.lam, lam, rtol=0, atol=1e-10)
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
        r, d, p = bonus_tables(counts, K, SCALES)
        Q, _ = evaluate(pi, p, r, tau, 0.0, cut_of_entropy(tau, A))
        new = lam.copy()
        for i in range(I):
            Q_i, V_i = evaluate(pi, p, d[i], 0.0, -1.0, 1.0)
            Q = Q - lam[i] * Q_i
            new[i] = np.clip((1 - eta * tau) * lam[i] + eta * setting.mu @ V_i, 0.0, H / ROOM)
        # pi^(1 - eta tau) exp(eta Q) is one step of exponential weights on Q - tau ln pi.
        pi, lam = exponential(pi, Q - tau * np.log(pi), eta), new
    assert lam.max() > 0.0
