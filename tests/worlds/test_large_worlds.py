"""Worlds of thousands of states: their facts, proved forwards and backwards, and what building them takes."""

import tracemalloc

import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.laws import SparseLaws
from omdpd.solvers.planning import best_plan, safest_plan
from omdpd.worlds import WORLDS
from omdpd.worlds.facts import LARGE
from omdpd.worlds.grid import drawn_larger, repeated


def large(name):
    settings, facts = LARGE[name]
    drawn = (np.random.default_rng(0),) if name == "garnet" else ()
    return WORLDS[name](*drawn, **settings), facts


@pytest.fixture(scope="module", params=list(LARGE))
def world(request):
    return large(request.param)


def totals(cmdp, policy, tables):
    """Expected totals of the tables (n, H, S, A) under a policy, step by step."""
    mass, total = cmdp.initial, np.zeros(len(tables))
    for h in range(cmdp.shape[0]):
        q = mass[:, None] * policy[h]
        total += np.array([np.vdot(table[h], q) for table in tables])
        mass = cmdp.laws.forward(q, h)
    return total


def proved(cmdp, tables, prices, reward):
    """max_q (reward - sum_j y_j d_j).q, backwards: no policy that satisfies the tables earns more."""
    values = np.zeros(cmdp.shape[1])
    for h in range(cmdp.shape[0] - 1, -1, -1):
        priced = reward[h] - sum(y * table[h] for y, table in zip(prices, tables, strict=True))
        values = (priced + cmdp.laws.backward(values, h)).max(axis=1)
    return float(cmdp.initial @ values)


def test_the_optimum_is_attained_and_proved(world):
    cmdp, facts = world
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
    assert totals(cmdp, plan.policy, cmdp.reward[None])[0] == pytest.approx(facts.value, abs=1e-8)
    assert totals(cmdp, plan.policy, cmdp.excess).max() <= 1e-9
    assert proved(cmdp, cmdp.excess, facts.multipliers, cmdp.reward) == pytest.approx(facts.value, abs=1e-8)
    assert plan.bound - plan.value == pytest.approx(0.0, abs=1e-10)


def test_the_best_value_without_constraints(world):
    cmdp, facts = world
    assert proved(cmdp, (), (), cmdp.reward) == pytest.approx(facts.free_value, abs=1e-8)


def test_the_slater_gap_is_attained_and_no_policy_has_more(world):
    cmdp, facts = world
    policy = safest_plan(cmdp.laws, cmdp.initial, cmdp.excess)
    assert -totals(cmdp, policy, cmdp.excess).max() == pytest.approx(facts.slater_gap, abs=1e-8)
    each = [proved(cmdp, (), (), -table) for table in cmdp.excess]
    assert min(each) == pytest.approx(facts.slater_gap, abs=1e-8)


def test_the_best_policy_for_all_scenarios_is_safe_in_each_and_proved(world):
    cmdp, facts = world
    assert (facts.scenario_value is None) == (cmdp.scenarios is None)
    if cmdp.scenarios is not None:
        rows = cmdp.scenarios.rows
        plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, rows)
        assert totals(cmdp, plan.policy, rows).max() <= 1e-8
        assert totals(cmdp, plan.policy, cmdp.reward[None])[0] == pytest.approx(facts.scenario_value, abs=1e-8)
        assert proved(cmdp, rows, plan.multipliers, cmdp.reward) == pytest.approx(facts.scenario_value, abs=1e-7)


def test_laws_are_lists_and_a_table_that_does_not_fit_is_refused(world):
    cmdp, _ = world
    _, S, A = cmdp.shape
    assert isinstance(cmdp.laws, SparseLaws)
    assert cmdp.laws.n_entries <= 10 * S * A
    if S * A * S > 2**25:
        with pytest.raises(InvalidInputError, match=f"the laws of {S} states"):
            cmdp.transition  # noqa: B018


@pytest.mark.parametrize("name", ["grid", "mars_rover", "queue"])
def test_building_takes_no_more_than_its_tables(name):
    """A table (S, A, S) of one step alone would take 200 MB."""
    tracemalloc.start()
    try:
        cmdp, _ = large(name)
        n_scenarios = cmdp.scenarios.tables.nbytes if cmdp.scenarios.tables.strides[2] else 0
        assert tracemalloc.get_traced_memory()[1] < 20e6 + 4 * n_scenarios
    finally:
        tracemalloc.stop()


def test_maps_that_are_drawn_larger_keep_their_marks():
    rows = drawn_larger(("S.O.G", "....."), 15)
    assert (len(rows), len(rows[0])) == (15, 15)
    assert "".join(rows).count("S") == "".join(rows).count("G") == 1
    assert rows[0][0] == "S"
    assert rows[0][14] == "G"
    assert "".join(rows).count("O") == 3 * 8  # a fifth of the columns, the first 8 rows of 15
    pits = repeated(("SF", "HG"), 6)
    assert "".join(pits).count("H") == 9


@pytest.mark.parametrize("make", [drawn_larger, repeated])
def test_a_map_is_not_drawn_smaller(make):
    with pytest.raises(InvalidInputError, match=r"size is 3, but the map that is to be .* has 5 x 5 cells"):
        make(("S....", ".....", "..O..", ".....", "....G"), 3)


def test_orders_beyond_the_capacity_are_cut():
    shop = WORLDS["inventory"](capacity=3, max_order=5)
    assert shop.shape[1:] == (4, 6)
    assert np.array_equal(shop.transition[0, 2, 1], shop.transition[0, 2, 5])
