from itertools import pairwise

import numpy as np
import pytest

from omdpd.natures import pool
from omdpd.natures.anchor import Anchor
from omdpd.problem.arrays import InvalidInputError
from omdpd.solvers.compiled.products import costliest
from tests.references.instances import forward, random_cmdp, random_policy
from tests.references.reference_programs import dual_value

H, S, A, I = 4, 3, 2, 2  # noqa: E741
NOWHERE = np.zeros((H, S, A))


def world(seed=0, n_constraints=I):
    return random_cmdp(np.random.default_rng(seed), H, S, A, n_constraints)


def test_a_pool_is_four_rounds_of_tables_around_the_anchor():
    cmdp = world()
    nature = pool.make(cmdp, 5)
    assert nature.tables.shape == (4, I, H, S, A)
    assert np.tensordot(nature.tables, Anchor.of(cmdp).occupancy, axes=3).max() < 0.0
    assert np.abs(nature.tables).max() <= 1.0


@pytest.mark.parametrize("seed", range(5))
def test_a_pool_has_a_safe_policy_and_forbids_the_reward_optimal_one(seed):
    cmdp = world(seed, 1)
    nature = pool.make(cmdp, seed)
    tables = nature.tables[:, 0]
    value, prices = dual_value(cmdp.transition, cmdp.initial, cmdp.reward, tables)
    free, _ = dual_value(cmdp.transition, cmdp.initial, cmdp.reward, tables[:0])
    anchor = Anchor.of(cmdp)
    assert nature.safety().exists
    assert (cmdp.reward * anchor.occupancy).sum() - 1e-9 <= value <= free + 1e-9
    if np.tensordot(tables, anchor.optimum, axes=3).max() > 1e-6:
        assert prices.sum() > 0.0
        assert value < free


def test_random_switching_uses_every_table_about_equally_often():
    nature = pool.make(world(), 5)
    keys = np.array([nature.draw(k, NOWHERE).key for k in range(2000)])
    counts = np.bincount(keys, minlength=4)
    # Three degrees of freedom: mean 3, standard deviation sqrt(6).
    assert ((counts - 500.0) ** 2 / 500.0).sum() < 20.0
    for k in (0, 17):
        assert np.array_equal(nature.draw(k, NOWHERE).cost, nature.table(nature.draw(k, NOWHERE).key))


def test_cyclic_switching_and_blocks_of_fifty():
    cyclic, blocks = pool.make(world(), 5, switching="cyclic"), pool.make(world(), 5, switching="blocks")
    assert [cyclic.draw(k, NOWHERE).key for k in range(6)] == [0, 1, 2, 3, 0, 1]
    assert [blocks.draw(k, NOWHERE).key for k in (0, 49, 50, 199, 200)] == [0, 0, 1, 3, 0]


def test_an_unknown_switching_and_an_empty_pool_are_refused():
    with pytest.raises(InvalidInputError, match="switching is 'sometimes'"):
        pool.make(world(), 5, switching="sometimes")
    with pytest.raises(InvalidInputError, match="size is 0"):
        pool.make(world(), 5, size=0)


def test_the_adaptive_nature_picks_what_costs_the_policy_in_play_the_most():
    cmdp = world()
    nature = pool.make_adaptive(cmdp, 5)
    rng = np.random.default_rng(1)
    picked = set()
    for k in range(30):
        q = forward(random_policy(rng, H, S, A), cmdp.transition, cmdp.initial)
        met = nature.draw(k, q)
        worst = [max((nature.tables[j, i] * q).sum() for i in range(I)) for j in range(4)]
        assert met.key == int(np.argmax(worst))
        assert np.array_equal(met.cost, nature.tables[met.key])
        picked.add(met.key)
    assert len(picked) > 1


def test_ties_of_the_adaptive_nature_go_to_the_first():
    assert pool.make_adaptive(world(), 5).draw(0, NOWHERE).key == 0


def test_adaptive_and_pool_share_their_tables_for_one_seed():
    assert np.array_equal(pool.make(world(), 5).tables, pool.make_adaptive(world(), 5).tables)
    assert not np.array_equal(pool.make(world(), 5).tables, pool.make(world(), 6).tables)


def test_drifting_passes_through_the_pools_tables_in_turn():
    nature = pool.make_drifting(world(), 5, period=100)
    for j in range(4):
        assert np.allclose(nature.draw(25 * j, NOWHERE).cost, nature.tables[j], rtol=0.0, atol=1e-14)
    halfway = 0.6 * nature.tables[3] + 0.4 * nature.tables[0]
    assert np.allclose(nature.draw(85, NOWHERE).cost, halfway, rtol=0.0, atol=1e-14)
    assert np.array_equal(nature.draw(185, NOWHERE).cost, nature.draw(85, NOWHERE).cost)
    assert nature.draw(185, NOWHERE).key == nature.draw(85, NOWHERE).key


def test_drifting_turns_slowly_and_stays_safe_for_the_anchor():
    cmdp = world()
    nature = pool.make_drifting(cmdp, 5)
    anchor = Anchor.of(cmdp).occupancy
    steps = [nature.draw(k, NOWHERE).cost for k in range(0, 1000, 7)]
    assert max(np.abs(b - a).max() for a, b in pairwise(steps)) <= 2.0 * 7 * 4 / 1000 + 1e-12
    assert max(np.tensordot(d, anchor, axes=3).max() for d in steps) < 0.0


def test_an_adversary_picks_the_costliest_table_and_the_first_of_equals():
    rng = np.random.default_rng(0)
    for _ in range(100):
        tables, q = rng.uniform(-1.0, 1.0, (5, 2, 2, 3, 2)), rng.random((2, 3, 2))
        excess = np.tensordot(tables, q, axes=3).max(axis=1)
        assert costliest(tables, q) == int(np.argmax(excess))
    assert costliest(np.ones((3, 1, 1, 1, 1)), np.ones((1, 1, 1))) == 0
