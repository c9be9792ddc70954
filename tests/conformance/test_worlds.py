"""What every world of the table keeps to."""

import numpy as np
import pytest
from named import WORLDS

from omdpd.problem.cmdp import CMDP
from omdpd.solvers.compiled.flow import flow_residual, greedy_policy, occupancy_of_policy
from omdpd.solvers.programs import best_policy, lagrangian_policy


@pytest.fixture(scope="module", params=list(WORLDS))
def case(request):
    """(spec, a world of it, drawn with seed 1)."""
    spec = WORLDS[request.param]()
    return spec, spec.build(np.random.default_rng(1))


def test_a_world_is_a_valid_cmdp(case):
    _, cmdp = case
    assert isinstance(cmdp, CMDP)
    H, S, A = cmdp.shape
    assert cmdp.transition.shape == (H, S, A, S)
    assert cmdp.transition.min() >= 0.0
    assert np.allclose(cmdp.transition.sum(axis=-1), 1.0, rtol=0.0, atol=1e-12)
    assert cmdp.initial.min() >= 0.0
    assert cmdp.initial.sum() == pytest.approx(1.0, abs=1e-12)
    assert cmdp.reward.min() >= -1e-12
    assert cmdp.reward.max() <= 1.0 + 1e-12
    assert cmdp.cost.shape == (cmdp.n_constraints, H, S, A)
    assert np.abs(cmdp.excess).max() <= 1.0 + 1e-12


def test_the_same_random_numbers_give_the_same_world(case):
    spec, cmdp = case
    again = spec.build(np.random.default_rng(1))
    for name in ("transition", "initial", "reward", "cost", "budget", "cost_scale"):
        assert np.array_equal(getattr(cmdp, name), getattr(again, name)), name


def test_some_policy_is_safe(case):
    _, cmdp = case
    plan = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    assert plan.feasible
    q = occupancy_of_policy(plan.policy, cmdp.transition, cmdp.initial)
    assert flow_residual(q, cmdp.transition, cmdp.initial) < 1e-10
    assert (cmdp.excess.reshape(cmdp.n_constraints, -1) @ q.ravel()).max() <= 1e-6


def test_the_constraints_cost_something(case):
    """A world whose reward-optimal policy is safe would test nothing."""
    _, cmdp = case
    plan = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    free = float(cmdp.initial @ greedy_policy(cmdp.transition, cmdp.reward)[1][0])
    assert plan.value < free - 1e-6
    assert plan.multipliers.max() > 0.0


def test_the_two_planners_agree_where_there_is_one_constraint(case):
    _, cmdp = case
    if cmdp.n_constraints == 1:
        by_program = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
        by_dual = lagrangian_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess[0])
        assert by_dual.value == pytest.approx(by_program.value, abs=1e-6)


def test_a_spec_has_a_line_and_equal_specs_are_equal(case):
    spec, _ = case
    assert type(spec).__doc__.splitlines()[0].strip()
    assert spec == type(spec)()
