"""A policy evaluated on the Lagrangian of optimistic tables, for the learners that move policy and multipliers.

    Q(h,s,a) = TPE_tau(r~) - sum_i lam_i TPE(d~_i),      V(d~_i) = mu.TPE(d~_i)

under p_hat; TPE cuts every value to what an episode can still bring, and TPE_tau adds the entropy of later steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.bonuses import Optimism
from omdpd.learners.policy_steps import truncated_values
from omdpd.problem.arrays import Floats


@dataclass(frozen=True, eq=False)
class LagrangianValues:
    """Q of the Lagrangian (H, S, A), and the truncated cost of every constraint (I,)."""

    gains: Floats
    costs: Floats


def evaluate(policy: Floats, believed: Optimism, mu: Floats, lam: Floats, tau: float = 0.0) -> LagrangianValues:
    """Q and V(d~) of a policy; `tau` weighs the entropy."""
    p, n_actions = believed.transition, policy.shape[-1]
    gains, _ = truncated_values(policy, p, believed.reward, tau, 0.0, 1.0 + tau * float(np.log(n_actions)))
    costs = np.empty(len(believed.cost))
    for i, table in enumerate(believed.cost):
        Q, V = truncated_values(policy, p, table, 0.0, -1.0, 1.0)
        gains -= lam[i] * Q
        costs[i] = mu @ V[0]
    return LagrangianValues(gains, costs)


def costs_of(policy: Floats, believed: Optimism, mu: Floats) -> Floats:
    """V(d~) of a policy, (I,)."""
    values = [truncated_values(policy, believed.transition, table, 0.0, -1.0, 1.0)[1][0] for table in believed.cost]
    return np.array([mu @ first for first in values])
