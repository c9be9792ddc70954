"""A user who knows the model: solve it, or learn that the budget is impossible."""

import subprocess
import sys

import numpy as np
import pytest

from omdpd import CMDP, Policy, save_problem
from omdpd.problem.arrays import inner
from omdpd.worlds import WORLDS
from omdpd.worlds.card import natural_value, problem_card
from omdpd.worlds.facts import FACTS

H = 3
KERNEL = np.full((2, 2, 2), 0.5)
REWARD = [[0.0, 1.0], [0.0, 1.0]]


def one_constraint(budget, scale=1.0):
    """Working earns 1 and costs 1 (in the user's units: `scale`), resting earns 0 and costs one half."""
    cost = scale * np.array([[0.5, 1.0], [0.5, 1.0]])
    return CMDP.from_arrays(KERNEL, REWARD, cost, budget=scale * budget, horizon=H)


def opposed(budgets):
    """Working costs 1 of the first kind, resting 1 of the second."""
    cost = [[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    return CMDP.from_arrays(KERNEL, REWARD, cost, budget=budgets, horizon=H)


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "omdpd", *map(str, words)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_the_optimum_by_hand_in_the_users_units(scale):
    # With w the expected number of working steps: earn w, pay 1.5 + w / 2 <= 2.5, so w = 2; a unit more buys 2 steps.
    solution = one_constraint(2.5, scale).solve()
    assert solution.feasible
    assert solution.value == pytest.approx(2.0, abs=1e-9)
    assert solution.shadow_prices == pytest.approx([2.0 / scale])
    assert solution.slater_gap == pytest.approx(scale * 1.0)
    assert solution.evaluation.costs == pytest.approx([scale * 2.5])
    assert solution.free_value == pytest.approx(3.0)
    assert solution.policy.evaluate(one_constraint(2.5, scale)).value == pytest.approx(2.0, abs=1e-9)
    assert "best safe value                  2.000000" in str(solution)


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_an_impossible_budget_is_a_sentence_with_the_least_cost_and_its_policy(scale):
    solution = one_constraint(1.0, scale).solve()
    assert not solution.feasible
    assert solution.value is None
    sentence = f"no policy meets the budget {scale:g} of constraint 0: the least possible cost is {1.5 * scale:g}"
    assert solution.impossible == sentence
    assert repr(solution) == f"Solution({sentence})"
    assert str(solution).startswith(sentence)
    assert solution.evaluation.costs == pytest.approx([1.5 * scale])
    assert solution.slater_gap == pytest.approx(-0.5 * scale)
    assert np.allclose(np.asarray(solution.policy)[..., 0], 1.0)
    assert np.isnan(solution.shadow_prices).all()
    assert sentence in solution._repr_html_()


def test_budgets_that_are_impossible_only_together_are_told_apart():
    solution = opposed([1.0, 1.0]).solve()
    assert not solution.feasible
    sentence = (
        "no policy meets all budgets at once: the one whose largest excess, as a share of its budget, is least costs"
    )
    assert solution.impossible == f"{sentence} 1.5 of 1 (constraint 0, 50 % over), 1.5 of 1 (constraint 1, 50 % over)"
    assert solution.evaluation.excess == pytest.approx([0.5, 0.5])
    assert solution.least_costs == pytest.approx([0.0, 0.0])
    assert opposed([2.0, 1.0]).solve().value == pytest.approx(2.0)


@pytest.mark.parametrize("cents", [1.0, 100.0])
def test_budgets_in_other_units_are_exceeded_by_the_same_shares(cents):
    # Every step costs one budget or the other: x of 1 and 3 - x of 0.5 are over by the same share at x = 2.
    cost = np.array([[[cents, 0.0], [cents, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    cmdp = CMDP.from_arrays(KERNEL, REWARD, cost, budget=[cents, 0.5], horizon=H)
    solution = cmdp.solve()
    assert solution.evaluation.costs == pytest.approx([2.0 * cents, 1.0])
    assert solution.room == pytest.approx(-1.0)
    assert f"{2 * cents:g} of {cents:g} (constraint 0, 100 % over), 1 of 0.5 (constraint 1, 100 % over)" in str(
        solution
    )
    assert inner(cmdp.cost, solution.occupancy) * cmdp.cost_scale == pytest.approx(solution.evaluation.costs)
    mixed = sum(pure.share * pure.evaluation.costs for pure in solution.pure_policies())
    assert mixed == pytest.approx(solution.evaluation.costs)
    room = "room below the budgets           none: every policy exceeds some budget by 100 % of it or more"
    checked = problem_card(cmdp).lines()
    assert room in solution.lines()
    assert room in checked
    assert "best safe value                  none: some budget is exceeded by 100 % of it" in checked


@pytest.mark.parametrize("name", ["streaming", "queue", "inventory", "paradox"])
def test_the_worlds_have_the_optima_that_are_known(name):
    world = WORLDS[name]()
    solution, facts = world.solve(), FACTS[name]
    assert solution.value == pytest.approx(natural_value(world, facts.value), abs=1e-8)
    low, high = world.reward_range
    prices = np.array(facts.multipliers) * (high - low) / world.cost_scale
    assert solution.shadow_prices == pytest.approx(prices, abs=1e-8)
    assert solution.evaluation.safe


def test_the_slater_gap_of_several_constraints_is_in_the_users_units():
    # A working steps, H - w resting: room (1000 (3 - w), w) is widest where 1000 (3 - w) = w.
    cost = [[[0.0, 1000.0], [0.0, 1000.0]], [[1.0, 0.0], [1.0, 0.0]]]
    cmdp = CMDP.from_arrays(KERNEL, REWARD, cost, budget=[3000.0, 3.0], horizon=H)
    assert cmdp.solve().slater_gap == pytest.approx(3000.0 / 1001.0, abs=1e-5)


def test_the_command_writes_the_policy_and_its_exit_code_says_what_happened(tmp_path):
    good = save_problem(one_constraint(2.5), tmp_path / "good.npz")
    code, out, _ = command("solve", good, "-o", tmp_path / "policy.npz")
    assert code == 0
    assert "best safe value                  2.000000" in out
    assert Policy.load(tmp_path / "policy.npz").evaluate(one_constraint(2.5)).value == pytest.approx(2.0, abs=1e-9)

    bad = save_problem(one_constraint(1.0), tmp_path / "bad.npz")
    code, out, _ = command("solve", bad, "-o", tmp_path / "least.npz")
    assert code == 1
    assert "the least possible cost is 1.5" in out
    assert Policy.load(tmp_path / "least.npz").evaluate(one_constraint(1.0)).costs == pytest.approx([1.5])

    code, _, err = command("solve", tmp_path / "none.npz")
    assert code == 2
    assert len(err.splitlines()) == 1


def test_check_says_that_a_budget_is_impossible_and_exits_with_one(tmp_path):
    bad = save_problem(one_constraint(1.0), tmp_path / "bad.npz")
    code, out, _ = command("check", bad)
    assert code == 1
    assert "impossible: every policy costs at least 0.5 more" in out
    assert "does not bind" not in out
    both = save_problem(opposed([1.0, 1.0]), tmp_path / "both.npz")
    assert "can be met on its own, but not together with the others" in command("check", both)[1]
    good = save_problem(one_constraint(2.5), tmp_path / "good.npz")
    assert command("check", good)[0] == 0
