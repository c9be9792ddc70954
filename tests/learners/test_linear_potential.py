import math

import numpy as np
import pytest

from omdpd.learners.linear_potential import LinearPotential
from tests.references.lessons import H, I, K, first_occupancy, lessons
from tests.references.plain_loop import Solves, dot


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_the_linear_potential_goes_line_by_line(kind):
    learner, q, lam, squares = LinearPotential(dual_scale=3.0), first_occupancy(), np.zeros(I), 0.0
    for each in lessons(learner, 10, kind):
        r, d, region = each.believed
        lam = np.maximum(lam + 3.0 * np.array([dot(x, q) for x in d]) / math.sqrt(H * K), 0.0)
        grad = -r + sum(lam[i] * d[i] for i in range(I))
        squares += float((grad**2).sum())
        Solves(region, each.mu, q, math.sqrt(H / squares)).check(each.after.q, -grad, [])
        assert np.allclose(each.after.lam, lam)
        q = each.after.q
    assert learner.report(each.after).weight == pytest.approx(lam.max())
