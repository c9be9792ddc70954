"""The good event of an episode in two passes; `omdpd.play.ledger` says of what."""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.counting import half_width
from omdpd.jit.decorators import entry
from omdpd.problem.arrays import Floats


@entry
def inverse_visits(occupancy: Floats, visits: Floats) -> tuple[float, float]:
    """<q, 1/(n v 1)> and <q, 1/sqrt(n v 1)>."""
    q, n = occupancy.ravel(), visits.ravel()
    inverse, inverse_root = 0.0, 0.0
    for i in range(q.size):
        seen = max(n[i], 1.0)
        inverse += q[i] / seen
        inverse_root += q[i] / np.sqrt(seen)
    return inverse, inverse_root


@entry
def means_within(sums: Floats, visits: Floats, means: Floats, L: float, rounding: float) -> bool:
    """|x - sum / (n v 1)| <= sqrt(L / (n v 1)) for every entry of every table (m, H, S, A); stops at the first."""
    n = visits.ravel()
    for j in range(len(sums)):
        x, total = means[j].ravel(), sums[j].ravel()
        for i in range(n.size):
            seen = max(n[i], 1.0)
            if abs(x[i] - total[i] / seen) > np.sqrt(L / seen) + rounding:
                return False
    return True


@entry
def kernel_within(transitions: Floats, p: Floats, Lp: float, rounding: float) -> bool:
    """|p - p_hat| <= Bernstein's radius at every step but the last; stops at the first entry that is not."""
    S = p.shape[3]
    laws, counts = p[:-1].reshape((-1, S)), transitions[:-1].reshape((-1, S))
    for e in range(len(laws)):
        n = counts[e].sum()
        for t in range(S):
            mean = counts[e, t] / n if n > 0.0 else 1.0 / S
            if abs(laws[e, t] - mean) > half_width(mean, Lp / max(n, 1.0)) + rounding:
                return False
    return True
