"""Recorded episodes as columns: NumPy arrays by name, which Arrow or pandas take over where they are installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from omdpd.play.rows import COLUMNS
from omdpd.problem.arrays import InvalidInputError, named, not_installed


class Columns(dict[str, np.ndarray[Any, Any]]):
    """The columns of a table by name: ``table["violation_sum"]`` is an array with one number per row.

    What is undefined is nan; a truth is 1, 0 or nan; `excess` has one column per constraint.
    """

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(next(iter(self.values()), ()))

    def where(self, **wanted: Any) -> Columns:
        """The rows in which every named column has this value: ``table.where(learner="OMDPD", seed=0)``.

        A name that no row has (of a learner, a world, a nature, a run) is refused.
        """
        if unknown := [name for name in wanted if name not in self]:
            raise InvalidInputError(f"there is no column {unknown[0]!r}; there are {', '.join(self)}")
        kept = np.ones(self.n_rows, dtype=bool)
        for name, value in wanted.items():
            if self[name].dtype.kind == "O":
                named(dict.fromkeys(map(str, self[name])), str(value), name)
            kept &= self[name] == value
        return Columns({name: column[kept] for name, column in self.items()})

    def to_arrow(self) -> Any:
        """This table as Arrow's, where that is installed; what is undefined is null."""
        try:
            import pyarrow as pa
        except ImportError:
            raise not_installed("to_arrow", "pyarrow") from None
        return pa.table({name: self._arrow(pa, name) for name in self})

    def to_frame(self) -> Any:
        """This table as a frame of pandas, where that is installed; `excess` holds one array per row."""
        try:
            import pandas
        except ImportError:
            raise not_installed("to_frame", "pandas") from None
        return pandas.DataFrame({name: column if column.ndim == 1 else [*column] for name, column in self.items()})

    def _arrow(self, pa: Any, name: str) -> Any:
        column, kind = self[name], COLUMNS[name].kind if name in COLUMNS else "number"
        if column.ndim > 1:
            return pa.array([row[~np.isnan(row)] for row in column], pa.list_(pa.float64()))
        if column.dtype.kind != "f":
            return pa.array(column)
        numbers = pa.array(column, from_pandas=True)  # nan becomes null
        return numbers.cast(pa.bool_()) if kind == "truth" else numbers

    def _repr_html_(self) -> str:
        """The table in a notebook: its names and its size."""
        return f"<code>{self!r}</code>"

    def __repr__(self) -> str:
        return f"Columns({self.n_rows} rows: {', '.join(self)})"


def stacked(tables: Sequence[Columns]) -> Columns:
    """One table below another; where one lacks a column, or has fewer constraints, there is nan."""
    names = dict.fromkeys(name for table in tables for name in table)
    return Columns({name: np.concatenate(_widened([_column(table, name) for table in tables])) for name in names})


def _column(table: Columns, name: str) -> np.ndarray[Any, Any]:
    return table[name] if name in table else np.full(table.n_rows, np.nan)


def _widened(columns: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Columns of one width: what is missing to the widest is nan."""
    widest = max(column.shape[1:] for column in columns)
    if not widest:
        return [*columns]
    wide = [np.full((len(column), *widest), np.nan) for column in columns]
    for made, column in zip(wide, columns, strict=True):
        made[:, : column.shape[1]] = column
    return wide
