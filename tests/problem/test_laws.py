import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.laws import DenseLaws, SparseLaws, laws_of_entries, laws_of_table

H, S, A = 3, 5, 2


def sparse_table(seed, n_steps=H, n_states=S, n_actions=A):
    """A random kernel (n, S, A, S) with few positive entries per row."""
    rng = np.random.default_rng(seed)
    kept = rng.random((n_steps, n_states, n_actions, n_states)) < 0.3
    kept[..., 0] |= ~kept.any(axis=-1)
    p = np.where(kept, rng.random(kept.shape), 0.0)
    return p / p.sum(axis=-1, keepdims=True)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, H]))
def test_both_forms_agree_with_sums_over_the_table(seed, n_steps):
    table = sparse_table(seed, n_steps)
    dense = DenseLaws(H, table)
    lists = dense.listed()
    rng = np.random.default_rng(seed)
    values, flow = rng.normal(size=S), rng.random((S, A))
    for h in range(H):
        p = table[min(h, n_steps - 1)]
        for laws in (dense, lists):
            assert np.allclose(laws.backward(values, h), np.einsum("sat,t->sa", p, values), rtol=0.0, atol=1e-14)
            assert np.allclose(laws.forward(flow, h), np.einsum("sa,sat->t", flow, p), rtol=0.0, atol=1e-14)
            for s, a in np.ndindex(S, A):
                successors, chances = laws.law(h, s, a)
                row = np.zeros(S)
                row[successors] = chances
                assert np.array_equal(row, p[s, a])
    assert np.array_equal(lists.expand(), np.broadcast_to(table, (H, S, A, S)))
    assert np.array_equal(lists.expand(), dense.expand())
    assert lists.stationary == dense.stationary == (n_steps == 1)


def test_a_sparse_table_is_listed_and_a_full_one_kept():
    full = np.full((1, 4, 2, 4), 0.25)
    assert isinstance(laws_of_table(full, 7), DenseLaws)
    lists = laws_of_table(np.eye(5)[None, :, None], 7)
    assert isinstance(lists, SparseLaws)
    assert (lists.n_entries, lists.shape) == (5, (7, 5, 1))


def test_steps_that_are_all_the_same_are_kept_once():
    laws = laws_of_table(np.repeat(sparse_table(0, 1), H, axis=0), H)
    assert laws.stationary
    assert laws.shape == (H, S, A)
    assert not laws_of_table(sparse_table(0), H).stationary


def test_entries_may_come_in_any_order_and_twice():
    laws = laws_of_entries([1, 0, 1, 0], [2, 1, 2, 0], [0.25, 0.5, 0.75, 0.5], (4, 3, 1), 1, 1.0)
    assert laws.law(3, 0, 0)[0].tolist() == [0, 1]
    assert laws.law(0, 1, 0)[1].tolist() == [1.0]


def test_a_probability_of_zero_is_no_entry():
    assert laws_of_entries([0, 0, 1], [0, 1, 1], [0.0, 1.0, 1.0], (2, 2, 1)).n_entries == 2


@pytest.mark.parametrize(
    ("rows", "successors", "chances", "message"),
    [
        ([0, 1], [0, 1], [1.0, 0.9], r"transition\[1, 0\] \(state 1, action 0\) = 0.9 is the sum of a row"),
        ([0, 1], [0, 2], [1.0, 1.0], r"transition\[1, 0\] \(state 1, action 0\) leads to state 2, .* only 2 states"),
        ([0, 1, 1], [0, 0, 1], [1.0, 1.5, -0.5], r"transition\[1, 0\] .* to state 1 = -0.5 is negative"),
        ([0, 1], [0, 1], [1.0, np.inf], r"transition\[1, 0\] .* to state 1 = inf is not a finite number"),
        ([0], [0], [1.0], r"transition\[1, 0\] \(state 1, action 0\) = 0 is the sum"),
        ([0, 1], [0.0, 1.0], [1.0, 1.0], "names its next states by float64, but needs whole numbers"),
    ],
)
def test_a_wrong_entry_is_named(rows, successors, chances, message):
    with pytest.raises(InvalidInputError, match=message):
        laws_of_entries(rows, successors, chances, (3, 2, 1))


def test_a_wrong_entry_by_step_is_named_with_its_step():
    with pytest.raises(InvalidInputError, match=r"transition\[1, 0, 0\] \(step 1, state 0, action 0\) = 0.5"):
        laws_of_entries([0, 1], [0, 0], [1.0, 0.5], (2, 1, 1), 2)


def test_a_table_that_would_be_too_large_is_refused_with_its_size():
    n = 6000
    s = np.arange(n)
    laws = laws_of_entries(s, s, np.ones(n), (50, n, 1))
    with pytest.raises(InvalidInputError, match=r"6000 states, 1 actions and 50 steps would fill a table of 3.6e\+07"):
        laws.expand()
