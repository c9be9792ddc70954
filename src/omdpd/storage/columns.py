"""Tables of a run as columns: npz files, and the Parquet files that earlier versions wrote, which Arrow reads.

A column is an array whose first axis is that of the rows.  What is undefined is nan; a truth is 1, 0 or nan.  Sizes are
checked before anything is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from omdpd.problem.arrays import not_installed
from omdpd.storage.atomic import RecordError
from omdpd.storage.npz import Arrays, arrays_of_npz

# A table may take this many bytes in memory; a file that claims more is refused.
MAX_TABLE_BYTES = 2**31


def read_columns(content: bytes, name: str, most_rows: int) -> Arrays:
    """The columns of a table of at most `most_rows` rows, from the content of the file of this name."""
    columns = (
        _columns_of_parquet(content, name, most_rows) if name.endswith(".parquet") else arrays_of_npz(content, name)
    )
    lengths = {len(column) if column.ndim else -1 for column in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        raise RecordError(f"{name} is damaged: its columns do not have one number for every row")
    if (n_rows := lengths.pop()) > most_rows:
        raise RecordError(f"{name} claims {n_rows} rows, but at most {most_rows} episodes were played")
    return columns


def joined_columns(tables: Sequence[Arrays], name: str) -> Arrays:
    """One table below another; refused unless all have the same columns."""
    if len({tuple((key, each.dtype, each.shape[1:]) for key, each in table.items()) for table in tables}) > 1:
        raise RecordError(f"{name} is damaged: its parts do not have the same columns")
    return {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}


def _columns_of_parquet(content: bytes, name: str, most_rows: int) -> Arrays:
    with _opened(content, name, most_rows) as file:
        table = file.read(use_threads=False)
        if len({*table.column_names}) < table.num_columns:
            raise RecordError(f"{name} is damaged: two of its columns have one name")
        return {key: _array(table.column(key).combine_chunks()) for key in table.column_names}


def _array(whole: Any) -> np.ndarray[Any, Any]:
    """A column of Arrow's as an array: lists of one length as rows, truths and what is missing as numbers."""
    import pyarrow as pa

    if pa.types.is_list(whole.type):
        flat = _array(whole.flatten())
        lengths = np.diff(whole.offsets.to_numpy())
        if whole.null_count or len({*lengths.tolist()}) > 1:
            raise ValueError("its lists are not of one length")
        return flat.reshape(len(whole), -1) if len(whole) else flat.reshape(0, 0)
    if pa.types.is_boolean(whole.type) or (pa.types.is_floating(whole.type) and whole.null_count):
        whole = whole.cast(pa.float64())
    if not pa.types.is_primitive(whole.type):
        raise ValueError("a column of it does not hold numbers")
    return whole.to_numpy(zero_copy_only=False)


@contextmanager
def _opened(content: bytes, name: str, most_rows: int) -> Iterator[Any]:
    """A Parquet file whose sizes are bearable; what goes wrong inside is told with its name."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise not_installed(f"{name}, which an earlier version wrote,", "pyarrow") from None
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        known = file.metadata
        if known.num_rows > most_rows:
            raise RecordError(f"{name} claims {known.num_rows} rows, but at most {most_rows} episodes were played")
        unpacked = sum(known.row_group(i).total_byte_size for i in range(known.num_row_groups))
        if max(unpacked, 8 * known.num_rows * known.num_columns) > MAX_TABLE_BYTES:
            raise RecordError(f"{name} would unpack to more than {MAX_TABLE_BYTES} bytes")
        yield file
    except RecordError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordError(f"{name} is damaged: {' '.join(str(error).split()) or type(error).__name__}") from None
