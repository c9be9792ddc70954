import math

import numpy as np
import pytest

from omdpd.learners.optprimaldual import OptPrimalDual
from omdpd.problem.setting import Setting
from tests.references.lessons import UNIFORM, A, H, I, K, S, lessons
from tests.references.policy_by_hand import bonus_tables, evaluate, exponential

ROOM = 0.5
# Without a margin for the kernel a few dozen episodes are enough for the multipliers to move.
SCALES = (0.2, 0.0, 0.0)


def test_episodes_go_line_by_line():
    learner = OptPrimalDual(*SCALES, room=ROOM, primal_scale=30.0, dual_scale=2.0)
    pi, lam, rho = UNIFORM, np.zeros(I), H / ROOM
    step = 30.0 * math.sqrt(2 * math.log(A) / (H**2 * (1 + I * rho) ** 2 * K))
    for each in lessons(learner, 40):
        assert np.allclose(learner.policy(each.before), pi, rtol=0, atol=1e-10)
        assert np.allclose(each.before.lam, lam, rtol=0, atol=1e-10)
        r, d, p = bonus_tables(each.counts, K, SCALES)
        Q, _ = evaluate(pi, p, r, 0.0, 0.0, 1.0)
        new = lam.copy()
        for i in range(I):
            Q_i, V_i = evaluate(pi, p, d[i], 0.0, -1.0, 1.0)
            Q = Q - lam[i] * Q_i
            new[i] = min(max(lam[i] + 2.0 * rho / (H * math.sqrt(I * K)) * each.mu @ V_i, 0.0), rho)
        pi, lam = exponential(pi, Q, step), new
    assert lam.max() > 0.0


def test_theory_has_the_papers_steps():
    rates = OptPrimalDual.theory(ROOM).rates(Setting(H, S, A, n_episodes=K), 0)
    assert rates.eta == pytest.approx(math.sqrt(2 * math.log(A) / K) / (H * (1 + H / ROOM)))
    assert rates.rate == pytest.approx(1 / (ROOM * math.sqrt(K)))
