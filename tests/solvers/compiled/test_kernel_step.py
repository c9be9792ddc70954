"""The one-kernel mirror step: other solvers, closed forms, limits, its certificate, and degenerate input."""

from __future__ import annotations

import numpy as np
import piqp
import pytest
import scipy.sparse as sp

from benchmarks.solvers.single import solve_single
from omdpd.solvers.compiled.box_step.solve import solve_box
from omdpd.solvers.compiled.flow import flow_residual, greedy_policy, occupancy_of_policy
from omdpd.solvers.compiled.kernel_step.certificate import duality_gap
from omdpd.solvers.compiled.kernel_step.problem import KernelProblem, dual_slack
from omdpd.solvers.compiled.newton.certificate import FAILED, SOLVED, gap_of_hinge
from omdpd.solvers.compiled.newton.multipliers import scaled_hinges

TOL = 1e-12
# What a solved problem may show as relative gap: the tolerance, and the rounding of hinges as heavy as 1e6.
RELATIVE_GAP = 1e-10


def kernel(rng, H, S, A, kind="dense"):
    """A kernel: dense rows, deterministic rows, rows that avoid some states, or empirical ones."""
    if kind == "one-hot":
        return np.eye(S)[rng.integers(S, size=(H, S, A))]
    p = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
    if kind == "avoiding":
        p[..., 1:][..., rng.random(S - 1) < 0.5] = 0.0
        p[..., 0] += 1e-3
    if kind == "empirical":
        counts = rng.integers(0, 4, size=(H, S, A))
        for row in np.ndindex(H, S, A):
            p[row] = rng.multinomial(counts[row], p[row]) / counts[row] if counts[row] else 1.0 / S
    return p / p.sum(axis=-1, keepdims=True)


def occupancy(rng, p, mu, deterministic=False):
    """The occupancy of a random policy."""
    H, S, A, _ = p.shape
    policy = np.eye(A)[rng.integers(A, size=(H, S))] if deterministic else rng.dirichlet(np.ones(A), size=(H, S))
    return occupancy_of_policy(policy, p, mu)


def instance(rng, H, S, A, m, eta=1.0, w=10.0, kind="dense", kl=False):
    """(c, reference, p, mu, d, W) with half of the hinges binding somewhere inside the polytope."""
    p, mu = kernel(rng, H, S, A, kind), rng.dirichlet(np.ones(S))
    reference = occupancy(rng, p, mu)
    c = (np.log(np.maximum(reference, 1e-12)) if kl else reference) + eta * rng.uniform(-1, 2, size=(H, S, A))
    d = rng.uniform(-1, 1, size=(m, H, S, A))
    for j in range(0, m, 2):
        d[j] -= np.sum(d[j] * occupancy(rng, p, mu)) / H
    return c, reference, p, mu, d, np.full(m, eta * w)


def solve(problem, kl=False, xi=None):
    """Call the solver, cold or from given hinge multipliers, and check what every answer promises.

    KL over one kernel is a step over the box of that kernel.
    """
    c, reference, p, mu, d, W = problem
    if kl:
        q, _, *answer = solve_box(c, reference, p, p, mu, d, W, True, TOL)
        answer = (q, *answer)
    else:
        answer = solve_single(*problem, TOL, xi)
    q, V, xi, gap, scale, _, status = answer
    assert flow_residual(q, p, mu) <= 1e-14
    assert np.isfinite(V).all()
    assert (xi >= 0).all()
    assert gap >= 0.0
    largest = np.abs(d).max(axis=(1, 2, 3))
    spread = np.ptp(V, axis=1).max()
    most = max(1.0, spread, 1e-5 * len(c) * float(W @ largest))
    # A box leaves out the values of states that nothing reaches, so that it claims less.
    assert 1.0 <= scale <= most * (1 + 1e-12) if kl else scale == pytest.approx(most, rel=1e-12)
    assert (status == SOLVED) <= (gap <= RELATIVE_GAP * scale)
    return answer


def objective(problem, q, kl=False):
    """The primal objective, written down directly."""
    c, _, _, _, d, W = problem
    t = np.maximum(np.einsum("jhsa,hsa->j", d, q), 0.0)
    positive = np.where(q > 0, q, 1.0)
    distance = np.sum(q * (np.log(positive) - c) - q) if kl else 0.5 * np.sum((q - c) ** 2)
    return distance + W @ t


def flow_matrix(p):
    """The flow equations as a sparse matrix (H S, H S A)."""
    H, S, A, _ = p.shape
    out = sp.kron(sp.eye(H * S), np.ones((1, A)))
    into = sp.lil_matrix((H * S, H * S * A))
    for h in range(H - 1):
        into[(h + 1) * S : (h + 2) * S, h * S * A : (h + 1) * S * A] = p[h].reshape(S * A, S).T
    return sp.csc_matrix(out - into)


def by_piqp(problem):
    """The Euclidean problem with explicit hinge slacks t, by a general QP solver."""
    c, _, p, mu, d, W = problem
    n, m = c.size, W.size
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    equality = sp.hstack([flow_matrix(p), sp.csc_matrix((mu.size * len(c), m))], format="csc")
    right = np.concatenate([mu, np.zeros(equality.shape[0] - mu.size)])
    quadratic = sp.diags(np.concatenate([np.ones(n), np.zeros(m)]), format="csc")
    linear = np.concatenate([-c.ravel(), W])
    hinges = {}
    if m:
        rows = sp.csc_matrix(np.hstack([d.reshape(m, n), -np.eye(m)]))
        hinges = {"G": rows, "h_l": np.full(m, -np.inf), "h_u": np.zeros(m)}
    solver.setup(quadratic, linear, equality, right, x_l=np.zeros(n + m), x_u=np.full(n + m, np.inf), **hinges)
    assert solver.solve() == piqp.PIQP_SOLVED
    return solver.result.x[:n].reshape(c.shape)


CASES = [
    (4, 3, 2, 0, 1.0, 10.0, "dense"),
    (5, 4, 3, 1, 0.1, 10.0, "dense"),
    (5, 4, 3, 2, 5.0, 100.0, "empirical"),
    (3, 5, 2, 7, 0.5, 3.0, "avoiding"),
    (6, 2, 3, 4, 20.0, 1.0, "one-hot"),
    (3, 18, 2, 0, 1.0, 10.0, "dense"),
    (4, 17, 3, 2, 2.0, 20.0, "empirical"),
]


@pytest.mark.parametrize(("H", "S", "A", "m", "eta", "w", "kind"), CASES)
def test_agrees_with_a_general_qp_solver(H, S, A, m, eta, w, kind):
    problem = instance(np.random.default_rng(H + 10 * S + 100 * m), H, S, A, m, eta, w, kind)
    q, _, _, gap, _, _, status = solve(problem)
    other = by_piqp(problem)
    assert status == SOLVED
    # PIQP's own error is about sqrt(2e-11 |V|), and its point violates the flow a little: slack in the objective.
    assert np.abs(q - other).max() <= np.sqrt(2 * gap) + 5e-5
    assert objective(problem, q) <= objective(problem, other) + 1e-8 * max(1.0, abs(objective(problem, q)))


@pytest.mark.parametrize(("m", "eta", "w"), [(0, 0.5, 1.0), (2, 0.5, 4.0), (3, 2.0, 1.0)])
def test_kl_agrees_with_an_exponential_cone_solver(m, eta, w):
    cvxpy = pytest.importorskip("cvxpy")
    problem = instance(np.random.default_rng(m), 3, 4, 2, m, eta, w, kl=True)
    c, _, p, mu, d, W = problem
    q, _, _, gap, _, _, status = solve(problem, kl=True)
    x = cvxpy.Variable(c.size)
    cost = -cvxpy.sum(cvxpy.entr(x)) - (c.ravel() + 1.0) @ x
    for j in range(m):
        cost += W[j] * cvxpy.pos(d[j].ravel() @ x)
    right = np.concatenate([mu, np.zeros(c[1:, :, 0].size)])
    cvxpy.Problem(cvxpy.Minimize(cost), [flow_matrix(p) @ x == right]).solve(solver="CLARABEL")
    assert status == SOLVED
    assert np.abs(q.ravel() - x.value).max() <= np.sqrt(2 * gap) + 2e-5
    assert objective(problem, q, kl=True) <= cost.value + 1e-7


def in_rows(problem):
    """The internal layout, with hinges scaled to size one."""
    c, _, p, mu, d, W = problem
    H, S, A = c.shape
    rows, size, weight = scaled_hinges(d.reshape(len(W), -1), W)
    table, flat = c.reshape(H, -1), p.reshape(H, S * A, S)
    return KernelProblem(table, flat, mu, rows.reshape(H, S * A, -1), W * size, weight)


def dual_value(problem, V, xi):
    """The dual objective of (V, xi), written down directly, for xi in its box."""
    c, _, p, mu, d, _ = problem
    later = np.concatenate([V[1:], np.zeros_like(V[:1])])
    y = c - np.einsum("j,jhsa->hsa", xi, d) - V[..., None] + np.einsum("hsat,ht->hsa", p, later)
    rows = 0.5 * np.sum(np.maximum(y, 0.0) ** 2) - 0.5 * np.sum(c**2)
    return -mu @ V[0] - rows


def test_certificate_is_primal_minus_dual():
    rng = np.random.default_rng(5)
    for _ in range(20):
        problem = instance(rng, 4, 3, 2, 3)
        rows, W = in_rows(problem), problem[5]
        size = rows.W / W
        q = occupancy(rng, problem[2], problem[3])
        V = rng.normal(size=q.shape[:2])
        xi = rng.uniform(0.0, 1.0, size=3) * W
        y = dual_slack(rows, V, xi * size)
        gap, noise = duality_gap(rows, xi * size, y, q.reshape(4, -1))
        primal, dual = objective(problem, q), dual_value(problem, V, xi)
        assert gap == pytest.approx(primal - dual, rel=1e-11, abs=1e-11)
        assert 0.0 <= noise <= 1e-12
        assert gap >= 0.0


def test_gap_of_a_hinge_vanishes_exactly_at_its_subgradients():
    assert gap_of_hinge(-1.0, 0.0, 2.0) == 0.0
    assert gap_of_hinge(0.0, 1.3, 2.0) == 0.0
    assert gap_of_hinge(3.0, 2.0, 2.0) == 0.0
    assert gap_of_hinge(3.0, 1.0, 2.0) == 3.0
    assert gap_of_hinge(-3.0, 1.0, 2.0) == 3.0


def simplex_projection(c, mass):
    """Euclidean projection on {x >= 0, sum x = mass} by the sorting formula."""
    ordered = np.sort(c)[::-1]
    excess = (np.cumsum(ordered) - mass) / np.arange(1, c.size + 1)
    return np.maximum(c - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)


def test_one_step_is_a_projection_on_simplices():
    problem = instance(np.random.default_rng(1), 1, 4, 5, 0, eta=0.3)
    q = solve(problem)[0]
    wanted = [simplex_projection(problem[0][0, s], problem[3][s]) for s in range(4)]
    np.testing.assert_allclose(q[0], wanted, atol=1e-14)


def test_one_step_of_kl_is_a_softmax():
    problem = instance(np.random.default_rng(2), 1, 4, 5, 0, kl=True)
    q = solve(problem, kl=True)[0]
    weight = np.exp(problem[0][0])
    np.testing.assert_allclose(q[0], problem[3][:, None] * weight / weight.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("kl", [False, True])
def test_a_huge_step_reaches_the_optimal_policy(kl):
    rng = np.random.default_rng(3)
    _, reference, p, mu, d, W = instance(rng, 5, 4, 3, 0)
    reward = rng.random(reference.shape)
    policy, values = greedy_policy(p, reward)
    start = np.log(reference) if kl else reference
    q, *_, status = solve((start + 1e6 * reward, reference, p, mu, d, W), kl)
    assert status == SOLVED
    assert np.sum(q * reward) == pytest.approx(mu @ values[0], abs=1e-9)
    np.testing.assert_allclose(q, occupancy_of_policy(policy, p, mu), atol=1e-6)


@pytest.mark.parametrize("kl", [False, True])
def test_no_step_stays_at_the_reference(kl):
    _, reference, *rest = instance(np.random.default_rng(4), 5, 4, 3, 0)
    c = np.log(reference) if kl else reference
    np.testing.assert_allclose(solve((c, reference, *rest), kl)[0], reference, atol=1e-9)


def test_a_heavy_hinge_is_met_and_its_multiplier_is_a_price():
    problem = instance(np.random.default_rng(6), 5, 4, 3, 1, eta=1.0, w=1e5)
    q, _, xi, *_, status = solve(problem)
    assert status == SOLVED
    assert abs(np.sum(problem[4][0] * q)) <= 1e-12
    assert 0.0 < xi[0] < problem[5][0]


def test_a_warm_start_changes_the_work_and_not_the_answer():
    problem = instance(np.random.default_rng(7), 6, 5, 3, 3, eta=5.0, w=50.0)
    q, _, xi, gap, _, cold, _ = solve(problem)
    again, _, _, warm_gap, _, warm, _ = solve(problem, xi=xi)
    assert warm <= cold
    assert np.abs(q - again).max() <= np.sqrt(2 * gap) + np.sqrt(2 * warm_gap)


def test_scaling_a_hinge_scales_its_multiplier():
    c, reference, p, mu, d, W = instance(np.random.default_rng(8), 5, 4, 3, 2)
    q, _, xi, *_ = solve((c, reference, p, mu, d, W))
    scaled, _, scaled_xi, *_ = solve((c, reference, p, mu, 8.0 * d, W / 8.0))
    np.testing.assert_allclose(scaled, q, atol=1e-9)
    np.testing.assert_allclose(8.0 * scaled_xi, xi, atol=1e-7)


@pytest.mark.parametrize("kl", [False, True])
@pytest.mark.parametrize(("H", "S", "A"), [(1, 1, 1), (1, 3, 2), (4, 1, 3), (4, 3, 1), (3, 5, 2)])
def test_degenerate_sizes_hinges_and_laws(H, S, A, kl):
    rng = np.random.default_rng(9)
    c, _, _, _, d, _ = instance(rng, H, S, A, 6, kl=kl)
    p = kernel(rng, H, S, A, "one-hot")
    mu = np.eye(S)[0]
    reference = occupancy(rng, p, mu, deterministic=True)
    # Empty, duplicate, opposite and parallel hinges, one without weight.
    d[1], d[2], d[3], d[4] = 0.0, d[0], -d[0], 3.0 * d[0]
    W = np.array([5.0, 2.0, 5.0, 5.0, 1e4, 0.0])
    assert solve((c, reference, p, mu, d, W), kl)[-1] == SOLVED


def test_input_that_is_not_finite_is_reported():
    c, *rest = instance(np.random.default_rng(10), 3, 2, 2, 1)
    c[1, 0, 1] = np.nan
    q, V, _, gap, _, _, status = solve((c, *rest))
    assert status == FAILED
    assert gap == np.inf
    assert np.isfinite(q).all()
    assert np.isfinite(V).all()


@pytest.mark.parametrize("kl", [False, True])
def test_random_problems_of_all_scales_are_solved(kl):
    for seed in range(400):
        rng = np.random.default_rng(seed)
        H, S, A, m = (int(rng.integers(1, top)) for top in (6, 8, 5, 7))
        kind = str(rng.choice(["dense", "one-hot", "avoiding", "empirical"]))
        eta = 10.0 ** rng.uniform(-8, 4 if kl else 8)
        c, reference, p, mu, d, W = instance(rng, H, S, A, m - 1, eta, 1.0, kind, kl)
        W = np.minimum(10.0 ** rng.uniform(-3, 6, size=W.size), 1e6)
        if rng.random() < 0.3:
            mu = np.where(rng.random(S) < 0.5, 0.0, mu) + np.eye(S)[0]
            mu = mu / mu.sum()
        *_, gap, scale, _, status = solve((c, reference, p, mu, d, W), kl)
        # KL, by interior points over a box, may end above its tolerance, but never above what every step is held to.
        assert status == SOLVED or (kl and gap <= RELATIVE_GAP * scale), seed
