import math

import numpy as np
import pytest

from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.problem.setting import Setting
from tests.references.instances import bandit, forward, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, Solves, dot, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_episodes_go_line_by_line(kind):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.8)
    learner = SinhaVaze()
    setting = cmdp.setting(K, kind)
    rng = np.random.default_rng(1)
    tables = np.random.default_rng(2).uniform(-0.7, 1.0, (10, I, H, S, A))
    state = learner.init(setting)
    counts = PlainCounts(H, S, A, I)
    q = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    V, squares = np.zeros(I), 0.0
    for k in range(10):
        assert np.allclose(state.q, q, rtol=0, atol=1e-12)
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, tables[k])
        counts.add(met)
        r, d, _, _, region = optimistic_tables(counts, K)
        d = met.cost if kind == "full" else d
        paid = np.array([dot(d[i], q) for i in range(I)])
        V = V + np.maximum(paid, 0)
        w = np.exp(V / math.sqrt(H * K))
        grad = -r + sum(w[i] * d[i] * (paid[i] > 0) for i in range(I))
        squares += float((grad**2).sum())
        eta = math.sqrt(H) / math.sqrt(squares)
        state = learner.update(state, met)
        assert np.allclose(state.V, V, rtol=1e-12, atol=1e-14)
        assert math.isclose(state.eta, eta, rel_tol=1e-10)
        Solves(region, setting.mu, q, eta).check(state.q, -grad, [])
        q = state.q
    said = learner.report(state)
    assert said.log.solves == 10
    assert said.log.failures == 0
    assert said.weight == pytest.approx(w.max())
    assert said.step_size == pytest.approx(eta)


def test_the_initial_weight_is_a_setting():
    state = SinhaVaze(w0=0.25).init(Setting(H, S, A, n_episodes=K))
    assert state.potential.slope(np.zeros(1))[0] == 0.25


def test_the_published_constants():
    potential = SinhaVaze.published().init(Setting(H, S, A, n_episodes=K)).potential
    assert potential.w0 == pytest.approx(1 / (2 * math.sqrt(K)))
    assert potential.beta == pytest.approx(1 / (2 * math.sqrt(K)) / (2 * math.sqrt(H * S * A) * math.sqrt(2 * H)))
