import math

import numpy as np
import pytest

from omdpd.learners.cpdpo import CPDPO
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.boxes import best_kernel
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts, optimistic_tables
from tests.references.policy_by_hand import exponential
from tests.references.upper_occupancy import most_occupancy, most_value

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K, ROOM = 50, 0.5


def least_occupancy(policy, box, mu):
    """min over kernels of the box of q_h(s, a), one target at a time with the worst kernel of every step."""
    least = np.zeros(policy.shape)
    for h in range(H):
        for s in range(S):
            reach = np.eye(S)[s]
            for g in reversed(range(h)):
                worst = best_kernel(box.lower[g], box.upper[g], -reach)
                reach = (policy[g] * (worst @ reach)).sum(-1)
            least[h, s] = (mu @ reach) * policy[h, s]
    return least


def test_episodes_go_line_by_line():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=0.6)
    learner, rng = CPDPO(room=ROOM, eta_scale=40.0, gamma_scale=0.1, bonus_scale=0.2), np.random.default_rng(1)
    setting = cmdp.setting(K, "bandit")
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    pi, large = np.full((H, S, A), 1 / A), (H + 1) / ROOM
    eta = 40.0 * min(1 / (24 * H**3), 1 / math.sqrt(S * H * A * H * K))
    gamma, switched = 0.1 * 2 * eta * H, 0
    for _ in range(K):
        assert np.allclose(learner.policy(state), pi, rtol=0, atol=1e-9)
        box = optimistic_tables(counts, K)[4]
        d = np.where(counts.n > 0, np.clip(counts.cost / np.maximum(counts.n, 1), -1, 1), 1.0)
        met = bandit(rng, cmdp, learner.policy(state))
        cost = [most_value(pi, box, setting.mu, d[i]) for i in range(I)]
        lam = large * (np.array(cost) > 0)
        switched += bool(lam.any())
        u, w = most_occupancy(pi, box, setting.mu), least_occupancy(pi, box, setting.mu)
        loss = (1 - met.rewards + lam @ (1 + met.costs)) / (1 + 2 * I * large)
        assert np.all((loss >= 0) & (loss <= 1))
        b = 0.2 * (pi * (3 * gamma * H + H * (u - w)) / (u + gamma)).sum(-1)
        B = np.repeat(b[:, :, None], A, axis=2)
        for h in reversed(range(H - 1)):
            follow = (pi[h + 1] * B[h + 1]).sum(-1)
            B[h] += (1 + 1 / H) * best_kernel(box.lower[h], box.upper[h], follow) @ follow
        gains = B
        for h, (s, a) in enumerate(zip(met.trajectory.states, met.trajectory.actions, strict=True)):
            gains[h, s, a] -= loss[h:].sum() / (u[h, s, a] + gamma)
        counts.add(met)
        state = learner.update(state, met)
        assert np.array_equal(state.lam, lam)
        pi = exponential(pi, gains, eta)
    assert 0 < switched < K


def test_theory_has_the_papers_constants():
    rates = CPDPO.theory(ROOM).rates(Setting(H, S, A, n_episodes=K), 0)
    assert rates.eta == pytest.approx(min(1 / (24 * H**3), 1 / math.sqrt(S * H * A * H * K)))
    assert rates.most == pytest.approx((H + 1) / ROOM)
