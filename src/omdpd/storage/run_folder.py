"""A run on disk: what ran, its rows, its state.  Atomic, resumable, no pickle.

One folder per run:

    spec.toml          what ran                        provenance.json   versions, platform, commit
    rows-<n>.parquet   recorded episodes, in parts     values-<n>.parquet   the true value of every episode
    state-<n>.npz      arrays of the state
    commit.json        the one truth: which parts and which state belong together, with checksums
    summary.json       the scores, once the run is finished        error.json   why it failed, if it did
    lock               held by the process that plays the run

Files are written beside their name, synced and moved into place; a file that `commit.json` does not name does not
count.  So a run that is killed at any moment loses only the work since its last commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omdpd.problem.arrays import Floats
from omdpd.storage.atomic import (
    MOST_JSON_BYTES,
    RecordError,
    json_bytes,
    make_folder,
    read_bounded,
    read_json,
    replacing,
    sweep,
    write_atomically,
)
from omdpd.storage.locks import Lock
from omdpd.storage.npz import Arrays, arrays_of_npz, npz_of_arrays
from omdpd.storage.packing import Tree
from omdpd.storage.parquet import parquet_of_table, pieces_of_parquet, table_of_parquet, write_merged
from omdpd.storage.provenance import provenance

# The layout of a run folder; another number is refused.
FORMAT = 2
# With this many parts the next commit first merges them: a long run stays a handful of files.
MOST_PARTS = 64
PART_NAME = re.compile(r"(rows-\d{6,}\.parquet|values-\d{6,}\.parquet|state-\d{6,}\.npz)")


@dataclass(frozen=True, eq=False)
class Commit:
    """What a run had done when it last committed: episodes played, and its state as a tree with arrays."""

    episodes: int
    tree: Tree
    arrays: Arrays


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that counts: its name, checksum and size."""

    file: str
    sha256: str
    size: int

    def __post_init__(self) -> None:
        if not PART_NAME.fullmatch(self.file):
            raise ValueError(f"it names {self.file!r}, which is not the name of a part")


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of commit.json."""

    format: int
    number: int
    episodes: int
    columns: tuple[str, ...]
    rows: tuple[Part, ...]
    values: tuple[Part, ...]
    state: Part
    tree: Any

    @property
    def files(self) -> set[str]:
        """Everything that counts."""
        return {part.file for part in (*self.rows, *self.values, self.state)}


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    def create(self, spec_toml: str, plugins: Mapping[str, str]) -> None:
        """Make the folder with its spec and provenance; what is there already is kept, if it is the same run.

        `plugins` are the checksums of the plugin files that the run needs: begun with others, it is not gone on with.
        """
        make_folder(self.path)
        file = self.path / "spec.toml"
        if not os.path.lexists(file):
            write_atomically(self.path / "provenance.json", json_bytes(provenance(plugins)))
            write_atomically(file, spec_toml.encode())
        elif read_toml(file) != tomllib.loads(spec_toml):
            raise RecordError(f"{file} is not the spec of this run; move the folder away to run it anew")
        elif (before := (read_json(self.path / "provenance.json") or {}).get("plugins", {})) != plugins:
            names = ", ".join(sorted({*before, *plugins}))
            raise RecordError(
                f"{self.path} was begun with another version of {names}: put that version back, or --fresh runs it anew"
            )

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Keep other processes from playing this run meanwhile; what a dead one left behind is removed."""
        make_folder(self.path)
        lock = Lock(self.path / "lock")
        lock.wait()
        try:
            self.tidy()
            yield
        finally:
            lock.release()

    def tidy(self) -> None:
        """Remove half-written files, and parts that no commit names."""
        manifest = self.manifest()
        sweep(self.path, set() if manifest is None else manifest.files, lambda name: bool(PART_NAME.fullmatch(name)))

    def clear(self) -> None:
        """Forget everything the run did."""
        for file in self.path.glob("*"):
            if file.name not in ("spec.toml", "lock") and (file.is_file() or file.is_symlink()):
                file.unlink()

    @property
    def summary(self) -> dict[str, Any] | None:
        """The scores, if the run is finished."""
        return read_json(self.path / "summary.json")

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the run failed, if it did."""
        return read_json(self.path / "error.json")

    @property
    def episodes(self) -> int:
        """How many episodes are committed."""
        manifest = self.manifest()
        return 0 if manifest is None else manifest.episodes

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns of the committed rows."""
        manifest = self.manifest()
        return None if manifest is None else manifest.columns

    def manifest(self) -> Manifest | None:
        """What counts, checked; None if nothing was committed."""
        file = self.path / "commit.json"
        content = read_json(file)
        if content is None:
            return None
        if content.get("format") != FORMAT:
            raise RecordError(f"{file} has format {content.get('format')!r}, but this version reads format {FORMAT}")
        try:
            manifest = msgspec.convert(content, Manifest)
        except (msgspec.ValidationError, ValueError) as error:
            raise RecordError(f"{file} is damaged: {error}") from None
        if manifest.episodes < 0 or manifest.number < 1:
            raise RecordError(f"{file} is damaged: it counts {manifest.episodes} episodes in {manifest.number} commits")
        return manifest

    def commit(self, rows: pa.Table, values: pa.Table, done: Commit) -> None:
        """Add a part of rows and of values and replace the state, all or nothing."""
        if (before := self.manifest()) is not None and len(before.values) >= MOST_PARTS:
            self.compact()
            before = self.manifest()
        number = 1 if before is None else before.number + 1
        new = Manifest(
            format=FORMAT,
            number=number,
            episodes=done.episodes,
            columns=tuple(rows.column_names),
            rows=(*(() if before is None else before.rows), *self._part("rows", number, rows)),
            values=(*(() if before is None else before.values), *self._part("values", number, values)),
            state=self._write(f"state-{number:06d}.npz", npz_of_arrays(done.arrays)),
            tree=done.tree,
        )
        self._replace(before, new)

    def compact(self) -> None:
        """Merge the parts into one of rows and one of values; nothing else changes."""
        before = self.manifest()
        if before is None or (len(before.rows) <= 1 and len(before.values) <= 1):
            return
        number = before.number + 1
        rows = (self._merged(f"rows-{number:06d}.parquet", before.rows, before.episodes),) if before.rows else ()
        values = self._merged(f"values-{number:06d}.parquet", before.values, before.episodes)
        self._replace(before, msgspec.structs.replace(before, number=number, rows=rows, values=(values,)))

    def last_commit(self) -> Commit | None:
        """The state to go on from, checked; None if nothing was committed."""
        manifest = self.manifest()
        if manifest is None:
            return None
        file = str(self.path / manifest.state.file)
        return Commit(manifest.episodes, manifest.tree, arrays_of_npz(self._checked(manifest.state), file))

    def verify(self) -> None:
        """Read everything that counts once, so that damage is seen before more work is built on it."""
        manifest = self.manifest()
        if manifest is None:
            return
        for _ in self._pieces(manifest.rows, manifest.episodes):
            pass
        self.values()

    def rows(self) -> pa.Table | None:
        """All committed rows, checked; None if there are none."""
        manifest = self.manifest()
        if manifest is None or not manifest.rows:
            return None
        return _joined(list(self._tables(manifest.rows, manifest.episodes)), self.path)

    def last_rows(self) -> pa.Table | None:
        """The last part of the rows; None if there is none."""
        manifest = self.manifest()
        if manifest is None or not manifest.rows:
            return None
        return next(self._tables(manifest.rows[-1:], manifest.episodes))

    def values(self) -> Floats:
        """The true value of every committed episode, checked."""
        manifest = self.manifest()
        if manifest is None:
            return np.zeros(0)
        values = array("d")
        for piece in self._pieces(manifest.values, manifest.episodes):
            if piece.column_names != ["value"]:
                raise RecordError(f"{self.path} is damaged: its values have other columns")
            values.frombytes(piece["value"].to_numpy().astype(np.float64).tobytes())
        if len(values) != manifest.episodes:
            raise RecordError(f"{self.path} is damaged: it has {len(values)} values of {manifest.episodes} episodes")
        return np.frombuffer(values)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the scores; from now on the run counts as finished."""
        write_atomically(self.path / "summary.json", json_bytes(summary))
        (self.path / "error.json").unlink(missing_ok=True)

    def fail(self, error: Mapping[str, Any]) -> None:
        """Write why the run failed."""
        make_folder(self.path)
        write_atomically(self.path / "error.json", json_bytes(error))

    def _replace(self, before: Manifest | None, new: Manifest) -> None:
        """From now on `new` counts; what only `before` named goes."""
        content = json_bytes(msgspec.to_builtins(new))
        if len(content) > MOST_JSON_BYTES:
            raise RecordError(f"the state of {self.path} takes {len(content)} bytes of JSON, more than can be kept")
        write_atomically(self.path / "commit.json", content)
        for name in set() if before is None else before.files - new.files:
            with suppress(OSError):
                (self.path / name).unlink()

    def _part(self, kind: str, number: int, table: pa.Table) -> Sequence[Part]:
        """A part of the table; none for a table without rows."""
        if table.num_rows == 0:
            return ()
        return (self._write(f"{kind}-{number:06d}.parquet", parquet_of_table(table)),)

    def _write(self, name: str, content: bytes) -> Part:
        return Part(name, write_atomically(self.path / name, content), len(content))

    def _merged(self, name: str, parts: Sequence[Part], most_rows: int) -> Part:
        file = self.path / name
        with replacing(file) as sink:
            write_merged(self._pieces(parts, most_rows), sink)
        content = read_bounded(file)
        return Part(name, hashlib.sha256(content).hexdigest(), len(content))

    def _tables(self, parts: Sequence[Part], most_rows: int) -> Iterator[pa.Table]:
        for part in parts:
            yield table_of_parquet(self._checked(part), str(self.path / part.file), most_rows)

    def _pieces(self, parts: Sequence[Part], most_rows: int) -> Iterator[pa.Table]:
        for part in parts:
            yield from pieces_of_parquet(self._checked(part), str(self.path / part.file), most_rows)

    def _checked(self, part: Part) -> bytes:
        file = self.path / part.file
        content = read_bounded(file, size=part.size)
        if hashlib.sha256(content).hexdigest() != part.sha256:
            raise RecordError(f"{file} is damaged: its checksum is not the one that was committed")
        return content


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a small TOML file."""
    try:
        return tomllib.loads(read_bounded(file, 2**20).decode())
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file} is damaged: it does not hold TOML ({error})") from None


def _joined(tables: Sequence[pa.Table], path: Path) -> pa.Table:
    try:
        return pa.concat_tables(tables)
    except pa.ArrowException:
        raise RecordError(f"{path} is damaged: its parts do not have the same columns") from None
