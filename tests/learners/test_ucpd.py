import math

import numpy as np
import pytest

from omdpd.learners.ucpd import UCPD
from tests.references.instances import forward, random_cmdp, revealed
from tests.references.kl_reference import check_kl_step
from tests.references.plain_loop import PlainCounts, dot, optimistic_tables
from tests.references.trivial_world import BEST, late_averages

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 30


def test_every_step_is_the_drift_plus_penalty_step_over_the_set_of_its_epoch():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I)
    learner = UCPD(step_scale=20.0)
    setting = cmdp.setting(K, "full")
    rng = np.random.default_rng(1)
    tables = np.random.default_rng(2).uniform(-0.6, 1.0, (12, I, H, S, A))
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    q = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    queue, at_renewal, region, renewals = np.zeros(I), np.zeros((H, S, A)), optimistic_tables(counts, K)[4], 0
    V, alpha = H * math.sqrt(K), H * K / 20.0
    for d in tables:
        assert np.allclose(state.q, q, rtol=0, atol=1e-12)
        met = revealed(rng, cmdp, learner.policy(state), d)
        counts.add(met)
        r, _, _, _, newest = optimistic_tables(counts, K)
        if any(counts.n[i] - at_renewal[i] >= max(at_renewal[i], 1) for i in np.ndindex(H, S, A)):
            region, at_renewal, renewals = newest, counts.n.copy(), renewals + 1
        near = (1 - 1 / K) * q + 1 / (K * S * A)
        loss = -V * r + sum(queue[i] * d[i] for i in range(I))
        state = learner.update(state, met)
        check_kl_step(state.q, region, setting.mu, near, loss / alpha)
        q = state.q
        queue = np.array([max(queue[i] + dot(d[i], q), 0.0) for i in range(I)])
        assert np.allclose(state.queue, queue)
    assert 0 < renewals < len(tables)
    said = learner.report(state)
    assert said.log.failures == 0
    assert said.weight == pytest.approx(queue.max() / V)
    assert said.step_size == pytest.approx(V / alpha)


@pytest.mark.slow
def test_weak_violation_per_episode_falls_with_the_number_of_episodes():
    early = late_averages(UCPD(), "full", 400)
    late = late_averages(UCPD(), "full", 6400)
    assert abs(late[0] - BEST) < max(abs(early[0] - BEST), 0.1)
    assert late[1] < 0.15
