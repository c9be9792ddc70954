import itertools

import numpy as np
import pytest

from omdpd.learners.cvops import CVOPS
from omdpd.play.scene import known_safe_policy
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.plain_loop import PlainCounts, kernel_of, logarithms, optimistic_tables
from tests.references.upper_occupancy import most_value

H, S, A, K = 3, 2, 2, 400


@pytest.mark.parametrize("told", [False, True])
def test_a_policy_is_kept_once_it_is_surely_safe_and_then_mixed_in(told):
    cmdp = random_cmdp(np.random.default_rng(3), H, S, A, 1, budget=0.6)
    room = known_safe_policy("CVOPS", cmdp).room if told else None
    learner, setting, rng = CVOPS(room=room), cmdp.setting(K, "bandit"), np.random.default_rng(1)
    state, counts = learner.init(setting), PlainCounts(H, S, A, 1)
    L, _ = logarithms((H, S, A), 1, K)
    phases = {False: 0, True: 0}

    def savings(box, low):
        """How far any policy may stay below the budget at best: all deterministic ones, tried."""
        choices = itertools.product(range(A), repeat=H * S)
        policies = (np.eye(A)[list(choice)].reshape(H, S, A) for choice in choices)
        return max(most_value(policy, box, setting.mu, -low) for policy in policies)

    for _ in range(80):
        before, policy = state.kept is not None, learner.policy(state)
        met = bandit(rng, cmdp, policy)
        counts.add(met)
        state = learner.update(state, met)
        n, seen = np.maximum(counts.n, 1), counts.n > 0
        high = np.where(seen, np.clip(counts.cost / n + 0.02 * np.sqrt(L / n), -1, 1), 1.0)[0]
        box = optimistic_tables(counts, K)[4]
        low = np.where(seen, np.clip(counts.cost / n - 0.02 * np.sqrt(L / n), -1, 1), -1.0)[0]
        kept = state.kept is not None
        phases[kept] += 1
        if not kept:
            assert most_value(learner.policy(state), box, setting.mu, high) > -(room or savings(box, low)) / 2
            continue
        if not before:
            assert state.kept_cost == pytest.approx(most_value(state.kept, box, setting.mu, high))
            assert state.kept_cost <= -(room or savings(box, low)) / 2 < 0
            assert told or state.kept_cost <= -known_safe_policy("CVOPS", cmdp).room / 2
        mass = state.q.sum(-1, keepdims=True)
        bold = np.where(mass > 1e-9, state.q / np.where(mass > 1e-9, mass, 1), 1 / A)
        worst = max(most_value(bold, box, setting.mu, high), 0.0)
        assert state.share == pytest.approx(worst / (worst - state.kept_cost), abs=1e-7)
        p = kernel_of(counts).transition
        mixed = state.share * forward(state.kept, p, setting.mu) + (1 - state.share) * forward(bold, p, setting.mu)
        assert np.allclose(forward(learner.policy(state), p, setting.mu), mixed, atol=1e-7)
    assert min(phases.values()) > 0
