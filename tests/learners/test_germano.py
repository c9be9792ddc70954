import math

import numpy as np
import pytest

from omdpd.learners.germano import Germano
from tests.references.instances import forward, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, Solves, dot, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 16


def test_both_players_move_as_they_should():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I)
    learner = Germano(dual_scale=30.0)
    setting = cmdp.setting(K, "full")
    rng = np.random.default_rng(1)
    tables = np.random.default_rng(2).uniform(-0.6, 1.0, (12, I, H, S, A))
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    q = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    lam, at_renewal, region, largest, capped = np.zeros(I), np.zeros((H, S, A)), None, 0.0, 0
    for k, d in enumerate(tables, start=1):
        met = revealed(rng, cmdp, learner.policy(state), d)
        counts.add(met)
        r, _, _, _, newest = optimistic_tables(counts, K)
        if region is None or np.any(counts.n - at_renewal >= np.maximum(at_renewal, 1)):
            region, at_renewal = newest, counts.n.copy()
        grad = -r + sum(lam[i] * d[i] for i in range(I))
        largest = max(largest, np.abs(grad).max())
        eta = 1 / (largest * math.sqrt(k))
        state = learner.update(state, met)
        Solves(region, setting.mu, q, eta).check(state.q, -grad, [])
        lam = np.array([min(max(lam[i] + 30 / (H * math.sqrt(K)) * dot(d[i], q), 0.0), K**0.25) for i in range(I)])
        capped += bool((lam == K**0.25).any())
        assert np.allclose(state.lam, lam)
        assert state.eta == pytest.approx(eta)
        q = state.q
    assert capped
    assert learner.report(state).log.failures == 0
