import math

import numpy as np
import pytest

from omdpd.learners.lekeufack_jordan import LekeufackJordan
from omdpd.problem.setting import Setting
from tests.references.instances import bandit, forward, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, Solves, dot, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_episodes_go_line_by_line(kind):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.8)
    learner, setting = LekeufackJordan(w0=0.7, beta_root=2.0), cmdp.setting(K, kind)
    rng = np.random.default_rng(1)
    tables = np.random.default_rng(2).uniform(-0.7, 1.0, (10, I, H, S, A))
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    q = q_hat = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    V, errors, hint, eta = np.zeros(I), [0.0], np.zeros((H, S, A)), math.sqrt(H)
    for k in range(10):
        assert np.allclose(state.q, q, rtol=0, atol=1e-12)
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, tables[k])
        counts.add(met)
        r, d, _, _, region = optimistic_tables(counts, K)
        d = met.cost if kind == "full" else d
        V = V + [max(dot(d[i], q), 0) for i in range(I)]
        w = 0.7 * np.exp(2.0 / math.sqrt(H * K) * V)
        grad = -r + sum(w[i] * d[i] * (dot(d[i], q) > 0) for i in range(I))
        state = learner.update(state, met)
        Solves(region, setting.mu, q_hat, eta).check(state.q_hat, -grad, [])
        errors.append(errors[-1] + float(((grad - hint) ** 2).sum()))
        eta = math.sqrt(H) * min(1 / (math.sqrt(errors[-1]) + math.sqrt(errors[-2])), 1)
        assert state.eta == pytest.approx(eta, rel=1e-10)
        q_hat = state.q_hat
        hint = -r + sum(w[i] * d[i] * (dot(d[i], q_hat) > 0) for i in range(I))
        Solves(region, setting.mu, q_hat, eta).check(state.q, -hint, [])
        q = state.q
    said = learner.report(state)
    assert said.log.solves == 20
    assert said.log.failures == 0
    assert said.weight == pytest.approx(w.max())


def test_the_published_constants_are_those_of_the_family_s_source():
    potential = LekeufackJordan.published().init(Setting(H, S, A, n_episodes=K)).potential
    assert potential.slope(np.zeros(1))[0] == pytest.approx(1 / (2 * math.sqrt(K)))
    growth = math.log(potential.slope(np.ones(1))[0] / potential.slope(np.zeros(1))[0])
    assert growth == pytest.approx(1 / (4 * math.sqrt(K) * math.sqrt(H * S * A) * math.sqrt(2 * H)))
