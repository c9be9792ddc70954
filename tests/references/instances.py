"""Small random problems for the tests, with sizes that all differ so that a swapped axis cannot go unnoticed."""

from __future__ import annotations

import numpy as np

from omdpd.problem.cmdp import CMDP
from omdpd.problem.setting import BanditFeedback, FullFeedback, Trajectory
from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.regions import Box

# H, S, A and I all different.
SIZES = (4, 3, 2, 5)


def random_kernel(rng, H, S, A, concentration=0.7):
    """Dirichlet rows for every step."""
    return rng.dirichlet(np.full(S, concentration), (H, S, A))


def random_policy(rng, H, S, A):
    """Dirichlet(1) action laws."""
    return rng.dirichlet(np.ones(A), (H, S))


def random_law(rng, S):
    """A law of the first state."""
    return rng.dirichlet(np.ones(S))


def random_cmdp(rng, H, S, A, n_constraints=1, budget=0.0):
    """Uniform rewards and costs, a random initial law."""
    cost = rng.uniform(-0.8, 0.8, (n_constraints, H, S, A))
    return CMDP.from_arrays(
        random_kernel(rng, H, S, A),
        rng.random((H, S, A)),
        cost,
        np.full(n_constraints, budget),
        initial=random_law(rng, S),
    )


def random_box(rng, H, S, A, width=0.3, share_free=0.2):
    """A tightened box around a random kernel, whole simplices among its rows; returns (box, a kernel inside)."""
    p = random_kernel(rng, H, S, A)
    reach = width * rng.random((H, S, A, S))
    free = rng.random((H, S, A, 1)) < share_free
    lower = np.where(free, 0.0, np.maximum(p - reach, 0.0))
    upper = np.where(free, 1.0, np.minimum(p + reach, 1.0))
    return Box(*tighten(lower, upper)), p


def kernel_inside(rng, box):
    """A random kernel of the box: every row a mixture of greedily filled rows, so it is inside by construction."""
    from omdpd.solvers.compiled.boxes import best_kernel

    H, S = box.lower.shape[:2]
    shares = rng.dirichlet(np.ones(3))
    kernels = [
        np.stack([best_kernel(box.lower[h], box.upper[h], rng.normal(size=S)) for h in range(H)]) for _ in shares
    ]
    return sum(share * kernel for share, kernel in zip(shares, kernels, strict=True))


def forward(policy, transition, initial):
    """The occupancy of a policy in plain NumPy: the twin of the compiled forward pass."""
    q = np.zeros(policy.shape)
    mass = np.array(initial, dtype=float)
    for h in range(len(policy)):
        q[h] = mass[:, None] * policy[h]
        mass = np.einsum("sa,sat->t", q[h], transition[h])
    return q


def conditional(q):
    """The policy of an occupancy in plain NumPy: the twin of the compiled one."""
    mass = q.sum(axis=-1, keepdims=True)
    return np.where(mass > 0.0, q / np.where(mass > 0.0, mass, 1.0), 1.0 / q.shape[-1])


def play(rng, policy, transition, initial):
    """States and actions of one episode, by NumPy's own sampler."""
    H, S, A = policy.shape
    states, actions = np.zeros(H, dtype=np.int64), np.zeros(H, dtype=np.int64)
    law = initial
    for h in range(H):
        states[h] = rng.choice(S, p=law)
        actions[h] = rng.choice(A, p=policy[h, states[h]])
        law = transition[h, states[h], actions[h]]
    return Trajectory(states, actions)


def bandit(rng, cmdp, policy):
    """Feedback of one episode with 0/1 rewards and -1/+1 costs of the right means."""
    met = play(rng, policy, cmdp.transition, cmdp.initial)
    at = (np.arange(len(policy)), met.states, met.actions)
    rewards = (rng.random(len(policy)) < cmdp.reward[at]).astype(float)
    means = cmdp.excess[(slice(None), *at)]
    return BanditFeedback(met, rewards, np.where(rng.random(means.shape) < (1.0 + means) / 2.0, 1.0, -1.0))


def revealed(rng, cmdp, policy, table):
    """Feedback of one episode with 0/1 rewards and the whole table."""
    met = play(rng, policy, cmdp.transition, cmdp.initial)
    at = (np.arange(len(policy)), met.states, met.actions)
    return FullFeedback(met, (rng.random(len(policy)) < cmdp.reward[at]).astype(float), table)


def pool_of(rng, cmdp, n):
    """Tables (n, I, H, S, A) that some policy satisfies with room."""
    H, S, A = cmdp.shape
    safe = forward(random_policy(rng, H, S, A), cmdp.transition, cmdp.initial)
    tables = rng.uniform(-0.6, 0.6, (n, cmdp.n_constraints, H, S, A))
    return tables - (np.tensordot(tables, safe, axes=3) / H)[..., None, None, None] - 0.05


def ring(budget=0.3, **end):
    """Four states; action 1 mostly goes on and earns where it arrives at 3, action 0 stays for nothing."""
    p = np.zeros((4, 2, 4))
    for s in range(4):
        p[s, 0, s] = 1.0
        p[s, 1, (s + 1) % 4], p[s, 1, s] = 0.9, 0.1
    reward = np.array([[0.1, 0.0], [0.0, 0.0], [0.0, 1.0], [0.2, 0.0]])
    return CMDP.from_arrays(p, reward, [[0.0, 1.0]] * 4, budget, **(end or {"criterion": "average"}))


def ladder(budget=3.0, horizon=3):
    """One state; action 0 earns 1 and costs 2, action 1 earns 0.5 and costs 0.5, action 2 does nothing."""
    p = np.ones((1, 3, 1))
    return CMDP.from_arrays(p, [[1.0, 0.5, 0.0]], [[2.0, 0.5, 0.0]], budget, horizon=horizon)
