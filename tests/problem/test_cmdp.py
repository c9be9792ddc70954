from dataclasses import replace

import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP, Labels

H, S, A, I = 3, 4, 2, 5  # noqa: E741


def tables(rng_seed=0):
    rng = np.random.default_rng(rng_seed)
    return (
        rng.dirichlet(np.ones(S), (H, S, A)),
        rng.random((H, S, A)),
        rng.uniform(-1.0, 1.0, (I, H, S, A)),
    )


def test_sizes_and_shapes_that_all_differ_are_kept():
    p, r, c = tables()
    cmdp = CMDP.from_arrays(p, r, c, np.zeros(I))
    assert cmdp.shape == (H, S, A)
    assert cmdp.n_constraints == I
    assert cmdp.excess.shape == (I, H, S, A)


def test_a_single_cost_table_becomes_one_constraint():
    p, r, c = tables()
    assert np.array_equal(CMDP.from_arrays(p, r, c[0], budget=0.0).cost, c[:1])


def test_stationary_tables_are_repeated_over_the_steps():
    p, r, c = tables()
    cmdp = CMDP.from_arrays(p[0], r[0], c[:, 0], np.zeros(I), horizon=7)
    assert cmdp.shape == (7, S, A)
    assert np.array_equal(cmdp.transition[6], cmdp.transition[0])
    assert np.array_equal(cmdp.cost[:, 6], c[:, 0])


def test_each_budget_is_spread_over_the_steps_of_its_own_constraint():
    p, r, c = tables()
    budget = np.array([0.3, -0.3, 0.0, 0.6, -0.6])
    cmdp = CMDP.from_arrays(p, r, 0.5 * c, budget=budget)
    for i in range(I):
        assert np.allclose(cmdp.excess[i], 0.5 * c[i] - budget[i] / H, rtol=0.0, atol=1e-15)
    assert np.array_equal(cmdp.budget, budget)


def test_one_number_is_no_budget_of_several_costs():
    p, r, c = tables()
    names = Labels(constraints=("hours", "euros", "litres", "tons", "lost"))
    wrong = "budget is 1 number, but there are 5 costs: hours, euros, litres, tons, lost"
    cmdp = CMDP.from_arrays(p, r, c, np.zeros(I), labels=names)
    for refused in (lambda: CMDP.from_arrays(p, r, c, 0.3, labels=names), lambda: cmdp.with_budget(0.3)):
        with pytest.raises(InvalidInputError, match=wrong):
            refused()
    assert cmdp.with_budget(None).unlimited.all()


def test_budgets_are_given_by_name_and_those_that_are_not_named_stay():
    p, r, c = tables()
    names = Labels(constraints=("hours", "euros", "litres", "tons", "lost"))
    said = {"tons": 0.4, "hours": 0.1, "lost": None, "euros": 0.2, "litres": 0.3}
    cmdp = CMDP.from_arrays(p, r, c, said, labels=names)
    assert cmdp.limits == pytest.approx([0.1, 0.2, 0.3, 0.4, np.inf])
    assert cmdp.with_budget({"euros": 7.0, "lost": 5.0}).limits == pytest.approx([0.1, 7.0, 0.3, 0.4, 5.0])
    assert cmdp.with_budget({"euros": None}).limits == pytest.approx([0.1, np.inf, 0.3, 0.4, np.inf])
    with pytest.raises(InvalidInputError, match="there is no constraint 'Euros'; there are hours, euros"):
        cmdp.with_budget({"Euros": 7.0})
    with pytest.raises(InvalidInputError, match="budget leaves out 'litres'; there are hours, euros"):
        CMDP.from_arrays(p, r, c, {"hours": 1.0, "euros": 1.0}, labels=names)


def test_a_wrong_number_of_budgets_is_refused():
    p, r, c = tables()
    with pytest.raises(
        InvalidInputError, match="budget is 2 numbers, but there are 5 costs: constraint 0, constraint 1"
    ):
        CMDP.from_arrays(p, r, c, budget=[0.1, 0.2])


def test_the_worst_cost_outside_its_range_after_the_budget_is_named_with_the_way_out():
    p, r, c = tables()
    c = 0.5 * c
    c[3, 2, 1, 0] = 0.9
    with pytest.raises(InvalidInputError) as refusal:
        CMDP.from_arrays(p, r, c, budget=[-1.8] * I, rescale=False)
    message = str(refusal.value)
    assert "cost[3, 2, 1, 0] (constraint 3, step 2, state 1, action 0) less its budget per step is 1.5" in message
    assert "divide cost and budget of constraint 3 by 1.5" in message
    assert "rescale=False" in message
    assert CMDP.from_arrays(p, r, c, budget=[-1.8] * I).cost_scale[3] == pytest.approx(1.5)


def test_rescaling_divides_cost_and_budget_of_the_constraints_that_do_not_fit_only():
    p, r, c = tables()
    c = np.clip(c, -0.5, 0.5)
    c[3] *= 8.0
    budget = np.array([0.3, 0.3, 0.3, 1.5, 0.3])
    cmdp = CMDP.from_arrays(p, r, c, budget=budget)
    largest = np.abs(c[3] - 0.5).max()
    assert np.allclose(cmdp.cost_scale, [1.0, 1.0, 1.0, largest, 1.0], rtol=1e-15)
    assert np.abs(cmdp.excess).max() <= 1.0 + 1e-12
    assert np.allclose(cmdp.excess[3] * largest, c[3] - 0.5, rtol=0.0, atol=1e-14)
    assert np.allclose(cmdp.budget * cmdp.cost_scale, budget, rtol=1e-15)


def test_costs_that_fit_are_not_rescaled():
    p, r, c = tables()
    assert np.array_equal(CMDP.from_arrays(p, r, c, np.zeros(I)).cost, c)


def test_a_transition_row_that_does_not_sum_to_one_is_named():
    p, r, c = tables()
    p[2, 3, 1, 0] += 0.1
    with pytest.raises(InvalidInputError, match=r"transition\[2, 3, 1\] \(step 2, state 3, action 1\) = 1.1"):
        CMDP.from_arrays(p, r, c, np.zeros(I))


def test_a_negative_probability_is_named():
    p, r, c = tables()
    p[1, 0, 1] = [1.5, -0.5, 0.0, 0.0]
    with pytest.raises(InvalidInputError, match=r"transition\[1, 0, 1, 1\] .*next state 1\) = -0.5 is negative"):
        CMDP.from_arrays(p, r, c, np.zeros(I))


@pytest.mark.parametrize("which", ["transition", "reward", "cost"])
def test_a_number_that_is_none_is_named(which):
    given = dict(zip(("transition", "reward", "cost"), tables(), strict=True))
    given[which].ravel()[0] = np.nan
    with pytest.raises(InvalidInputError, match=rf"{which}\[0, .* = nan is not a finite number"):
        CMDP.from_arrays(**given)


def test_a_reward_outside_the_unit_interval_is_named():
    p, r, c = tables()
    r[0, 2, 1] = 1.25
    with pytest.raises(InvalidInputError, match=r"reward\[0, 2, 1\] .* = 1.25 is outside \[0, 1\]"):
        CMDP.from_arrays(p, r, c, np.zeros(I), reward_range=(0, 1))


def test_swapped_axes_are_refused():
    p, r, c = tables()
    with pytest.raises(InvalidInputError, match=r"reward has shape \(3, 2, 4\), but transition asks for \(3, 4, 2\)"):
        CMDP.from_arrays(p, r.transpose(0, 2, 1), c, budget=0.0)
    with pytest.raises(InvalidInputError, match="cost has length 2 along its state axis"):
        CMDP.from_arrays(p, r, c.transpose(0, 1, 3, 2), budget=0.0)
    with pytest.raises(InvalidInputError, match="transition has length"):
        CMDP.from_arrays(p.transpose(0, 1, 3, 2), r.transpose(0, 1, 2).repeat(2, axis=2), c, budget=0.0)


def test_a_transition_of_the_wrong_rank_is_refused():
    with pytest.raises(InvalidInputError, match="transition has 2 axes, but needs 4"):
        CMDP.from_arrays(np.eye(2), np.zeros(2), np.zeros(2), budget=0.0)


def test_a_stationary_kernel_needs_its_horizon():
    p, r, c = tables()
    with pytest.raises(InvalidInputError, match="so a horizon is needed"):
        CMDP.from_arrays(p[0], r[0], c[0, 0], budget=0.0)
    with pytest.raises(InvalidInputError, match="horizon is 0"):
        CMDP.from_arrays(p[0], r[0], c[0, 0], budget=0.0, horizon=0)


def test_a_horizon_that_contradicts_the_kernel_is_refused():
    p, r, c = tables()
    with pytest.raises(InvalidInputError, match="horizon is 9, but transition has 3 steps"):
        CMDP.from_arrays(p, r, c, np.zeros(I), horizon=9)


@pytest.mark.parametrize(("axis", "label"), [(0, "step"), (1, "state"), (2, "action")])
def test_an_axis_of_length_zero_is_named(axis, label):
    p, r, c = tables()
    empty = np.take(p, [], axis=axis)
    with pytest.raises(InvalidInputError, match=f"transition has length 0 along its {label} axis"):
        CMDP.from_arrays(empty, r, c, budget=0.0)


def test_no_constraint_at_all_is_refused():
    p, r, c = tables()
    with pytest.raises(InvalidInputError, match="cost has length 0 along its constraint axis"):
        CMDP.from_arrays(p, r, c[:0], budget=0.0)


def test_an_initial_law_is_checked():
    p, r, c = tables()
    with pytest.raises(InvalidInputError, match="initial has length 2 along its state axis"):
        CMDP.from_arrays(p, r, c, np.zeros(I), initial=[0.5, 0.5])


@pytest.mark.parametrize("which", ["transition", "reward", "cost", "budget", "initial"])
def test_what_is_not_an_array_of_numbers_is_refused_with_a_sentence(which):
    given = dict(zip(("transition", "reward", "cost"), tables(), strict=True)) | {which: [[1.0], [1.0, 2.0]]}
    with pytest.raises(InvalidInputError, match=f"{which} is not an array of numbers"):
        CMDP.from_arrays(**given)


def test_step_dependent_costs_beside_a_stationary_kernel_are_not_taken_for_constraints():
    p, r, c = tables()
    with pytest.raises(InvalidInputError, match="cost"):
        CMDP.from_arrays(p[0], r, c[0], budget=0.0, horizon=H)


def test_a_learner_is_told_the_sizes_the_initial_law_and_nothing_else():
    p, r, c = tables()
    setting = CMDP.from_arrays(p, r, c, np.zeros(I), initial=[0.1, 0.2, 0.3, 0.4]).setting(100, "full")
    assert setting.shape == (H, S, A)
    assert setting.n_constraints == I
    assert setting.n_episodes == 100
    assert setting.feedback == "full"
    assert np.allclose(setting.mu, [0.1, 0.2, 0.3, 0.4], rtol=1e-15)


def test_the_given_arrays_are_copied():
    p, r, c = tables()
    cmdp = CMDP.from_arrays(p, r, c, np.zeros(I))
    before = cmdp.reward.copy()
    r[:] = 0.0
    assert np.array_equal(cmdp.reward, before)


def test_a_problem_is_one_line_when_it_is_printed():
    cmdp = CMDP.from_arrays(np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.0, 40.0]], budget=60.0, horizon=3)
    assert repr(cmdp) == "CMDP(own: 1 states, 2 actions, 3 steps, budget 60)"


def shop(budget):
    """Two constraints in units of their own, of which the first does not fit."""
    p, r, _ = tables()
    cost = np.random.default_rng(3).random((2, *r.shape)) * np.array([30.0, 0.5])[:, None, None, None]
    return CMDP.from_arrays(p, r, cost, budget), cost


@pytest.mark.parametrize("budget", [[45.0, 1.0], [600.0, 10.0], [0.0, 0.0]])
def test_another_budget_in_the_user_s_units_gives_the_problem_that_has_it(budget):
    (cmdp, cost), (wanted, _) = shop([45.0, 1.0]), shop(budget)
    scenarios = {"dear": 1.5 * cost, "cheap": 0.5 * cost}
    for changed, other in (
        (cmdp.with_budget(budget), wanted),
        (cmdp.with_scenarios(scenarios).with_budget(budget), wanted.with_scenarios(scenarios)),
    ):
        assert repr(changed) == repr(other)
        for name in ("cost", "budget", "cost_scale", "excess"):
            assert np.allclose(getattr(changed, name), getattr(other, name), rtol=1e-14, atol=1e-14)
    assert np.allclose(changed.scenarios.tables, other.scenarios.tables, rtol=1e-14, atol=1e-14)


def test_another_budget_that_does_not_fit_is_refused_where_that_is_asked_for():
    p, r, c = tables()
    cmdp = CMDP.from_arrays(p, r, c, np.zeros(I))
    assert np.array_equal(cmdp.with_budget([0.0] * I).excess, cmdp.excess)
    with pytest.raises(InvalidInputError, match="leave rescale=False out"):
        cmdp.with_budget([100.0] * I, rescale=False)
    assert cmdp.with_budget([100.0] * I).cost_scale.min() > 1.0


@pytest.mark.parametrize("changes", [{"budget": np.array([600.0, 10.0])}, {"cost": np.zeros(1)}], ids=list)
def test_costs_and_budgets_in_unknown_units_cannot_be_put_into_a_problem(changes):
    cmdp, _ = shop([45.0, 1.0])
    with pytest.raises(InvalidInputError, match=r"give budgets in your units to cmdp\.with_budget"):
        replace(cmdp, **changes)
    assert replace(cmdp, name="other").labelled("third").budget is cmdp.budget


def test_a_forgotten_budget_is_asked_for():
    p, r, c = tables()
    coin = (3, 2, 1), lambda s, a: [(1.0, s)], lambda s, a: 0.0, lambda s, a: 0.0
    for build in (
        lambda: CMDP.from_arrays(p, r, c),
        lambda: CMDP.from_functions(*coin),
    ):
        with pytest.raises(InvalidInputError, match="budget is missing: give what an episode may cost in expectation"):
            build()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reward_range": (-1e308, 1e308)}, r"reward_range\[0\] .* is beyond 1e\+100: choose larger units"),
        ({"reward_range": (0.0, 1e101)}, r"reward_range\[1\] .* is beyond 1e\+100"),
        ({"reward_range": (0.0, 1e-300)}, "its ends must be farther apart"),
        ({"reward_range": (1e15, 1e15 + 1.0)}, "its ends must be farther apart"),
        ({"budget": 1e200}, r"budget\[0\] .* is beyond 1e\+100"),
        ({"cost": 1e308}, r"cost\[0, 0, 0, 0\] .* is beyond 1e\+100"),
        ({"cost": np.inf}, "is not a finite number"),
    ],
    ids=str,
)
def test_what_cannot_be_reckoned_with_is_refused(given, words):
    p, r, c = tables()
    full = {"reward": np.zeros_like(r), "budget": 0.0} | given | {"cost": np.full_like(c, given.get("cost", 0.0))}
    with pytest.raises(InvalidInputError, match=words):
        CMDP.from_arrays(p, **full)


def test_the_largest_range_that_is_taken_has_a_value():
    ends = (-1e100, 1e100)
    found = CMDP.from_arrays(np.ones((1, 2, 1)), [ends], [[0.0, 1.0]], 0.5, horizon=3, reward_range=ends).solve()
    assert found.value == pytest.approx(-2e100)
    assert found.shadow_prices == pytest.approx([2e100])
