"""The mirror step by a general QP solver (PIQP): the slow, independent reference for the structured one.

minimise 1/2 |q - c|^2 + sum_j W_j t_j  over q, x_h(s,a,s') and slacks t_j >= max(d_j.q, 0), where
sum_s' x_h(s,a,s') = q_h(s,a), lower q <= x <= upper q, and the flow is conserved.
"""

from __future__ import annotations

import numpy as np
import piqp
from scipy import sparse

from omdpd.solvers.regions import Box, Kernel


def general_step(region, initial, reference, loss, eta, tables=None, weights=None, accuracy=1e-11):
    """Return (q, objective) of the step; raises if the general solver does not converge."""
    H, S, A = reference.shape
    tables = np.zeros((0, H, S, A)) if tables is None else tables
    W = np.zeros(0) if weights is None else eta * np.asarray(weights)
    n, m = H * S * A, len(W)
    A_eq, b_eq, G, n_x = (
        _flow_of_kernel(region, initial) if isinstance(region, Kernel) else _flow_of_box(region, initial)
    )
    c = (reference - eta * loss).ravel()
    P = sparse.diags(np.r_[np.ones(n), np.zeros(n_x + m)]).tocsc()
    cost = np.r_[-c, np.zeros(n_x), W]
    hinge = sparse.hstack([sparse.csc_matrix(tables.reshape(m, n)), sparse.csc_matrix((m, n_x)), -sparse.identity(m)])
    rows = [sparse.hstack([G, sparse.csc_matrix((G.shape[0], m))])] + ([hinge] if m else [])
    G_all = sparse.vstack(rows).tocsc()
    A_all = sparse.hstack([A_eq, sparse.csc_matrix((A_eq.shape[0], m))]).tocsc()
    for loosened in (1.0, 10.0, 100.0):  # heavy hinges can keep the general solver from its last digits
        solver = piqp.SparseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = accuracy * loosened
        solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = accuracy * loosened
        upper = np.zeros(G_all.shape[0])
        solver.setup(P, cost, A_all, b_eq, G_all, np.full_like(upper, -np.inf), upper, np.zeros(len(cost)), None)
        status = solver.solve()
        if "SOLVED" in str(status):
            break
    else:
        raise RuntimeError(str(status))
    q = solver.result.x[:n].reshape(H, S, A)
    hinged = np.maximum(tables.reshape(m, n) @ q.ravel(), 0.0)
    return q, 0.5 * float(((q.ravel() - c) ** 2).sum()) + float(W @ hinged)


def _flow_of_kernel(region, initial):
    p = region.transition
    H, S, A = p.shape[:3]
    rows = sparse.lil_matrix((H * S, H * S * A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                r = (h * S + s) * A + a
                rows[h * S + s, r] += 1.0
                if h + 1 < H:
                    for t in range(S):
                        rows[(h + 1) * S + t, r] -= p[h, s, a, t]
    b = np.zeros(H * S)
    b[:S] = initial
    return rows.tocsc(), b, sparse.csc_matrix((0, H * S * A)), 0


def _flow_of_box(region: Box, initial):
    H, S, A = region.lower.shape[:3]
    n, n_x = H * S * A, (H - 1) * S * A * S
    flow = sparse.lil_matrix((H * S + (H - 1) * S * A, n + n_x))
    box = sparse.lil_matrix((2 * n_x, n + n_x))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                r = (h * S + s) * A + a
                flow[h * S + s, r] = 1.0
                if h + 1 == H:
                    continue
                flow[H * S + r, r] = -1.0
                for t in range(S):
                    x = r * S + t
                    flow[H * S + r, n + x] = 1.0
                    flow[(h + 1) * S + t, n + x] = -1.0
                    box[2 * x, n + x], box[2 * x, r] = 1.0, -region.upper[h, s, a, t]
                    box[2 * x + 1, n + x], box[2 * x + 1, r] = -1.0, region.lower[h, s, a, t]
    b = np.zeros(flow.shape[0])
    b[:S] = initial
    return flow.tocsc(), b, box.tocsc(), n_x
