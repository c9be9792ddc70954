"""Theorem G of docs/theory.md, 13, inequality by inequality, in small worlds with models that are off."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

H, S, A = 3, 2, 2
POLICIES = [
    np.eye(A)[np.array(choice).reshape(H, S)] for choice in product(range(A), repeat=H * S)
]  # every deterministic policy (H, S, A)


def occupancy(p, policy):
    """Of a policy (H, S, A) from state 0 under the laws p (H, S, A, S)."""
    u, at = np.zeros((H, S, A)), np.eye(S)[0]
    for h in range(H):
        u[h] = at[:, None] * policy[h]
        at = np.einsum("sa,sat->t", u[h], p[h])
    return u


class World:
    """A true world, a model of it that is off, and widths that cover by how much."""

    def __init__(self, seed, error):
        rng = np.random.default_rng(seed)
        self.p, self.r = rng.dirichlet(np.ones(S), (H, S, A)), rng.random((H, S, A))
        self.d = rng.uniform(-1.0, 1.0, (H, S, A))
        self.p_hat = (1.0 - error) * self.p + error * rng.dirichlet(np.ones(S), (H, S, A))
        self.r_hat = (1.0 - error) * self.r + error * rng.random((H, S, A))
        self.d_hat = (1.0 - error) * self.d + error * rng.uniform(-1.0, 1.0, (H, S, A))
        self.b_r, self.b_d = np.abs(self.r_hat - self.r), np.abs(self.d_hat - self.d)
        self.b_p = H * np.abs(self.p_hat - self.p).sum(axis=-1)
        self.rng = rng

    def true(self, table, policy):
        return float(np.vdot(table, occupancy(self.p, policy)))

    def bounds(self, policy):
        """(U, L), as the model and the widths have them."""
        u = occupancy(self.p_hat, policy)
        return np.vdot(self.d_hat + self.b_d + self.b_p, u), np.vdot(self.r_hat - self.b_r - self.b_p, u)


WORLDS = given(st.integers(0, 10_000), st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0]))
SOME = settings(max_examples=60, deadline=None, derandomize=True)


@WORLDS
@SOME
def test_one_certificate_holds_for_every_policy(seed, error):
    world = World(seed, error)
    for policy in POLICIES:
        upper, lower = world.bounds(policy)
        u = occupancy(world.p_hat, policy)
        cost, value = world.true(world.d, policy), world.true(world.r, policy)
        assert cost - 1e-9 <= upper <= cost + 2.0 * np.vdot(world.b_d + world.b_p, u) + 1e-9
        assert lower - 1e-9 <= value <= lower + 2.0 * np.vdot(world.b_r + world.b_p, u) + 1e-9


@WORLDS
@SOME
def test_a_deviation_costs_at_most_twice_the_horizon(seed, chance):
    world = World(seed, 0.0)
    plan = world.rng.dirichlet(np.ones(A), (H, S))
    other = world.rng.dirichlet(np.ones(A), (H, S))
    mixed = (1.0 - chance) * plan + chance * other
    x = chance * H  # at most this many steps are played by the other policy
    assert world.true(world.d, mixed) <= world.true(world.d, plan) + 2.0 * H * x + 1e-9
    assert world.true(world.r, mixed) >= world.true(world.r, plan) - H * x - 1e-9


@WORLDS
@SOME
def test_an_episode_loses_no_more_than_the_theorem_says(seed, error):
    world = World(seed, error)
    g = world.rng.uniform(0.1, 1.0)
    x = world.rng.uniform(0.0, g / (2.0 * H))
    bounds = np.array([world.bounds(policy) for policy in POLICIES])
    costs = np.array([world.true(world.d, policy) for policy in POLICIES])
    values = np.array([world.true(world.r, policy) for policy in POLICIES])
    # Mixtures of deterministic policies and, last, the baseline, of which its cost alone is declared.
    found = linprog(
        -np.r_[bounds[:, 1], 0.0], [np.r_[bounds[:, 0], -g]], [-2.0 * H * x], [np.ones(len(costs) + 1)], [1]
    )
    assert found.status == 0
    weight = found.x
    played_cost, played_value = weight @ np.r_[costs, -g], weight @ np.r_[values, 0.0]
    assert played_cost + 2.0 * H * x <= 1e-9
    best = linprog(-values, [costs], [0.0], [np.ones(len(costs))], [1])
    if best.status == 0:
        beta = max(np.vdot(world.b_d + world.b_p, occupancy(world.p_hat, policy)) for policy in POLICIES)
        beta = max(beta, *(np.vdot(world.b_r + world.b_p, occupancy(world.p_hat, policy)) for policy in POLICIES))
        assert -best.fun - (played_value - H * x) <= 2.0 * beta + H / g * (2.0 * beta + 2.0 * H * x) + H * x + 1e-7
