"""A run on disk: what ran, its rows, its state.  Atomic, resumable, no pickle.

One folder per run:

    spec.toml          what ran                        provenance.json   versions and platform
    rows-<n>.parquet   recorded episodes, in parts     values-<n>.parquet   the true value of every episode
    state-<n>.npz      arrays of the state
    commit.json        the one truth: which parts and which state belong together, with checksums
    summary.json       the scores, once the run is finished        error.json   why it failed, if it did

Files are written beside their name, synced and moved into place; a file that `commit.json` does not name does not
count.  So a run that is killed at any moment loses only the work since its last commit.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from omdpd.arrays import Floats, InvalidInputError
from omdpd.packing import Tree

# A state larger than this is refused before anything is allocated for it.
MOST_STATE_BYTES = 4 * 2**30


class RecordError(InvalidInputError):
    """A file of a run cannot be used; the message says which one and why."""


@dataclass(frozen=True, eq=False)
class Commit:
    """What a run had done when it last committed: episodes played, and its state as a tree with arrays."""

    episodes: int
    tree: Tree
    arrays: dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    def create(self, spec_toml: str) -> None:
        """Make the folder with its spec and provenance; what is there already is kept."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / "spec.toml").exists():
            write_atomically(self.path / "provenance.json", _json(provenance()))
            write_atomically(self.path / "spec.toml", spec_toml.encode())

    def clear(self) -> None:
        """Forget everything the run did."""
        for file in self.path.glob("*"):
            if file.name != "spec.toml" and file.is_file():
                file.unlink()

    @property
    def summary(self) -> dict[str, Any] | None:
        """The scores, if the run is finished."""
        return self._read_json("summary.json")

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the run failed, if it did."""
        return self._read_json("error.json")

    @property
    def episodes(self) -> int:
        """How many episodes are committed."""
        manifest = self._read_json("commit.json")
        return 0 if manifest is None else int(manifest["episodes"])

    def commit(self, rows: pa.Table, values: pa.Table, done: Commit) -> None:
        """Add a part of rows and of values and replace the state, all or nothing."""
        manifest = self._read_json("commit.json") or {"rows": [], "values": [], "number": 0}
        number = manifest["number"] + 1
        new = {
            "number": number,
            "episodes": done.episodes,
            "rows": [*manifest["rows"], self._write(f"rows-{number:06d}.parquet", _parquet(rows))],
            "values": [*manifest["values"], self._write(f"values-{number:06d}.parquet", _parquet(values))],
            "state": self._write(f"state-{number:06d}.npz", npz_of_arrays(done.arrays)),
            "tree": done.tree,
        }
        write_atomically(self.path / "commit.json", _json(new))
        old = manifest.get("state")
        if old is not None:
            (self.path / old["file"]).unlink(missing_ok=True)

    def last_commit(self) -> Commit | None:
        """The state to go on from, checked; None if nothing was committed."""
        manifest = self._read_json("commit.json")
        if manifest is None:
            return None
        content = self._checked(manifest["state"])
        return Commit(int(manifest["episodes"]), manifest["tree"], arrays_of_npz(content, manifest["state"]["file"]))

    def rows(self) -> pa.Table | None:
        """All committed rows, checked; None if there are none."""
        return self._table("rows")

    def values(self) -> Floats:
        """The true value of every committed episode, checked."""
        table = self._table("values")
        return np.zeros(0) if table is None else table["value"].to_numpy()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the scores; from now on the run counts as finished."""
        write_atomically(self.path / "summary.json", _json(summary))
        (self.path / "error.json").unlink(missing_ok=True)

    def fail(self, error: Mapping[str, Any]) -> None:
        """Write why the run failed."""
        write_atomically(self.path / "error.json", _json(error))

    def _table(self, kind: str) -> pa.Table | None:
        manifest = self._read_json("commit.json")
        if manifest is None:
            return None
        parts = [_read_parquet(self._checked(part), part["file"]) for part in manifest[kind]]
        return pa.concat_tables(parts)

    def _write(self, name: str, content: bytes) -> dict[str, str]:
        return {"file": name, "sha256": write_atomically(self.path / name, content)}

    def _read_json(self, name: str) -> dict[str, Any] | None:
        return read_json(self.path / name)

    def _checked(self, entry: Mapping[str, Any]) -> bytes:
        file = self.path / Path(entry["file"]).name
        try:
            content = file.read_bytes()
        except OSError as error:
            raise RecordError(f"{file} cannot be read: {error}") from None
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise RecordError(f"{file} is damaged: its checksum is not the one that was committed")
        return content


def write_atomically(file: Path, content: bytes) -> str:
    """Write a file so that it is there whole or not at all, even after a crash; return its checksum."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with open(beside, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return hashlib.sha256(content).hexdigest()


def read_json(file: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is no such file."""
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise RecordError(f"{file} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise RecordError(f"{file} does not hold a record")
    return content


def provenance() -> dict[str, Any]:
    """Versions and platform: what a result may depend on beside its spec."""
    packages = ("omdpd", "numpy", "scipy", "numba", "highspy", "pyarrow")
    return {
        "packages": {name: version(name) for name in packages},
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1, allow_nan=False).encode()


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def _read_parquet(content: bytes, name: str) -> pa.Table:
    try:
        return pq.read_table(pa.BufferReader(content))
    except pa.ArrowException as error:
        raise RecordError(f"{name} cannot be read: {error}") from None


def npz_of_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Arrays as the content of an npz file, without pickled objects."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def arrays_of_npz(content: bytes, name: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an npz file: sizes are checked first, and pickled objects are refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_STATE_BYTES:
                raise RecordError(f"{name} would unpack to more than {MOST_STATE_BYTES} bytes")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise RecordError(f"{name} cannot be read: {error}") from None
