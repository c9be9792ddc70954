"""The occupancy program of listed laws, written out with sparse matrices for SciPy: another way to the same optimum."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix


def sparse_optimum(cmdp, tables):
    """(value, or None if infeasible) of the best policy with d_j.q <= 0 for the tables (n, H, S, A)."""
    laws = cmdp.laws.listed()
    H, S, A = laws.shape
    n = H * S * A
    rows = np.repeat(np.arange(len(laws.pointers) - 1), np.diff(laws.pointers))
    own = coo_matrix((np.ones(n), (np.arange(n) // A, np.arange(n))), shape=(H * S, n))
    columns, targets, values = [], [], []
    for h in range(H - 1):
        first = 0 if laws.stationary else h * S * A
        used = (rows >= first) & (rows < first + S * A)
        columns.append(rows[used] - first + h * S * A)
        targets.append(laws.successors[used] + (h + 1) * S)
        values.append(laws.probabilities[used])
    joined = (np.concatenate(part) if part else np.zeros(0, int) for part in (values, targets, columns))
    value, target, column = joined
    flow = csr_matrix(own) - csr_matrix(coo_matrix((value, (target, column)), shape=(H * S, n)))
    found = linprog(
        -np.ascontiguousarray(cmdp.reward).ravel(), A_ub=np.ascontiguousarray(tables).reshape(len(tables), n),
        b_ub=np.zeros(len(tables)), A_eq=flow, b_eq=np.r_[cmdp.initial, np.zeros((H - 1) * S)], method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )  # fmt: skip
    return None if found.status == 2 else -found.fun
