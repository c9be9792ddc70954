import numpy as np
import pytest

from omdpd.learners.plan_lp import UNMET, PlanLP
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.solvers.programs import best_policy
from tests.references.instances import bandit, forward, random_cmdp, revealed
from tests.references.opened import opened
from tests.references.plain_beliefs import Past, bonus, standard_error

H, S, A, I = 4, 3, 2, 2  # noqa: E741


def world(seed=0, budget=0.3):
    return random_cmdp(np.random.default_rng((seed, 1)), H, S, A, I, budget)


@pytest.mark.parametrize("kind", ["bandit", "full"])
def test_a_plan_is_the_optimum_of_the_program_that_is_stated(kind):
    cmdp, learner = world(), PlanLP()
    rng = np.random.default_rng(2)
    state, past = learner.init(cmdp.setting(50, kind)), Past(H, S, A, I)
    for _ in range(12):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess)
        before, state = state, learner.update(state, met)
        past.add(met.trajectory.states, met.trajectory.actions, met.rewards, met.costs if kind == "bandit" else ())
        beliefs = past.beliefs(kind == "bandit")
        reward = beliefs.reward.mean + bonus(beliefs, past.visits, before.prices.each, before.prices.tables)
        tables = [(cost.mean, cost, 1.0) for cost in beliefs.costs] or [(d, None, 1.5) for d in cmdp.excess]
        for found, (d, observed, z) in zip(state.prices.tables, tables, strict=True):
            lift = z * state.caution.share * standard_error(beliefs, before.q, d, observed) / H
            assert np.allclose(found, d + lift, rtol=0.0, atol=1e-9)
        best = best_policy(beliefs.p, cmdp.initial, reward, state.prices.tables)
        assert np.allclose(state.q, forward(state.policy, beliefs.p, cmdp.initial), rtol=0.0, atol=1e-7)
        if best.feasible:
            assert float(np.vdot(reward, state.q)) == pytest.approx(best.value, abs=1e-6)
            assert state.excess <= 1e-7
    assert state.solves == 13


def test_the_first_plan_and_the_first_beliefs_are_those_of_the_standard_learner():
    setting = Setting(H, S, A, I, n_episodes=20)
    ours, theirs = PlanLP().init(setting), ProximalOMDPD.standard().init(setting)
    assert np.array_equal(ours.evidence.kernel_score, theirs.parts.past.kernel_score)
    assert np.array_equal(ours.prices.tables, opened(theirs).predicted.hinges.tables)


def test_tables_that_no_plan_meets_have_the_starting_price_and_shrink_the_margin():
    cmdp, learner = world(), PlanLP()
    rng = np.random.default_rng(3)
    state = learner.init(cmdp.setting(50, "full"))
    for _ in range(4):
        state = learner.update(state, revealed(rng, cmdp, learner.policy(state), np.full((I, H, S, A), 0.5)))
    assert state.infeasible >= 3
    assert np.array_equal(state.prices.each, np.full(I, UNMET))
    assert state.caution.share < 1.0


def test_bad_settings_are_refused():
    setting = Setting(H, S, A, n_episodes=10)
    with pytest.raises(InvalidInputError, match="z is -1"):
        PlanLP(z=-1.0).init(setting)
    with pytest.raises(InvalidInputError, match="memory is 0"):
        PlanLP(memory=0).init(setting)
