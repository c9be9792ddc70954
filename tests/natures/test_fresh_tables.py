import numpy as np
import pytest

from omdpd.natures import revealed
from omdpd.natures.anchor import Anchor
from omdpd.play.judging import comparator
from tests.references.instances import forward, random_cmdp, random_policy

H, S, A, I = 4, 3, 2, 2  # noqa: E741
NOWHERE = np.zeros((H, S, A))
LEVELS = [-1.0, -0.6, -0.2, 0.0, 0.2, 0.6, 1.0]


def world(seed=0, n_constraints=I):
    return random_cmdp(np.random.default_rng(seed), H, S, A, n_constraints)


def test_anchored_tables_are_fresh_and_keep_the_anchor_safe():
    cmdp = world()
    nature = revealed.make_anchored(cmdp, 3)
    anchor = Anchor.of(cmdp).occupancy
    tables = np.array([nature.draw(k, NOWHERE).cost for k in range(50)])
    assert tables.shape == (50, I, H, S, A)
    assert np.tensordot(tables, anchor, axes=3).max() <= 1e-12
    assert len({table.tobytes() for table in tables}) == 50
    assert not nature.repeats
    assert nature.safety().exists


def test_with_many_episodes_the_anchor_is_the_comparator():
    cmdp = world(1, 1)
    nature = revealed.make_anchored(cmdp, 3)
    anchor = Anchor.of(cmdp)
    value = (cmdp.reward * anchor.occupancy).sum()
    free = (cmdp.reward * anchor.optimum).sum()
    few, many = (comparator(cmdp, nature, range(K)) for K in (10, 2000))
    assert many.exists
    assert value - 1e-7 <= many.value <= few.value + 1e-7
    # Two thousand random half-spaces leave next to nothing around the anchor.
    assert many.value - value < 0.05 * (free - value)


def test_independent_entries_come_from_the_seven_values_equally_often():
    nature = revealed.make_independent(world(), 4)
    entries = np.array([nature.draw(k, NOWHERE).cost for k in range(300)]).ravel()
    assert set(entries.tolist()) == set(LEVELS)
    counts = np.array([(entries == level).sum() for level in LEVELS])
    expected = entries.size / 7
    assert ((counts - expected) ** 2 / expected).sum() < 30.0
    assert not nature.repeats


def test_independent_tables_leave_no_safe_policy():
    cmdp = world(2, 1)
    nature = revealed.make_independent(cmdp, 4)
    best = comparator(cmdp, nature, range(300), weights=np.ones(300))
    assert not nature.safety().exists
    assert not best.exists
    assert best.value is None
    assert best.hindsight_violation > 0.0


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 2, 1), (5, 5, 3), (4, 3, 2)])
def test_the_floor_agrees_with_monte_carlo(sizes):
    rng = np.random.default_rng(5)
    n = 40_000
    drawn = 0.5 * np.abs(rng.choice(LEVELS, (n, int(np.prod(sizes)))).sum(axis=1)) / (sizes[1] * sizes[2])
    error = drawn.std() / np.sqrt(n)
    assert revealed.violation_floor(*sizes) == pytest.approx(drawn.mean(), abs=5.0 * error)


def test_the_floor_of_a_single_entry_by_hand():
    # Half the mean of (1, .6, .2, 0, .2, .6, 1).
    assert revealed.violation_floor(1, 1, 1) == pytest.approx(0.5 * 3.6 / 7.0)


def test_nobody_goes_below_the_floor():
    cmdp = world(3, 1)
    nature = revealed.make_independent(cmdp, 6)
    rng = np.random.default_rng(7)
    tables = np.array([nature.draw(k, NOWHERE).cost[0] for k in range(4000)])
    floor = revealed.violation_floor(H, S, A)
    flattest = np.full((H, S, A), 1.0 / (S * A))
    policies = [forward(random_policy(rng, H, S, A), cmdp.transition, cmdp.initial) for _ in range(5)]
    for q in (*policies, flattest):
        paid = np.maximum(np.tensordot(tables, q, axes=3), 0.0)
        assert paid.mean() >= floor - 5.0 * paid.std() / np.sqrt(4000)
    # The floor is reached by the flat occupancy, so it is not just any lower bound.
    assert paid.mean() == pytest.approx(floor, abs=5.0 * paid.std() / np.sqrt(4000))
