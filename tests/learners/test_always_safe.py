from dataclasses import replace

import numpy as np
import pytest

from omdpd import run
from omdpd.learners.always_safe import AlwaysSafe
from omdpd.play.scene import with_known_facts
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.plain_loop import PlainCounts, dot, optimistic_tables
from tests.references.reference_programs import dual_value

H, S, A, K = 4, 3, 2, 60


def test_every_plan_is_the_best_under_the_given_kernel_and_costs_and_the_given_reward_is_not_read():
    cmdp, rng = random_cmdp(np.random.default_rng(2), H, S, A, 1, budget=0.4), np.random.default_rng(3)
    setting = cmdp.setting(K, "bandit")
    learner = with_known_facts(AlwaysSafe(), cmdp, "bandit")
    blind = replace(learner, estimator=replace(learner.estimator, reward=np.zeros((H, S, A))))
    state, other, counts = learner.init(setting), blind.init(setting), PlainCounts(H, S, A, 1)
    for _ in range(20):
        policy = learner.policy(state)
        assert np.array_equal(policy, blind.policy(other))
        r = optimistic_tables(counts, K)[0]
        q = forward(policy, cmdp.transition, cmdp.initial)
        best, _ = dual_value(cmdp.transition, cmdp.initial, r, cmdp.excess)
        assert dot(r, q) == pytest.approx(best, abs=1e-7)
        assert dot(cmdp.excess[0], q) <= 1e-7
        met = bandit(rng, cmdp, policy)
        counts.add(met)
        state, other = learner.update(state, met), blind.update(other, met)


def test_no_episode_violates_and_the_reward_is_learned():
    cmdp = random_cmdp(np.random.default_rng(4), H, S, A, 1, budget=0.4)
    history = run(cmdp, AlwaysSafe(), "noisy", 300)
    assert history.scores.violation <= 1e-6
    gaps = history.comparator.value - np.asarray(history.values)
    assert gaps[-100:].mean() < 0.5 * gaps[:100].mean()


def test_without_the_model_it_does_not_start():
    with pytest.raises(InvalidInputError, match="must be given the model"):
        AlwaysSafe().init(Setting(H, S, A))
