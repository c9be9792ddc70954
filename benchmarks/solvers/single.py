"""The step over one kernel for a given linear term, as benchmarks and tests state it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.kernel_step.solve import solve_step


class Single(NamedTuple):
    """q (H, S, A), V (H, S), xi (m,), the certificate, Newton steps and the status."""

    q: Floats
    V: Floats
    xi: Floats
    gap: float
    scale: float
    steps: int
    status: int


def solve_single(
    c: Floats, reference: Floats, p: Floats, mu: Floats, d: Floats, W: Floats, tol: float, start: Floats | None = None
) -> Single:
    """arg min 1/2 |q - c|^2 + sum_j W_j [d_j.q]^+ over the flows of p, from the masses of `reference`.

    `start` (m,) are hinge multipliers to start from.
    """
    q, V, xi = np.empty(c.shape), np.empty(c.shape[:2]), np.empty(len(W))
    gap, scale, steps, status, _ = solve_step(
        reference, reference - c, 1.0, p, mu, d, W, tol, start is not None, W if start is None else start, q, V, xi
    )
    return Single(q, V, xi, gap, scale, steps, status)
