import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from omdpd.solvers.compiled.boxes import best_kernel, box_values_of_policy, occupancy_range, optimistic_policy, tighten
from omdpd.solvers.compiled.flow import greedy_policy, value_of_policy, values_of_policy
from tests.references.instances import forward, kernel_inside, random_box, random_law, random_policy

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.sampled_from([0.0, 0.01, 0.3, 1.0])


def support(lower, upper, values):
    """max p.values over one row's box, by a linear program."""
    bounds = list(zip(lower, upper, strict=True))
    answer = linprog(-values, A_eq=np.ones((1, len(values))), b_eq=[1.0], bounds=bounds, method="highs")
    assert answer.status == 0, answer.message
    return -answer.fun


def test_tightening_by_hand():
    lower, upper = tighten(np.array([[0.5, 0.0, 0.0]]), np.array([[0.6, 1.0, 0.1]]))
    # At most .5 is left beside the first lower bound; the second needs at least 1 - .6 - .1.
    assert np.allclose(lower, [[0.5, 0.3, 0.0]], rtol=0.0, atol=1e-15)
    assert np.allclose(upper, [[0.6, 0.5, 0.1]], rtol=0.0, atol=1e-15)


@pytest.mark.parametrize(("low", "high"), [([0.7, 0.7], [0.9, 0.9]), ([0.0, 0.1], [0.2, 0.3])])
def test_a_box_without_a_law_does_not_gain_one(low, high):
    lower, upper = tighten(np.array([low]), np.array([high]))
    assert np.all(lower <= upper)
    assert lower.sum() > 1.0 or upper.sum() < 1.0


@given(SHAPES, SEEDS, WIDTHS)
def test_tightening_twice_changes_nothing(shape, seed, width):
    box, _ = random_box(np.random.default_rng(seed), *shape, width=width)
    lower, upper = tighten(box.lower, box.upper)
    assert np.allclose(lower, box.lower, rtol=0.0, atol=1e-15)
    assert np.allclose(upper, box.upper, rtol=0.0, atol=1e-15)


@given(st.integers(1, 5), SEEDS)
def test_tightening_keeps_every_law_and_reaches_its_bounds(S, seed):
    rng = np.random.default_rng(seed)
    law = random_law(rng, S)
    low, high = np.maximum(law - rng.random(S), 0.0), np.minimum(law + rng.random(S), 1.0)
    lower, upper = tighten(low[None], high[None])
    for values in (*np.eye(S), *-np.eye(S), rng.normal(size=S)):
        assert support(low, high, values) == pytest.approx(support(lower[0], upper[0], values), abs=1e-9)
    for t in range(S):
        assert support(low, high, np.eye(S)[t]) == pytest.approx(upper[0, t], abs=1e-9)
        assert -support(low, high, -np.eye(S)[t]) == pytest.approx(lower[0, t], abs=1e-9)


@given(st.tuples(st.integers(1, 4), st.integers(1, 3)), SEEDS, WIDTHS)
def test_the_best_kernel_of_a_step_solves_every_rows_linear_program(shape, seed, width):
    rng = np.random.default_rng(seed)
    S, A = shape
    box, _ = random_box(rng, 1, S, A, width=width)
    values = rng.normal(size=S)
    for target in (values, -values, np.zeros(S)):
        kernel = best_kernel(box.lower[0], box.upper[0], target)
        assert np.allclose(kernel.sum(axis=-1), 1.0, rtol=0.0, atol=1e-14)
        assert np.all(kernel >= box.lower[0])
        assert np.all(kernel <= box.upper[0] + 1e-14)
        for s in range(S):
            for a in range(A):
                best = support(box.lower[0, s, a], box.upper[0, s, a], target)
                assert kernel[s, a] @ target == pytest.approx(best, abs=1e-9)


@given(SHAPES, SEEDS, WIDTHS)
def test_the_optimistic_policy_earns_what_it_says_and_no_kernel_of_the_box_earns_more(shape, seed, width):
    rng = np.random.default_rng(seed)
    box, inside = random_box(rng, *shape, width=width)
    reward = rng.normal(size=shape)
    policy, kernel, values = optimistic_policy(box.lower, box.upper, reward)
    assert box.contains(kernel)
    assert np.allclose(values_of_policy(policy, kernel, reward), values, rtol=0.0, atol=1e-12)
    for other in (inside, kernel_inside(rng, box)):
        assert np.all(greedy_policy(other, reward)[1] <= values + 1e-12)


@given(SHAPES, SEEDS)
def test_with_a_single_kernel_the_optimistic_policy_is_the_greedy_one(shape, seed):
    rng = np.random.default_rng(seed)
    box, inside = random_box(rng, *shape, width=0.0, share_free=0.0)
    reward = rng.normal(size=shape)
    assert np.allclose(
        optimistic_policy(box.lower, box.upper, reward)[2], greedy_policy(inside, reward)[1], rtol=0.0, atol=1e-12
    )


@given(SHAPES, SEEDS, WIDTHS)
def test_the_best_and_the_least_value_of_a_policy_enclose_its_value_under_any_kernel_of_the_box(shape, seed, width):
    rng = np.random.default_rng(seed)
    box, inside = random_box(rng, *shape, width=width)
    policy, reward, mu = random_policy(rng, *shape), rng.normal(size=shape), random_law(rng, shape[1])
    kernel, values = box_values_of_policy(policy, box.lower, box.upper, reward)
    assert box.contains(kernel)
    assert np.allclose(values_of_policy(policy, kernel, reward), values, rtol=0.0, atol=1e-12)
    most, least = mu @ values[0], -(mu @ box_values_of_policy(policy, box.lower, box.upper, -reward)[1][0])
    for other in (inside, kernel_inside(rng, box)):
        assert least - 1e-12 <= value_of_policy(policy, other, mu, reward) <= most + 1e-12


@given(SHAPES, SEEDS, WIDTHS)
def test_the_occupancy_bound_is_reached_entry_by_entry_and_never_passed(shape, seed, width):
    rng = np.random.default_rng(seed)
    box, inside = random_box(rng, *shape, width=width)
    policy, mu = random_policy(rng, *shape), random_law(rng, shape[1])
    _, bound = occupancy_range(policy, box.lower, box.upper, mu)
    for other in (inside, kernel_inside(rng, box)):
        assert np.all(forward(policy, other, mu) <= bound + 1e-12)
    for h in range(shape[0]):
        for s in range(shape[1]):
            target = np.zeros(shape)
            target[h, s, 0] = 1.0
            kernel, _ = box_values_of_policy(policy, box.lower, box.upper, target)
            assert forward(policy, kernel, mu)[h, s, 0] == pytest.approx(bound[h, s, 0], abs=1e-12)


@given(SHAPES, SEEDS)
def test_relabelling_the_states_relabels_the_optimistic_values(shape, seed):
    rng = np.random.default_rng(seed)
    box, _ = random_box(rng, *shape)
    reward = rng.normal(size=shape)
    order = rng.permutation(shape[1])
    lower, upper = (np.ascontiguousarray(b[:, order][..., order]) for b in (box.lower, box.upper))
    moved = optimistic_policy(lower, upper, np.ascontiguousarray(reward[:, order]))[2]
    expected = optimistic_policy(box.lower, box.upper, reward)[2][:, order]
    assert np.allclose(moved, expected, rtol=0.0, atol=1e-12)
