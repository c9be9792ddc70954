"""Revealed cost tables worth keeping: distinct up to a positive factor, the most recently met ones.

A policy that is safe in every episode satisfies every table ever revealed, so remembering old ones costs the
comparator nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.records import quick
from omdpd.solvers.compiled.memory import parallel_place
from omdpd.solvers.compiled.products import largest

# Two tables whose normalised entries agree to this are the same constraint.
SAME = 1e-12


@quick
@dataclass(frozen=True, eq=False)
class TableMemory:
    """Up to `capacity` distinct tables (H, S, A), least recently met first; capacity 0 keeps the last table alone.

    `capacity` None keeps every distinct table.  Every stored table has a label of its own, never used again.
    """

    capacity: int | None
    tables: tuple[Floats, ...] = ()
    labels: tuple[int, ...] = ()
    n_labels: int = 0

    def meet(self, table: Floats) -> TableMemory:
        """The memory after `table` was revealed: it is put last; of two parallel tables the larger is kept.

        An all-zero table says nothing and is not stored (with capacity 0 it empties the memory).
        """
        size = largest(table)
        if size == 0.0:
            return self if self.capacity != 0 else TableMemory(0, n_labels=self.n_labels)
        place = self._parallel(table, size)
        if place is None:
            return self._with(self.tables, self.labels, table)
        others = self.tables[:place] + self.tables[place + 1 :]
        other_labels = self.labels[:place] + self.labels[place + 1 :]
        known = self.tables[place]
        if (self.capacity == 0 and not np.array_equal(known, table)) or size > largest(known) * (1.0 + SAME):
            return self._with(others, other_labels, table)
        if place == len(others):
            return self
        after = TableMemory(self.capacity, (*others, known), (*other_labels, self.labels[place]), self.n_labels)
        # The same tables, so what was worked out from them by label holds still.
        after.__dict__.update(stack=self.stack, sizes=self.sizes)
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

    def _with(self, tables: tuple[Floats, ...], labels: tuple[int, ...], table: Floats) -> TableMemory:
        most = len(tables) + 1 if self.capacity is None else max(self.capacity, 1)
        kept, names = (*tables, table)[-most:], (*labels, self.n_labels)[-most:]
        return TableMemory(self.capacity, kept, names, self.n_labels + 1)

    def _parallel(self, table: Floats, size: float) -> int | None:
        """The place of a stored table that is a positive multiple of this one."""
        found = parallel_place(self.stack, self.sizes, table, size, SAME) if self.tables else -1
        return None if found < 0 else self.labels.index(sorted(self.labels)[found])


def labelled(memory: tuple[TableMemory, ...]) -> dict[tuple[int, int], Floats]:
    """The tables kept for every constraint, by (constraint, label)."""
    return {
        (i, label): table
        for i, kept in enumerate(memory)
        for label, table in zip(kept.labels, kept.tables, strict=True)
    }
