import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omdpd.beliefs.counts import Counts
from omdpd.beliefs.visits import Visits
from omdpd.problem.setting import BanditFeedback, FullFeedback, Setting, Trajectory
from omdpd.storage.packing import classes_of, pack, unpack
from omdpd.testing.common import frozen_copy

H, S, A, I = 5, 7, 3, 2  # noqa: E741
SETTING = Setting(H, S, A, I)
ORDERS = ("step", "pooled", "pair")


def feedback_of(rng):
    walk = Trajectory(rng.integers(S, size=H), rng.integers(A, size=H))
    return BanditFeedback(walk, rng.random(H), rng.uniform(-1.0, 1.0, (I, H)))


def visits_of(rng, n, order):
    visits = Visits.empty(SETTING, order)
    for _ in range(n):
        visits = visits.add(feedback_of(rng))
    return visits


def by_key(table, order, n_axes):
    """A table (..., h, s, a[, t]) as a list in the order of its keys; `n_axes` are those of the key."""
    axes = list(range(table.ndim - n_axes, table.ndim))
    lead = table.shape[: axes[0]]
    if order == "pooled":
        return table.sum(axis=axes[0]).reshape(*lead, -1)
    if order == "pair":
        table = np.moveaxis(table, axes[0], -1)
    return table.reshape(*lead, -1)


@pytest.mark.parametrize("order", ORDERS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 25))
def test_visits_hold_what_the_tables_hold_and_no_zero(order, seed, n):
    rng, visits = np.random.default_rng(seed), visits_of(np.random.default_rng(seed), n, order)
    counts = Counts.empty(SETTING)
    squares = np.zeros((I, H, S, A))
    for _ in range(n):
        met = feedback_of(rng)
        counts = counts.add(met)
        squares[:, np.arange(H), met.trajectory.states, met.trajectory.actions] += ((met.costs + 1) / 2) ** 2
    seen, moved = by_key(counts.visits, order, 3), by_key(counts.transitions, order, 4)
    assert np.array_equal(visits.rows, np.flatnonzero(seen))
    assert np.array_equal(visits.visits, seen[visits.rows])
    assert np.array_equal(visits.moves, np.flatnonzero(moved))
    assert np.array_equal(visits.move_counts, moved[visits.moves])
    for kept, table in (
        (visits.reward_sum, counts.reward_sum), (visits.cost_sum, counts.cost_sum), (visits.cost_squares, squares),
    ):  # fmt: skip
        assert np.allclose(kept, by_key(table, order, 3)[..., visits.rows], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_what_followed_a_pair_is_found_again(order):
    visits = visits_of(np.random.default_rng(1), 20, order)
    rng, followed = np.random.default_rng(1), set()
    for _ in range(20):
        walk = feedback_of(rng).trajectory
        for h in range(H - 1):
            followed.add((h if order == "step" else 0, walk.states[h] * A + walk.actions[h], walk.states[h + 1]))
    seen = visits.seen()
    found = {
        (h, seen.pairs[i], t)
        for h in range(H if order == "step" else 1)
        for i in range(seen.first[h], seen.last[h])
        for t in seen.following[seen.ends[i] : seen.ends[i + 1]]
    }
    assert found == followed


@pytest.mark.parametrize("order", ORDERS)
def test_adding_an_episode_leaves_the_visits_before_it_alone(order):
    rng = np.random.default_rng(2)
    before = visits_of(rng, 4, order)
    kept = frozen_copy(before)
    before.add(feedback_of(rng))
    assert frozen_copy(before) == kept


def test_revealed_costs_are_not_counted_as_met():
    walk = Trajectory(np.zeros(H, dtype=np.int64), np.zeros(H, dtype=np.int64))
    visits = Visits.empty(SETTING, "pooled").add(FullFeedback(walk, np.ones(H), np.ones((I, H, S, A))))
    assert not visits.cost_sum.any()
    assert not visits.cost_squares.any()
    assert visits.visits.tolist() == [H]
    assert visits.move_counts.tolist() == [H - 1]


def test_visits_come_back_from_a_file_as_they_were():
    visits = visits_of(np.random.default_rng(3), 5, "pair")
    again = unpack(*pack(visits), classes_of(Visits, "the visits"))
    assert frozen_copy(again) == frozen_copy(visits)
