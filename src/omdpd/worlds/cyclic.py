"""A ring that pays more the further one is, with a toll for every move.

| what | law |
|---|---|
| state | a place on the ring, 0 .. n_places - 1 (3); starts at 0 |
| action 0, stay | nothing happens |
| action 1, move | from s to s + 1 (from the last place to 0), with certainty |
| reward | (s + 1) / n_places for moving from s, 0 for staying |
| cost | 1 for moving |
| budget | `budget` (3) moves of `horizon` (6) |
| scenarios | where the toll is high: 1.3 at one place and 0.85 at the others, one scenario per place |

With the default settings every three moves earn 2, so the optimum is 2/3 of the budget.
Source: the cyclic example of AlwaysSafe (2021) and DOPE (2022).
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.laws import laws_of_entries
from omdpd.worlds.tables import one_hot

HIGH, LOW = 1.3, 0.85


def make(n_places: int = 3, horizon: int = 6, budget: float = 3.0) -> CMDP:
    """A ring that pays more the further one is, with a toll for every move."""
    S, H = positive_integer("n_places", n_places), positive_integer("horizon", horizon)
    places = np.arange(S)
    following = np.stack([places, (places + 1) % S], axis=1)
    laws = laws_of_entries(np.arange(2 * S), following.ravel(), np.ones(2 * S), (H, S, 2))
    reward = np.stack([np.zeros(S), (np.arange(S) + 1.0) / S], axis=1)
    cost = np.tile([0.0, 1.0], (S, 1))
    labels = Labels(tuple(f"place {s}" for s in range(S)), ("stay", "move"), ("moves",))
    cmdp = CMDP.from_arrays(laws, reward, cost, budget, one_hot(S, 0), H)
    tolls = {f"toll at place {s}": np.where(np.arange(S) == s, HIGH, LOW) for s in range(S)}
    return cmdp.labelled("cyclic", labels).with_scenarios({name: toll[:, None] * cost for name, toll in tolls.items()})
