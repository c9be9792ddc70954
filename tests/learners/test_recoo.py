import math

import numpy as np
import pytest

from omdpd.learners.recoo import RECOO
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from tests.references.instances import bandit, forward, random_cmdp, revealed
from tests.references.plain_loop import PlainCounts, Solves, dot, optimistic_tables

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_episodes_go_line_by_line(kind):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.8)
    learner, setting = RECOO(alpha_scale=0.4, epsilon=0.05), cmdp.setting(K, kind)
    rng = np.random.default_rng(1)
    tables = np.random.default_rng(2).uniform(-0.7, 0.8, (10, I, H, S, A))
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    q = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    queue = np.zeros(I)
    for k in range(1, 11):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, tables[k - 1])
        counts.add(met)
        r, d, _, _, region = optimistic_tables(counts, K)
        d = met.cost if kind == "full" else d
        gamma, eta = k**0.55, 1 / (2 * 0.4 * math.sqrt(S * A / 2) * math.sqrt(k))
        queue = np.maximum(queue + gamma * np.array([max(dot(d[i], q), 0) for i in range(I)]), k**0.05)
        state = learner.update(state, met)
        assert np.allclose(state.queue, queue, rtol=1e-9, atol=1e-12)
        Solves(region, setting.mu, q, eta).check(state.q, r, [(queue[i] * gamma, d[i]) for i in range(I)])
        q = state.q
    said = learner.report(state)
    assert said.log.solves == 10
    assert said.log.failures == 0
    assert said.saturations == 0


def test_k_need_not_be_known_and_bad_scales_are_refused():
    learner = RECOO()
    assert np.allclose(learner.policy(learner.init(Setting(H, S, A))), 1 / A)
    with pytest.raises(InvalidInputError, match="alpha_scale"):
        RECOO(alpha_scale=0.0).init(Setting(H, S, A))
