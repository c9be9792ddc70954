"""Maps of cells: how they are read, and how one moves on them.

| mark | cell |
|---|---|
| S | start (several share the start evenly) |
| F or . | free |
| O | obstacle that can be crossed |
| H | pit or hole: nothing happens any more |
| G | goal: nothing happens any more |
| # | wall: one bounces back |

Cell (i, j) is state i * width + j.  Actions: 0 left, 1 down, 2 right, 3 up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.worlds.tables import probability

ACTIONS = ("left", "down", "right", "up")
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
MARKS = "SF.OHG#"
ENDS = "HG"


@dataclass(frozen=True)
class Map:
    """Rows of marks, all of one width, with at least one start."""

    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.rows or not self.rows[0]:
            raise InvalidInputError("a map needs at least one cell")
        for i, row in enumerate(self.rows):
            if len(row) != len(self.rows[0]):
                raise InvalidInputError(f"row {i} of the map has {len(row)} cells, but row 0 has {len(self.rows[0])}")
            for j, mark in enumerate(row):
                if mark not in MARKS:
                    raise InvalidInputError(f"row {i}, column {j} of the map is {mark!r}, which is none of {MARKS}")
        if not self.where("S").any():
            raise InvalidInputError("the map has no start S")

    @property
    def width(self) -> int:
        """Cells per row."""
        return len(self.rows[0])

    @property
    def n_cells(self) -> int:
        """All cells, walls too."""
        return len(self.rows) * self.width

    @property
    def names(self) -> tuple[str, ...]:
        """A name per state: its row, column and mark."""
        return tuple(f"({i}, {j}) {mark}" for i, row in enumerate(self.rows) for j, mark in enumerate(row))

    def where(self, marks: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which states carry one of the marks, (S,)."""
        return np.array([mark in marks for row in self.rows for mark in row])

    @property
    def start(self) -> Floats:
        """The initial law."""
        cells = self.where("S").astype(np.float64)
        return cells / cells.sum()

    def neighbour(self, s: int, a: int) -> int:
        """Where a move leads that does not slip."""
        i, j = divmod(s, self.width)
        down, right = MOVES[a]
        i, j = i + down, j + right
        inside = 0 <= i < len(self.rows) and 0 <= j < self.width
        return i * self.width + j if inside and self.rows[i][j] != "#" else s

    def kernel(self, slip: float) -> Floats:
        """p(s'|s,a), (S, 4, S): the move meant with 1 - slip, each of the two across it with slip / 2; ends absorb."""
        across = probability("slip", slip) / 2.0
        transition = np.zeros((self.n_cells, 4, self.n_cells))
        stopped = self.where(ENDS + "#")
        for s in range(self.n_cells):
            for a in range(4):
                if stopped[s]:
                    transition[s, a, s] = 1.0
                    continue
                for turn, chance in ((0, 1.0 - 2.0 * across), (1, across), (3, across)):
                    transition[s, a, self.neighbour(s, (a + turn) % 4)] += chance
        return transition

    def entering(self, transition: Floats, marks: str) -> Floats:
        """The chance that a step moves from a cell that is no end onto one of the marks, (S, 4)."""
        chance = transition @ self.where(marks).astype(np.float64)
        return np.where(self.where(ENDS + "#")[:, None], 0.0, chance)
