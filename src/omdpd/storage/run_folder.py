"""A run on disk: what ran, its rows, its state.  Atomic, resumable, no pickle.

One folder per run:

    spec.toml          what ran                        provenance.json   versions, platform, commit
    rows-<n>.npz       recorded episodes, in parts     values-<n>.npz    the true value of every episode
    state-<n>.npz      arrays of the state             policies-<n>.npz   policies and numbers on a grid of episodes
    commit.json        the one truth: which parts and which state belong together, with checksums
    summary.json       the scores, once the run is finished        error.json   why it failed, if it did
    lock               held by the process that plays the run

Every file but the lock bears a checksum or has one in `commit.json`, and names its run (see `storage.sealed`).

Files are written beside their name, synced and moved into place; a file that `commit.json` does not name does not
count.  So a run that is killed at any moment loses only the work since its last commit.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.storage.atomic import MAX_JSON_BYTES, RecordError, make_folder, read_bounded, stamp, sweep, write_atomically
from omdpd.storage.columns import joined_columns, read_columns
from omdpd.storage.locks import Lock
from omdpd.storage.manifest import PART_NAME, Commit, Manifest, NamedFile
from omdpd.storage.npz import Arrays, arrays_of_npz, npz_of_arrays
from omdpd.storage.provenance import contents_text, provenance, with_resume
from omdpd.storage.sealed import (
    SEALED,
    read_sealed,
    read_sealed_text,
    read_toml,
    sealed_json,
    sealed_toml,
    toml_of_text,
)

# With this many parts the next commit first merges them: a long run stays a handful of files.
MAX_PARTS = 64
# A run that is being played replaces its files while they are read; a reader tries again this often.
READING_TRIES = 20

T = TypeVar("T")


@dataclass(frozen=True)
class CheckedRecords:
    """What the records of a run say, each read once: what counts, what ran and where, its scores, why it failed."""

    path: Path
    manifest: Manifest | None
    spec_text: bytes | None
    provenance: dict[str, Any] | None
    summary: dict[str, Any] | None
    error: dict[str, Any] | None

    @property
    def spec(self) -> dict[str, Any]:
        """What ran, as its file says it."""
        file = self.path / "spec.toml"
        if self.spec_text is None:
            raise RecordError(f"{file} is missing")
        return toml_of_text(file, self.spec_text)


@dataclass(frozen=True)
class RunFolder:
    """The files of one run; with its name, everything that is written bears it and everything that is read must."""

    path: Path
    run: str = ""

    def create(
        self, spec_toml: str, plugins: Mapping[str, str], sources: str | None = None, labels: Sequence[str] = (),
        as_now: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:  # fmt: skip
        """Make the folder with its spec and provenance; what is there already is kept, if it is the same run.

        `plugins` are the checksums of the plugin files that the run needs: begun with others, it is not gone on with.
        A run that goes on with other `sources` of ours (their hash), in another version or on another machine has that
        added to its provenance.  `labels` name its world, nature and learner there; `as_now` makes today's spec of one
        that an earlier version wrote.
        """
        make_folder(self.path)
        file = self.path / "spec.toml"
        if not os.path.lexists(file):
            self._seal("provenance.json", provenance(plugins, sources, labels))
            write_atomically(file, sealed_toml(self.run, spec_toml))
            return
        stored, sealed = read_toml(file, self.run)
        if as_now(stored) != tomllib.loads(spec_toml):
            raise RecordError(f"{file} is not the spec of this run; move the folder away to run it anew")
        self.refuse_other_plugins(plugins)
        before = self.provenance() or {"plugins": {}}
        after = with_resume(before, provenance(plugins, sources, labels), self.episodes)
        if after != before or not sealed:
            self._seal("provenance.json", after)
        if not sealed:  # version 0.1 wrote it: from now on it is checked
            write_atomically(file, sealed_toml(self.run, spec_toml))

    def other_plugins(self, plugins: Mapping[str, str]) -> str:
        """What the run was played with, if not with the contents of these plugin files; nothing where it was not begun.

        A file may have got another name: what counts is its content.
        """
        if not os.path.lexists(self.path / "spec.toml"):
            return ""
        begun = (self.provenance() or {}).get("plugins", {})
        if sorted(begun.values()) == sorted(plugins.values()):
            return ""
        return f"{contents_text(begun)}, and now there is {contents_text(plugins)}"

    def refuse_other_plugins(self, plugins: Mapping[str, str]) -> None:
        """Refuse a run, finished or not, that was played with other contents of its plugin files."""
        if others := self.other_plugins(plugins):
            raise RecordError(
                f"{self.path} was played with {others}: put that content back, or play the run again with --fresh"
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

    @contextmanager
    def owned_now(self) -> Iterator[None]:
        """Keep other processes from playing this run meanwhile; refuse a run that is being played."""
        lock = Lock(self.path / "lock")
        if not lock.acquire():
            raise RecordError(f"{self.path} is being played by another process; stop that first")
        try:
            yield
        finally:
            lock.release()

    def remove(self) -> None:
        """Remove the run's files; its lock stays, because a process may be waiting for it."""
        # If this is interrupted, what is left is a run that was begun: the scores go first, then what they rest on.
        order = {"summary.json": 0, "commit.json": 1}
        for file in sorted(self.path.iterdir(), key=lambda file: order.get(file.name, 2)):
            if file.name != "lock" and (file.is_symlink() or not file.is_dir()):
                file.unlink()

    @property
    def finished(self) -> bool:
        """Whether scores were written; `summary` and `check` read them."""
        return os.path.lexists(self.path / "summary.json")

    @property
    def summary(self) -> dict[str, Any] | None:
        """The scores, if the run is finished; refused if they belong to another run, or to another commit of it."""
        content = self._record("summary.json")
        if content is None or "commit" not in content:
            return content
        if content.pop("commit") != self._commit_digest():
            raise RecordError(f"{self.path / 'summary.json'} is damaged: it sums up something else than commit.json")
        return content

    @property
    def failed(self) -> bool:
        """Whether an error was written; `error` reads it."""
        return os.path.lexists(self.path / "error.json")

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the run failed, if it did."""
        return self._record("error.json")

    def provenance(self) -> dict[str, Any] | None:
        """Where the run comes from."""
        return self._record("provenance.json")

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
        return Manifest.read(self.path / "commit.json", self.run)

    def spec(self) -> dict[str, Any]:
        """What ran, as its file says it."""
        content, sealed = read_toml(self.path / "spec.toml", self.run)
        self._refuse_unsealed("spec.toml", sealed)
        return content

    def commit(self, rows: Arrays, values: Floats, done: Commit, policies: Arrays | None = None) -> None:
        """Add a part of rows and of values and replace the state (and the policies, if given), all or nothing."""
        if (before := self.manifest()) is not None and len(before.values) >= MAX_PARTS:
            self.compact()
            before = self.manifest()
        if done.episodes != len(values) + (0 if before is None else before.episodes):
            raise RecordError(f"{self.path} was removed or changed while its run was played; begin it anew")
        number = 1 if before is None else before.number + 1
        new = Manifest(
            number=number,
            episodes=done.episodes,
            columns=tuple(rows),
            rows=(*(() if before is None else before.rows), *self._part("rows", number, rows)),
            values=(*(() if before is None else before.values), *self._part("values", number, {"value": values})),
            state=self._write(f"state-{number:06d}.npz", npz_of_arrays(done.arrays)),
            tree=done.tree,
            run=self.run,
            policies=(None if before is None else before.policies)
            if policies is None
            else self._write(f"policies-{number:06d}.npz", npz_of_arrays(policies)),
        )
        self._replace(before, new)

    def compact(self) -> None:
        """Merge the parts into one of rows and one of values; nothing else changes."""
        before = self.manifest()
        if before is None or (len(before.rows) <= 1 and len(before.values) <= 1):
            return
        number = before.number + 1
        rows = self._part("rows", number, self._joined(before.rows, before.episodes)) if before.rows else ()
        values = self._part("values", number, {"value": self.values()})
        self._replace(
            before, msgspec.structs.replace(before, number=number, rows=rows, values=values, run=self.run or before.run)
        )

    def last_commit(self) -> Commit | None:
        """The state to go on from, checked; None if nothing was committed."""
        manifest = self.manifest()
        if manifest is None:
            return None
        file = str(self.path / manifest.state.file)
        return Commit(manifest.episodes, manifest.tree, arrays_of_npz(manifest.state.content(self.path), file))

    def check(self, known: set[Any] | None = None) -> CheckedRecords:
        """What the records say; refused if any file of the folder is not what was written, or is another run's.

        `known` are parts that were read before, as `stamp` tells them: those are not read again.
        """
        return self.settled(lambda: self._check_once(set() if known is None else known))

    def settled(self, read: Callable[[], T]) -> T:
        """Read, and read again where the process that plays the run replaced files meanwhile; else it is damage."""
        for left in reversed(range(READING_TRIES)):
            before = self._commit_digest()
            try:
                return read()
            except RecordError:
                if not left or self._commit_digest() == before:
                    raise
        raise AssertionError("the last try returns or raises")

    def verify(self) -> None:
        """`check`, and read every table: so that damage is seen before more work is built on it."""
        self.check()
        manifest = self.manifest()
        if manifest is None:
            return
        self.rows()
        self.values()

    def rows(self) -> Arrays | None:
        """All committed rows, checked; None if there are none."""
        manifest = self.manifest()
        if manifest is None or not manifest.rows:
            return None
        return self._joined(manifest.rows, manifest.episodes)

    def values(self) -> Floats:
        """The true value of every committed episode, checked."""
        manifest = self.manifest()
        if manifest is None:
            return np.zeros(0)
        columns = self._joined(manifest.values, manifest.episodes)
        values = columns.get("value", np.zeros(0))
        if len(columns) > 1 or values.dtype != np.float64 or values.ndim != 1 or np.isnan(values).any():
            raise RecordError(f"{self.path} is damaged: its values are not one number for every episode")
        if len(values) != manifest.episodes:
            raise RecordError(f"{self.path} is damaged: it has {len(values)} values of {manifest.episodes} episodes")
        return values

    def policies(self) -> Arrays | None:
        """The policies and numbers that were kept on the way, checked; None if there are none."""
        manifest = self.manifest()
        if manifest is None or manifest.policies is None:
            return None
        return arrays_of_npz(manifest.policies.content(self.path), str(self.path / manifest.policies.file))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the scores; from now on the run counts as finished."""
        self._seal("summary.json", {"commit": self._commit_digest(), **summary})
        (self.path / "error.json").unlink(missing_ok=True)

    def fail(self, error: Mapping[str, Any]) -> None:
        """Write why the run failed."""
        make_folder(self.path)
        self._seal("error.json", error)

    def _replace(self, before: Manifest | None, new: Manifest) -> None:
        """From now on `new` counts; what only `before` named goes."""
        write_atomically(self.path / "commit.json", new.sealed(self.path))
        for name in set() if before is None else before.files - new.files:
            with suppress(OSError):
                (self.path / name).unlink()

    def _check_once(self, known: set[Any]) -> CheckedRecords:
        manifest = self.manifest()
        seen = {(part, stamp(self.path / part.file)) for part in (() if manifest is None else manifest.parts)}
        for part, _ in seen - known:
            part.content(self.path)
        known.clear()
        known.update(seen)
        text, origin = self._spec_text(), self.provenance()
        if text is not None and manifest is not None and manifest.format >= SEALED and origin is None:
            raise RecordError(f"{self.path / 'provenance.json'} is missing")
        return CheckedRecords(self.path, manifest, text, origin, self.summary, self.error)

    def _spec_text(self) -> bytes | None:
        """Read the spec's text; text without a checksum must at least be TOML."""
        file = self.path / "spec.toml"
        if not os.path.lexists(file):
            return None
        text, sealed = read_sealed_text(file, self.run)
        self._refuse_unsealed("spec.toml", sealed)
        if not sealed:
            toml_of_text(file, text)
        return text

    def _record(self, name: str) -> dict[str, Any] | None:
        """A record of the run without the marks that all of them bear."""
        content = read_sealed(self.path / name, self.run)
        if content is not None:
            self._refuse_unsealed(name, content.pop("format", 2) >= SEALED)
        return content

    def _refuse_unsealed(self, name: str, sealed: bool) -> None:
        """In a folder of this format every file has its checksum; one without it was put there."""
        if not sealed and (manifest := self.manifest()) is not None and manifest.format >= SEALED:
            raise RecordError(f"{self.path / name} is damaged: its checksum is missing")

    def _seal(self, name: str, content: Mapping[str, Any]) -> None:
        write_atomically(self.path / name, sealed_json(self.run, content))

    def _commit_digest(self) -> str | None:
        file = self.path / "commit.json"
        return hashlib.sha256(read_bounded(file, MAX_JSON_BYTES)).hexdigest() if os.path.lexists(file) else None

    def _part(self, kind: str, number: int, columns: Arrays) -> tuple[NamedFile, ...]:
        """A part of the table; none for a table without rows."""
        if not any(map(len, columns.values())):
            return ()
        return (self._write(f"{kind}-{number:06d}.npz", npz_of_arrays(columns)),)

    def _write(self, name: str, content: bytes) -> NamedFile:
        return NamedFile(name, write_atomically(self.path / name, content), len(content))

    def _joined(self, parts: Sequence[NamedFile], most_rows: int) -> Arrays:
        """The table that some parts make up."""
        tables = (read_columns(part.content(self.path), str(self.path / part.file), most_rows) for part in parts)
        return joined_columns(list(tables), str(self.path))
