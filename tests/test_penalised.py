import numpy as np
import piqp
import pytest
from scipy import sparse

from general_qp import _flow_of_box
from instances import random_box, random_law
from omdpd.penalised import penalised_plan

H, S, A, I = 3, 4, 2, 2  # noqa: E741


def by_general_solver(box, mu, r, tables, lam, eta):
    """max r.q - sum_i s_i^2 / (2 eta) with s_i >= lam_i + eta d_i.q, s >= 0, as one sparse quadratic program."""
    A_eq, b_eq, G, n_x = _flow_of_box(box, mu)
    n, m = r.size, len(tables)
    P = sparse.diags(np.r_[np.zeros(n + n_x), np.full(m, 1 / eta)]).tocsc()
    slopes = sparse.csc_matrix(eta * tables.reshape(m, n))
    rows = sparse.hstack([slopes, sparse.csc_matrix((m, n_x)), -sparse.identity(m)])
    G_all = sparse.vstack([sparse.hstack([G, sparse.csc_matrix((G.shape[0], m))]), rows]).tocsc()
    A_all = sparse.hstack([A_eq, sparse.csc_matrix((A_eq.shape[0], m))]).tocsc()
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    upper = np.r_[np.zeros(G.shape[0]), -lam]
    cost = np.r_[-r.ravel(), np.zeros(n_x + m)]
    solver.setup(P, cost, A_all, b_eq, G_all, np.full_like(upper, -np.inf), upper, np.zeros(len(cost)), None)
    assert "SOLVED" in str(solver.solve())
    return solver.result.x[:n].reshape(r.shape)


def objective(q, r, tables, lam, eta):
    reached = np.maximum(lam + eta * np.tensordot(tables, q, axes=3), 0.0)
    return (r * q).sum() - 0.5 * (reached**2).sum() / eta


@pytest.mark.parametrize("n_tables", [1, 2, 3])
@pytest.mark.parametrize("eta", [0.3, 5.0, 1e3])
def test_the_plan_is_the_general_solvers(n_tables, eta):
    for seed in range(3):
        rng = np.random.default_rng((seed, n_tables))
        box, _ = random_box(rng, H, S, A, width=0.2)
        mu, r, tables = random_law(rng, S), rng.random((H, S, A)), rng.uniform(-1, 1, (n_tables, H, S, A))
        lam = rng.choice([0.0, 0.5], n_tables)
        plan = penalised_plan(box.lower, box.upper, mu, r, tables, lam, eta)
        assert plan.relative_gap <= 1e-9
        mine = objective(plan.occupancy, r, tables, lam, eta)
        theirs = objective(by_general_solver(box, mu, r, tables, lam, eta), r, tables, lam, eta)
        assert mine == pytest.approx(theirs, abs=1e-6)
        reached = np.maximum(lam + eta * np.tensordot(tables, plan.occupancy, axes=3), 0.0)
        assert plan.prices == pytest.approx(reached, abs=1e-4 * max(1.0, eta))
