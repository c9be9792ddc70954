"""The problems on graphs that `make bench` times are those that it says they are."""

import numpy as np
import pytest

from benchmarks.solvers.contestants import piqp
from benchmarks.solvers.sparse_problems import general_program, of_known_kernel, of_loop
from benchmarks.solvers.sparse_worlds import grid, queue

WORLD = grid(4, 6, 0.1, seed=3)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_general_solver_given_the_program_of_a_step_finds_its_answer(pooled):
    problem = of_loop(WORLD, 24, pooled, seed=1)
    step, general = problem.solve(1e-11), general_program(problem)
    answer = piqp("sparse_ldlt", general)(problem, general)
    np.testing.assert_allclose(answer.occupancy / np.sqrt(problem.graph.copies), step.occupancy, atol=1e-5)


def test_classes_of_a_layer_have_as_many_members_as_there_are_states():
    graph = of_loop(queue(50, 5, seed=2), 16, False, seed=2).graph
    members = np.add.reduceat(graph.members, graph.layers[:-1])
    np.testing.assert_array_equal(members, 50)
    assert graph.n_rows < 5 * 50 * 4
    laws = np.add.reduceat(np.r_[graph.probabilities, 0.0], graph.entries[:-1]) * (np.diff(graph.entries) > 0)
    np.testing.assert_allclose(laws + graph.spread, 1.0, atol=1e-12)


def test_several_tables_bind_and_none_of_those_that_save():
    multipliers = of_known_kernel(WORLD, seed=4, n_hinges=8, binding=6).solve().multipliers
    assert (multipliers[:6] > 0.0).sum() >= 2
    np.testing.assert_array_equal(multipliers[6:], 0.0)
