"""The inner problem of the augmented Lagrangian, by a general quadratic solver."""

import numpy as np
import piqp
from scipy import sparse

from tests.references.general_qp import _flow_of_box


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
