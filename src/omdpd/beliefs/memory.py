"""Revealed cost tables worth keeping: distinct up to a positive factor, the most recently met ones.

A policy that is safe in every episode satisfies every table ever revealed, so remembering old ones costs the
comparator nothing.  Tables are vectors over rows.  Those of one constraint lie in the order in which they were first
stored; each has a label of its own, never used again, and a mark of when it was last met.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import entry, rule, short_rule
from omdpd.problem.arrays import Floats
from omdpd.problem.records import fast_init
from omdpd.solvers.compiled.products import largest

# Two tables whose normalised entries agree to this are the same constraint.
SAME = 1e-12
# Places in a tally: tables kept, labels given, and a clock that marks when a table was met.
KEPT, LABELS, CLOCK = 0, 1, 2
# In place of a capacity: every distinct table is kept.
ENDLESS = -1.0


class Kept(NamedTuple):
    """Room for C tables of one constraint: `tables` (C, E), `size`, `label` and `met` (C,), and their `tally` (3,)."""

    tables: Floats
    size: Floats
    label: Floats
    met: Floats
    tally: Floats


@short_rule
def overflowed(capacity: float, n_labels: float) -> bool:
    """Whether more tables came than a memory holds."""
    return capacity != ENDLESS and n_labels > max(capacity, 1.0)


@entry
def distance(tables: Floats, n: int, table: Floats) -> float:
    """min_j |d - d_j|_max / |d|_max over the first n tables; 0 for the zero table."""
    size, least = largest(table), np.inf
    if size == 0.0:
        return 0.0
    for j in range(n):
        most = 0.0
        for e in range(table.size):
            most = max(most, abs(tables[j, e] - table[e]))
            if most >= least:
                break
        least = min(least, most)
    return least / size


@rule
def parallel(tables: Floats, sizes: Floats, n: int, table: Floats, size: float) -> int:
    """The place of one of the first n tables that is a positive multiple of this one; -1 if there is none."""
    for j in range(n):
        same = True
        for e in range(table.size):
            if abs(tables[j, e] / sizes[j] - table[e] / size) > SAME:
                same = False
                break
        if same:
            return j
    return -1


@rule
def stays(kept: Floats, kept_size: float, table: Floats, size: float, capacity: float) -> bool:
    """Whether a kept table stays as it is when a parallel one is met: unless that is larger, or the last one counts."""
    same = not size > kept_size * (1.0 + SAME)
    if capacity == 0.0:
        for e in range(table.size):
            same = same and kept[e] == table[e]
    return same


@entry
def place_kept(tables: Floats, sizes: Floats, table: Floats, capacity: float) -> int:
    """The place of the table that stays when this one is met; -1 if meeting it changes what is kept."""
    size = largest(table)
    place = -1 if size == 0.0 else parallel(tables, sizes, len(tables), table, size)
    return place if place >= 0 and stays(tables[place], sizes[place], table, size, capacity) else -1


@rule
def drop(kept: Kept, place: int) -> None:
    """Forget one table; those that came later move up."""
    n = int(kept.tally[KEPT])
    for j in range(place, n - 1):
        for e in range(kept.tables.shape[1]):
            kept.tables[j, e] = kept.tables[j + 1, e]
        kept.size[j], kept.label[j], kept.met[j] = kept.size[j + 1], kept.label[j + 1], kept.met[j + 1]
    kept.tally[KEPT] = n - 1


@entry
def meet(kept: Kept, table: Floats, capacity: float) -> bool:
    """Remember a table that was revealed, of two parallel ones the larger; whether other tables are kept now.

    An all-zero table says nothing and is not stored (with capacity 0, which keeps the last table alone, it empties the
    memory).  There must be room for one more table than is kept, unless the memory is at its capacity.
    """
    size, n = largest(table), int(kept.tally[KEPT])
    if size == 0.0:
        if capacity == 0.0:
            kept.tally[KEPT] = 0.0
        return capacity == 0.0 and n > 0
    kept.tally[CLOCK] += 1.0
    place = parallel(kept.tables, kept.size, n, table, size)
    if place >= 0:
        if stays(kept.tables[place], kept.size[place], table, size, capacity):
            kept.met[place] = kept.tally[CLOCK]
            return False
        drop(kept, place)
    elif capacity != ENDLESS and n >= max(capacity, 1.0):
        place = 0
        for j in range(n):
            if kept.met[j] < kept.met[place]:
                place = j
        drop(kept, place)
    j = int(kept.tally[KEPT])
    for e in range(table.size):
        kept.tables[j, e] = table[e]
    kept.size[j], kept.label[j], kept.met[j] = size, kept.tally[LABELS], kept.tally[CLOCK]
    kept.tally[KEPT] += 1.0
    kept.tally[LABELS] += 1.0
    return True


@fast_init
@dataclass(frozen=True, eq=False)
class TableMemory:
    """Up to `capacity` distinct tables, least recently met first; capacity 0 keeps the last table alone.

    `capacity` None keeps every distinct table.  Every stored table has a label of its own, never used again.
    """

    capacity: int | None
    tables: tuple[Floats, ...] = ()
    labels: tuple[int, ...] = ()
    n_labels: int = 0

    def meet(self, table: Floats) -> TableMemory:
        """The memory after `table` was revealed, which is put last: see the function of this name."""
        n, given = len(self.tables), np.ascontiguousarray(table).ravel()
        most = ENDLESS if self.capacity is None else self.capacity
        place = place_kept(self.stack.reshape(n, -1), self.sizes, given, most) if n > 0 else -1
        if place >= 0:  # most of the time: nothing is copied
            return self._with_last(sorted(self.labels)[place])
        known, kept = dict(zip(self.labels, self.tables, strict=True)), self._with_room(table.size)
        if not meet(kept, given, most):
            return self
        found = int(kept.tally[KEPT])
        labels = tuple(kept.label[:found].astype(np.int64)[np.argsort(kept.met[:found])].tolist())
        tables = tuple(known.get(label, table) for label in labels)
        return TableMemory(self.capacity, tables, labels, int(kept.tally[LABELS]))

    def _with_last(self, label: int) -> TableMemory:
        """The same tables, of which one was met again."""
        if label == self.labels[-1]:
            return self
        known = dict(zip(self.labels, self.tables, strict=True))
        labels = (*(each for each in self.labels if each != label), label)
        after = TableMemory(self.capacity, tuple(known[each] for each in labels), labels, self.n_labels)
        after.__dict__.update(stack=self.stack, sizes=self.sizes)  # by label, so they are the same
        return after

    @cached_property
    def stack(self) -> Floats:
        """The tables in the order in which they were first stored, (n, H, S, A); there must be one."""
        return np.ascontiguousarray(np.stack(self.by_label()))  # stacked as its parts lie, in whatever order that is

    @cached_property
    def sizes(self) -> Floats:
        """max |d| of every table of the stack, (n,)."""
        return np.array([largest(table) for table in self.stack])

    def by_label(self) -> list[Floats]:
        """The tables in the order in which they were first stored."""
        return [self.tables[place] for place in np.argsort(self.labels)]

    def same_as(self, other: TableMemory) -> bool:
        """Whether both hold the same tables, in whatever order."""
        return self is other or set(self.labels) == set(other.labels)

    @property
    def overflowed(self) -> bool:
        """Whether more tables came than are remembered."""
        return overflowed(ENDLESS if self.capacity is None else self.capacity, self.n_labels)

    def distance(self, table: Floats) -> float:
        """How far a table is from the remembered ones, as a share of its size."""
        return distance(self.stack.reshape(len(self.tables), -1), len(self.tables), np.ascontiguousarray(table).ravel())

    def _with_room(self, n_rows: int) -> Kept:
        """The tables by label, and room for one more."""
        n = len(self.tables)
        kept = Kept(np.empty((n + 1, n_rows)), np.empty(n + 1), np.empty(n + 1), np.empty(n + 1), np.zeros(3))
        if n > 0:
            by_label = np.argsort(self.labels)
            kept.tables[:n], kept.size[:n] = self.stack.reshape(n, -1), self.sizes
            kept.label[:n], kept.met[:n] = np.array(self.labels)[by_label], by_label
        kept.tally[:] = n, self.n_labels, n
        return kept


def labelled(memory: tuple[TableMemory, ...]) -> dict[tuple[int, int], Floats]:
    """The tables kept for every constraint, by (constraint, label)."""
    return {
        (i, label): table
        for i, kept in enumerate(memory)
        for label, table in zip(kept.labels, kept.tables, strict=True)
    }
