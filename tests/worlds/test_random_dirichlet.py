import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.worlds import random_dirichlet
from tests.references.reference_programs import dual_value


def optimum_cost(cmdp, table):
    """The cost of the reward-optimal policy, read off the dual: how much reward changes with a small price."""
    price = 1e-6
    value = dual_value(cmdp.transition, cmdp.initial, cmdp.reward, table[:0])[0]
    priced = dual_value(cmdp.transition, cmdp.initial, cmdp.reward - price * table[0], table[:0])[0]
    return (value - priced) / price


@pytest.mark.parametrize("seed", range(6))
def test_a_binding_world_forbids_its_reward_optimal_policy_and_has_a_safe_one(seed):
    cmdp = random_dirichlet.make(np.random.default_rng(seed))
    least = -dual_value(cmdp.transition, cmdp.initial, -cmdp.excess[0], cmdp.excess[:0])[0]
    assert cmdp.shape == (5, 5, 3)
    assert least < -0.3
    assert optimum_cost(cmdp, cmdp.excess) > 0.3 - 1e-3


def test_every_constraint_of_a_binding_world_binds():
    cmdp = random_dirichlet.make(np.random.default_rng(1), 3, 2, 4, n_constraints=2)
    for i in range(2):
        least = -dual_value(cmdp.transition, cmdp.initial, -cmdp.excess[i], cmdp.excess[:0])[0]
        assert least < -0.3
        assert optimum_cost(cmdp, cmdp.excess[i : i + 1]) > 0.3 - 1e-3


def test_any_world_may_be_drawn_when_binding_is_off():
    drawn = [random_dirichlet.make(np.random.default_rng(seed), 3, 2, 2, binding=False) for seed in range(60)]
    binding = [random_dirichlet.is_binding(c.laws, c.initial, c.reward, c.excess) for c in drawn]
    assert 0 < sum(binding) < 60


def test_tables_have_the_stated_ranges_and_start():
    cmdp = random_dirichlet.make(np.random.default_rng(2), 6, 4, 7, n_constraints=3, binding=False)
    assert cmdp.shape == (7, 6, 4)
    assert cmdp.n_constraints == 3
    assert np.allclose(cmdp.initial, 1.0 / 6.0, rtol=1e-15)
    assert not cmdp.budget.any()
    assert 0.0 <= cmdp.reward.min() <= cmdp.reward.max() <= 1.0
    assert cmdp.cost.min() < -0.9
    assert cmdp.cost.max() > 0.9


def test_the_kernel_depends_on_the_step_and_follows_its_concentration():
    sparse, flat = (
        random_dirichlet.make(np.random.default_rng(3), 5, 3, 5, concentration=c, binding=False) for c in (0.5, 50.0)
    )
    assert not np.allclose(sparse.transition[0], sparse.transition[1])
    # The variance of an entry of Dirichlet(c) with S entries is (S-1) / (S^2 (cS + 1)).
    assert sparse.transition.var() == pytest.approx(4 / (25 * 3.5), rel=0.2)
    assert flat.transition.var() == pytest.approx(4 / (25 * 251), rel=0.2)


@pytest.mark.parametrize("seed", range(4))
def test_in_the_correlated_variant_the_budget_sits_at_35_percent_and_reward_costs(seed):
    cmdp = random_dirichlet.make_correlated(np.random.default_rng(seed))
    least = -dual_value(cmdp.transition, cmdp.initial, -cmdp.excess[0], cmdp.excess[:0])[0]
    greedy = optimum_cost(cmdp, cmdp.excess)
    assert np.abs(cmdp.excess).max() <= 1.0 + 1e-12
    # In excess units the budget is zero.
    assert -least / (greedy - least) == pytest.approx(0.35, abs=1e-3)
    assert np.corrcoef(cmdp.reward.ravel(), cmdp.cost.ravel())[0, 1] > 0.6


def test_bad_sizes_are_refused_by_name():
    with pytest.raises(InvalidInputError, match="n_states is 0"):
        random_dirichlet.make(np.random.default_rng(0), n_states=0)
    with pytest.raises(InvalidInputError, match="concentration is -1"):
        random_dirichlet.make(np.random.default_rng(0), concentration=-1.0)


def test_sizes_that_can_never_bind_end_with_a_sentence():
    with pytest.raises(InvalidInputError, match=r"no binding instance among .* draws with 1 states, 1 actions"):
        random_dirichlet.make(np.random.default_rng(0), 1, 1, 1)
