import math

import numpy as np
import pytest

from omdpd.learners.triple_q import TripleQ
from tests.references.instances import bandit, random_cmdp

H, S, A = 4, 3, 2
K = 60


@pytest.mark.parametrize("restart", [True, False])
def test_both_tables_and_the_queue_are_learnt_by_hand(restart):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, 1, budget=-0.6)
    learner = TripleQ(0.02, 0.01, 1e-6, restart)
    state = learner.init(cmdp.setting(K, "bandit"))
    rng = np.random.default_rng(1)
    chi = eta = K**0.2
    iota = 128 * math.log(math.sqrt(2 * S * A * H) * K)
    eps = 1e-6 * 8 * math.sqrt(S * A * H**6 * iota**3) / K**0.2
    Q, C, N = np.full((H, S, A), float(H)), np.full((H, S, A), float(H)), np.zeros((H, S, A))
    Z, earned, episodes, queues = 0.0, 0.0, 0, []
    for _ in range(50):
        policy = learner.policy(state)
        assert np.array_equal(policy.argmax(-1), (Q + Z / eta * C).argmax(-1))
        met = bandit(rng, cmdp, policy)
        states, actions = met.trajectory.states, met.trajectory.actions
        Q_old, C_old = Q.copy(), C.copy()
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            N[h, s, a] += 1
            alpha = (chi + 1) / (chi + N[h, s, a])
            b = 0.25 * math.sqrt(H**2 * iota * (chi + 1) / (chi + N[h, s, a]))
            V = Q_old[h + 1, states[h + 1], actions[h + 1]] if h + 1 < H else 0.0
            W = C_old[h + 1, states[h + 1], actions[h + 1]] if h + 1 < H else 0.0
            Q[h, s, a] = (1 - alpha) * Q[h, s, a] + alpha * (met.rewards[h] + V + 0.02 * b)
            C[h, s, a] = (1 - alpha) * C[h, s, a] + alpha * ((1 - met.costs[0, h]) / 2 + W + 0.01 * b)
        earned, episodes = earned + C_old[0, states[0], actions[0]], episodes + 1
        if episodes >= K**0.6:
            Z = max(Z + H / 2 + eps - earned / episodes, 0.0)
            earned, episodes = 0.0, 0
            if restart:
                Q[:], C[:], N[:] = H, H, 0
        queues.append(Z)
        state = learner.update(state, met)
        assert np.allclose(state.Q, Q, atol=1e-10)
        assert np.allclose(state.C, C, atol=1e-10)
        assert state.queue == pytest.approx(Z, abs=1e-9)
    assert max(queues) > 0.0
    assert learner.report(state).weight == pytest.approx(Z / eta / 2)
