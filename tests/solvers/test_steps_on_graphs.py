"""The mirror step on a layered graph, as a learner takes it."""

import numpy as np
import pytest

from benchmarks.fuzz_graphs import check_on_graph, draw_on_graph, objective_on_graph, run_on_graph
from omdpd.problem.arrays import InvalidInputError
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.compiled.graph_step.solve import SOLVED
from omdpd.solvers.graph_step import GRAPH_TOLERANCE, graph_step
from omdpd.solvers.mirror import Divergence, Hinges, Status, mirror_step
from omdpd.solvers.regions import Kernel, bounds_of
from tests.references.graphs import plain_graph

H, S, A = 4, 5, 3


@pytest.fixture
def step():
    """A kernel, its graph, and the data of a step."""
    rng = np.random.default_rng(3)
    p, mu = rng.dirichlet(np.full(S, 0.2), size=(H, S, A)), rng.dirichlet(np.ones(S))
    q = occupancy_of_policy(rng.dirichlet(np.ones(A), size=(H, S)), p, mu)
    loss, d = rng.uniform(-1, 0, (H, S, A)), rng.uniform(-1, 1, (2, H, S, A))
    return p, mu, q, loss, d


def on_graph(step, **more):
    """The step on the graph of its kernel."""
    p, mu, q, loss, d = step
    hinges = Hinges(d.reshape(2, -1), np.array([2.0, 3.0]))
    return mirror_step(plain_graph(p, mu), mu, q.ravel(), loss.ravel(), 0.7, hinges, **more)


def test_a_step_on_a_graph_is_the_step_on_its_kernel(step):
    p, mu, q, loss, d = step
    dense = mirror_step(Kernel(p), mu, q, loss, 0.7, Hinges(d, np.array([2.0, 3.0])))
    found = on_graph(step)
    assert found.status is Status.SOLVED
    assert found.relative_gap <= GRAPH_TOLERANCE
    assert found.residual <= 1e-15
    far = np.linalg.norm(found.occupancy - dense.occupancy.ravel())
    assert far <= np.sqrt(2 * found.gap) + np.sqrt(2 * dense.gap) + 1e-12


def test_more_is_certified_on_request(step):
    p, mu, q, loss, d = step
    hinges = Hinges(d.reshape(2, -1), np.array([2.0, 3.0]))
    found = graph_step(plain_graph(p, mu), q.ravel(), loss.ravel(), 0.7, hinges, 1e-11)
    assert found.relative_gap <= 1e-11


def test_multipliers_to_start_from_are_cut_to_their_box(step):
    p, mu, q, loss, d = step
    hinges = Hinges(d.reshape(2, -1), np.array([2.0, 3.0]), np.full(2, 1e9))
    found = mirror_step(plain_graph(p, mu), mu, q.ravel(), loss.ravel(), 0.7, hinges)
    assert found.status is Status.SOLVED
    assert (found.multipliers <= 0.7 * hinges.weights).all()


def test_a_huge_hinge_does_not_make_a_large_gap_small():
    """W of 1e9 to 1e12 beside objectives of about one: what is called solved is solved to a millionth of them."""
    n_solved = 0
    for seed in (701289, 700763, 700426, 700364, 700589, 700995, *range(700000, 700030)):
        problem = draw_on_graph(seed)
        size = 10.0 ** np.random.default_rng(seed).uniform(9.0, 12.0)
        problem = problem._replace(W=np.where(problem.W > 0.0, size, 0.0))
        found = run_on_graph(problem, 1e-10)
        assert check_on_graph(problem, found, 1e-10) == []
        if found.status == SOLVED:
            n_solved += 1
            assert found.gap <= 1.001e-6 * max(1.0, float(objective_on_graph(problem, found.q)))
    assert n_solved > 25


def test_kullback_leibler_is_refused(step):
    with pytest.raises(InvalidInputError, match="divergence is KL"):
        on_graph(step, divergence=Divergence.KL)


def test_a_plan_over_kernels_refuses_a_graph(step):
    with pytest.raises(InvalidInputError, match="layered graph"):
        bounds_of(plain_graph(step[0], step[1]))
