import numpy as np
import pytest

from omdpd.learners.exploration import exploring_step
from omdpd.learners.wcops import WCOPS
from tests.references.instances import bandit, random_cmdp
from tests.references.kl_reference import check_kl_step
from tests.references.plain_loop import PlainCounts, optimistic_tables
from tests.references.reference_programs import extended_value
from tests.references.upper_occupancy import most_mass

H, S, A, I, K = 4, 3, 2, 2, 40  # noqa: E741


@pytest.mark.parametrize("gamma", [None, 0.3])
def test_steps_are_projections_on_the_safe_set_of_weighted_costs(gamma):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.4)
    learner, setting, rng = WCOPS(power=0.6, gamma_scale=gamma), cmdp.setting(K, "bandit"), np.random.default_rng(1)
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    box, q, eta = optimistic_tables(counts, K)[4], state.q, exploring_step(setting, K, 0.01)
    history = {}
    checked = 0
    for _ in range(12):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy)
        loss = np.zeros((H, S, A))
        for h, (s, a) in enumerate(zip(met.trajectory.states, met.trajectory.actions, strict=True)):
            loss[h, s, a] = (1 - met.rewards[h]) / (most_mass(policy, box, setting.mu, h, s, a) + (gamma or 1.0) * eta)
            history.setdefault((h, s, a), []).append(met.costs[:, h])
        counts.add(met)
        box = optimistic_tables(counts, K)[4]
        d = np.full((I, H, S, A), -1.0)
        for (h, s, a), costs in history.items():
            beta = [n**-0.6 for n in range(1, len(costs) + 1)]
            weights = [b * np.prod([1 - later for later in beta[n + 1 :]]) for n, b in enumerate(beta)]
            assert sum(weights) == pytest.approx(1.0)
            d[:, h, s, a] = np.array(weights) @ np.array(costs)
        near = (1 - 1 / K) * q + 1 / (K * S * A)
        state = learner.update(state, met)
        assert np.allclose(np.where(counts.n > 0, state.cost, -1.0), d, atol=1e-12)
        if extended_value(box, setting.mu, np.zeros((H, S, A)), d)[0] is not None:
            checked += 1
            check_kl_step(state.q, box, setting.mu, near, eta * loss, d)
        q = state.q
    assert checked > 0


def test_with_power_one_the_costs_are_means():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I)
    learner, rng = WCOPS(power=1.0), np.random.default_rng(1)
    state = learner.init(cmdp.setting(K, "bandit"))
    for _ in range(10):
        state = learner.update(state, bandit(rng, cmdp, learner.policy(state)))
    assert np.allclose(state.cost, state.counts.cost_mean())
