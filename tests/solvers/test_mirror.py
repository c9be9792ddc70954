import numpy as np
import pytest

from omdpd.solvers.compiled.flow import greedy_policy
from omdpd.solvers.mirror import Hinges, SolveLog, Status, Step, mirror_step, step_size
from omdpd.solvers.regions import Box, Kernel
from tests.references.general_qp import general_step
from tests.references.instances import forward, random_box, random_law, random_policy
from tests.references.reference_programs import extended_value

H, S, A = 4, 3, 2
# The general solver is asked for 1e-11; its objectives are good to about this.
REFERENCE = 1e-8
REGIONS = ["box", "kernel"]


def problem(kind, seed, n_hinges, weights=(0.3, 3.0, 30.0)):
    """A region, an initial law, a reference inside the region, a loss, and hinges of mixed sign at the reference."""
    rng = np.random.default_rng((seed, n_hinges))
    box, inside = random_box(rng, H, S, A)
    region = box if kind == "box" else Kernel(inside)
    mu = random_law(rng, S)
    reference = forward(random_policy(rng, H, S, A), inside, mu)
    hinges = Hinges(rng.uniform(-1.0, 1.0, (n_hinges, H, S, A)), np.array(weights[:n_hinges]))
    return region, mu, reference, rng.normal(size=(H, S, A)), hinges


def objective(step_q, reference, loss, eta, hinges):
    distance = 0.5 * float(((step_q - reference) ** 2).sum())
    return distance + eta * (float(np.vdot(loss, step_q)) + hinges.value(step_q))


@pytest.mark.parametrize("eta", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("n_hinges", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", REGIONS)
def test_a_step_agrees_with_the_general_solver(kind, n_hinges, eta):
    for seed in range(3):
        region, mu, reference, loss, hinges = problem(kind, seed, n_hinges)
        step = mirror_step(region, mu, reference, loss, eta, hinges)
        q, _ = general_step(region, mu, reference, loss, eta, hinges.tables, hinges.weights)
        ours, theirs = (objective(x, reference, loss, eta, hinges) for x in (step.occupancy, q))
        assert step.status is Status.SOLVED
        assert ours <= theirs + REFERENCE * max(1.0, eta)
        assert np.abs(step.occupancy - q).max() < 1e-4 * np.sqrt(max(1.0, eta))


@pytest.mark.parametrize("n_hinges", [0, 2])
@pytest.mark.parametrize("kind", REGIONS)
def test_the_gap_bounds_the_distance_to_the_optimum(kind, n_hinges):
    for seed in range(4):
        region, mu, reference, loss, hinges = problem(kind, seed, n_hinges)
        step = mirror_step(region, mu, reference, loss, 0.5, hinges)
        q, _ = general_step(region, mu, reference, loss, 0.5, hinges.tables, hinges.weights)
        distance = 0.5 * float(((step.occupancy - q) ** 2).sum())
        assert 0.0 <= step.gap <= 1e-10 * step.scale
        assert distance <= step.gap + REFERENCE


@pytest.mark.parametrize("kind", REGIONS)
def test_a_step_is_feasible_to_rounding_and_its_kernel_is_one_of_the_region(kind):
    region, mu, reference, loss, hinges = problem(kind, 5, 2)
    step = mirror_step(region, mu, reference, loss, 2.0, hinges)
    assert region.contains(step.transition)
    assert step.residual < 1e-13
    assert step.occupancy.min() >= 0.0
    assert np.allclose(step.occupancy.sum(axis=(1, 2)), 1.0, rtol=0.0, atol=1e-12)
    assert np.all(step.multipliers >= 0.0)
    assert np.all(step.multipliers <= 2.0 * hinges.weights * (1.0 + 1e-12))


@pytest.mark.parametrize("kind", REGIONS)
def test_multipliers_are_complementary_to_their_hinges(kind):
    region, mu, reference, loss, _ = problem(kind, 1, 0)
    rng = np.random.default_rng(8)
    positive, negative = np.abs(rng.normal(size=(H, S, A))), -np.abs(rng.normal(size=(H, S, A)))
    hinges = Hinges(np.stack([positive, negative]), np.array([0.2, 0.4]))
    step = mirror_step(region, mu, reference, loss, 1.0, hinges)
    assert step.multipliers == pytest.approx([0.2, 0.0], abs=1e-9)


@pytest.mark.parametrize("kind", REGIONS)
def test_a_feasible_reference_is_a_fixed_point_of_a_step_of_size_zero(kind):
    region, mu, reference, loss, hinges = problem(kind, 2, 2)
    for eta in (0.0, 1e-9):
        step = mirror_step(region, mu, reference, loss, eta, hinges)
        assert np.abs(step.occupancy - reference).max() < 1e-5


@pytest.mark.parametrize("kind", REGIONS)
def test_a_step_of_size_zero_projects_and_a_projection_is_idempotent(kind):
    region, mu, reference, loss, _ = problem(kind, 3, 0)
    outside = reference + 0.3 * loss
    none = Hinges.none((H, S, A))
    projected = mirror_step(region, mu, outside, loss, 0.0, none).occupancy
    expected, _ = general_step(region, mu, outside, loss, 0.0)
    assert np.abs(projected - expected).max() < 1e-4
    again = mirror_step(region, mu, projected, loss, 0.0, none).occupancy
    assert np.abs(again - projected).max() < 1e-5


def test_a_huge_step_reaches_the_value_of_the_linear_program_over_one_kernel():
    region, mu, reference, loss, _ = problem("kernel", 4, 0)
    step = mirror_step(region, mu, reference, loss, 1e6, Hinges.none((H, S, A)))
    best = -float(mu @ greedy_policy(region.transition, -loss)[1][0])
    # D <= H, so the linear part is within H / eta of its minimum.
    assert best - 1e-12 <= np.vdot(loss, step.occupancy) <= best + H / 1e6


def test_a_huge_step_reaches_the_value_of_the_linear_program_over_a_box():
    region, mu, reference, loss, _ = problem("box", 4, 0)
    step = mirror_step(region, mu, reference, loss, 1e6, Hinges.none((H, S, A)))
    best = -extended_value(region, mu, -loss, np.zeros((0, H, S, A)))[0]
    assert best - 1e-9 <= np.vdot(loss, step.occupancy) <= best + H / 1e6


@pytest.mark.parametrize("kind", REGIONS)
def test_a_huge_weight_makes_the_hinge_a_constraint(kind):
    region, mu, reference, loss, hinges = problem(kind, 6, 1, weights=(1e4,))
    step = mirror_step(region, mu, reference, loss, 1.0, hinges)
    assert step.status is not Status.FAILED
    assert hinges.arguments(step.occupancy)[0] < 1e-6


def projected_row(row, total):
    """Projection of a row onto {x >= 0, sum x = total}, by the sorting formula."""
    ordered = np.sort(row)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, len(row) + 1)
    level = levels[np.nonzero(ordered > levels)[0][-1]]
    return np.maximum(row - level, 0.0)


@pytest.mark.parametrize("kind", REGIONS)
def test_with_one_step_every_state_is_a_projection_onto_a_simplex(kind):
    rng = np.random.default_rng(7)
    S1, A1 = 4, 5
    region = Kernel(np.full((1, S1, A1, S1), 1.0 / S1))
    if kind == "box":
        region = Box(np.zeros((1, S1, A1, S1)), np.ones((1, S1, A1, S1)))
    mu, reference, loss = random_law(rng, S1), rng.random((1, S1, A1)), rng.normal(size=(1, S1, A1))
    step = mirror_step(region, mu, reference, loss, 0.7, Hinges.none((1, S1, A1)))
    target = reference - 0.7 * loss
    expected = np.stack([projected_row(target[0, s], mu[s]) for s in range(S1)])
    assert np.abs(step.occupancy[0] - expected).max() < 1e-6


@pytest.mark.parametrize("kind", REGIONS)
@pytest.mark.parametrize(
    ("weight", "share"),
    [
        # minimise 1/2 |(x, 1-x) - (3/4, 1/4)|^2 + w [x - (1-x)]^+: x = 3/4 - w, but not below the kink at 1/2.
        (0.1, 0.65),
        (0.2, 0.55),
        (0.25, 0.5),
        (5.0, 0.5),
    ],
)
def test_one_state_two_actions_and_a_hinge_by_hand(kind, weight, share):
    region = Kernel(np.ones((1, 1, 2, 1)))
    if kind == "box":
        region = Box(np.ones((1, 1, 2, 1)), np.ones((1, 1, 2, 1)))
    hinges = Hinges(np.array([[[[1.0, -1.0]]]]), np.array([weight]))
    reference = np.array([[[0.75, 0.25]]])
    step = mirror_step(region, np.ones(1), reference, np.zeros((1, 1, 2)), 1.0, hinges)
    assert step.occupancy.ravel() == pytest.approx([share, 1.0 - share], abs=1e-6)


@pytest.mark.parametrize("kind", REGIONS)
def test_relabelling_the_states_relabels_the_step(kind):
    region, mu, reference, loss, hinges = problem(kind, 9, 2)
    order = np.array([1, 2, 0])

    def moved(table):
        return np.ascontiguousarray(table[:, order][..., order])

    other = Box(moved(region.lower), moved(region.upper)) if kind == "box" else Kernel(moved(region.transition))
    permuted = (np.ascontiguousarray(x[..., order, :]) for x in (reference, loss, hinges.tables))
    reference_moved, loss_moved, tables_moved = permuted
    ours = mirror_step(region, mu, reference, loss, 1.0, hinges).occupancy
    theirs = mirror_step(other, mu[order], reference_moved, loss_moved, 1.0, Hinges(tables_moved, hinges.weights))
    assert np.abs(theirs.occupancy - ours[:, order]).max() < 1e-5


def test_a_single_kernel_and_its_box_of_no_width_give_the_same_step():
    region, mu, reference, loss, hinges = problem("kernel", 10, 2)
    p = region.transition
    by_kernel = mirror_step(region, mu, reference, loss, 1.0, hinges).occupancy
    by_box = mirror_step(Box(p, p), mu, reference, loss, 1.0, hinges).occupancy
    assert np.abs(by_kernel - by_box).max() < 1e-5


@pytest.mark.parametrize("kind", REGIONS)
def test_states_without_mass_do_not_disturb_a_step(kind):
    rng = np.random.default_rng(11)
    p = np.zeros((H, S, A, S))
    p[..., 0] = 1.0
    mu, reference = np.array([0.0, 1.0, 0.0]), forward(random_policy(rng, H, S, A), p, np.array([0.0, 1.0, 0.0]))
    region = Kernel(p) if kind == "kernel" else Box(p, p)
    step = mirror_step(region, mu, reference, rng.normal(size=(H, S, A)), 1.0, Hinges.none((H, S, A)))
    assert step.status is Status.SOLVED
    assert step.occupancy[0, [0, 2]].sum() == 0.0
    assert step.occupancy[1:, 1:].sum() == 0.0


@pytest.mark.parametrize("kind", REGIONS)
def test_a_step_leaves_its_arguments_alone_and_repeats_itself(kind):
    region, mu, reference, loss, hinges = problem(kind, 12, 2)
    before = [x.copy() for x in (mu, reference, loss, hinges.tables, hinges.weights)]
    first = mirror_step(region, mu, reference, loss, 1.0, hinges)
    second = mirror_step(region, mu, reference, loss, 1.0, hinges)
    assert all(
        np.array_equal(a, b) for a, b in zip(before, (mu, reference, loss, hinges.tables, hinges.weights), strict=True)
    )
    assert np.array_equal(first.occupancy, second.occupancy)


def test_hinges_add_up_the_positive_parts():
    tables = np.zeros((3, 1, 1, 2))
    tables[:, 0, 0] = [[1.0, 0.0], [0.0, -1.0], [2.0, 2.0]]
    hinges = Hinges(tables, np.array([2.0, 5.0, 0.5]))
    q = np.array([[[0.25, 0.75]]])
    assert hinges.arguments(q) == pytest.approx([0.25, -0.75, 2.0])
    assert hinges.value(q) == pytest.approx(2.0 * 0.25 + 0.5 * 2.0)
    assert Hinges.none((1, 1, 2)).value(q) == 0.0


def test_the_log_counts_solves_and_failures_and_keeps_the_worst():
    def step(gap, residual, status):
        none = np.zeros((1, 1, 1))
        return Step(none, none, none, np.zeros(0), gap, 2.0, residual, 7, status)

    log = SolveLog().after(step(4e-9, 1e-16, Status.SOLVED)).after(step(2e-9, 1e-12, Status.FAILED))
    log = log.after(step(0.0, 0.0, Status.ALMOST))
    assert log == SolveLog(solves=3, failures=1, iterations=21, max_gap=2e-9, max_residual=1e-12)


def test_the_step_size_starts_at_the_root_of_the_diameter_and_follows_the_variation():
    assert step_size(4.0, 0.0, 0.0) == 2.0
    assert step_size(4.0, 0.25, 0.16) == 2.0  # roots sum to .9: the cap at one holds
    assert step_size(4.0, 16.0, 9.0) == pytest.approx(2.0 / 7.0)
