"""Tables as the content of Parquet files, and back.  Sizes are checked before anything is unpacked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from omdpd.storage.atomic import RecordError

# A table may take this many bytes in memory; a file that claims more is refused.
MAX_TABLE_BYTES = 2**31
# Rows of a merged table are written in groups of at least this many, so that merging takes little memory.
GROUP_ROWS = 2**15


def parquet_of_table(table: pa.Table) -> bytes:
    """A table as the content of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False)  # numbers that hardly ever repeat
    return bytes(sink.getvalue())


def table_of_parquet(content: bytes, name: str, most_rows: int) -> pa.Table:
    """The table of a Parquet file of at most `most_rows` rows."""
    with _opened(content, name, most_rows) as file:
        return file.read(use_threads=False)


def pieces_of_parquet(content: bytes, name: str, most_rows: int) -> Iterator[pa.Table]:
    """The same table, a few thousand rows at a time."""
    with _opened(content, name, most_rows) as file:
        for batch in file.iter_batches(GROUP_ROWS, use_threads=False):
            yield pa.Table.from_batches([batch])


@contextmanager
def _opened(content: bytes, name: str, most_rows: int) -> Iterator[pq.ParquetFile]:
    """A Parquet file whose sizes are bearable; what goes wrong inside is told with its name."""
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
        raise RecordError(f"{name} is damaged: {_one_line(error)}") from None


def write_merged(parts: Iterable[pa.Table], sink: BinaryIO) -> None:
    """Several tables of one schema as one Parquet file, a few thousand rows in memory at a time."""
    writer: pq.ParquetWriter | None = None
    try:
        for group in _groups(parts):
            if writer is None:
                writer = pq.ParquetWriter(sink, group.schema, compression="zstd", use_dictionary=False)
            writer.write_table(group)
    finally:
        if writer is not None:
            writer.close()


def _groups(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The parts put together into groups; at least one group, which may be empty."""
    waiting: list[pa.Table] = []
    n_rows = n_groups = 0
    for part in parts:
        waiting.append(part)
        n_rows += part.num_rows
        if n_rows >= GROUP_ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting, n_rows, n_groups = [], 0, n_groups + 1
    if waiting and (n_rows or not n_groups):
        yield pa.concat_tables(waiting).combine_chunks()


def _one_line(error: BaseException) -> str:
    """An error's message as a part of a sentence."""
    return " ".join(str(error).split()) or type(error).__name__
