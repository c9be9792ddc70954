"""Garnet: random CMDPs with few successors, and a budget that binds by a chosen slack.

| what | law |
|---|---|
| state | 0 .. n_states - 1 (10); the start is uniform |
| transition | for every (state, action) `branching` (2) successors drawn without repetition, with the gaps of sorted uniform numbers as probabilities; the same at every step |
| reward r(s,a) | U[0, 1] |
| cost c_i(s,a) | U[0, 1] |
| budget | least cost + `slack` (0.5) * (cost of the reward-optimal policy - least cost), per constraint |
| scenarios | none of its own: the pool natures draw tables around a safe policy |

`slack` 0 leaves no room, 1 makes the constraint idle.  With several constraints each budget alone is met by some policy;
draws in which no policy meets all of them with room are redrawn.
Source: the Garnet family of Archibald, McKinnon and Thomas (1995); the budget rule is ours.
"""  # noqa: E501

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.cmdp import CMDP
from omdpd.worlds.random_dirichlet import cost_range

# How many draws are tried before giving up, and how far apart the two ends of cost must be per step.
MAX_DRAWS = 1000
MIN_SPREAD = 0.02


def make(
    rng: np.random.Generator,
    n_states: int = 10,
    n_actions: int = 3,
    horizon: int = 6,
    branching: int = 2,
    n_constraints: int = 1,
    slack: float = 0.5,
) -> CMDP:
    """Random CMDPs with few successors and a budget that binds by a chosen slack."""
    S, A, H = (
        positive_integer(*pair) for pair in (("n_states", n_states), ("n_actions", n_actions), ("horizon", horizon))
    )
    branches, n = positive_integer("branching", branching), positive_integer("n_constraints", n_constraints)
    if branches > S:
        raise InvalidInputError(f"branching is {branches}, but there are only {S} states")
    if not 0.0 < slack < 1.0:
        raise InvalidInputError(f"slack is {slack}, but must lie strictly between 0 and 1")
    initial = np.full(S, 1.0 / S)
    for _ in range(MAX_DRAWS):
        transition = _kernel(rng, S, A, branches)
        reward, cost = rng.random((S, A)), rng.random((n, S, A))
        by_step = np.repeat(transition[None], H, axis=0)
        rewards = np.repeat(reward[None], H, axis=0)
        ends = np.array([cost_range(by_step, initial, rewards, np.repeat(c[None], H, axis=0)) for c in cost])
        budget = ends[:, 0] + slack * (ends[:, 1] - ends[:, 0])
        if np.all(ends[:, 1] - ends[:, 0] > MIN_SPREAD * H) and _room(by_step, initial, cost, budget):
            return CMDP.from_arrays(transition, reward, cost, budget, initial, H, rescale=True).labelled("garnet")
    raise InvalidInputError(f"no instance with room in every budget among {MAX_DRAWS} draws; use more slack")


def _kernel(rng: np.random.Generator, S: int, A: int, branches: int) -> Floats:
    """Few successors per row, with the gaps between sorted uniform numbers as probabilities."""
    transition = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            cuts = np.sort(rng.random(branches - 1))
            gaps = np.diff(np.r_[0.0, cuts, 1.0])
            transition[s, a, rng.permutation(S)[:branches]] = gaps
    return transition


def _room(transition: Floats, initial: Floats, cost: Floats, budget: Floats) -> bool:
    """Whether the policy of least total excess meets every budget strictly; one constraint always has room."""
    if len(cost) == 1:
        return True
    H = transition.shape[0]
    total = np.repeat(cost.sum(axis=0)[None], H, axis=0)
    spent = [cost_range(transition, initial, -total, np.repeat(c[None], H, axis=0))[1] for c in cost]
    return bool(np.all(np.array(spent) < budget - MIN_SPREAD * H / 2.0))
