"""The Kullback-Leibler step by a general conic solver (Clarabel): the slow, independent reference."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from omdpd.solvers.regions import Kernel


def kl_step(region, initial, reference, linear, tables=(), weights=None):
    """argmin <linear, q> + KL(q, reference) over the region: (q, objective).

    Tables are hard constraints d.q <= 0, or hinges if they have weights.
    """
    H, S, A = reference.shape
    q = [cp.Variable((S, A), nonneg=True) for _ in range(H)]
    rules, objective = [cp.sum(q[0], axis=1) == initial], 0.0
    for h in range(H):
        objective += cp.sum(cp.kl_div(q[h], reference[h])) + cp.sum(cp.multiply(linear[h], q[h]))
        if h + 1 == H:
            continue
        flows = []
        for s in range(S):
            for a in range(A):
                if isinstance(region, Kernel):
                    flows.append(q[h][s, a] * region.transition[h, s, a])
                    continue
                x = cp.Variable(S, nonneg=True)
                rules += [cp.sum(x) == q[h][s, a], x <= q[h][s, a] * region.upper[h, s, a]]
                rules += [x >= q[h][s, a] * region.lower[h, s, a]]
                flows.append(x)
        rules.append(cp.sum(q[h + 1], axis=1) == sum(flows))
    for j, table in enumerate(tables):
        paid = sum(cp.sum(cp.multiply(table[h], q[h])) for h in range(H))
        if weights is None:
            rules.append(paid <= 0.0)
        else:
            objective += weights[j] * cp.pos(paid)
    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal", problem.status
    return np.array([step.value for step in q]), float(problem.value)


def divergence(q, reference):
    """sum q ln(q / reference) - q + reference."""
    positive = q > 0.0
    logs = np.where(positive, np.log(np.where(positive, q, 1.0) / reference), 0.0)
    return float((q * logs - q + reference).sum())


def check_kl_step(q, region, initial, reference, linear, tables=(), weights=None, slack=1e-6):
    """`q` is feasible and as good as the reference solution."""
    expected, value = kl_step(region, initial, reference, linear, tables, weights)
    paid = [float((table * q).sum()) for table in tables]
    mine = divergence(q, reference) + float((linear * q).sum())
    if weights is None:
        assert all(one <= slack for one in paid), paid
    else:
        mine += sum(w * max(one, 0.0) for w, one in zip(weights, paid, strict=True))
    assert mine <= value + slack, (mine, value)
    assert np.allclose(q, expected, rtol=0, atol=1e-3)
    assert np.allclose(q.sum(axis=(1, 2)), 1.0, atol=1e-9)
