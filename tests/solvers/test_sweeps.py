import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omdpd.play.simulate import trajectory_under
from omdpd.problem.laws import DenseLaws
from omdpd.solvers.sweeps import (
    best_value_under,
    greedy_under,
    occupancy_under,
    residual_under,
    value_under,
)

H, S, A = 4, 6, 3


def instance(seed, n_steps):
    rng = np.random.default_rng(seed)
    kept = rng.random((n_steps, S, A, S)) < 0.4
    kept[..., 0] |= ~kept.any(axis=-1)
    p = np.where(kept, rng.random(kept.shape), 0.0)
    dense = DenseLaws(H, p / p.sum(axis=-1, keepdims=True))
    initial = np.where(rng.random(S) < 0.5, rng.random(S), 0.0) + np.eye(S)[0]
    return rng, dense, dense.listed(), initial / initial.sum()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, H]))
def test_lists_and_tables_give_the_same_bits(seed, n_steps):
    rng, dense, lists, mu = instance(seed, n_steps)
    policy, table = rng.dirichlet(np.ones(A), (H, S)), rng.uniform(-1.0, 1.0, (H, S, A))
    q = occupancy_under(lists, policy, mu)
    assert np.array_equal(q, occupancy_under(dense, policy, mu))
    assert residual_under(lists, q, mu) == residual_under(dense, q, mu) < 1e-14
    assert residual_under(lists, 2.0 * q, mu) == residual_under(dense, 2.0 * q, mu) > 0.01
    assert value_under(lists, policy, mu, table) == value_under(dense, policy, mu, table)
    (one, start), (other, begin) = greedy_under(lists, table), greedy_under(dense, table)
    assert np.array_equal(one, other)
    assert np.array_equal(start, begin)
    uniforms = rng.random((H, 2))
    for ours, theirs in zip(
        trajectory_under(lists, policy, mu, uniforms), trajectory_under(dense, policy, mu, uniforms), strict=True
    ):
        assert np.array_equal(ours, theirs)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_value_is_the_table_against_the_occupancy(seed):
    rng, dense, lists, mu = instance(seed, H)
    policy, table = rng.dirichlet(np.ones(A), (H, S)), rng.uniform(-1.0, 1.0, (H, S, A))
    mass, total = mu, 0.0
    for h in range(H):
        total += np.einsum("s,sa,sa->", mass, policy[h], table[h])
        mass = np.einsum("s,sa,sat->t", mass, policy[h], dense.table[h])
    assert value_under(lists, policy, mu, table) == pytest.approx(total, abs=1e-14)
    assert np.vdot(occupancy_under(lists, policy, mu), table) == pytest.approx(total, abs=1e-14)


def test_a_table_of_one_step_stands_for_all():
    rng, dense, lists, mu = instance(3, 1)
    step = rng.random((1, S, A))
    whole = np.repeat(step, H, axis=0)
    view = np.broadcast_to(step, (H, S, A))
    for laws in (dense, lists):
        assert best_value_under(laws, mu, step) == best_value_under(laws, mu, whole) == best_value_under(laws, mu, view)
        policy = greedy_under(laws, step)[0]
        assert value_under(laws, policy, mu, view) == value_under(laws, policy, mu, whole)


def test_the_best_value_is_that_of_the_greedy_policy_and_no_policy_has_more():
    rng, _, lists, mu = instance(5, H)
    table = rng.random((H, S, A))
    best = best_value_under(lists, mu, table)
    assert value_under(lists, greedy_under(lists, table)[0], mu, table) == pytest.approx(best, abs=1e-14)
    others = [value_under(lists, rng.dirichlet(np.ones(A), (H, S)), mu, table) for _ in range(50)]
    assert max(others) < best
