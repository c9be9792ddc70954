import math

import numpy as np
import pytest

from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.problem.setting import Setting
from tests.references.lessons import A, H, I, K, S, first_occupancy, lessons
from tests.references.plain_loop import Solves, dot


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_episodes_go_line_by_line(kind):
    learner, q, V, squares = SinhaVaze(), first_occupancy(), np.zeros(I), 0.0
    for each in lessons(learner, 10, kind):
        assert np.allclose(each.before.q, q, rtol=0, atol=1e-12)
        r, d, region = each.believed
        paid = np.array([dot(d[i], q) for i in range(I)])
        V = V + np.maximum(paid, 0)
        w = np.exp(V / math.sqrt(H * K))
        grad = -r + sum(w[i] * d[i] * (paid[i] > 0) for i in range(I))
        squares += float((grad**2).sum())
        eta = math.sqrt(H) / math.sqrt(squares)
        state = each.after
        assert np.allclose(state.V, V, rtol=1e-12, atol=1e-14)
        assert math.isclose(state.eta, eta, rel_tol=1e-10)
        Solves(region, each.mu, q, eta).check(state.q, -grad, [])
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
