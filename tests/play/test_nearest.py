"""Where no policy meets the budgets: which one comes nearest."""

import numpy as np
import pytest

from omdpd import CMDP
from tests.play.test_curve_of_two_budgets import queue

ONE = np.ones((1, 3, 1))


def test_a_budget_that_can_be_kept_is_kept_beside_one_that_cannot():
    """Every action costs 2 of the first budget, 1; of the second, the best one costs 1 of 0.6, which is less over."""
    cmdp = CMDP.from_arrays(ONE, [[0.0, 1.0, 0.2]], [[[2.0, 2.0, 2.0]], [[0.0, 1.0, 0.0]]], [1.0, 0.6], horizon=1)
    found = cmdp.solve()
    assert not found.feasible
    assert "no policy meets the budget 1 of constraint 0: the least possible cost is 2" in found.impossible
    assert found.evaluation.costs == pytest.approx([2.0, 0.6])
    assert found.evaluation.value == pytest.approx(0.6 + 0.4 * 0.2)
    assert np.isnan(found.shadow_prices).all()


def test_of_two_budgets_that_exclude_each_other_both_are_exceeded_by_the_same_share_and_a_third_is_kept():
    """Action 0 costs 1 of the first, action 1 of the second, each 0.4; action 2 earns and costs all three."""
    costs = [[[1.0, 0.0, 1.0]], [[0.0, 1.0, 1.0]], [[0.0, 0.0, 1.0]]]
    found = CMDP.from_arrays(ONE, [[0.0, 0.0, 1.0]], costs, [0.4, 0.4, 0.1], horizon=1).solve()
    assert not found.feasible
    assert found.evaluation.costs == pytest.approx([0.5, 0.5, 0.0], abs=1e-8)


@pytest.mark.parametrize("first", [0, 1])
def test_a_violation_that_is_rounding_is_none(first):
    """A flood comes once in 10^20 days whatever one does; to make it rarer still takes all the hours there are."""
    p = np.zeros((2, 2, 2))
    p[0, :, 1] = [1e-20, 8e-20]
    p[:, :, 0] = 1.0
    hours, flood = [[2.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]
    costs, budgets = [hours, flood], [1.0, 0.0]
    order = [first, 1 - first]
    cmdp = CMDP.from_arrays(
        p, [[1.0, 0.0], [0.0, 0.0]], [costs[i] for i in order], [budgets[i] for i in order], [1.0, 0.0], 1 + 1
    )  # fmt: skip
    found = cmdp.solve()
    assert not found.feasible
    assert "of constraint " + str(order.index(1)) in found.impossible
    spent = found.evaluation.costs[order.index(0)]
    assert spent == pytest.approx(1.0, abs=1e-9)
    assert found.evaluation.costs[order.index(1)] < 1e-11
    assert found.room == 0.0


def test_no_policy_comes_nearer():
    cmdp = queue([1.1, -1.9], criterion="average")
    found = cmdp.solve()
    costs, budgets = found.evaluation.costs, np.array([1.1, -1.9])
    over = (costs - budgets) / np.abs(budgets)
    assert not found.feasible
    assert over == pytest.approx([over.max()] * 2, abs=1e-4)
    relaxed = cmdp.with_budget(list(budgets + (over.max() + 1e-9) * np.abs(budgets))).solve()
    assert relaxed.feasible
    assert not cmdp.with_budget(list(budgets + (over.max() - 1e-5) * np.abs(budgets))).solve().feasible
