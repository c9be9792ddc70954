import numpy as np
import pytest

from omdpd.learners.oracle import Oracle
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from tests.references.instances import bandit, forward, random_cmdp
from tests.references.plain_loop import dot
from tests.references.reference_programs import dual_value
from tests.references.trivial_world import BEST, late_averages, trivial_world

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


def test_the_oracle_plays_the_best_safe_policy():
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I, budget=0.1)
    learner = Oracle(cmdp.transition, cmdp.reward, cmdp.excess)
    state = learner.init(cmdp.setting(K, "bandit"))
    q = forward(learner.policy(state), cmdp.transition, cmdp.initial)
    best, _ = dual_value(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    assert dot(q, cmdp.reward) == pytest.approx(best, abs=1e-7)
    assert max(dot(q, d) for d in cmdp.excess) <= 1e-7
    met = bandit(np.random.default_rng(1), cmdp, learner.policy(state))
    assert learner.update(state, met) is state


def test_the_oracle_refuses_what_does_not_fit():
    cmdp = trivial_world()
    with pytest.raises(InvalidInputError, match="must be given the model"):
        Oracle().init(cmdp.setting(K, "bandit"))
    with pytest.raises(InvalidInputError, match="do not fit"):
        Oracle(cmdp.transition, cmdp.reward, cmdp.excess).init(Setting(H, S, A))


def test_the_trivial_world_is_solved_from_the_start():
    cmdp = trivial_world()
    value, excess, _ = late_averages(Oracle(cmdp.transition, cmdp.reward, cmdp.excess), "bandit", 8)
    assert value == pytest.approx(BEST)
    assert excess <= 1e-7


def test_the_model_may_be_lists_of_successors():
    cmdp = random_cmdp(np.random.default_rng(3), H, S, A, I, budget=0.1)
    dense = Oracle(cmdp.transition, cmdp.reward, cmdp.excess).init(cmdp.setting(K, "bandit"))
    listed = Oracle(cmdp.laws.listed(), cmdp.reward, cmdp.excess).init(cmdp.setting(K, "bandit"))
    q, p = (forward(state.policy, cmdp.transition, cmdp.initial) for state in (listed, dense))
    assert dot(q, cmdp.reward) == pytest.approx(dot(p, cmdp.reward), abs=1e-8)
    assert max(dot(q, d) for d in cmdp.excess) <= 1e-8
    with pytest.raises(InvalidInputError, match="do not fit"):
        Oracle(cmdp.laws.listed(), cmdp.reward, cmdp.excess).init(Setting(H + 1, S, A))
