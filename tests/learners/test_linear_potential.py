import math

import numpy as np
import pytest

from omdpd.learners.linear_potential import LinearPotential
from tests.references.instances import bandit, forward, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, Solves, dot, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_the_linear_potential_goes_line_by_line(kind):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.8)
    learner = LinearPotential(dual_scale=3.0)
    setting = cmdp.setting(K, kind)
    rng = np.random.default_rng(1)
    tables = np.random.default_rng(2).uniform(-0.7, 1.0, (10, I, H, S, A))
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    q = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    lam, squares = np.zeros(I), 0.0
    for table in tables:
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, table)
        counts.add(met)
        r, d, _, _, region = optimistic_tables(counts, K)
        d = met.cost if kind == "full" else d
        lam = np.maximum(lam + 3.0 * np.array([dot(x, q) for x in d]) / math.sqrt(H * K), 0.0)
        grad = -r + sum(lam[i] * d[i] for i in range(I))
        squares += float((grad**2).sum())
        state = learner.update(state, met)
        Solves(region, setting.mu, q, math.sqrt(H / squares)).check(state.q, -grad, [])
        assert np.allclose(state.lam, lam)
        q = state.q
    assert learner.report(state).weight == pytest.approx(lam.max())
