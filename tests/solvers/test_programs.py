import numpy as np
import pytest
from scipy.optimize import linprog

from omdpd.problem.laws import DenseLaws
from omdpd.solvers.compiled.flow import flow_residual, greedy_policy, occupancy_of_policy
from omdpd.solvers.planning import best_plan_against, safest_plan
from omdpd.solvers.programs import (
    best_policy,
    least_total_violation,
    optimistic_plan,
    plan_under,
)
from tests.references.instances import SIZES, kernel_inside, random_box, random_kernel, random_law
from tests.references.reference_programs import dual_value, extended_value, least_worst_excess

H, S, A, I = SIZES  # noqa: E741
# What two simplex runs of accuracy 1e-9 may differ by in an objective of size H.
CLOSE = 1e-7


def problem(seed, n_tables=I, shape=(H, S, A), shift=0.0):
    rng = np.random.default_rng(seed)
    tables = rng.uniform(-1.0, 1.0, (n_tables, *shape)) + shift
    return random_kernel(rng, *shape), random_law(rng, shape[1]), rng.random(shape), tables


def feasible_problem(seed, n_tables=I):
    """Tables shifted so that one policy satisfies each with a little room, and the greedy policy none."""
    p, mu, r, tables = problem(seed, n_tables)
    rng = np.random.default_rng(seed)
    anchor = occupancy_of_policy(rng.dirichlet(np.ones(A), (H, S)), p, mu)
    return p, mu, r, tables - (np.tensordot(tables, anchor, axes=3) / H)[:, None, None, None] - 0.01


@pytest.mark.parametrize("seed", range(6))
def test_the_best_policy_reaches_the_value_of_the_dual_program(seed):
    p, mu, r, tables = feasible_problem(seed)
    plan = best_policy(p, mu, r, tables)
    assert plan.feasible
    assert plan.value == pytest.approx(dual_value(p, mu, r, tables)[0], abs=CLOSE)
    assert plan.violation <= 1e-8
    assert flow_residual(plan.occupancy, p, mu) < 1e-8


@pytest.mark.parametrize("seed", range(6))
def test_the_plans_policy_has_the_plans_value_and_costs(seed):
    p, mu, r, tables = feasible_problem(seed)
    plan = best_policy(p, mu, r, tables)
    q = occupancy_of_policy(plan.policy, p, mu)
    assert np.vdot(r, q) == pytest.approx(plan.value, abs=CLOSE)
    assert np.tensordot(tables, q, axes=3).max() <= CLOSE


@pytest.mark.parametrize("seed", range(6))
def test_shadow_prices_are_signs_complementary_and_close_the_dual(seed):
    p, mu, r, tables = feasible_problem(seed)
    plan = best_policy(p, mu, r, tables)
    prices = plan.multipliers
    assert prices.shape == (I,)
    assert np.all(prices >= 0.0)
    assert np.abs(prices * np.tensordot(tables, plan.occupancy, axes=3)).max() < CLOSE
    # Weak duality holds for any prices; equality says that these are optimal.
    relaxed = mu @ greedy_policy(p, r - np.tensordot(prices, tables, axes=1))[1][0]
    assert relaxed == pytest.approx(plan.value, abs=CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_shadow_prices_are_what_a_little_budget_is_worth(seed):
    p, mu, r, tables = feasible_problem(seed, n_tables=2)
    plan = best_policy(p, mu, r, tables)
    step = 1e-5
    for j in range(2):
        # d.q <= step is (d - step/H).q <= 0, since q sums to H.
        room = np.zeros((2, 1, 1, 1))
        room[j] = step / H
        more, less = best_policy(p, mu, r, tables - room).value, best_policy(p, mu, r, tables + room).value
        # The value is concave in the budget: its price lies between the two one-sided slopes.
        assert (more - plan.value) / step - 1e-3 <= plan.multipliers[j] <= (plan.value - less) / step + 1e-3


def test_without_tables_the_best_policy_is_the_greedy_one():
    p, mu, r, tables = problem(3)
    plan = best_policy(p, mu, r, tables[:0])
    assert plan.feasible
    assert plan.multipliers.shape == (0,)
    assert plan.violation == 0.0
    assert plan.value == pytest.approx(mu @ greedy_policy(p, r)[1][0], abs=CLOSE)


def test_one_state_one_step_by_hand():
    # Two actions, worth 1 at cost .5 and worth 0 at cost -.5: half of each, and a unit of budget is worth one.
    plan = best_policy(np.ones((1, 1, 2, 1)), np.ones(1), np.array([[[1.0, 0.0]]]), np.array([[[[0.5, -0.5]]]]))
    assert np.allclose(plan.policy, 0.5, rtol=0.0, atol=1e-9)
    assert plan.value == pytest.approx(0.5, abs=1e-9)
    assert plan.multipliers == pytest.approx([1.0], abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_an_infeasible_program_answers_with_the_least_violating_policy(seed):
    p, mu, r, tables = problem(seed, shift=0.6)
    assert dual_value(p, mu, r, tables) == (None, None)
    plan = best_policy(p, mu, r, tables)
    assert not plan.feasible
    assert np.array_equal(plan.multipliers, np.zeros(I))
    assert plan.violation == pytest.approx(least_worst_excess(p, mu, tables), abs=CLOSE)
    q = occupancy_of_policy(plan.policy, p, mu)
    assert np.tensordot(tables, q, axes=3).max() == pytest.approx(plan.violation, abs=CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_the_optimistic_plan_reaches_the_value_of_the_joint_program(seed):
    rng = np.random.default_rng(seed)
    box, _ = random_box(rng, H, S, A, width=0.2)
    mu, r, tables = random_law(rng, S), rng.random((H, S, A)), rng.uniform(-1.0, 1.0, (2, H, S, A))
    plan = optimistic_plan(box.lower, box.upper, mu, r, tables)
    value, _ = extended_value(box, mu, r, tables)
    assert plan.feasible
    assert plan.value == pytest.approx(value, abs=CLOSE)
    assert plan.violation <= 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_no_kernel_of_the_box_does_better_than_the_optimistic_plan(seed):
    rng = np.random.default_rng(seed)
    box, inside = random_box(rng, H, S, A, width=0.2)
    mu, r, tables = random_law(rng, S), rng.random((H, S, A)), rng.uniform(-1.0, 1.0, (2, H, S, A))
    plan = optimistic_plan(box.lower, box.upper, mu, r, tables)
    for kernel in (inside, *(kernel_inside(rng, box) for _ in range(10))):
        under = best_policy(kernel, mu, r, tables)
        assert not under.feasible or under.value <= plan.value + CLOSE


def test_a_box_of_one_kernel_gives_that_kernels_best_policy():
    p, mu, r, tables = feasible_problem(1)
    assert optimistic_plan(p, p, mu, r, tables).value == pytest.approx(best_policy(p, mu, r, tables).value, abs=CLOSE)


@pytest.mark.parametrize("seed", range(3))
def test_an_infeasible_optimistic_plan_violates_least_over_the_box(seed):
    rng = np.random.default_rng(seed)
    box, _ = random_box(rng, H, S, A, width=0.1, share_free=0.0)
    mu, r, tables = random_law(rng, S), rng.random((H, S, A)), rng.uniform(-0.2, 1.0, (3, H, S, A))
    plan = optimistic_plan(box.lower, box.upper, mu, r, tables)
    assert not plan.feasible
    assert plan.violation == pytest.approx(extended_value(box, mu, r, tables, worst=True)[0], abs=CLOSE)


@pytest.mark.parametrize("change", ["nothing", "reward", "bounds", "one more table", "one table less"])
def test_a_warm_basis_changes_the_time_and_not_the_answer(change):
    rng = np.random.default_rng(5)
    box, _ = random_box(rng, H, S, A, width=0.2)
    mu, r, tables = random_law(rng, S), rng.random((H, S, A)), rng.uniform(-1.0, 1.0, (3, H, S, A))
    basis = optimistic_plan(box.lower, box.upper, mu, r, tables[:2]).basis
    lower, upper, kept = box.lower, box.upper, tables[:2]
    if change == "reward":
        r = rng.random((H, S, A))
    elif change == "bounds":
        other, _ = random_box(rng, H, S, A, width=0.1)
        lower, upper = other.lower, other.upper
    elif change == "one more table":
        kept = tables
    elif change == "one table less":
        kept = tables[:1]
    warm = optimistic_plan(lower, upper, mu, r, kept, basis)
    cold = optimistic_plan(lower, upper, mu, r, kept)
    assert warm.feasible == cold.feasible
    assert warm.value == pytest.approx(cold.value, abs=CLOSE)
    assert warm.violation <= max(cold.violation, 0.0) + CLOSE


@pytest.mark.parametrize("seed", range(3))
def test_adding_rows_as_they_are_violated_equals_the_full_program(seed):
    p, mu, r, tables = feasible_problem(seed, n_tables=120)
    full = best_policy(p, mu, r, tables)
    against = best_plan_against(DenseLaws(H, p), mu, r, lambda: iter(np.split(tables, 4)))
    assert against.plan.feasible
    assert against.plan.value == pytest.approx(full.value, abs=CLOSE)
    assert np.tensordot(tables, against.plan.occupancy, axes=3).max() <= CLOSE
    assert len(against.rows) == len(against.plan.multipliers) < 120
    relaxed = mu @ greedy_policy(p, r - np.tensordot(against.plan.multipliers, against.rows, axes=1))[1][0]
    assert relaxed == pytest.approx(full.value, abs=CLOSE)


def test_row_generation_finds_out_that_no_policy_serves_every_table():
    p, mu, r, tables = problem(2, n_tables=60)
    against = best_plan_against(DenseLaws(H, p), mu, r, lambda: iter(np.split(tables, 3)))
    assert not against.plan.feasible
    assert against.plan.violation == pytest.approx(least_worst_excess(p, mu, tables), abs=CLOSE)


def test_named_tables_become_rows_when_they_are_violated_and_stay_rows_afterwards():
    p, mu, r, tables = feasible_problem(1, n_tables=40)
    named = {(0, i): table for i, table in enumerate(tables)}
    solve = lambda chosen: best_policy(p, mu, r, chosen)  # noqa: E731
    found = plan_under(named, (), (H, S, A), solve)
    assert found.plan.value == pytest.approx(best_policy(p, mu, r, tables).value, abs=CLOSE)
    assert 0 < len(found.rows) < 40
    assert found.solves > 1
    again = plan_under(named, (*found.rows, (0, 99)), (H, S, A), solve)
    assert again.rows == found.rows
    assert again.solves == 1


@pytest.mark.parametrize("n_tables", [1, 3])
def test_the_safest_policy_has_the_least_worst_excess(n_tables):
    p, mu, _, tables = problem(4, n_tables=n_tables)
    q = occupancy_of_policy(safest_plan(DenseLaws(H, p), mu, tables), p, mu)
    # The reference counts no excess below zero, so every table is lifted by 2 per step, and the answer brought down.
    expected = least_worst_excess(p, mu, tables + 2.0) - 2.0 * H
    assert np.tensordot(tables, q, axes=3).max() == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("seed", range(3))
def test_the_least_total_violation_agrees_with_its_dual(seed):
    p, mu, _, tables = problem(seed, n_tables=40)
    # The dual: max mu.V_0 with V_h(s) <= (sum_j y_j d_j)_h(s,a) + p.V_{h+1} and 0 <= y <= 1.
    rows = []
    for h in range(H):
        for s in range(S):
            for a in range(A):
                row = np.zeros((H, S))
                row[h, s] = 1.0
                if h + 1 < H:
                    row[h + 1] -= p[h, s, a]
                rows.append(np.r_[row.ravel(), -tables[:, h, s, a]])
    cost = np.r_[-mu, np.zeros((H - 1) * S + 40)]
    bounds = [(None, None)] * (H * S) + [(0.0, 1.0)] * 40
    answer = linprog(cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=bounds, method="highs")
    assert least_total_violation(p, mu, tables[:, None], np.ones(40)) == pytest.approx(-answer.fun, abs=1e-6)
    assert -answer.fun > 0.0


def test_relabelling_the_states_relabels_the_plan():
    p, mu, r, tables = feasible_problem(7)
    order = np.array([2, 0, 1])
    moved = best_policy(p[:, order][..., order], mu[order], r[:, order], tables[:, :, order])
    plan = best_policy(p, mu, r, tables)
    assert moved.value == pytest.approx(plan.value, abs=CLOSE)
    assert np.allclose(moved.occupancy, plan.occupancy[:, order], rtol=0.0, atol=1e-6)
