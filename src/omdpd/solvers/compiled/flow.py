"""Policies, occupancies and values: the linear algebra of one episode under a known kernel.

An occupancy is q_h(s, a) = Pr(s_h = s, a_h = a); it sums to one at every step.  Sizes: policy and
occupancy (H, S, A), transition (H, S, A, S) of which the last step is never used, initial (S,).
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry, inline
from omdpd.jit.pointers import flat
from omdpd.problem.arrays import Floats

# A state with less mass than this has none: solvers know an occupancy to about 1e-12, and the shares of a smaller mass
# would be rounding noise, different on every processor, while the true dynamics may well lead there.
NO_MASS = 1e-9


@checked_entry
def occupancy_of_policy(policy: Floats, transition: Floats, initial: Floats) -> Floats:
    """Occupancy of `policy` under `transition`, by one forward pass."""
    H, S, A = policy.shape
    q = np.empty((H, S, A))
    mass = initial.copy()
    for h in range(H):
        following = np.zeros(S)
        for s in range(S):
            for a in range(A):
                q[h, s, a] = mass[s] * policy[h, s, a]
                if h + 1 < H and q[h, s, a] > 0.0:
                    for t in range(S):
                        following[t] += q[h, s, a] * transition[h, s, a, t]
        mass = following
    return q


@checked_entry
def policy_of_occupancy(occupancy: Floats) -> Floats:
    """pi_h(a|s) = q_h(s,a) / q_h(s), uniform where the state has no mass to speak of."""
    policy = np.empty(occupancy.shape)
    write_policy(occupancy, flat(policy))
    return policy


@inline
def write_policy(occupancy: Floats, policy: Floats) -> None:
    """`policy_of_occupancy`, written into the last one, a vector."""
    H, S, A = occupancy.shape
    for h in range(H):
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += max(occupancy[h, s, a], 0.0)
            for a in range(A):
                share = max(occupancy[h, s, a], 0.0) / total if total > NO_MASS else 1.0 / A
                policy[(h * S + s) * A + a] = share


@checked_entry
def flow_residual(occupancy: Floats, transition: Floats, initial: Floats) -> float:
    """Largest violation of the flow equations and of q >= 0 under `transition`."""
    H, S, A = occupancy.shape
    worst = 0.0
    inflow = initial.copy()
    for h in range(H):
        following = np.zeros(S)
        for s in range(S):
            balance = -inflow[s]
            for a in range(A):
                balance += occupancy[h, s, a]
                worst = max(worst, -occupancy[h, s, a])
                if h + 1 < H:
                    for t in range(S):
                        following[t] += occupancy[h, s, a] * transition[h, s, a, t]
            worst = max(worst, abs(balance))
        inflow = following
    return worst


@checked_entry
def values_of_policy(policy: Floats, transition: Floats, reward: Floats) -> Floats:
    """V_h(s) of `policy` for one reward table, by one backward pass; row H is zero."""
    H, S, A = policy.shape
    values = np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        for s in range(S):
            total = 0.0
            for a in range(A):
                action_value = reward[h, s, a]
                if h + 1 < H:
                    for t in range(S):
                        action_value += transition[h, s, a, t] * values[h + 1, t]
                total += policy[h, s, a] * action_value
            values[h, s] = total
    return values


@checked_entry
def value_of_policy(policy: Floats, transition: Floats, initial: Floats, reward: Floats) -> float:
    """Expected total reward of one episode."""
    values = values_of_policy(policy, transition, reward)
    total = 0.0
    for s in range(initial.size):
        total += initial[s] * values[0, s]
    return total


@checked_entry
def greedy_policy(transition: Floats, reward: Floats) -> tuple[Floats, Floats]:
    """argmax_pi V^pi(reward): a deterministic policy (first action on ties) and its values (H+1, S)."""
    H, S, A = reward.shape
    policy = np.zeros((H, S, A))
    values = np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, chosen = -np.inf, 0
            for a in range(A):
                action_value = reward[h, s, a]
                if h + 1 < H:
                    for t in range(S):
                        action_value += transition[h, s, a, t] * values[h + 1, t]
                if action_value > best:
                    best, chosen = action_value, a
            policy[h, s, chosen] = 1.0
            values[h, s] = best
    return policy, values
