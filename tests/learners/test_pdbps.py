import math

import numpy as np

from omdpd.learners.pdbps import PDBPS
from omdpd.solvers.compiled.boxes import best_kernel
from tests.learners.test_cpdpo import least_occupancy
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts, optimistic_tables
from tests.references.policy_by_hand import exponential
from tests.references.upper_occupancy import most_occupancy

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


def test_episodes_go_line_by_line():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.6)
    scales = {"eta_scale": 40.0, "gamma_scale": 0.1, "bonus_scale": 0.2, "dual_scale": 8.0}
    learner, rng = PDBPS(**scales), np.random.default_rng(1)
    setting = cmdp.setting(K, "bandit")
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    pi, lam, largest = np.full((H, S, A), 1 / A), np.zeros(I), 1.0
    eta = 40.0 * min(1 / (24 * H**3), 1 / math.sqrt(S * H * A * H * K))
    gamma, most = 0.1 * 2 * eta * H, K**0.25
    for _ in range(K):
        assert np.allclose(learner.policy(state), pi, rtol=0, atol=1e-9)
        assert np.allclose(state.lam, lam)
        box = optimistic_tables(counts, K)[4]
        met = bandit(rng, cmdp, learner.policy(state))
        largest = max(largest, 1 + 2 * sum(lam))
        loss = [
            (1 - met.rewards[h] + sum(lam[i] * (1 + met.costs[i, h]) for i in range(I))) / largest for h in range(H)
        ]
        assert min(loss) >= 0
        assert max(loss) <= 1
        u, w = most_occupancy(pi, box, setting.mu), least_occupancy(pi, box, setting.mu)
        b = 0.2 * (pi * (3 * gamma * H + H * (u - w)) / (u + gamma)).sum(-1)
        gains = np.repeat(b[:, :, None], A, axis=2)
        for h in reversed(range(H - 1)):
            follow = (pi[h + 1] * gains[h + 1]).sum(-1)
            gains[h] += (1 + 1 / H) * best_kernel(box.lower[h], box.upper[h], follow) @ follow
        for h, (s, a) in enumerate(zip(met.trajectory.states, met.trajectory.actions, strict=True)):
            gains[h, s, a] -= sum(loss[h:]) / (u[h, s, a] + gamma)
        counts.add(met)
        state = learner.update(state, met)
        pi = (1 - 1 / K) * exponential(pi, gains, eta) + 1 / (K * A)
        lam = np.array([min(max(lam[i] + 8.0 / (H * math.sqrt(K)) * met.costs[i].sum(), 0.0), most) for i in range(I)])
    assert lam.max() > 0.0
    assert pi.min() >= 1 / (K * A) * (1 - 1e-12)
