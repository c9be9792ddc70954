"""Kullback-Leibler mirror steps against a general conic solver, and projections on constraints."""

import numpy as np
import pytest

from omdpd.solvers.mirror import Divergence, Hinges, Status, constrained_step, mirror_step, smoothed
from omdpd.solvers.regions import Kernel
from tests.references.instances import forward, kernel_inside, random_box, random_kernel, random_law, random_policy
from tests.references.kl_reference import check_kl_step, divergence, kl_step

H, S, A = 3, 3, 2


def problem(seed, kernel):
    """A region, an initial law, a positive reference outside the region, a loss, and two tables that can be met."""
    rng = np.random.default_rng((seed, 7))
    region = Kernel(random_kernel(rng, H, S, A)) if kernel else random_box(rng, H, S, A)[0]
    mu = random_law(rng, S)
    elsewhere = forward(random_policy(rng, H, S, A), random_kernel(rng, H, S, A), mu)
    inside = region.transition if kernel else kernel_inside(rng, region)
    met_by = forward(random_policy(rng, H, S, A), inside, mu)
    tables = rng.uniform(-0.9, 0.9, (2, H, S, A))
    tables -= (np.tensordot(tables, met_by, axes=3) / H)[:, None, None, None] + 0.02
    return region, mu, smoothed(elsewhere, 0.05), rng.uniform(-1, 1, (H, S, A)), tables


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("eta", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("weights", [(), (2.0,), (0.5, 20.0)])
def test_a_step_agrees_with_a_conic_solver(kernel, eta, weights):
    region, mu, reference, loss, tables = problem(len(weights), kernel)
    w = np.array(weights)
    hinges = Hinges(tables[: len(w)], w)
    step = mirror_step(region, mu, reference, loss, eta, hinges, Divergence.KL)
    assert step.status is Status.SOLVED
    check_kl_step(step.occupancy, region, mu, reference, eta * loss, hinges.tables, eta * w)


@pytest.mark.parametrize("kernel", [True, False])
def test_the_gap_bounds_the_distance_to_the_optimum(kernel):
    region, mu, reference, loss, tables = problem(4, kernel)
    hinges = Hinges(tables, np.array([3.0, 1.0]))
    step = mirror_step(region, mu, reference, loss, 1.0, hinges, Divergence.KL)
    expected, _ = kl_step(region, mu, reference, loss, tables, hinges.weights)
    assert divergence(step.occupancy, np.maximum(expected, 1e-300)) <= step.gap + 1e-6


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("weight", [1.0, 300.0])
def test_a_projection_holds_its_constraints_exactly(kernel, weight):
    region, mu, reference, loss, tables = problem(5, kernel)
    found = constrained_step(region, mu, reference, loss, 0.3, tables, weight)
    assert found.exact
    assert np.tensordot(tables, found.step.occupancy, axes=3).max() <= 1e-8
    check_kl_step(found.step.occupancy, region, mu, reference, 0.3 * loss, tables)


@pytest.mark.parametrize("kernel", [True, False])
def test_an_empty_set_is_told_apart(kernel):
    region, mu, reference, loss, _ = problem(6, kernel)
    found = constrained_step(region, mu, reference, loss, 0.3, np.full((1, H, S, A), 0.1), 10.0)
    assert not found.exact
    assert found.step.occupancy.sum() == pytest.approx(H)


def test_without_constraints_a_projection_is_a_step():
    region, mu, reference, loss, _ = problem(7, True)
    none = np.zeros((0, H, S, A))
    found = constrained_step(region, mu, reference, loss, 0.3, none, 10.0)
    step = mirror_step(region, mu, reference, loss, 0.3, Hinges.none((H, S, A)), Divergence.KL)
    assert found.exact
    assert np.allclose(found.step.occupancy, step.occupancy, atol=1e-12)


def test_a_reference_that_is_feasible_is_kept_without_a_loss():
    rng = np.random.default_rng(8)
    p, mu = random_kernel(rng, H, S, A), random_law(rng, S)
    q = forward(random_policy(rng, H, S, A), p, mu)
    step = mirror_step(Kernel(p), mu, q, np.zeros((H, S, A)), 1.0, Hinges.none((H, S, A)), Divergence.KL)
    assert np.allclose(step.occupancy, q, atol=1e-6)


def test_smoothing_bounds_the_divergence():
    """KL(q, smoothed q') <= H ln(SA / g) for any two occupancies."""
    rng = np.random.default_rng(9)
    corner = np.zeros((H, S, A))
    corner[:, 0, 0] = 1.0
    other = np.zeros((H, S, A))
    other[:, 2, 1] = 1.0
    for g in (0.5, 0.01, 1e-4):
        assert divergence(other, smoothed(corner, g)) <= H * np.log(S * A / g) + 1e-9
    q = forward(random_policy(rng, H, S, A), random_kernel(rng, H, S, A), random_law(rng, S))
    assert np.allclose(smoothed(q, 0.1).sum(axis=(1, 2)), 1.0)
