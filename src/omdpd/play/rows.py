"""The judged episodes of a run, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload


class Row(NamedTuple):
    """One episode, judged, with the sums so far; a number that does not apply is None.

    `optimism` is whether the learner's belief is optimistic about the truth, `good_event` the paper's event, and the
    planned sums are what the learner's plans promised (`play/ledger.py`).
    """

    episode: int
    value: float
    excess: tuple[float, ...]
    value_sum: float
    violation_sum: float
    step_size: float | None
    weight: float | None
    certified_regret: float | None
    certified_violation: float | None
    good_event: bool | None
    metrics: tuple[float, ...]
    optimism: bool | None = None
    planned_value_sum: float | None = None
    planned_violation_sum: float | None = None


class Rows(Sequence[Row]):
    """Rows kept as columns, one for every field; a row is made when it is asked for."""

    def __init__(self) -> None:
        self._columns: tuple[list[Any], ...] = tuple([] for _ in Row._fields)

    def add(self, row: Row) -> None:
        """One more row."""
        for column, entry in zip(self._columns, row, strict=True):
            column.append(entry)

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        return Row(*(column[place] for column in self._columns))

    def column(self, name: str) -> list[Any]:
        """All entries of a field, in order."""
        return self._columns[Row._fields.index(name)]
