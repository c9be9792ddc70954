import math

import numpy as np
import pytest

from omdpd.learners.lekeufack_jordan import LekeufackJordan
from omdpd.problem.setting import Setting
from tests.references.lessons import A, H, I, K, S, first_occupancy, lessons
from tests.references.plain_loop import Solves, dot


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_episodes_go_line_by_line(kind):
    learner, q, q_hat = LekeufackJordan(w0=0.7, beta_root=2.0), first_occupancy(), first_occupancy()
    V, errors, hint, eta = np.zeros(I), [0.0], np.zeros((H, S, A)), math.sqrt(H)
    for each in lessons(learner, 10, kind):
        assert np.allclose(each.before.q, q, rtol=0, atol=1e-12)
        (r, d, region), state = each.believed, each.after
        V = V + [max(dot(d[i], q), 0) for i in range(I)]
        w = 0.7 * np.exp(2.0 / math.sqrt(H * K) * V)
        grad = -r + sum(w[i] * d[i] * (dot(d[i], q) > 0) for i in range(I))
        Solves(region, each.mu, q_hat, eta).check(state.q_hat, -grad, [])
        errors.append(errors[-1] + float(((grad - hint) ** 2).sum()))
        eta = math.sqrt(H) * min(1 / (math.sqrt(errors[-1]) + math.sqrt(errors[-2])), 1)
        assert state.eta == pytest.approx(eta, rel=1e-10)
        q_hat = state.q_hat
        hint = -r + sum(w[i] * d[i] * (dot(d[i], q_hat) > 0) for i in range(I))
        Solves(region, each.mu, q_hat, eta).check(state.q, -hint, [])
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
