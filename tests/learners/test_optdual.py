import math

import numpy as np
import pytest

from omdpd.learners.optdual import OptDual
from omdpd.solvers.compiled.boxes import box_values_of_policy
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.plain_loop import PlainCounts, optimistic_tables
from tests.references.reference_programs import extended_value

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K, ROOM = 50, 0.5


def test_episodes_go_line_by_line():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.6)
    learner, rng = OptDual(room=ROOM), np.random.default_rng(1)
    setting = cmdp.setting(K, "bandit")
    state, counts, lam = learner.init(setting), PlainCounts(H, S, A, I), np.zeros(I)
    rate = (H / ROOM) / (H * math.sqrt(I * K))
    for _ in range(12):
        r, d, _, _, box = optimistic_tables(counts, K)
        assert np.allclose(state.lam, lam, rtol=0, atol=1e-10)
        table = r - np.tensordot(lam, d, axes=1)
        policy = learner.policy(state)
        # The policy and the kernel of the box that suits it best reach the optimum of the joint program.
        value, _ = extended_value(box, setting.mu, table, np.zeros((0, H, S, A)))
        kernel, V = box_values_of_policy(policy, box.lower, box.upper, table)
        assert setting.mu @ V[0] == pytest.approx(value, abs=1e-8)
        assert set(np.unique(policy)) <= {0.0, 1.0}
        met = bandit(rng, cmdp, policy)
        state = learner.update(state, met)
        lam = np.maximum(lam + rate * np.tensordot(d, forward(policy, kernel, setting.mu), axes=3), 0.0)
        counts.add(met)
    assert lam.max() > 0.0
    assert learner.report(state).weight == pytest.approx(lam.max())
