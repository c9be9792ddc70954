"""The frozen lake, with thin ice along one shore.

| what | law |
|---|---|
| state | a cell of the 4x4 map SFFF/FHFH/FFFH/HFFG; starts at S |
| action | left, down, right, up; slips to either side with probability `slip` / 2 (0.05) each |
| transition | holes H and the goal G absorb |
| reward | 1 on reaching G |
| cost | 1 for every step that starts in a hole or in the left column |
| budget | `budget` (2.5) such steps per episode of `horizon` (9) |
| scenarios | where the ice is thin (0.8 a step there, 1 in a hole): the left column, the top row, the middle |

Source: the 4x4 map is Gymnasium's; the utility that is lost in holes and in the left column is that of Ghosh and others
(2024), who ask for a utility of 8 in 9 steps: with slipping no policy reaches that, because the start lies in the left
column, so the budget here is our own.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats, positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.worlds.maps import ACTIONS, Map

THIN = 0.8  # what a step on thin ice costs in the scenarios
LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")


def make(horizon: int = 9, slip: float = 0.1, budget: float = 2.5) -> CMDP:
    """The frozen lake, with thin ice along one shore."""
    cells, H = Map(LAKE), positive_integer("horizon", horizon)
    laws = cells.laws(slip, H)
    reward = cells.entering(laws, "G")
    column, row = np.arange(cells.n_cells) % cells.width, np.arange(cells.n_cells) // cells.width
    middle = (row > 0) & (row < 3) & (column > 0) & (column < 3)
    labels = Labels(cells.names, ACTIONS, ("steps on thin ice",), cells.rows)
    cmdp = CMDP.from_arrays(laws, reward, _ice(cells, column == 0, 1.0), budget, cells.start, H)
    shores = {"thin at the left": column == 0, "thin at the top": row == 0, "thin in the middle": middle}
    return cmdp.labelled("frozen_lake", labels).with_scenarios(
        {name: _ice(cells, where, THIN) for name, where in shores.items()}
    )


def _ice(cells: Map, thin: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], price: float) -> Floats:
    """1 in holes and `price` where the ice is thin, (S, 4); the goal is safe."""
    cost = np.where(cells.where("H"), 1.0, np.where(thin, price, 0.0)) * ~cells.where("G")
    return np.repeat(cost[:, None], 4, axis=1)
