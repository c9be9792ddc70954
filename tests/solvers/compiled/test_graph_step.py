"""The mirror step on a layered graph: by hand, against the dense solver and a general one, lumps, degenerate input."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import fuzz
from benchmarks.fuzz_graphs import check_on_graph, draw_on_graph, objective_on_graph, run_on_graph
from benchmarks.solvers.graph_flows import occupancy_of_shares, shares_of_occupancy, values_of_shares
from benchmarks.solvers.single import solve_single
from omdpd.solvers.compiled.flow import occupancy_of_policy, values_of_policy
from omdpd.solvers.compiled.graph_flow import flow_residual
from omdpd.solvers.compiled.graph_step.solve import FAILED, SOLVED, solve_graph
from omdpd.solvers.graph_step import arrays_of
from tests.references.graphs import general_step_on_graph, graph_of, plain_graph, told_apart

TOL = 1e-11
NONE = np.zeros((0, 2)), np.zeros(0)


def distance(graph, one, two):
    """sqrt(sum copies (q - q')^2), which twice a gap bounds the square of."""
    return float(np.sqrt(graph.copies @ (one - two) ** 2))


def solved(graph, c, reference, d, W, tol=TOL, start=None):
    """The solution, which has to be one."""
    found = solve_graph(arrays_of(graph), c, reference, d, W, tol, np.zeros(len(W)) if start is None else start)
    assert found.status == SOLVED
    assert found.gap <= tol * found.scale
    assert flow_residual(arrays_of(graph), found.q) <= 1e-14
    return found


# One state, a row of one action and a row of three: minimise (q1 - 1)^2 / 2 + 3 (q2 - 0.2)^2 / 2 with q1 + 3 q2 = 1.
FOUR_ACTIONS = graph_of([1], [2], [{}, {}], [1, 3], [1], [1.0], 1)


def test_one_state_by_hand():
    # q1 = 1 - V and q2 = 0.2 - V with 1.6 - 4 V = 1.
    found = solved(FOUR_ACTIONS, np.array([1.0, 0.2]), np.full(2, 0.25), *NONE)
    np.testing.assert_allclose(found.q, [0.85, 0.05], atol=1e-12)
    np.testing.assert_allclose(found.V, [0.15], atol=1e-12)


def test_a_heavy_hinge_forbids_a_row_by_hand():
    # q1 = 0 and q2 = 1/3 make V = 0.2 - 1/3; the hinge carries c1 - V.
    d = np.array([[1.0, 0.0]])
    found = solved(FOUR_ACTIONS, np.array([1.0, 0.2]), np.full(2, 0.25), d, np.array([10.0]))
    np.testing.assert_allclose(found.q, [0.0, 1 / 3], atol=1e-9)
    np.testing.assert_allclose(found.xi, [1.0 - (0.2 - 1 / 3)], atol=1e-6)


def test_two_steps_with_a_uniform_law_by_hand():
    # From the one state a sure row leads to b, the other to b, x or y alike (x and y are one class of two members).
    # With flow f on the sure row b gets f + (1 - f) / 3, x and y (1 - f) / 3 each; c = 0 makes the answer minimise
    # f^2 + (1 - f)^2 + ((1 + 2 f) / 3)^2 + 2 ((1 - f) / 3)^2, half of whose derivative is below.
    graph = graph_of([1, 2], [2, 1, 1], [{1: 1.0}, {}, {}, {}], [1, 1, 1, 2], [1, 1, 2], [1.0], 3)
    found = solved(graph, np.zeros(4), np.full(4, 0.25), np.zeros((0, 4)), np.zeros(0))
    # f - (1 - f) + 2 (1 + 2 f) / 9 - 2 (1 - f) / 9 = 0, so (2 + 6 / 9) f = 1.
    f = 1.0 / (2.0 + 6.0 / 9.0)
    np.testing.assert_allclose(found.q, [f, 1 - f, (1 + 2 * f) / 3, (1 - f) / 3], atol=1e-12)


@given(seed=st.integers(0, 999))
def test_a_plain_graph_has_the_answer_of_the_dense_solver(seed):
    problem = fuzz.draw(seed, "kernel")
    graph, m = plain_graph(problem.lower, problem.mu), len(problem.W)
    dense = solve_single(problem.c, problem.reference, problem.lower, problem.mu, problem.d, problem.W, 1e-12)
    d = problem.d.reshape(m, graph.n_rows)
    found = solved(graph, problem.c.ravel(), problem.reference.ravel(), d, problem.W, 1e-10)
    bound = np.sqrt(2 * found.gap) + np.sqrt(2 * dense.gap)
    assert distance(graph, found.q, dense.q.ravel()) <= bound + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_a_general_solver_finds_the_same_answer(seed):
    rng = np.random.default_rng(seed)
    problem = draw_on_graph(seed)
    c, W = rng.uniform(-1, 1, problem.graph.n_rows), np.full(len(problem.W), 3.0)
    q, value = general_step_on_graph(problem.graph, c, problem.d, W)
    found = solved(problem.graph, c, problem.reference, problem.d, W)
    assert distance(problem.graph, found.q, q) <= np.sqrt(2 * found.gap) + 1e-5
    ours = objective_on_graph(problem._replace(c=c, W=W), found.q)
    assert float(ours) <= value + 1e-8


@given(seed=st.integers(100, 999))
def test_a_lump_has_the_answer_of_its_members(seed):
    problem = draw_on_graph(seed)
    apart, behind = told_apart(problem.graph)
    lumped = run_on_graph(problem, 1e-10)
    plain = solve_graph(
        arrays_of(apart), problem.c[behind], problem.reference[behind], np.ascontiguousarray(problem.d[:, behind]),
        problem.W, 1e-10, problem.start,
    )  # fmt: skip
    assert lumped.status == plain.status == SOLVED
    bound = np.sqrt(2 * lumped.gap) + np.sqrt(2 * plain.gap)
    assert distance(apart, lumped.q[behind], plain.q) <= bound + 1e-12


@given(st.integers(1_000_000, 2_000_000))
@settings(max_examples=150, deadline=None)
def test_degenerate_problems_end_with_a_certificate(seed):
    problem = draw_on_graph(seed)
    found = run_on_graph(problem, 1e-10)
    assert check_on_graph(problem, found, 1e-10) == []


@given(st.integers(0, 100_000))
@settings(max_examples=40, deadline=None)
def test_a_flow_is_its_own_projection(seed):
    problem = draw_on_graph(seed)
    arrays = arrays_of(problem.graph)
    q = occupancy_of_shares(arrays, shares_of_occupancy(arrays, np.abs(problem.c)))
    found = solved(problem.graph, q, q, problem.d[:0], problem.W[:0])
    assert distance(problem.graph, found.q, q) <= np.sqrt(2 * found.gap) + 1e-13


def test_an_unreachable_tolerance_is_a_reported_failure_with_a_certified_flow():
    # Without hinges a gap has no rounding to be excused by.
    rng = np.random.default_rng(9)
    p, mu = rng.dirichlet(np.ones(4), size=(3, 4, 2)), rng.dirichlet(np.ones(4))
    graph = plain_graph(p, mu)
    c = rng.uniform(-1, 1, graph.n_rows)
    found = solve_graph(
        arrays_of(graph), c, np.full(graph.n_rows, 0.125), np.zeros((0, c.size)), np.zeros(0), 0.0, NONE[1]
    )
    assert found.status == FAILED
    assert 0.0 < found.gap <= 1e-20
    assert flow_residual(arrays_of(graph), found.q) <= 1e-14


def test_a_warm_start_finds_the_same_answer_in_fewer_steps():
    spent = {True: 0, False: 0}
    for seed in range(200, 240):
        problem = draw_on_graph(seed)
        cold = run_on_graph(problem._replace(start=np.zeros(len(problem.W))), 1e-10)
        warm = run_on_graph(problem._replace(start=cold.xi), 1e-10)
        assert distance(problem.graph, cold.q, warm.q) <= np.sqrt(2 * cold.gap) + np.sqrt(2 * warm.gap) + 1e-12
        spent[True] += warm.steps
        spent[False] += cold.steps
    assert spent[True] < spent[False]


def test_policies_on_a_plain_graph_are_those_of_the_kernel():
    rng = np.random.default_rng(5)
    H, S, A = 4, 3, 2
    p, mu = rng.dirichlet(np.full(S, 0.3), size=(H, S, A)), rng.dirichlet(np.ones(S))
    policy, reward = rng.dirichlet(np.ones(A), size=(H, S)), rng.random((H, S, A))
    arrays = arrays_of(plain_graph(p, mu))
    q = occupancy_of_policy(policy, p, mu)
    np.testing.assert_allclose(occupancy_of_shares(arrays, policy.ravel()), q.ravel(), atol=1e-15)
    np.testing.assert_allclose(shares_of_occupancy(arrays, q.ravel()), policy.ravel(), atol=1e-12)
    values = values_of_policy(policy, p, reward)[:-1]
    np.testing.assert_allclose(values_of_shares(arrays, policy.ravel(), reward.ravel()), values.ravel(), atol=1e-14)
    assert flow_residual(arrays, q.ravel()) <= 1e-15
    # Scaled, only the start is out of balance.
    assert flow_residual(arrays, 1.01 * q.ravel()) == pytest.approx(0.01 * mu.max())


WITHOUT_COMPILER = """
import pickle, sys
import numpy as np
from benchmarks.fuzz_graphs import draw_on_graph, run_on_graph

with np.errstate(all="ignore"):
    found = [run_on_graph(draw_on_graph(seed), 1e-10) for seed in range(300, 312)]
sys.stdout.buffer.write(pickle.dumps([(one.q, one.steps, one.status) for one in found]))
"""


def test_plain_python_keeps_every_promise_and_finds_the_answer_of_the_compiled_solver():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", WITHOUT_COMPILER], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    for seed, (q, steps, status) in zip(range(300, 312), pickle.loads(done.stdout), strict=True):  # noqa: S301, ours
        compiled = run_on_graph(draw_on_graph(seed), 1e-10)
        assert status == compiled.status == SOLVED
        # The multipliers of several hinges need not be unique, and then rounding chooses the way to them.
        assert steps == compiled.steps or len(draw_on_graph(seed).W) > 1
        # Sums are added in another order: rounding, which the conditioning of a problem magnifies.
        np.testing.assert_allclose(q, compiled.q, atol=1e-8)
