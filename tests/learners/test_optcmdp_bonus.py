import numpy as np
import pytest

from omdpd.learners.optcmdp_bonus import OptCMDPBonus
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.plain_loop import PlainCounts
from tests.references.policy_by_hand import bonus_tables
from tests.references.reference_programs import dual_value, least_worst_excess

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


@pytest.mark.parametrize("seed", range(3))
def test_every_plan_is_an_optimum_of_the_program_under_the_empirical_kernel(seed):
    cmdp = random_cmdp(np.random.default_rng((seed, 0)), H, S, A, I, budget=-0.6)
    learner, rng = OptCMDPBonus(), np.random.default_rng((seed, 1))
    setting = cmdp.setting(K, "bandit")
    state, counts, infeasible = learner.init(setting), PlainCounts(H, S, A, I), 0
    for k in range(10):
        r, d, p = bonus_tables(counts, K)
        policy = learner.policy(state)
        q = forward(policy, p, setting.mu)
        value, _ = dual_value(p, setting.mu, r, d)
        if value is None:
            infeasible += 1
            assert np.tensordot(d, q, axes=3).max() == pytest.approx(least_worst_excess(p, setting.mu, d), abs=1e-7)
        else:
            assert (r * q).sum() == pytest.approx(value, abs=1e-7)
            assert np.tensordot(d, q, axes=3).max() <= 1e-9
        assert learner.report(state).log.solves == k + 1
        met = bandit(rng, cmdp, policy)
        counts.add(met)
        state = learner.update(state, met)
        assert learner.report(state).infeasible >= infeasible
