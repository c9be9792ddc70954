import math

import numpy as np
import pytest

from omdpd.learners.optpess_lp import OptPessLP
from omdpd.play.scene import known_safe_policy
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.plain_loop import PlainCounts, dot, kernel_of
from tests.references.reference_programs import dual_value

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 60


CASES = [((0.2, 0.0, 0.005), 1), ((0.3, 0.01, 0.002), I), ((1.0, 1.0, 1.0), 1)]


@pytest.mark.parametrize(("scales", "n_constraints"), CASES)
def test_every_plan_is_the_safe_policy_or_an_optimum_of_the_pessimistic_program(scales, n_constraints):
    cmdp = random_cmdp(np.random.default_rng(2), H, S, A, n_constraints, budget=0.7)
    safe = known_safe_policy("OptPessLP", cmdp)
    learner = OptPessLP(*scales, safe=safe)
    setting = cmdp.setting(K, "bandit")
    rng = np.random.default_rng(3)
    state, counts = learner.init(setting), PlainCounts(H, S, A, n_constraints)
    Z = math.log(16 * S**2 * A * H * K / 0.01)
    solves = infeasible = 0
    for _ in range(40):
        met = bandit(rng, cmdp, learner.policy(state))
        counts.add(met)
        state = learner.update(state, met)
        n, p = np.maximum(counts.n, 1), kernel_of(counts).transition
        beta = np.sqrt(Z / n)
        r = counts.reward / n + (scales[0] + scales[2] * (S * H + 4 * H * (1 + S * H) / safe.room)) * beta
        d = counts.cost / n + (scales[1] + scales[2] * H * S) * beta
        q0 = forward(safe.policy, p, setting.mu)
        policy = learner.policy(state)
        if any(dot(d[i], q0) >= safe.cost[i] / 2 for i in range(n_constraints)):
            assert np.array_equal(policy, safe.policy)
            continue
        solves += 1
        best, _ = dual_value(p, setting.mu, r, d)
        if best is None:
            infeasible += 1
            assert np.array_equal(policy, safe.policy)
            continue
        q = forward(policy, p, setting.mu)
        assert dot(r, q) == pytest.approx(best, abs=1e-6)
        assert max(dot(d[i], q) for i in range(n_constraints)) <= 1e-7
    said = learner.report(state)
    assert (said.log.solves, said.infeasible) == (solves, infeasible)
    assert (solves > 0) == (scales[2] < 1.0)  # with the published bonuses nothing but the safe policy is ever played
