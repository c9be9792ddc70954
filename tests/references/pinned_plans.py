"""Whether a policy belongs to an optimum of an extended program, by a general solver with the policy pinned."""

import numpy as np
import pytest

from tests.references.reference_programs import extended_value


def check_plan(policy, region, mu, r, tables):
    """The policy in play belongs to an optimal point of the extended program; returns whether it was feasible.

    Maximise r.q over the box and the policy's own action probabilities: pinning the policy keeps the optimum.
    """
    value, _ = extended_value(region, mu, r, tables)
    if value is None:
        least, _ = extended_value(region, mu, r, tables, worst=True)
        pinned, _ = pinned_value(region, mu, r, tables, policy, worst=True)
        assert pinned == pytest.approx(least, abs=1e-6)
        return False
    pinned, _ = pinned_value(region, mu, r, tables, policy, worst=False)
    assert pinned == pytest.approx(value, abs=1e-6)
    return True


def pinned_value(region, mu, r, tables, policy, worst):
    """The extended program with q_h(s, .) proportional to the policy: two inequalities a pair, as further tables."""
    rows = []
    H, S, A = r.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                row = np.zeros((H, S, A))
                row[h, s] = -policy[h, s, a]
                row[h, s, a] += 1.0
                rows += [row - 1e-9 / H, -row - 1e-9 / H]  # a hair of room for rounding
    if not worst:
        return extended_value(region, mu, r, np.concatenate([tables, rows]))
    # With `worst` the excess would also be allowed in the pinning rows: scale them up until it is not worth it.
    return extended_value(region, mu, r, np.concatenate([tables, 1e4 * np.array(rows)]), worst=True)
