import math

import numpy as np
import pytest

from omdpd.learners.bvops import BVOPS
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.kl_reference import check_kl_step
from tests.references.plain_loop import PlainCounts, optimistic_tables
from tests.references.reference_programs import extended_value
from tests.references.upper_occupancy import most_mass

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 40


@pytest.mark.parametrize("gamma_scale", [None, 0.25])
def test_losses_are_weighted_by_upper_occupancies_and_projected_on_the_safe_set(gamma_scale):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=-0.4)
    learner = BVOPS(gamma_scale=gamma_scale)
    setting = cmdp.setting(K, "bandit")
    rng = np.random.default_rng(1)
    state, counts = learner.init(setting), PlainCounts(H, S, A, I)
    q = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    box = optimistic_tables(counts, K)[4]
    u = math.log(8 * I * (H * S) ** 2 * A * K / 0.01)
    eta = math.sqrt(H * u / (K * H * S * A))
    gamma = eta if gamma_scale is None else gamma_scale * eta
    binding = empty = 0
    for _ in range(15):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy)
        loss = np.zeros((H, S, A))
        for h, (s, a) in enumerate(zip(met.trajectory.states, met.trajectory.actions, strict=True)):
            loss[h, s, a] = (1 - met.rewards[h]) / (most_mass(policy, box, setting.mu, h, s, a) + gamma)
        counts.add(met)
        _, d, _, _, box = optimistic_tables(counts, K)
        near = (1 - 1 / K) * q + 1 / (K * S * A)
        state = learner.update(state, met)
        if extended_value(box, setting.mu, np.zeros((H, S, A)), d)[0] is None:
            empty += 1
        else:
            check_kl_step(state.q, box, setting.mu, near, eta * loss, d)
            binding += bool((np.tensordot(d, state.q, axes=3) > -1e-6).any())
        q = state.q
    said = learner.report(state)
    assert said.infeasible == empty
    assert binding > 0
    assert said.step_size == pytest.approx(eta)
    assert said.log.failures == 0
