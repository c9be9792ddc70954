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

from omdpd.problem.arrays import Floats, InvalidInputError, over_steps
from omdpd.problem.cmdp import CMDP
from omdpd.problem.laws import SparseLaws, laws_of_entries
from omdpd.worlds.random_dirichlet import cost_range
from omdpd.worlds.tables import positive_integers

# How many draws are tried before giving up, and how far apart the two ends of cost must be per step.
MAX_DRAWS = 1000
MIN_SPREAD = 0.02
# Up to this many states successors are the first of a permutation of all of them, as they always were; beyond it that
# would cost as much as a table.
MAX_PERMUTED = 2000


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
    S, A, H = positive_integers(n_states=n_states, n_actions=n_actions, horizon=horizon)
    branches, n = positive_integers(branching=branching, n_constraints=n_constraints)
    if branches > S:
        raise InvalidInputError(f"branching is {branches}, but there are only {S} states")
    if not 0.0 < slack < 1.0:
        raise InvalidInputError(f"slack is {slack}, but must lie strictly between 0 and 1")
    initial = np.full(S, 1.0 / S)
    for _ in range(MAX_DRAWS):
        drawn = _laws(rng, (H, S, A), branches)
        reward, cost = rng.random((S, A)), rng.random((n, S, A))
        rewards = over_steps(reward[None], H, 0)
        ends = np.array([cost_range(drawn, initial, rewards, over_steps(c[None], H, 0)) for c in cost])
        budget = ends[:, 0] + slack * (ends[:, 1] - ends[:, 0])
        if np.all(ends[:, 1] - ends[:, 0] > MIN_SPREAD * H) and _room(drawn, initial, cost, budget):
            rows = np.repeat(np.arange(S * A), branches)
            laws = laws_of_entries(rows, drawn.successors, drawn.probabilities, (H, S, A))
            return CMDP.from_arrays(laws, reward, cost, budget, initial, H).labelled("garnet")
    raise InvalidInputError(f"no instance with room in every budget among {MAX_DRAWS} draws; use more slack")


def _laws(rng: np.random.Generator, shape: tuple[int, int, int], branches: int) -> SparseLaws:
    """Few successors per row, with the gaps between sorted uniform numbers as probabilities, as they were drawn."""
    _, S, A = shape
    successors, chances = np.empty((S * A, branches), dtype=np.int32), np.empty((S * A, branches))
    for row in range(S * A):
        cuts = np.sort(rng.random(branches - 1))
        gaps = np.diff(np.r_[0.0, cuts, 1.0])
        few = rng.permutation(S)[:branches] if S <= MAX_PERMUTED else rng.choice(S, branches, replace=False)
        order = np.argsort(few)
        successors[row], chances[row] = few[order], gaps[order]
    return SparseLaws(shape, np.arange(S * A + 1) * branches, successors.ravel(), chances.ravel())


def _room(laws: SparseLaws, initial: Floats, cost: Floats, budget: Floats) -> bool:
    """Whether the policy of least total excess meets every budget strictly; one constraint always has room."""
    if len(cost) == 1:
        return True
    H = laws.shape[0]
    total = over_steps(cost.sum(axis=0)[None], H, 0)
    spent = [cost_range(laws, initial, -total, over_steps(c[None], H, 0))[1] for c in cost]
    return bool(np.all(np.array(spent) < budget - MIN_SPREAD * H / 2.0))
