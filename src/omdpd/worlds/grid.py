"""Grids with things in the way: obstacles that cost, and a rover among pits.

`make`: obstacles.

| what | law |
|---|---|
| state | a cell of the map (see `maps`); starts at S |
| action | left, down, right, up; slips to either side with probability `slip` / 2 (0.05) each |
| reward | 1 for every step that starts at G (one stays there), else 0.2 * (1 - distance to G / largest distance) |
| cost | 1 for every step that starts on an obstacle O |
| budget | `budget` (0.5) obstacle steps per episode of `horizon` (12): the short way crosses at least one |
| scenarios | which obstacles hurt: those of the upper half (1.4 against 0.6), of the lower half, of the left half |
| `size` | a map of `size` x `size` cells instead: the 5x5 map drawn larger |

`make_rover`: pits.

| what | law |
|---|---|
| reward | 1 on reaching G |
| cost | 1 on falling into a pit H, where the episode stays |
| budget | `budget`: the probability of falling (0.1 on the 4x4 map, 0.15 on the 8x8 map) |
| scenarios | how bad a fall is: pits of the upper half weigh 1.3 and others 0.7, or the other way round |
| `size` | a map of `size` x `size` cells instead: the pits of the 8x8 map again and again |

Sources: the obstacle grids of Triple-Q (2022) and the rover maps of ApproPO (2019) and ConRL (2020), in the small; the
4x4 map is the common one, the others are ours.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.worlds.maps import ACTIONS, Map

OBSTACLES = (
    "S.O.G",
    "..O..",
    "..OO.",
    "..OO.",
    ".....",
)
ROVER_4X4 = ("SFFF", "FHFH", "FFFH", "HFFG")
ROVER_8X8 = (
    "SFFFFFFF",
    "FFFHFFFF",
    "FFFFFHFF",
    "FFHFFFFF",
    "FFFFHFFH",
    "FHHFFFFF",
    "FFFFFHHF",
    "FFFHFFFG",
)
ROVER_MAPS = {"4x4": (ROVER_4X4, 10, 0.1), "8x8": (ROVER_8X8, 18, 0.15)}
# What a step on the way is worth at most, against 1 for a step at the goal.
STEP_REWARD = 0.2
HURTS, SPARES = 1.4, 0.6
WORSE, MILDER = 1.3, 0.7


def make(
    rows: tuple[str, ...] = OBSTACLES,
    horizon: int = 12,
    slip: float = 0.1,
    budget: float = 0.5,
    *,
    size: int | None = None,
) -> CMDP:
    """A grid whose short way crosses obstacles that cost."""
    drawn = tuple(rows) if size is None else drawn_larger(tuple(rows), size)
    cells, H = Map(drawn), positive_integer("horizon", horizon)
    _needs(cells, "G", "O")
    laws = cells.laws(slip, H)
    distance = _distance(cells, "G")
    on_the_way = STEP_REWARD * (1.0 - distance / distance.max())
    earned = np.where(cells.where("G"), 1.0, np.where(cells.where("H#"), 0.0, on_the_way))
    reward = np.repeat(earned[:, None], 4, axis=1)
    cost = np.repeat(cells.where("O").astype(np.float64)[:, None], 4, axis=1)
    cmdp = CMDP.from_arrays(laws, reward, cost, budget, cells.start, H)
    labels = Labels(cells.names, ACTIONS, ("obstacle steps",), cells.rows)
    weights = _halves(cells, HURTS, SPARES)
    return cmdp.labelled("grid", labels).with_scenarios({name: w[:, None] * cost for name, w in weights.items()})


def make_rover(
    map: str = "8x8", horizon: int = 0, slip: float = 0.1, budget: float = -1.0, *, size: int | None = None
) -> CMDP:
    """A rover among pits, on a map of 8x8 (or 4x4) cells; horizon 0 and budget -1 stand for the map's own."""
    if map not in ROVER_MAPS:
        raise InvalidInputError(f"there is no rover map {map!r}; there are {', '.join(ROVER_MAPS)}")
    rows, steps, risk = ROVER_MAPS[map]
    rows = rows if size is None else repeated(rows, size)
    cells, H = Map(rows), positive_integer("horizon", horizon or steps)
    laws = cells.laws(slip, H)
    reward = cells.entering(laws, "G")
    fall = cells.entering(laws, "H")
    limit = budget if budget >= 0.0 else risk
    cmdp = CMDP.from_arrays(laws, reward, fall, limit, cells.start, H)
    upper = _places(cells)[:, 0] < len(rows) / 2.0
    weights = {
        "upper pits are deep": np.where(upper, WORSE, MILDER),
        "lower pits are deep": np.where(upper, MILDER, WORSE),
    }
    return cmdp.labelled("mars_rover", Labels(cells.names, ACTIONS, ("falls",), cells.rows)).with_scenarios(
        {name: cells.entering(laws, "H", w) for name, w in weights.items()}
    )


def drawn_larger(rows: tuple[str, ...], size: int) -> tuple[str, ...]:
    """A map of `size` x `size` cells that looks like `rows` from afar; start and goal stay one cell each, at the edge.

    >>> drawn_larger(("S.G", ".O."), 4)
    ('S..G', '....', '..O.', '..O.')
    """
    height, width, n = len(rows), len(rows[0]), positive_integer("size", size)
    if n < max(height, width):
        raise InvalidInputError(f"size is {n}, but the map that is to be drawn larger has {height} x {width} cells")
    cells = [[rows[i * height // n][j * width // n] for j in range(n)] for i in range(n)]
    for mark in "SG":
        places = [(i, j) for i in range(n) for j in range(n) if cells[i][j] == mark]
        kept = places[0] if mark == "S" else max(places, key=lambda place: (-place[0], place[1]), default=None)
        for i, j in places:
            if (i, j) != kept:
                cells[i][j] = "."
    return tuple("".join(row) for row in cells)


def repeated(rows: tuple[str, ...], size: int) -> tuple[str, ...]:
    """A map of `size` x `size` cells with the pits of `rows` again and again, from one corner to the opposite one.

    >>> repeated(("SF", "HG"), 3)
    ('SFF', 'HFH', 'FFG')
    """
    n = positive_integer("size", size)
    if n < max(len(rows), len(rows[0])):
        raise InvalidInputError(
            f"size is {n}, but the map that is to be repeated has {len(rows)} x {len(rows[0])} cells"
        )
    pits = [["H" if rows[i % len(rows)][j % len(rows[0])] == "H" else "F" for j in range(n)] for i in range(n)]
    pits[0][0], pits[-1][-1] = "S", "G"
    return tuple("".join(row) for row in pits)


def _distance(cells: Map, mark: str) -> Floats:
    """Moves from every cell to the nearest of a mark if nothing were in the way, (S,)."""
    place = _places(cells)
    return np.min([np.abs(place - target).sum(axis=1) for target in place[cells.where(mark)]], axis=0)


def _places(cells: Map) -> Floats:
    """Row and column of every cell, (S, 2)."""
    s = np.arange(cells.n_cells)
    return np.stack([s // cells.width, s % cells.width], axis=1).astype(np.float64)


def _halves(cells: Map, inside: float, outside: float) -> dict[str, Floats]:
    """A weight per cell for each of three halves of the map."""
    place = _places(cells)
    middle = (len(cells.rows) - 1) / 2.0, (cells.width - 1) / 2.0
    halves = {
        "upper obstacles hurt": place[:, 0] <= middle[0],
        "lower obstacles hurt": place[:, 0] >= middle[0],
        "left obstacles hurt": place[:, 1] <= middle[1],
    }
    return {name: np.where(half, inside, outside) for name, half in halves.items()}


def _needs(cells: Map, *marks: str) -> None:
    for mark in marks:
        if not cells.where(mark).any():
            raise InvalidInputError(f"the map has no {mark}")
