import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.play.compiled.rollout import index_of_uniform, trajectory
from tests.references.instances import forward, random_kernel, random_law, random_policy


def test_an_index_is_the_first_whose_cumulative_probability_exceeds_the_number():
    law = np.array([0.25, 0.0, 0.5, 0.25])
    assert [index_of_uniform(law, u) for u in (0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999)] == [0, 0, 2, 2, 3, 3]


def test_an_index_of_probability_zero_never_comes_even_when_rounding_leaves_a_gap_at_one():
    almost_one = np.array([0.0, 0.5, 0.5 - 1e-9, 0.0])
    assert index_of_uniform(almost_one, 0.0) == 1
    assert index_of_uniform(almost_one, 1.0 - 1e-12) == 2


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_an_index_agrees_with_its_numpy_twin(seed, n):
    rng = np.random.default_rng(seed)
    law, uniform = rng.dirichlet(np.ones(n)), rng.random()
    twin = min(int(np.searchsorted(np.cumsum(law), uniform, side="right")), n - 1)
    assert index_of_uniform(law, uniform) == twin


def test_a_walk_uses_column_zero_for_states_and_column_one_for_actions():
    p = np.zeros((2, 3, 2, 3))
    p[0, 1, 0] = [0.5, 0.0, 0.5]
    policy = np.full((2, 3, 2), 0.5)
    states, actions = trajectory(policy, p, np.array([0.25, 0.5, 0.25]), np.array([[0.3, 0.4], [0.6, 0.7]]))
    assert states.tolist() == [1, 2]
    assert actions.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_frequencies_match_the_occupancy(seed):
    rng = np.random.default_rng(seed)
    H, S, A, n = 4, 3, 2, 20_000
    p, mu, policy = random_kernel(rng, H, S, A), random_law(rng, S), random_policy(rng, H, S, A)
    met = np.zeros((H, S, A))
    for _ in range(n):
        states, actions = trajectory(policy, p, mu, rng.random((H, 2)))
        met[np.arange(H), states, actions] += 1.0
    expected = n * forward(policy, p, mu)
    chi_square = ((met - expected) ** 2 / expected).sum(axis=(1, 2))
    # SA - 1 degrees of freedom: mean 5, standard deviation sqrt(10); 30 is about eight of them away.
    assert chi_square.max() < 30.0


def test_pairs_of_states_follow_the_kernel():
    rng = np.random.default_rng(9)
    H, S, A, n = 3, 3, 2, 20_000
    p, mu, policy = random_kernel(rng, H, S, A), random_law(rng, S), random_policy(rng, H, S, A)
    pairs = np.zeros((H - 1, S, S))
    for _ in range(n):
        states, _ = trajectory(policy, p, mu, rng.random((H, 2)))
        pairs[np.arange(H - 1), states[:-1], states[1:]] += 1.0
    q = forward(policy, p, mu)
    expected = n * np.einsum("hsa,hsat->hst", q[:-1], p[:-1])
    chi_square = ((pairs - expected) ** 2 / np.maximum(expected, 1.0)).sum(axis=(1, 2))
    # S^2 - 1 = 8 degrees of freedom: mean 8, standard deviation 4.
    assert chi_square.max() < 40.0
