import math

import numpy as np
import pytest

from omdpd.learners.needs import SafePolicy
from omdpd.learners.sops import SOPS
from omdpd.play.scene import known_safe_policy
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.kl_reference import check_kl_step
from tests.references.plain_loop import PlainCounts, dot, kernel_of, logarithms, optimistic_tables
from tests.references.upper_occupancy import most_mass, most_value

H, S, A = 4, 3, 2
K = 40


@pytest.mark.parametrize("gamma_scale", [None, 0.25])
def test_the_mixture_is_worked_out_again_line_by_line(gamma_scale):
    cmdp = random_cmdp(np.random.default_rng(3), H, S, A, 1, budget=0.5)
    safe = known_safe_policy("SOPS", cmdp)
    learner = SOPS(safe=safe, gamma_scale=gamma_scale)
    setting = cmdp.setting(K, "bandit")
    rng = np.random.default_rng(1)
    state, counts = learner.init(setting), PlainCounts(H, S, A, 1)
    L, _ = logarithms((H, S, A), 1, K)
    box = optimistic_tables(counts, K)[4]
    q = forward(np.full((H, S, A), 1 / A), np.full((H, S, A, S), 1 / S), setting.mu)
    eta = math.sqrt(math.log(8 * (H * S) ** 2 * A * K / 0.01) / (K * S * A))
    gamma = eta if gamma_scale is None else gamma_scale * eta
    assert state.share == pytest.approx(H / (H - safe.cost[0]))  # nothing seen: as if all cost 1
    shares = []
    for _ in range(15):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy)
        loss = np.zeros((H, S, A))
        for h, (s, a) in enumerate(zip(met.trajectory.states, met.trajectory.actions, strict=True)):
            loss[h, s, a] = (1 - met.rewards[h]) / (most_mass(policy, box, setting.mu, h, s, a) + gamma)
        counts.add(met)
        n, seen = np.maximum(counts.n, 1), counts.n > 0
        box = optimistic_tables(counts, K)[4]
        xi = 0.02 * np.sqrt(L / n)
        low = np.where(seen, np.clip(counts.cost / n - xi, -1, 1), -1.0)
        high = np.where(seen, np.clip(counts.cost / n + xi, -1, 1), 1.0)[0]
        near = (1 - 1 / K) * q + 1 / (K * S * A)
        state = learner.update(state, met)
        q = state.q
        check_kl_step(q, box, setting.mu, near, eta * loss, low)
        mass = q.sum(-1, keepdims=True)
        bold = np.where(mass > 0, q / np.where(mass > 0, mass, 1), 1 / A)
        worst = max(most_value(bold, box, setting.mu, high), 0.0)
        share = worst / (worst - safe.cost[0])
        assert state.share == pytest.approx(share, abs=1e-9)
        p = kernel_of(counts).transition
        mixed = share * forward(safe.policy, p, setting.mu) + (1 - share) * forward(bold, p, setting.mu)
        assert np.allclose(forward(learner.policy(state), p, setting.mu), mixed, atol=1e-9)
        assert np.allclose(learner.policy(state).sum(-1), 1.0)
        shares.append(share)
    assert min(shares) < 1.0
    assert learner.report(state).infeasible == 0


def test_an_empty_safe_set_means_the_safe_policy():
    """Every pair is seen to cost 1, whatever was promised: then only the safe policy is left."""
    cmdp = random_cmdp(np.random.default_rng(0), H, 1, 1, 1)
    safe = SafePolicy(np.ones((H, 1, 1)), np.array([-0.5]))
    learner = SOPS(safe=safe)
    state = learner.init(cmdp.setting(K, "bandit"))
    met = bandit(np.random.default_rng(1), cmdp, learner.policy(state))
    met = type(met)(met.trajectory, met.rewards, np.ones((1, H)))
    for _ in range(3):
        state = learner.update(state, met)
    assert state.share == 1.0
    assert learner.report(state).infeasible == 3


def test_the_safe_policy_is_really_safe():
    cmdp = random_cmdp(np.random.default_rng(3), H, S, A, 2, budget=0.7)
    safe = known_safe_policy("SOPS", cmdp)
    q = forward(safe.policy, cmdp.transition, cmdp.initial)
    assert np.allclose(safe.cost, [dot(d, q) for d in cmdp.excess])
    assert safe.room > 0.0
