import math

import numpy as np
import pytest

from omdpd.learners.recoo import RECOO
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from tests.references.lessons import A, H, I, S, first_occupancy, lessons
from tests.references.plain_loop import Solves, dot


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_episodes_go_line_by_line(kind):
    learner, q, queue = RECOO(alpha_scale=0.4, epsilon=0.05), first_occupancy(), np.zeros(I)
    for k, each in enumerate(lessons(learner, 10, kind, 0.8), 1):
        (r, d, region), state = each.believed, each.after
        gamma, eta = k**0.55, 1 / (2 * 0.4 * math.sqrt(S * A / 2) * math.sqrt(k))
        queue = np.maximum(queue + gamma * np.array([max(dot(d[i], q), 0) for i in range(I)]), k**0.05)
        assert np.allclose(state.queue, queue, rtol=1e-9, atol=1e-12)
        Solves(region, each.mu, q, eta).check(state.q, r, [(queue[i] * gamma, d[i]) for i in range(I)])
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
