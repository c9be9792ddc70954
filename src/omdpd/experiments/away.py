"""Runs on machines that share no disk with this one: a run's files travel with it.

A worker plays for a while in a temporary folder and returns the files; they are written into the durable folder here,
and the run is sent out again with them until it is finished.  A worker that dies costs what it played since.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omdpd.experiments.one_run import RunCallback, advance, failure
from omdpd.experiments.registry import from_wire
from omdpd.play.scene import Metric
from omdpd.storage.atomic import RecordError, read_bounded, write_atomically
from omdpd.storage.manifest import PART_NAME
from omdpd.storage.run_folder import RunFolder

# Files beside the parts, in the order in which they are written: the last one makes a run count as finished.
PLAIN_FILES = ("provenance.json", "spec.toml", "commit.json", "summary.json")


@dataclass(frozen=True)
class Parcel:
    """The files of a run by name, and its error if it failed."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None


def files_of_run(record: RunFolder) -> Parcel:
    """Everything that counts in a run's folder."""
    manifest = record.manifest()
    names = (*(() if manifest is None else sorted(manifest.files)), *PLAIN_FILES)
    return Parcel({name: read_bounded(record.path / name) for name in names if (record.path / name).exists()})


def unpack_parcel(parcel: Parcel, record: RunFolder) -> None:
    """Write the files of a run into its folder so that at any moment what counts there is whole."""
    strange = [name for name in parcel.files if name not in PLAIN_FILES and not PART_NAME.fullmatch(name)]
    if strange:
        raise RecordError(f"a worker returned a file {strange[0]!r}, which no run has")
    parts = [name for name in parcel.files if name not in PLAIN_FILES]
    for name in (*parts, *PLAIN_FILES):
        file = record.path / name
        # Parts never change under one name, so one that is there already is the same.
        if name in parcel.files and not (name in parts and file.exists() and _same(file, parcel.files[name])):
            write_atomically(file, parcel.files[name])
    record.tidy()


def play_away(
    plain: Mapping[str, Any],
    parcel: Parcel,
    metrics: Mapping[str, Metric] | None,
    seconds: float,
    callback: RunCallback | None = None,
) -> Parcel:
    """Play a run for some seconds in a temporary folder: in a worker."""
    spec = from_wire(plain)
    with tempfile.TemporaryDirectory(prefix="omdpd-") as scratch:
        record = RunFolder(Path(scratch), spec.id)
        unpack_parcel(parcel, record)
        try:
            advance(spec, record, metrics, seconds, seconds, callback)
        except (RecordError, OSError, MemoryError):
            raise
        except Exception as error:
            return Parcel(files_of_run(record).files, failure(error))
        return files_of_run(record)


def _same(file: Path, content: bytes) -> bool:
    return read_bounded(file) == content
