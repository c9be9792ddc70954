"""The reference that is given kernel and costs: its index by hand, safe from the start, near the best in the end."""

import math

import numpy as np
import pytest

from omdpd import run
from omdpd.learners import NON_LEARNERS, Informed
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import BanditFeedback, Trajectory
from tests.references.instances import forward, random_cmdp
from tests.references.trivial_world import trivial_world

H, S, A = 3, 2, 2


def told(cmdp):
    return Informed(cmdp.transition, cmdp.excess)


def test_the_index_is_mean_and_deviation_of_a_posterior_that_grows_where_visits_are_few():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A)
    learner = told(cmdp)
    state = learner.init(cmdp.setting(50, "bandit"))
    walk = Trajectory(np.zeros(H, np.int64), np.zeros(H, np.int64))
    for _ in range(30):
        state = learner.update(state, BanditFeedback(walk, np.array([1.0, 0.0, 1.0]), np.zeros((1, H))))
    index = learner.program(state).reward
    mean, often = 31 / 32, 1.0 + math.log(max(30 / (12 * 30), 1.0))
    assert index[0, 0, 0] == pytest.approx(mean + math.sqrt(mean / 32 / 33 * often))
    never = 1.0 + math.log(30 / (12 * 0.5))
    assert index[0, 1, 1] == pytest.approx(0.5 + math.sqrt(0.25 / 3 * never))


@pytest.mark.parametrize("nature", ["noisy", "pool"])
def test_it_violates_nothing_that_it_was_told_and_comes_near_the_best(nature):
    cmdp = random_cmdp(np.random.default_rng(3), H, S, A)
    history = run(cmdp, Informed(), nature, 400)
    assert history.scores.violation <= (1e-6 if nature == "noisy" else 4 * H)
    early, late = history.rows[99], history.rows[399]
    assert history.scores.regret / 400 < 0.3
    assert (late.value_sum - early.value_sum) / 300 > early.value_sum / 100 - 0.05


def test_its_plan_is_safe_under_the_costs_it_was_given():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, budget=0.1)
    learner = told(cmdp)
    q = forward(learner.policy(learner.init(cmdp.setting(9, "bandit"))), cmdp.transition, cmdp.initial)
    assert max(float((q * d).sum()) for d in cmdp.excess) <= 1e-7


def test_it_wins_nothing_and_refuses_what_does_not_fit():
    assert "Informed" in NON_LEARNERS
    cmdp = trivial_world()
    with pytest.raises(InvalidInputError, match="must be given the model"):
        Informed().init(cmdp.setting(5, "bandit"))
    with pytest.raises(InvalidInputError, match="do not fit"):
        Informed(np.ones((1, 1, 1, 1)), np.ones((1, 1, 1, 1))).init(cmdp.setting(5, "bandit"))
