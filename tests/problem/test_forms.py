import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from omdpd.problem.arrays import InvalidInputError, SinglePrecisionWarning
from omdpd.problem.cmdp import CMDP
from omdpd.problem.laws import SparseLaws

H, S, A = 3, 5, 2


def kernel(seed=0, n_steps=1):
    rng = np.random.default_rng(seed)
    p = np.zeros((n_steps, S, A, S))
    for row in p.reshape(-1, S):
        row[rng.permutation(S)[:2]] = [0.25, 0.75]
    return p


REWARD = np.random.default_rng(1).random((S, A))
COST = np.random.default_rng(2).random((2, S, A))


def made(transition, **settings):
    return CMDP.from_arrays(transition, REWARD, COST, **({"budget": np.zeros(len(COST)), "horizon": H} | settings))


def as_pairs(p):
    return [[[(float(p[s, a, t]), int(t)) for t in np.flatnonzero(p[s, a])] for a in range(A)] for s in range(S)]


FORMS = {
    "a sparse matrix": lambda p: csr_matrix(p.reshape(S * A, S)),
    "a sparse array": lambda p: csr_array(p.reshape(S * A, S)),
    "a matrix per action": lambda p: [csr_matrix(p[:, a]) for a in range(A)],
    "pairs": as_pairs,
    "pairs in mappings": lambda p: {s: dict(enumerate(row)) for s, row in enumerate(as_pairs(p))},
    "a function": lambda p: lambda s, a: as_pairs(p)[s][a],
    "a function of rows": lambda p: lambda s, a: p[s, a],
    "laws": lambda p: made(p).laws,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_one_kernel_gives_the_same_problem(form):
    p = kernel()[0]
    cmdp = made(form(p))
    assert np.array_equal(cmdp.transition, made(p).transition)
    assert cmdp.stationary
    assert isinstance(cmdp.laws, SparseLaws) == (form is not FORMS["laws"] or isinstance(made(p).laws, SparseLaws))


def test_kernels_by_step_may_be_lists_of_sparse_matrices():
    p = kernel(3, H)
    stacked = [csr_matrix(step.reshape(S * A, S)) for step in p]
    by_action = [[csr_matrix(step[:, a]) for a in range(A)] for step in p]
    reward, cost = np.repeat(REWARD[None], H, axis=0), np.repeat(COST[:, None], H, axis=1)
    for form in (p, stacked, by_action):
        cmdp = CMDP.from_arrays(form, reward, cost, [0.0, 0.0])
        assert np.array_equal(cmdp.transition, p)
        assert not cmdp.stationary


def test_the_action_may_come_first_if_that_is_said():
    p = kernel()[0]
    swapped = p.swapaxes(0, 1)
    with pytest.raises(InvalidInputError, match=r"shape \(2, 5, 5\), whose last axes read .* axes='ASS'"):
        made(swapped)
    assert np.array_equal(made(swapped, axes="ASS").transition, made(p).transition)
    stacked = csr_matrix(swapped.reshape(A * S, S))
    assert np.array_equal(made(stacked, axes="ASS").transition, made(p).transition)
    by_step = np.repeat(swapped[None], H, axis=0)
    rewards, costs = np.repeat(REWARD[None], H, axis=0), np.repeat(COST[:, None], H, axis=1)
    assert np.array_equal(
        CMDP.from_arrays(by_step, rewards, costs, [0.0, 0.0], axes="HASS").transition, made(p).transition
    )
    with pytest.raises(InvalidInputError, match="axes is 'ssa', but must be one of SAS, ASS, HSAS, HASS"):
        made(swapped, axes="ssa")
    with pytest.raises(InvalidInputError, match="transition has 3 axes, but axes='HASS' names 4"):
        made(p, axes="HASS")


def test_single_precision_is_accepted_and_scaled():
    p = kernel()[0].astype(np.float32)
    p[..., :] = np.float32(1 / 5)
    p[0, 0, 0] += np.float32(5e-7)
    with pytest.warns(SinglePrecisionWarning, match="rows within 1e-06 of one are scaled to sum to one"):
        cmdp = made(p)
    assert np.abs(cmdp.transition.sum(axis=-1) - 1.0).max() < 1e-15
    with pytest.warns(SinglePrecisionWarning):
        assert made(csr_matrix(p.reshape(S * A, S))).shape == (H, S, A)
    with pytest.raises(InvalidInputError, match=r"transition\[0, 0, 0\].* is the sum of a row"):
        made(p.astype(np.float64))


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (csr_matrix((S * A + 1, S)), r"sparse matrix of transition has shape \(11, 5\), but reward asks for \(10, 5\)"),
        ([csr_matrix((S, S))] * 3, "transition has 3 sparse matrices, but reward has 2 actions"),
        ([[csr_matrix((S, S))] * 3] * H, "step 0 of transition has 3 sparse matrices, but reward has 2 actions"),
        ([csr_matrix((S * A, S))] * 4, "horizon is 3, but transition has 4 steps"),
        (csr_matrix(-np.ones((S * A, S))), r"transition\[0, 0\] \(state 0, action 0\) to state 0 = -1 is negative"),
        (as_pairs(kernel()[0])[:4], "transition lists 4 states, but reward has 5"),
        ([row[:1] for row in as_pairs(kernel()[0])], r"transition\[0\] lists 1 actions, but reward has 2"),
        (lambda s, a: [(1.0, 0.5)], r"transition\[0, 0\] \(state 0, action 0\) is no list of pairs"),
        (lambda s, a: None, r"transition\[0, 0\] \(state 0, action 0\) is no list of pairs"),
        (lambda s, a: [(1.0, s + a)], r"transition\[4, 1\] \(state 4, action 1\) leads to state 5"),
        (lambda s, a: np.ones(3) / 3, r"transition\[0, 0\] .* has shape \(3,\), but needs 5 probabilities"),
        (lambda s, a: [(0.5, s)], r"transition\[0, 0\] \(state 0, action 0\) = 0.5 is the sum .*9 more like it"),
        (
            {s: {a: [(1.0, s, 0.0, False)] for a in range(A)} for s in range(S)},
            r"transition\[0, 0\] .* no list of pairs",
        ),
    ],
)
def test_what_is_wrong_with_a_form_is_named(transition, message):
    with pytest.raises(InvalidInputError, match=message):
        made(transition)


def test_a_form_of_one_step_needs_its_horizon():
    with pytest.raises(InvalidInputError, match="so a horizon is needed"):
        CMDP.from_arrays(csr_matrix(kernel()[0].reshape(S * A, S)), REWARD, COST, budget=0.0)


def test_pairs_that_could_be_a_table_of_two_states_are_refused():
    both = [[[(1, 0), (0, 1)], [(0, 1), (1, 0)]], [[(0, 1), (1, 0)], [(1, 0), (0, 1)]]]
    with pytest.raises(InvalidInputError, match=r"could be lists of pairs .* or a table"):
        CMDP.from_arrays(both, np.zeros((2, 2)), np.zeros((2, 2)), budget=0.0, horizon=2)


def test_functions_make_a_problem():
    cmdp = CMDP.from_functions(
        (4, 3, 2), lambda s, a: [(1.0, (s + a) % 3)], lambda s, a: a * s / 2, lambda s, a: (a, s / 2), budget=[2.0, 1.0]
    )
    assert cmdp.shape == (4, 3, 2)
    assert np.array_equal(cmdp.cost[:, 3], [[[0, 1], [0, 1], [0, 1]], [[0, 0], [0.5, 0.5], [1, 1]]])
    assert cmdp.transition[2, 1, 1].tolist() == [0.0, 0.0, 1.0]


def test_large_stationary_tables_are_views_of_one_step(monkeypatch):
    monkeypatch.setattr("omdpd.problem.arrays.MAX_REPEATED", 8)
    large = made(kernel()[0], budget=[0.5, 1.0]).with_scenarios({"a": COST, "b": COST[::-1]})
    assert large.reward.strides[0] == large.cost.strides[1] == large.excess.strides[1] == 0
    monkeypatch.setattr("omdpd.problem.arrays.MAX_REPEATED", 2**20)
    small = made(kernel()[0], budget=[0.5, 1.0]).with_scenarios({"a": COST, "b": COST[::-1]})
    for name in ("reward", "cost", "excess", "budget", "cost_scale"):
        assert np.array_equal(getattr(large, name), getattr(small, name))
    assert np.array_equal(large.scenarios.rows, small.scenarios.rows)
    assert large.scenarios.rows.strides[1] == 0
