import tracemalloc

import numpy as np
import pytest

from benchmarks.planning_ties import KINDS, faults, tied_problem
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.laws import laws_of_entries
from omdpd.worlds import cyclic, paradox, queue, streaming
from omdpd.worlds.card import bytes_to_solve, problem_card, safe_plan, slater_gap
from tests.references.instances import ladder

STAY = np.eye(2)[:, None].repeat(2, axis=1)  # two states that are never left, two actions


def test_the_card_of_a_problem_worked_out_by_hand():
    """Three steps, budget 3: units of reward cost 1 (action 1) up to 1.5, then 3 each.  1.5 + (3 - 1.5) / 3 = 2."""
    card = problem_card(ladder(3.0))
    (constraint,) = card.constraints
    assert card.value == pytest.approx(2.0)
    assert card.free_value == pytest.approx(3.0)
    assert (constraint.least_cost, constraint.free_cost) == pytest.approx((0.0, 6.0))
    assert constraint.cost == pytest.approx(3.0)
    assert constraint.multiplier * constraint.unit == pytest.approx(1 / 3)
    assert constraint.share == pytest.approx(0.5)
    assert constraint.binds
    # one more step of cost 2 against a budget of 1 a step fits: nothing was scaled, so the gap is natural
    assert constraint.scale == 1.0
    assert card.slater_gap == pytest.approx(3.0)


def test_at_a_kink_one_more_unit_earns_less_than_one_less_loses():
    """Budget 1.5 is exactly three times action 1: more earns 1/3 a unit, less loses 1 a unit."""
    (constraint,) = problem_card(ladder(1.5)).constraints
    assert constraint.multiplier * constraint.unit == pytest.approx(1 / 3)
    assert constraint.multiplier_high * constraint.unit == pytest.approx(1.0)
    assert any("one less loses 1" in line for line in problem_card(ladder(1.5)).lines())


def test_a_budget_with_room_for_everything_does_not_bind():
    card = problem_card(ladder(7.0))
    assert not card.constraints[0].binds
    assert card.value == pytest.approx(card.free_value)
    assert any("does not bind" in line for line in card.lines())


def test_a_problem_that_nobody_can_solve_says_so():
    card = problem_card(CMDP.from_arrays(STAY, np.ones((2, 2)), np.full((2, 2), 0.5), 1.0, horizon=4))
    assert not card.feasible
    assert card.value is None
    assert card.slater_gap == pytest.approx(-1.0)
    text = "\n".join(card.lines())
    assert "none: some budget is exceeded by 1" in text
    assert "negative: no policy meets every budget" in text


def test_without_room_the_largest_multiplier_is_unknown():
    """Budget 0 where every cost is at least 0: no policy has room, and any large price is optimal."""
    card = problem_card(ladder(0.0))
    assert card.slater_gap == pytest.approx(0.0)
    assert card.constraints[0].multiplier_high is None
    assert "no policy meets the budgets with room to spare" in "\n".join(card.lines())


def test_costs_and_values_are_shown_in_natural_units():
    p = np.ones((1, 2, 1))
    cmdp = CMDP.from_arrays(p, [[1.0, 0.0]], [[30.0, 0.0]], 45.0, horizon=3)
    cmdp = cmdp.labelled("fuel", Labels(constraints=("litres",)))
    card = problem_card(cmdp)
    assert cmdp.cost_scale.tolist() == [15.0]
    assert card.constraints[0].budget == pytest.approx(45.0)
    assert card.constraints[0].free_cost == pytest.approx(90.0)
    # half the steps may be paid for: 1.5, and a litre is worth 1/30
    assert card.value == pytest.approx(1.5)
    text = "\n".join(card.lines())
    assert "Slater gap                       3.000000 as learners see costs (45 in your units)" in text
    assert "litres: budget 45; least possible 0, reward-optimal 90, 50.0 % of the way" in text
    assert "one more unit of budget earns 0.0333333; learners see costs and budget divided by 15" in text


def test_several_constraints():
    card = problem_card(queue.make())
    assert card.slater_gap == pytest.approx(2.0)
    assert [c.multiplier_high for c in card.constraints] == [None, None]
    assert sum("binds" in line for line in card.lines()) == 2


def test_known_optima():
    """The paradox earns its budget; three moves on the ring earn 2; a buffer that may always be fast is free."""
    assert problem_card(paradox.make(horizon=7, budget=2.5)).value == pytest.approx(2.5)
    assert problem_card(cyclic.make(budget=4.5)).value == pytest.approx(3.0)
    free = problem_card(streaming.make(budget=10.0))
    assert free.value == pytest.approx(free.free_value)


def test_the_slater_gap_of_two_constraints_is_the_smaller_of_two_rooms():
    p = np.ones((1, 2, 1))
    both = CMDP.from_arrays(p, [[0.0, 1.0]], [[[0.2, 0.6]], [[0.8, 0.3]]], [1.0, 1.2], horizon=2)
    # with weight x on action 0 over 2 steps: rooms 1 - 1.2 + .8 x and 1.2 - .6 - x; equal at x = 4/9
    assert slater_gap(both) == pytest.approx(-0.2 + 0.8 * 4 / 9)


@pytest.mark.parametrize("n_constraints", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_where_much_is_equal_the_card_is_that_of_linear_programs(kind, n_constraints):
    """2000 larger ones: `make ties`."""
    for seed in range(5):
        cmdp = tied_problem(seed, kind, n_constraints, max_states=6)
        assert faults(cmdp, problem_card(cmdp)) == []


def test_a_price_without_an_upper_end_has_one_where_there_is_room():
    """One action earns and costs 1, the other nothing: the price is 1; at budget 0 anything from 1 on."""
    p = np.ones((1, 2, 1))
    ends = {}
    for budget in (0.0, 1.0, 2.0):
        (constraint,) = problem_card(CMDP.from_arrays(p, [[1.0, 0.0]], [[1.0, 0.0]], budget, horizon=2)).constraints
        ends[budget] = constraint.multiplier, constraint.multiplier_high
    assert ends == {0.0: (1.0, None), 1.0: (1.0, 1.0), 2.0: (0.0, 1.0)}


def loop(budget, **criterion):
    """One state; working earns and costs 1 per step, and resting nothing."""
    return CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 1.0]], budget, **criterion)


@pytest.mark.parametrize(
    ("criterion", "budget", "other"), [({"discount": 0.9}, 5.0, 2.5), ({"criterion": "average"}, 0.5, 0.25)]
)
def test_without_an_end_budgets_are_of_the_whole_time(criterion, budget, other):
    cmdp = loop(budget, **criterion)
    assert slater_gap(cmdp) == pytest.approx(budget)
    assert problem_card(cmdp).slater_gap == pytest.approx(budget)
    assert safe_plan(cmdp, cmdp.excess).value == pytest.approx(budget)
    assert slater_gap(cmdp.with_budget(other)) == pytest.approx(other)
    assert cmdp.with_budget(other).solve().value == pytest.approx(other)
    with pytest.raises(InvalidInputError, match="this problem has no end"):
        cmdp.with_scenarios({"other": [[0.0, 0.5]]})


def test_a_notebook_says_how_long_a_problem_is_and_that_it_has_no_limit():
    endless, average = loop(None, discount=0.9), loop(0.5, criterion="average")
    for shown in (endless._repr_html_(), problem_card(endless)._repr_html_()):
        assert "discount 0.9" in shown
        assert "no limit" in shown
        assert "inf" not in shown
        assert "per episode" not in shown
    assert "average per step" in average._repr_html_()
    assert "no limit" in endless.solve()._repr_html_()
    assert "budget per episode" in loop(1.0, horizon=2)._repr_html_()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_constraints_without_a_limit_have_no_part_in_the_slater_gap(unit):
    rng = np.random.default_rng(3)
    p, r, c = rng.dirichlet(np.ones(4), (4, 3)), rng.random((4, 3)), rng.random((3, 4, 3))
    two = CMDP.from_arrays(p, r, c[1:], [2.0, 2.5], horizon=5)
    three = CMDP.from_arrays(p, r, c * np.array([unit, 1.0, 1.0])[:, None, None], [None, 2.0, 2.5], horizon=5)
    assert three.solve().slater_gap == pytest.approx(two.solve().slater_gap, abs=1e-9)
    assert problem_card(three).slater_gap == pytest.approx(problem_card(two).slater_gap, abs=1e-9)
    one = three.with_budget([None, None, 2.5]).solve()
    assert one.slater_gap == pytest.approx(2.5 - one.least_costs[2])
    free = three.with_budget(None)
    assert free.solve().slater_gap == np.inf
    assert not any("Slater" in line for line in (*free.solve().lines(), *problem_card(free).lines()))


def large(n_states, n_successors, **end):
    """Random laws of two actions, dense where every state follows."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(2 * n_states), n_successors)
    dense = n_successors == n_states
    following = np.tile(np.arange(n_states), 2 * n_states) if dense else rng.integers(0, n_states, len(rows))
    chances = rng.dirichlet(np.ones(n_successors), 2 * n_states).ravel()
    laws = laws_of_entries(rows, following, chances, (end.get("horizon", 1), n_states, 2))
    table = rng.random((2, n_states, 2))
    p = laws.expand()[0] if dense else laws
    steps = {"horizon": 4.0, "discount": 10.0}.get(next(iter(end)), 1.0)
    return CMDP.from_arrays(p, table[0], table[1], 0.45 * steps, **end)


@pytest.mark.parametrize(
    ("sizes", "end"),
    [
        ((400, 400), {"horizon": 4}), ((40_000, 3), {"horizon": 4}), ((10_000, 5), {"discount": 0.9}),
        ((10_000, 5), {"criterion": "average"}),
    ],
)  # fmt: skip
def test_what_a_solution_takes_is_known_before_within_a_factor_of_two(sizes, end):
    cmdp = large(*sizes, **end)
    cmdp.solve()
    tracemalloc.start()
    cmdp.solve()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken / 2.0 < bytes_to_solve(cmdp) < taken * 2.0
