"""Policies in a byte or two per step and state: the same as their tables, also on disk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd import CMDP, InvalidInputError, Policy
from omdpd.problem.machine_memory import TooLargeError
from omdpd.solvers import packed as packing
from omdpd.solvers.packed import Packed, code_type, room_for
from omdpd.solvers.sweeps import occupancy_under
from omdpd.storage.atomic import RecordError


def random_problem(seed, n_budgets, H=6, S=5, A=3, share=0.5):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(S, 0.4), (S, A))
    r, c = rng.random((S, A)), rng.random((n_budgets, S, A))
    free = CMDP.from_arrays(p, r, c, [None] * n_budgets, horizon=H)
    least, spent = free.solve().least_costs, free.solve().evaluation.costs
    return free.with_budget(list(least + share * (spent - least) + 0.02 * H))


@given(st.integers(0, 5000), st.integers(1, 3))
def test_a_packed_plan_is_its_table(seed, n_budgets):
    cmdp = random_problem(seed, n_budgets)
    solution = cmdp.solve()
    policy, table = solution.policy, solution.policy.table
    assert len(policy.packed.places) <= 6 * 5
    assert np.allclose(table.sum(axis=2), 1.0)
    again = Policy(table).evaluate(cmdp)
    assert solution.evaluation.value == pytest.approx(again.value, abs=1e-12)
    assert solution.evaluation.costs == pytest.approx(again.costs, abs=1e-12)
    q = occupancy_under(cmdp.laws, table, cmdp.initial)
    assert np.allclose(q, solution.occupancy, atol=1e-12)
    assert np.array_equal(policy.reached, solution.occupancy.sum(axis=2) > 0.0)
    mass = q.sum(axis=2).ravel()[policy.packed.places]
    assert policy.packed.mass == pytest.approx(mass, abs=1e-12)
    for h, s in np.ndindex(6, 5):
        assert np.array_equal(policy.at(h, s), table[h, s])
    assert np.array_equal(policy.greedy().table, np.eye(3)[table.argmax(axis=2)])
    # Drawing one of the policies by its share before an episode amounts to the same.
    mixed = sum(pure.share * np.r_[pure.evaluation.value, pure.evaluation.costs] for pure in solution.pure_policies())
    assert mixed == pytest.approx([again.value, *again.costs], abs=1e-10)


def test_it_is_kept_and_read_to_the_last_bit(tmp_path):
    policy = random_problem(3, 2).solve().policy
    read = Policy.load(policy.save(tmp_path / "plan.npz"))
    assert read.packed.codes.dtype == np.uint8
    assert np.array_equal(read.table, policy.table)
    assert np.array_equal(read.reached, policy.reached)
    assert str(read) == str(policy)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"codes": np.full((2, 2), 6, np.uint8)}, "a code is 6, but there are 3 actions"),
        ({"codes": np.zeros((2, 2))}, "its codes have shape"),
        ({"places": np.array([4])}, "no places of its codes"),
        ({"places": np.array([-1])}, "no places of its codes"),
        ({"rows": np.full((1, 3), 0.5)}, "rows"),
    ],
)
def test_what_is_no_policy_is_refused(change, words):
    kept = {"codes": np.zeros((2, 2), np.uint8), "places": np.array([1]), "rows": np.eye(1, 3), "mass": np.ones(1)}
    assert Packed.read(kept).row(0, 1).tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(InvalidInputError, match=words):
        Packed.read(kept | change)


def test_a_file_without_all_of_its_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "half.npz", codes=np.zeros((2, 2), np.uint8))
    with pytest.raises(RecordError, match="holds no policy"):
        Policy.load(tmp_path / "half.npz")


def test_on_disk_it_is_the_same_and_leaves_nothing(monkeypatch, tmp_path):
    cmdp = random_problem(5, 2)
    held = cmdp.solve()
    monkeypatch.setattr(packing, "MAX_HELD", 4)
    monkeypatch.setattr(packing.tempfile, "tempdir", str(tmp_path))
    assert isinstance(room_for((2, 3), 4).base, np.memmap)
    solution = cmdp.solve()
    assert np.array_equal(solution.policy.packed.codes, held.policy.packed.codes)
    assert solution.value == held.value
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_too_small_is_said(monkeypatch):
    with pytest.raises(TooLargeError, match="say in TMPDIR where there is room"):
        room_for((10**9, 10**9), 4)


def test_codes_take_two_bytes_where_one_is_too_small():
    assert [code_type(A).itemsize for A in (1, 128, 129, 32768)] == [1, 1, 2, 2]
    A = 300
    cmdp = CMDP.from_arrays(np.ones((1, A, 1)), [np.arange(A) / A], [np.arange(A) / A], 1.25, horizon=3)
    solution = cmdp.solve()
    assert solution.value == pytest.approx(1.25)
    assert solution.policy.packed.codes.dtype == np.uint16
