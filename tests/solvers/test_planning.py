import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from omdpd.problem.arrays import inner
from omdpd.problem.cmdp import CMDP
from omdpd.solvers import planning
from omdpd.solvers.columns import Problem, safest_mixture
from omdpd.solvers.compiled.shares import best_shares
from omdpd.solvers.planning import best_plan, best_plan_against, safest_plan
from omdpd.solvers.programs import best_policy
from omdpd.solvers.sweeps import occupancy_under, residual_under
from omdpd.worlds import garnet
from tests.references.named import WORLDS
from tests.references.reference_programs import least_worst_excess
from tests.references.sparse_program import sparse_optimum


def instance(seed, n_tables, n_states=6, horizon=4):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_states, 0.3), (horizon, n_states, 3))
    tables = rng.random(p.shape[:3]), rng.uniform(-1.0, 1.0, (n_tables, *p.shape[:3]))
    return CMDP.from_arrays(p, *tables, np.zeros(n_tables))


def check_plan(cmdp, plan, tables):
    """Feasible, with the value it claims, and proved by its bound and its prices."""
    q = occupancy_under(cmdp.laws, plan.policy, cmdp.initial)
    assert np.allclose(q, plan.occupancy, rtol=0.0, atol=1e-12)
    assert residual_under(cmdp.laws, plan.occupancy, cmdp.initial) < 1e-12
    assert np.vdot(cmdp.reward, q) == pytest.approx(plan.value, abs=1e-10)
    assert inner(tables, q).max() <= 1e-9
    assert 0.0 - 1e-11 <= plan.bound - plan.value <= 1e-9
    assert plan.multipliers.min() >= 0.0
    assert abs(plan.multipliers @ inner(tables, q)) <= 1e-8


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_columns_find_what_the_program_finds(seed, n_tables):
    cmdp = instance(seed, n_tables)
    found = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
    wanted = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    assert found.feasible == wanted.feasible
    if found.feasible:
        check_plan(cmdp, found, cmdp.excess)
        assert found.value == pytest.approx(wanted.value, abs=1e-8)
    else:
        assert found.violation == pytest.approx(wanted.violation, abs=1e-8)
        assert found.violation - 1e-8 <= found.bound <= found.violation + 1e-11


@pytest.mark.parametrize("name", list(WORLDS))
def test_on_every_world_columns_and_an_independent_program_agree(name):
    cmdp = WORLDS[name]().build(np.random.default_rng(0))
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
    check_plan(cmdp, plan, cmdp.excess)
    assert plan.value == pytest.approx(sparse_optimum(cmdp, cmdp.excess), abs=1e-8)
    if cmdp.scenarios is not None:
        rows = cmdp.scenarios.rows
        plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, rows)
        assert plan.feasible
        check_plan(cmdp, plan, rows)
        assert plan.value == pytest.approx(sparse_optimum(cmdp, rows), abs=1e-8)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_the_safest_mixture_is_the_programs_and_carries_its_proof(seed, n_tables):
    cmdp = instance(seed, n_tables)
    problem = Problem.of(cmdp.laws.listed(), cmdp.initial, cmdp.reward, cmdp.excess)
    mixture = safest_mixture(problem)
    worst = mixture.costs.max()
    # The reference counts no excess below zero, so every table is lifted by 2 per step, and the answer brought down.
    lifted = least_worst_excess(cmdp.transition, cmdp.initial, cmdp.excess + 2.0)
    assert worst == pytest.approx(lifted - 2.0 * cmdp.shape[0], abs=1e-8)
    assert -1e-11 <= worst - mixture.bound <= 1e-8


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 15), st.booleans())
def test_shares_are_those_of_a_linear_program(seed, m, n, tied):
    rng = np.random.default_rng(seed)
    values, costs = rng.random(n), rng.uniform(-1.0, 1.0, (m, n))
    if tied:
        values, costs = rng.integers(0, 2, n).astype(float), rng.integers(-1, 2, (m, n)).astype(float)
    shares, prices, level = best_shares(values, costs, 1000)
    assert shares.min() >= 0.0
    assert prices.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0, abs=1e-14)
    rows = {"A_ub": costs, "b_ub": np.zeros(m), "A_eq": np.ones((1, n)), "b_eq": [1.0]}
    wanted = linprog(-values, **rows)
    if wanted.status == 0:
        assert level == 0.0
        assert (costs @ shares).max() <= 1e-12
        assert values @ shares == pytest.approx(-wanted.fun, abs=1e-9)
        assert (values - prices @ costs).max() == pytest.approx(values @ shares, abs=1e-9)
    else:
        assert level == pytest.approx((costs @ shares).max(), abs=1e-12)
        assert (prices @ costs).min() == pytest.approx(level, abs=1e-12)
        assert prices.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n_constraints", [1, 2])
@pytest.mark.parametrize("n_states", [500, 2000])
def test_a_large_problem_is_solved_in_at_most_forty_sweeps(monkeypatch, n_constraints, n_states):
    cmdp = garnet.make(np.random.default_rng(0), n_states, 5, 20, branching=5, n_constraints=n_constraints)
    sweeps, best = [], Problem.best
    monkeypatch.setattr(Problem, "best", lambda self, weights: sweeps.append(1) or best(self, weights))
    solution = cmdp.solve()
    assert solution.feasible
    assert len(sweeps) <= 40


def test_many_tables_become_rows_as_they_are_violated(monkeypatch):
    cmdp = instance(4, 1)
    rng = np.random.default_rng(0)
    anchor = occupancy_under(cmdp.laws, np.full(cmdp.shape, 1 / 3), cmdp.initial)
    tables = rng.uniform(-1.0, 1.0, (40, *cmdp.shape))
    tables = (tables - inner(tables, anchor)[:, None, None, None] / cmdp.shape[0] - 0.05) / 2.0
    chunks = [tables[:15], tables[15:]]
    wanted = best_plan_against(cmdp.laws, cmdp.initial, cmdp.reward, lambda: chunks)
    monkeypatch.setattr(planning, "MAX_AT_ONCE", 10**9)  # as programs that are written out
    found = best_plan_against(cmdp.laws, cmdp.initial, cmdp.reward, lambda: chunks)
    assert found.plan.value == pytest.approx(wanted.plan.value, abs=1e-8)
    assert inner(tables, found.plan.occupancy).max() <= 2e-8
    assert len(found.rows) < 40


def test_a_budget_that_only_the_cheapest_policy_meets_is_met():
    cmdp = instance(11, 1)
    least = -inner(
        -cmdp.excess, occupancy_under(cmdp.laws, safest_plan(cmdp.laws, cmdp.initial, cmdp.excess), cmdp.initial)
    )
    tight = cmdp.excess - least[0] / cmdp.shape[0]
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, tight)
    assert plan.feasible
    assert abs(inner(tight, plan.occupancy)[0]) < 1e-9


def test_without_tables_the_plan_is_greedy():
    cmdp = instance(2, 1)
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess[:0])
    assert plan.feasible
    assert plan.bound == pytest.approx(plan.value, abs=1e-13)


def test_a_thousand_states_with_three_constraints_are_planned_with_a_proof():
    cmdp = garnet.make(np.random.default_rng(0), 1000, 4, 20, branching=3, n_constraints=3)
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
    check_plan(cmdp, plan, cmdp.excess)
    assert inner(cmdp.excess, plan.occupancy).max() > -1e-9


def test_shares_are_best_where_costs_are_tiny_and_prices_enormous():
    """The last policy lies five millionths above the line between the others, at a price of seventy millions."""
    values, costs = np.array([11.0056, 10.7259, 10.779464]), np.array([[3.45e-9, -3.1e-10, 4.1e-10]])
    shares, prices, _ = best_shares(values, costs, 1000)
    assert shares == pytest.approx([0.0, 41 / 72, 31 / 72])
    assert prices == pytest.approx([0.053564 / 7.2e-10])
