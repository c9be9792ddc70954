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

from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.problem.laws import SparseLaws, laws_of_entries
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

    @property
    def neighbours(self) -> Integers:
        """Where each move leads that does not slip, (S, 4)."""
        s = np.arange(self.n_cells)
        row, column, open_ = s // self.width, s % self.width, ~self.where("#")
        led = np.empty((self.n_cells, 4), dtype=np.int64)
        for a, (down, right) in enumerate(MOVES):
            i, j = row + down, column + right
            inside = (i >= 0) & (i < len(self.rows)) & (j >= 0) & (j < self.width)
            target = np.where(inside, i * self.width + j, s)
            led[:, a] = np.where(open_[target], target, s)
        return led

    def laws(self, slip: float, horizon: int) -> SparseLaws:
        """The laws of moving: the move meant with 1 - slip, each of the two across it with slip / 2; ends absorb."""
        across = probability("slip", slip) / 2.0
        S, led = self.n_cells, self.neighbours
        stopped = self.where(ENDS + "#")
        turns, chances = np.array([0, 1, 3]), np.array([1.0 - 2.0 * across, across, across])
        following = led[:, (np.arange(4)[:, None] + turns) % 4]
        following = np.where(stopped[:, None, None], np.arange(S)[:, None, None], following)
        chance = np.where(stopped[:, None, None], np.array([1.0, 0.0, 0.0]), chances)
        rows = np.repeat(np.arange(4 * S), 3)
        return laws_of_entries(rows, following.ravel(), np.broadcast_to(chance, (S, 4, 3)).ravel(), (horizon, S, 4))

    def entering(self, laws: SparseLaws, marks: str, weights: Floats | None = None) -> Floats:
        """The chance that a step moves from a cell that is no end onto one of the marks, (S, 4), weighed by cell."""
        worth = self.where(marks).astype(np.float64) * (1.0 if weights is None else weights)
        return np.where(self.where(ENDS + "#")[:, None], 0.0, laws.backward(worth, 0))
