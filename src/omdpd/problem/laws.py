"""The laws p_h(.|s,a) of a kernel, in two forms behind the same few functions: lists of successors, and a table.

    backward   (s, a) -> sum_t p_h(t|s,a) V(t)               one step of values
    forward    t -> sum_{s,a} q(s,a) p_h(t|s,a)              one step of flow

Both cost as many operations as there are entries.  Laws that are the same at every step are kept once.  What is here is
the readable form; `solvers/sweeps.py` runs whole episodes compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import ROW_SUM_TOLERANCE, Floats, Integers, InvalidInputError, refuse_where

if TYPE_CHECKING:
    from collections.abc import Callable

Successors = npt.NDArray[np.int32]

# A kernel is written out as a table of at most this many numbers (256 MB); a stationary one that would exceed it when
# repeated over the steps becomes a view of its one step, with a step axis of stride zero.
MAX_EXPANDED = 2**25
# Lists are kept where they hold at most this share of a table's entries: beyond it the table is smaller and as fast.
MAX_LISTED_SHARE = 0.25
AXES = ("step", "state", "action", "next state")


@dataclass(frozen=True, eq=False)
class SparseLaws:
    """Laws as lists of successors.

    Attributes
    ----------
    shape : (H, S, A)
    pointers : (n S A + 1,)
        Entries of row (h S + s) A + a are ``pointers[row]:pointers[row + 1]``; n is H, or 1 for stationary laws.
    successors : (E,)
        Next states, ascending within a row.
    probabilities : (E,)
        How likely each is: positive, summing to one in every row.
    """

    shape: tuple[int, int, int]
    pointers: Integers
    successors: Successors
    probabilities: Floats

    @property
    def n_steps(self) -> int:
        """How many steps are kept: 1 if the laws are stationary, else H."""
        return (len(self.pointers) - 1) // (self.shape[1] * self.shape[2])

    @property
    def stationary(self) -> bool:
        """Whether the laws are the same at every step."""
        return self.n_steps == 1

    @property
    def n_entries(self) -> int:
        """How many numbers are kept."""
        return len(self.probabilities)

    def law(self, h: int, s: int, a: int) -> tuple[Successors, Floats]:
        """The successors of (h, s, a) and their probabilities."""
        _, S, A = self.shape
        row = (min(h, self.n_steps - 1) * S + s) * A + a
        entries = slice(self.pointers[row], self.pointers[row + 1])
        return self.successors[entries], self.probabilities[entries]

    def backward(self, values: Floats, h: int) -> Floats:
        """sum_t p_h(t|s,a) V(t), (S, A), for `values` (S,)."""
        _, S, A = self.shape
        starts, entries = self._step(h)
        weighted = self.probabilities[entries] * values[self.successors[entries]]
        return np.add.reduceat(weighted, starts).reshape(S, A)

    def forward(self, flow: Floats, h: int) -> Floats:
        """sum_{s,a} q(s,a) p_h(t|s,a), (S,), for `flow` (S, A)."""
        starts, entries = self._step(h)
        lengths = np.diff(np.r_[starts, entries.stop - entries.start])
        weights = self.probabilities[entries] * np.repeat(flow.ravel(), lengths)
        return _summed(self.successors[entries], weights, self.shape[1])

    def expand(self) -> Floats:
        """The table (H, S, A, S), made once; refused where it would be too large to hold."""
        return self._table

    @cached_property
    def _table(self) -> Floats:
        H, S, A = self.shape
        n = self.n_steps
        if n * S * A * S > MAX_EXPANDED:
            raise InvalidInputError(_too_large(self.shape, n))
        table = np.zeros((n * S * A, S))
        table[np.repeat(np.arange(n * S * A), np.diff(self.pointers)), self.successors] = self.probabilities
        return _over_steps(table.reshape(n, S, A, S), H)

    def listed(self) -> SparseLaws:
        """These laws as lists."""
        return self

    def _step(self, h: int) -> tuple[Integers, slice]:
        """Where the rows of step h begin among the entries of that step, and those entries."""
        _, S, A = self.shape
        first = min(h, self.n_steps - 1) * S * A
        pointers = self.pointers[first : first + S * A + 1]
        return pointers[:-1] - pointers[0], slice(int(pointers[0]), int(pointers[-1]))


@dataclass(frozen=True, eq=False)
class DenseLaws:
    """Laws as a table (n, S, A, S), with n = H steps, or 1 for stationary laws."""

    horizon: int
    table: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return (self.horizon, self.table.shape[1], self.table.shape[2])

    @property
    def n_steps(self) -> int:
        """How many steps are kept: 1 if the laws are stationary, else H."""
        return len(self.table)

    @property
    def stationary(self) -> bool:
        """Whether the laws are the same at every step."""
        return self.n_steps == 1

    @property
    def n_entries(self) -> int:
        """How many numbers are kept."""
        return self.table.size

    def law(self, h: int, s: int, a: int) -> tuple[Successors, Floats]:
        """The successors of (h, s, a) and their probabilities."""
        row = self.table[min(h, self.n_steps - 1), s, a]
        successors = np.flatnonzero(row).astype(np.int32)
        return successors, row[successors]

    def backward(self, values: Floats, h: int) -> Floats:
        """sum_t p_h(t|s,a) V(t), (S, A), for `values` (S,)."""
        return np.asarray(self.table[min(h, self.n_steps - 1)] @ values)

    def forward(self, flow: Floats, h: int) -> Floats:
        """sum_{s,a} q(s,a) p_h(t|s,a), (S,), for `flow` (S, A)."""
        return np.tensordot(flow, self.table[min(h, self.n_steps - 1)], axes=2)

    def expand(self) -> Floats:
        """The table (H, S, A, S), made once."""
        return self._table

    @cached_property
    def _table(self) -> Floats:
        return _over_steps(self.table, self.horizon)

    def listed(self) -> SparseLaws:
        """These laws as lists."""
        S, A = self.table.shape[1:3]
        rows, successors = np.nonzero(self.table.reshape(-1, S))
        pointers = np.r_[0, np.cumsum(np.bincount(rows, minlength=self.n_steps * S * A))]
        kept = self.table.reshape(-1, S)[rows, successors]
        return SparseLaws(self.shape, pointers, successors.astype(np.int32), kept)


Laws = SparseLaws | DenseLaws


def laws_of_table(table: Floats, horizon: int) -> Laws:
    """The laws of a checked table (n, S, A, S), n = 1 or H, in the form that suits it; equal steps are kept once."""
    if len(table) > 1 and bool((table[1:] == table[:1]).all()):
        table = table[:1]
    dense = DenseLaws(horizon, np.ascontiguousarray(table))
    share = np.count_nonzero(table) / table.size
    return dense.listed() if share <= MAX_LISTED_SHARE else dense


def laws_of_entries(
    rows: npt.ArrayLike,
    successors: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    shape: tuple[int, int, int],
    n_steps: int = 1,
    tolerance: float = ROW_SUM_TOLERANCE,
) -> SparseLaws:
    """The laws whose row (h S + s) A + a has these entries, checked; of `n_steps` = H steps, or of one for all.

    A successor that a row names twice has the sum of both; rows are scaled to sum to one exactly.

    >>> laws = laws_of_entries([0, 0, 1], [1, 0, 1], [0.5, 0.5, 1.0], (3, 2, 1))
    >>> laws.law(2, 0, 0)
    (array([0, 1], dtype=int32), array([0.5, 0.5]))
    """
    _, S, A = shape
    n, row, following = n_steps, np.asarray(rows, dtype=np.int64), np.asarray(successors)
    chance = np.array(probabilities, dtype=np.float64)
    place = _named_row(shape, n)
    _refuse_entry(~np.isfinite(chance), row, following, chance, "is not a finite number", place)
    _refuse_entry(chance < 0.0, row, following, chance, "is negative, but is a probability", place)
    if following.dtype.kind not in "iu":
        raise InvalidInputError(f"transition names its next states by {following.dtype}, but needs whole numbers")
    outside = (following < 0) | (following >= S)
    if outside.any():
        where = int(np.argmax(outside))
        raise InvalidInputError(
            f"transition{place(int(row[where]))} leads to state {int(following[where])}, but there are only {S} states"
        )
    row, following, chance = _merged(row, following, chance)
    total = _summed(row, chance, n * S * A)
    wrong = np.abs(total - 1.0) > tolerance
    kept = total.reshape(n, S, A) if n > 1 else total.reshape(S, A)
    axes = AXES[:3] if n > 1 else AXES[1:3]
    refuse_where(
        wrong.reshape(kept.shape), "transition", kept, "is the sum of a row of probabilities and should be 1", axes
    )
    pointers = np.r_[0, np.cumsum(np.bincount(row, minlength=n * S * A))]
    return SparseLaws(shape, pointers, following.astype(np.int32), chance / total[row])


def _merged(row: Integers, following: Integers, chance: Floats) -> tuple[Integers, Integers, Floats]:
    """Entries sorted by row and successor, those of one place added in the order they came, without zeros."""
    order = np.lexsort((following, row))
    row, following, chance = row[order], following[order], chance[order]
    if len(row):
        new = np.r_[True, (row[1:] != row[:-1]) | (following[1:] != following[:-1])]
        row, following, chance = row[new], following[new], _summed(np.cumsum(new) - 1, chance, int(new.sum()))
    positive = chance > 0.0
    return row[positive], following[positive], chance[positive]


def _summed(place: npt.NDArray[np.integer], weights: Floats, size: int) -> Floats:
    """The weights of every place, added in the order in which they come."""
    return np.bincount(place, weights, size).astype(np.float64, copy=False)


def _named_row(shape: tuple[int, int, int], n_steps: int) -> Callable[[int], str]:
    """A function that says which step, state and action a row is."""
    _, S, A = shape

    def place(row: int) -> str:
        h, s, a = row // (S * A), row // A % S, row % A
        if n_steps == 1:
            return f"[{s}, {a}] (state {s}, action {a})"
        return f"[{h}, {s}, {a}] (step {h}, state {s}, action {a})"

    return place


def _refuse_entry(
    wrong: npt.NDArray[np.bool_],
    row: Integers,
    following: npt.NDArray[np.generic],
    chance: Floats,
    why: str,
    place: Callable[[int], str],
) -> None:
    if wrong.any():
        where = int(np.argmax(wrong))
        raise InvalidInputError(
            f"transition{place(int(row[where]))} to state {following[where]} = {float(chance[where]):.6g} {why}"
        )


def _over_steps(table: Floats, horizon: int) -> Floats:
    """A table (n, S, A, S) over all the steps: repeated where that is small, else a view."""
    if len(table) == horizon:
        return table
    shape = (horizon, *table.shape[1:])
    if horizon * table.size <= MAX_EXPANDED:
        return np.repeat(table, horizon, axis=0)
    return np.broadcast_to(table, shape)


def _too_large(shape: tuple[int, int, int], n_steps: int) -> str:
    H, S, A = shape
    return (
        f"the laws of {S} states, {A} actions and {H} steps would fill a table of {n_steps * S * A * S:.1e} numbers, "
        f"more than {MAX_EXPANDED}: use cmdp.laws, which keeps them as lists"
    )
