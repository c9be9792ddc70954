import numpy as np
import pytest

from omdpd.solvers.compiled.boxes import optimistic_policy
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.compiled.vertices import (
    GAVE_UP,
    INFEASIBLE,
    OPTIMAL,
    best_vertex,
    penalised_by_vertices,
    plan_by_vertices,
)
from omdpd.solvers.programs import optimistic_plan, vertex_plan
from tests.references.instances import SIZES, kernel_inside, random_box, random_law, random_policy
from tests.references.reference_programs import extended_value

H, S, A, I = SIZES  # noqa: E741


def instance(seed, n_tables, shift=0.0, width=0.2):
    rng = np.random.default_rng((seed, n_tables))
    box, _ = random_box(rng, H, S, A, width=width)
    return box, random_law(rng, S), rng.random((H, S, A)), rng.uniform(-1, 1, (n_tables, H, S, A)) + shift


@pytest.mark.parametrize("seed", range(5))
def test_the_best_vertex_has_the_value_of_optimistic_planning_and_is_an_occupancy_of_the_box(seed):
    box, mu, r, _ = instance(seed, 0)
    q = np.zeros(r.shape)
    value = best_vertex(box.lower, box.upper, mu, r, q)
    assert value == pytest.approx(mu @ optimistic_policy(box.lower, box.upper, r)[2][0], abs=1e-13)
    assert (r * q).sum() == pytest.approx(value, abs=1e-13)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other = occupancy_of_policy(random_policy(rng, H, S, A), kernel_inside(rng, box), mu)
        assert (r * other).sum() <= value + 1e-12


@pytest.mark.parametrize("n_tables", [1, 2, 5])
@pytest.mark.parametrize("shift", [-0.3, 0.0, 0.2, 0.6])
def test_plans_by_vertices_agree_with_scipys_joint_program(n_tables, shift):
    for seed in range(3):
        box, mu, r, tables = instance(seed, n_tables, shift)
        q, prices, status, _ = plan_by_vertices(box.lower, box.upper, mu, r, tables, 300)
        value, _ = extended_value(box, mu, r, tables)
        assert (status == OPTIMAL) == (value is not None)
        excess = np.tensordot(tables, q, axes=3)
        if value is None:
            assert status == INFEASIBLE
            assert excess.max() == pytest.approx(extended_value(box, mu, r, tables, worst=True)[0], abs=1e-8)
            continue
        assert (r * q).sum() == pytest.approx(value, abs=1e-8)
        assert excess.max() <= 1e-12
        # Weak duality holds for any prices >= 0; equality says that these are the right ones.
        relaxed = best_vertex(box.lower, box.upper, mu, r - np.tensordot(prices, tables, axes=1), np.zeros(r.shape))
        assert relaxed == pytest.approx(value, abs=1e-8)
        assert np.all(prices >= 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_table_and_its_negative_make_an_equality(seed):
    box, mu, r, tables = instance(seed, 1)
    both = np.concatenate([tables, -0.3 * tables, tables])
    plan, reference = vertex_plan(box.lower, box.upper, mu, r, both), optimistic_plan(box.lower, box.upper, mu, r, both)
    assert plan.feasible == reference.feasible
    assert plan.value == pytest.approx(reference.value, abs=1e-7)
    assert plan.violation <= 1e-9


def test_too_few_pivots_are_admitted_and_the_plan_goes_to_the_other_solver():
    box, mu, r, tables = instance(3, 5, 0.0)
    assert plan_by_vertices(box.lower, box.upper, mu, r, tables, 1)[2] == GAVE_UP
    many = np.concatenate([tables, tables * 0.9, tables * 0.8])
    plan, reference = vertex_plan(box.lower, box.upper, mu, r, many), optimistic_plan(box.lower, box.upper, mu, r, many)
    assert plan.value == pytest.approx(reference.value, abs=1e-7)
    assert plan.basis is not None


@pytest.mark.parametrize("eta", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_the_penalised_plan_of_one_table_closes_its_gap(lam, eta):
    for seed in range(4):
        box, mu, r, tables = instance(seed, 1, 0.1)
        q, price, gap, _ = penalised_by_vertices(box.lower, box.upper, mu, r, tables[0], lam, eta, 200)
        assert gap <= 1e-12 * max(1.0, price**2 / eta)
        assert price == pytest.approx(max(lam + eta * (tables[0] * q).sum(), 0.0), abs=1e-10 * max(1.0, eta))
