"""A commit says which files of a run count, with their sizes and checksums, and the state they lead to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from omdpd.storage.atomic import MAX_JSON_BYTES, RecordError, read_noted
from omdpd.storage.npz import Arrays
from omdpd.storage.packing import Tree
from omdpd.storage.sealed import FORMAT, converted, read_sealed, sealed_json

# Tables may be Parquet files in a run that an earlier version began.
PART_NAME = re.compile(r"((rows|values)-\d{6,}\.(npz|parquet)|(state|policies)-\d{6,}\.npz)")


@dataclass(frozen=True, eq=False)
class Commit:
    """What a run had done when it last committed: episodes played, and its state as a tree with arrays."""

    episodes: int
    tree: Tree
    arrays: Arrays


class NamedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that counts: its name, checksum and size."""

    file: str
    sha256: str
    size: int

    def __post_init__(self) -> None:
        if not PART_NAME.fullmatch(self.file):
            raise ValueError(f"it names {self.file!r}, which is not the name of a part")

    def content(self, folder: Path) -> bytes:
        """What the file holds, if that is what was committed."""
        return read_noted(folder / self.file, self.sha256, self.size)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of commit.json, beside its checksum, its run and its format."""

    number: int
    episodes: int
    columns: tuple[str, ...]
    rows: tuple[NamedFile, ...]
    values: tuple[NamedFile, ...]
    state: NamedFile
    tree: Any
    policies: NamedFile | None = None
    run: str = ""
    format: int = FORMAT

    @property
    def parts(self) -> tuple[NamedFile, ...]:
        """Everything that counts."""
        return (*self.rows, *self.values, self.state, *(() if self.policies is None else (self.policies,)))

    @property
    def files(self) -> set[str]:
        """The names of everything that counts."""
        return {part.file for part in self.parts}

    @staticmethod
    def read(file: Path, run: str) -> Manifest | None:
        """What counts, checked; None if nothing was committed."""
        content = read_sealed(file, run)
        if content is None:
            return None
        if "format" not in content:
            raise RecordError(f"{file} is damaged: it names no format")
        manifest = converted(content, Manifest, file)
        if manifest.episodes < 0 or manifest.number < 1:
            raise RecordError(f"{file} is damaged: it counts {manifest.episodes} episodes in {manifest.number} commits")
        return manifest

    def sealed(self, folder: Path) -> bytes:
        """The content of commit.json."""
        facts = msgspec.to_builtins(self)
        del facts["format"], facts["run"]
        content = sealed_json(self.run, facts, compact=True, layout=FORMAT)
        if len(content) > MAX_JSON_BYTES:
            raise RecordError(f"the state of {folder} takes {len(content)} bytes of JSON, more than can be kept")
        return content
