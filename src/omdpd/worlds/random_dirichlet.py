"""The paper's random CMDP: Dirichlet kernels per step, uniform rewards and costs.

| what | law |
|---|---|
| transition p_h(.|s,a) | Dirichlet(concentration), drawn for every step |
| initial state | uniform |
| reward r_h(s,a) | U[0, 1] |
| cost d_h(s,a) | U[-1, 1], budget 0 |

About half of these instances have a constraint that never binds; `binding` draws until the reward-optimal policy costs
more than 0.3 and the least possible cost is below -0.3 (for every constraint).
Source: the simulation of Zhu, Yu, Lee, Liu, Wei (ICML 2025).
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError, expected, positive_integer
from omdpd.problem.cmdp import CMDP
from omdpd.problem.laws import DenseLaws, Laws
from omdpd.solvers.sweeps import best_value_under, greedy_under, occupancy_under
from omdpd.worlds.tables import positive_integers

# How far the reward-optimal cost and the least cost must lie from the budget for the constraint to bind.
BINDING = 0.3
# How many draws are tried before giving up: at the paper's size about half succeed.
MAX_DRAWS = 10_000
# In the correlated variant the budget sits this far from the least cost to the reward-optimal cost.
CORRELATED_SHARE = 0.35


def make(
    rng: np.random.Generator,
    n_states: int = 5,
    n_actions: int = 3,
    horizon: int = 5,
    n_constraints: int = 1,
    concentration: float = 0.5,
    binding: bool = True,
) -> CMDP:
    """The paper's random CMDP; only instances whose constraint binds unless `binding` is off."""
    H, S, A = positive_integers(horizon=horizon, n_states=n_states, n_actions=n_actions)
    I = positive_integer("n_constraints", n_constraints)  # noqa: E741
    if not concentration > 0.0:
        raise InvalidInputError(f"concentration is {concentration}, but must be positive")
    for _ in range(MAX_DRAWS):
        transition = rng.dirichlet(np.full(S, concentration), (H, S, A))
        reward = rng.random((H, S, A))
        cost = rng.uniform(-1.0, 1.0, (I, H, S, A))
        if not binding or is_binding(DenseLaws(H, transition), np.full(S, 1.0 / S), reward, cost):
            return CMDP.from_arrays(transition, reward, cost, np.zeros(I)).labelled("random_dirichlet")
    raise InvalidInputError(
        f"no binding instance among {MAX_DRAWS} draws with {S} states, {A} actions, {H} steps, {I} constraints"
    )


def make_correlated(
    rng: np.random.Generator, n_states: int = 5, n_actions: int = 3, horizon: int = 5, concentration: float = 0.5
) -> CMDP:
    """The random CMDP with costs that follow the rewards.

    d = 0.6 (2r - 1) + 0.4 u, the budget between the extremes of cost.
    """
    H, S, A = positive_integers(horizon=horizon, n_states=n_states, n_actions=n_actions)
    transition = rng.dirichlet(np.full(S, concentration), (H, S, A))
    reward = rng.random((H, S, A))
    cost = 0.6 * (2.0 * reward - 1.0) + 0.4 * rng.uniform(-1.0, 1.0, (H, S, A))
    initial = np.full(S, 1.0 / S)
    least, greedy = cost_range(DenseLaws(H, transition), initial, reward, cost)
    budget = least + CORRELATED_SHARE * (greedy - least)
    return CMDP.from_arrays(transition, reward, cost, budget).labelled("correlated")


def is_binding(laws: Laws, initial: Floats, reward: Floats, cost: Floats) -> bool:
    """Whether every constraint forbids the reward-optimal policy by a distance and can be met by a distance."""
    ranges = [cost_range(laws, initial, reward, table) for table in cost]
    return all(least < -BINDING and greedy > BINDING for least, greedy in ranges)


def cost_range(laws: Laws, initial: Floats, reward: Floats, table: Floats) -> tuple[float, float]:
    """The least cost of any policy, and the cost of the reward-optimal one."""
    least = -best_value_under(laws, initial, -table)
    policy, _ = greedy_under(laws, reward)
    return least, expected(table, occupancy_under(laws, policy, initial))
