import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.solvers.compiled.flow import (
    flow_residual,
    greedy_policy,
    occupancy_of_policy,
    policy_of_occupancy,
    value_of_policy,
    values_of_policy,
)
from tests.references.instances import conditional, forward, random_kernel, random_law, random_policy

SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
SEEDS = st.integers(0, 2**32 - 1)


def problem(shape, seed):
    rng = np.random.default_rng(seed)
    return random_kernel(rng, *shape), random_law(rng, shape[1]), random_policy(rng, *shape), rng.random(shape)


def test_two_states_and_two_steps_by_hand():
    # From state 0 action 0 stays, action 1 moves; state 1 is left with probability 1/4.
    p = np.zeros((2, 2, 2, 2))
    p[:, 0, 0], p[:, 0, 1], p[:, 1] = [1.0, 0.0], [0.0, 1.0], [0.25, 0.75]
    policy = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.2, 0.8], [0.0, 1.0]]])
    q = occupancy_of_policy(policy, p, np.array([0.8, 0.2]))
    # Step 1: mass in state 0 is .4 (stayed) + .2/4, in state 1 .4 (moved) + .2 * 3/4.
    assert np.allclose(q, [[[0.4, 0.4], [0.2, 0.0]], [[0.09, 0.36], [0.0, 0.55]]], rtol=0.0, atol=1e-15)


def test_a_state_without_mass_gets_the_uniform_policy():
    q = np.array([[[0.3, 0.7, 0.0], [0.0, 0.0, 0.0]]])
    assert np.allclose(policy_of_occupancy(q), [[[0.3, 0.7, 0.0], [1 / 3, 1 / 3, 1 / 3]]], rtol=0.0, atol=1e-15)


def test_entries_below_zero_by_rounding_get_no_probability():
    assert np.array_equal(policy_of_occupancy(np.array([[[-1e-17, 0.5]]])), [[[0.0, 1.0]]])


def test_a_mass_below_the_accuracy_of_the_solvers_gives_the_uniform_policy():
    q = np.array([[[1e-15, 0.0], [0.0, 1.0 - 1e-15]]])
    assert np.array_equal(policy_of_occupancy(q), [[[0.5, 0.5], [0.0, 1.0]]])


@given(SHAPES, SEEDS)
def test_the_forward_pass_agrees_with_its_numpy_twin(shape, seed):
    p, mu, policy, _ = problem(shape, seed)
    assert np.allclose(occupancy_of_policy(policy, p, mu), forward(policy, p, mu), rtol=0.0, atol=1e-14)


@given(SHAPES, SEEDS)
def test_flow_is_conserved_and_every_step_has_mass_one(shape, seed):
    p, mu, policy, _ = problem(shape, seed)
    q = occupancy_of_policy(policy, p, mu)
    assert np.allclose(q.sum(axis=(1, 2)), 1.0, rtol=0.0, atol=1e-13)
    assert flow_residual(q, p, mu) < 1e-14


@given(SHAPES, SEEDS)
def test_policy_and_occupancy_undo_each_other(shape, seed):
    p, mu, policy, _ = problem(shape, seed)
    q = occupancy_of_policy(policy, p, mu)
    assert np.allclose(policy_of_occupancy(q), conditional(q), rtol=0.0, atol=1e-15)
    assert np.allclose(policy_of_occupancy(q), policy, rtol=0.0, atol=1e-10)


@given(SHAPES, SEEDS)
def test_the_value_is_the_reward_of_the_occupancy(shape, seed):
    p, mu, policy, reward = problem(shape, seed)
    q = occupancy_of_policy(policy, p, mu)
    assert value_of_policy(policy, p, mu, reward) == pytest.approx(float((q * reward).sum()), abs=1e-12)


@given(SHAPES, SEEDS)
def test_values_agree_with_their_numpy_twin(shape, seed):
    p, _, policy, reward = problem(shape, seed)
    expected = np.zeros((shape[0] + 1, shape[1]))
    for h in reversed(range(shape[0])):
        expected[h] = (policy[h] * (reward[h] + p[h] @ expected[h + 1])).sum(axis=1)
    assert np.allclose(values_of_policy(policy, p, reward), expected, rtol=0.0, atol=1e-13)


@given(SHAPES, SEEDS)
def test_relabelling_the_states_relabels_the_answer(shape, seed):
    p, mu, policy, reward = problem(shape, seed)
    order = np.random.default_rng(seed).permutation(shape[1])
    moved = np.ascontiguousarray(p[:, order][..., order])
    q = occupancy_of_policy(policy, p, mu)
    q_moved = occupancy_of_policy(np.ascontiguousarray(policy[:, order]), moved, mu[order])
    assert np.allclose(q_moved, q[:, order], rtol=0.0, atol=1e-14)
    values = greedy_policy(p, reward)[1]
    assert np.allclose(
        greedy_policy(moved, np.ascontiguousarray(reward[:, order]))[1], values[:, order], rtol=0.0, atol=1e-13
    )


@given(SHAPES, SEEDS)
def test_no_policy_beats_the_greedy_one_and_it_earns_what_it_says(shape, seed):
    p, _, policy, reward = problem(shape, seed)
    best, values = greedy_policy(p, reward)
    assert np.allclose(values_of_policy(best, p, reward), values, rtol=0.0, atol=1e-13)
    assert np.all(values_of_policy(policy, p, reward) <= values + 1e-13)
    expected = np.zeros(shape[1])
    for h in reversed(range(shape[0])):
        expected = (reward[h] + p[h] @ expected).max(axis=1)
    assert np.allclose(values[0], expected, rtol=0.0, atol=1e-13)


def test_ties_go_to_the_first_action():
    best, _ = greedy_policy(np.ones((1, 1, 3, 1)), np.array([[[0.0, 1.0, 1.0]]]))
    assert np.array_equal(best, [[[0.0, 1.0, 0.0]]])


def test_the_residual_sees_a_broken_start_a_broken_flow_and_a_negative_entry():
    rng = np.random.default_rng(3)
    p, mu = random_kernel(rng, 3, 2, 2), random_law(rng, 2)
    q = occupancy_of_policy(random_policy(rng, 3, 2, 2), p, mu)
    for h in range(3):
        broken = q.copy()
        broken[h, 0, 0] += 0.125
        assert flow_residual(broken, p, mu) >= 0.125 - 1e-12
    balanced = q.copy()
    balanced[2, 1] += [q[2, 1, 1] + 0.25, -q[2, 1, 1] - 0.25]
    assert flow_residual(balanced, p, mu) == pytest.approx(0.25, abs=1e-12)


def test_the_last_steps_kernel_does_not_matter():
    rng = np.random.default_rng(4)
    p, mu, policy = random_kernel(rng, 3, 2, 2), random_law(rng, 2), random_policy(rng, 3, 2, 2)
    q = occupancy_of_policy(policy, p, mu)
    p[-1] = 0.0
    assert np.array_equal(occupancy_of_policy(policy, p, mu), q)
    assert flow_residual(q, p, mu) < 1e-14
