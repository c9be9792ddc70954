"""The constraint is the reward: a stress test for oscillation.

| what | law |
|---|---|
| state | 0 or 1; starts in 0 |
| action 0 | stay |
| action 1 | change to the other state |
| reward | 1 for staying in state 0 and for coming back to it from state 1; else 0 |
| cost | the reward |
| budget | `budget` (5) of `horizon` (10) |
| scenarios | when earning costs: 1.4 times in its half of the episode, 0.6 times in the other |

Every policy that earns more than the budget is unsafe, and every one that earns less is not optimal.
Source: the paradoxical example of Moskovitz and others (2023), as restated by Ghosh and others (2024).
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.worlds.tables import dear_by_windows, one_hot

DEAR, CHEAP = 1.4, 0.6


def make(horizon: int = 10, budget: float = 5.0) -> CMDP:
    """The constraint is the reward: a stress test for oscillation."""
    H = positive_integer("horizon", horizon)
    transition = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    reward = np.array([[1.0, 0.0], [0.0, 1.0]])
    labels = Labels(("earning", "idle"), ("stay", "change"), ("earnings",))
    cmdp = CMDP.from_arrays(transition, reward, reward, budget, one_hot(2, 0), H)
    tolls = dear_by_windows(reward, H, ("dear first half", "dear second half"), DEAR, CHEAP)
    return cmdp.labelled("paradox", labels).with_scenarios(tolls)
