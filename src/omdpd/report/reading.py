"""A run as the page reads it: from its files alone, whatever the learner was, read again only when it committed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omdpd.experiments.spec import NatureSpec, RunSpec, WorldSpec
from omdpd.experiments.writer import as_written_now
from omdpd.play.loop import KeyRanges
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.report.results import stored_spec
from omdpd.storage.run_folder import RunFolder

# Columns of rows that are not a user's own metrics.
KNOWN = (
    "episode", "value", "excess", "value_sum", "violation_sum", "step_size", "weight", "certified_regret",
    "certified_violation", "good_event", "optimism", "planned_value_sum", "planned_violation_sum",
)  # fmt: skip
# A state larger than this is not opened for a picture of its visits.
MAX_STATE_BYTES = 2**25
# An unfinished run that committed this recently counts as running, in seconds.
RECENT = 30.0


@dataclass(frozen=True)
class Asked:
    """What a run was asked to do, by the names in its spec; a part whose name nobody here knows has no spec."""

    world: str
    nature: str
    learner: str
    seed: int
    episodes: int
    world_spec: WorldSpec | None
    nature_spec: NatureSpec | None

    @property
    def group(self) -> tuple[str, str, str]:
        """The names that its seeds share."""
        return self.world, self.nature, self.learner

    @staticmethod
    def of(spec: RunSpec) -> Asked:
        """What a run that is only planned will be asked."""
        world, nature, learner = (part.label for part in (spec.world, spec.nature, spec.learner))
        return Asked(world, nature, learner, spec.seed, spec.episodes, spec.world, spec.nature)

    def stream(self, number: int) -> np.random.SeedSequence:
        """The run's independent streams, as `RunSpec.stream` has them."""
        return np.random.SeedSequence(self.seed, spawn_key=(number,))


@dataclass
class RunView:
    """One run: what it is, how far it is, and its numbers; `refresh` reads what has changed."""

    path: Path
    asked: Asked | None = None
    state: str = "waiting"
    episodes: int = 0
    plugins: tuple[str, ...] = ()
    fault: Mapping[str, Any] | None = None
    summary: Mapping[str, Any] | None = None
    committed: float | None = None
    seconds: float | None = None
    tree: Any = None
    columns: dict[str, Floats] = field(default_factory=dict)
    stamp: tuple[Any, ...] = ()
    rows_stamp: Any = None

    @property
    def id(self) -> str:
        """The name of the run's folder."""
        return self.path.name

    @property
    def folder(self) -> RunFolder:
        """The run's files, which must name it."""
        return RunFolder(self.path, self.path.name)

    @property
    def keys(self) -> KeyRanges:
        """The tables that the run has met, as ranges."""
        progress = _progress(self.tree)
        return tuple((int(first), int(stop)) for first, stop in progress[2]) if progress is not None else ()

    def recent(self) -> bool:
        """Whether the run is not finished and committed a moment ago."""
        return self.state == "unfinished" and self.committed is not None and time.time() - self.committed < RECENT

    def refresh(self) -> bool:
        """Look at the run's files; whether anything changed since the last look.  Rows are read by `read_rows`."""
        stamp = tuple(_stamp(self.path / name) for name in ("spec.toml", "commit.json", "summary.json", "error.json"))
        if stamp == self.stamp:
            return False
        self.stamp = stamp
        try:
            self._look()
        except (InvalidInputError, OSError) as error:
            self._damaged(error)
        return True

    def read_rows(self) -> None:
        """Read the committed rows, if there are new ones."""
        if self.rows_stamp == self.stamp[1:2] or self.state == "damaged" or not self.episodes:
            return
        try:
            rows = self.folder.rows()
        except (InvalidInputError, OSError) as error:
            self._damaged(error)
            return
        self.rows_stamp = self.stamp[1:2]
        self.columns = {} if rows is None else _columns(as_written_now(rows))

    def read_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays of the stored state; none where it is damaged or too large to open for a picture."""
        folder = self.folder
        try:
            manifest = folder.manifest()
            if manifest is None or manifest.state.size > MAX_STATE_BYTES:
                return {}
            last = folder.last_commit()
        except (InvalidInputError, OSError):
            return {}
        return {} if last is None else dict(last.arrays)

    def read_snapshots(self) -> dict[str, np.ndarray[Any, Any]]:
        """What the run kept on the way: policies and numbers on a grid of episodes; empty if it kept nothing."""
        try:
            kept = self.folder.policies()
        except (InvalidInputError, OSError):
            return {}
        return kept or {}

    def _damaged(self, error: Exception) -> None:
        """Take note of damage, unless the files were replaced while they were read: then they are looked at again."""
        if _stamp(self.path / "commit.json") != self.stamp[1]:
            self.stamp = ()
            return
        self.state, self.fault = "damaged", {"error": str(error)}

    def _look(self) -> None:
        folder = self.folder
        if self.asked is None and (self.path / "spec.toml").exists():
            self.asked, self.plugins = _asked(folder), _plugins(folder)
        self.summary = folder.summary
        manifest = folder.manifest()
        if manifest is not None:
            self.episodes, self.tree = manifest.episodes, manifest.tree
            self.committed = (self.path / "commit.json").stat().st_mtime
            progress = _progress(self.tree)
            self.seconds = None if progress is None else float(progress[3])
        self.fault = folder.error
        if self.summary is not None:
            self.state = "finished"
        elif self.fault is not None:
            self.state = "failed"
        elif self.asked is not None:
            self.state = "unfinished" if self.episodes else "started"


def field_of(tree: Any, name: str) -> Any:
    """The first field of this name in a stored state, however deep; None without one."""
    if isinstance(tree, dict):
        fields = tree.get("fields", {})
        if name in fields:
            return fields[name]
        for inner in fields.values():
            found = field_of(inner, name)
            if found is not None:
                return found
    return None


def array_of(tree: Any, name: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any] | None:
    """The array that a stored state has under this name."""
    found = field_of(tree, name)
    return arrays.get(found["array"]) if isinstance(found, dict) and "array" in found else None


def state_of(tree: Any) -> Any:
    """The learner's state in a commit's tree."""
    progress = _progress(tree)
    return None if progress is None else progress[0]


def totals_of(tree: Any) -> Any:
    """The sums over a run's episodes in a commit's tree."""
    progress = _progress(tree)
    return None if progress is None else progress[1]


def _progress(tree: Any) -> Any:
    progress = tree.get("progress") if isinstance(tree, dict) else None
    return progress if isinstance(progress, list) and len(progress) >= 4 else None


def _asked(folder: RunFolder) -> Asked:
    """What a stored spec asks for, as far as its names are known here."""
    stored = stored_spec(folder.path / "spec.toml", folder.spec())
    world, nature, _ = stored.parts
    return Asked(*stored.labels, stored.plain.seed, stored.plain.episodes, world, nature)


def _plugins(folder: RunFolder) -> tuple[str, ...]:
    """The names of the plugin files that a run needs; none where that cannot be read, which harms no picture."""
    try:
        known = (folder.provenance() or {}).get("plugins")
    except (InvalidInputError, OSError):
        return ()
    return tuple(map(str, known)) if isinstance(known, dict) else ()


def _stamp(file: Path) -> Any:
    """What changes when a file is replaced."""
    try:
        known = file.stat()
    except OSError:
        return None
    return known.st_mtime_ns, known.st_ino, known.st_size


def _columns(rows: pa.Table) -> dict[str, Floats]:
    """Rows as arrays; `excess` becomes (rows, constraints), what is undefined becomes nan."""
    made: dict[str, Floats] = {}
    for name in rows.column_names:
        column = rows[name].combine_chunks()
        if name == "excess":
            flat = pa.chunked_array([column]).combine_chunks().flatten().to_numpy().astype(np.float64)
            made[name] = flat.reshape(rows.num_rows, -1)
        else:
            made[name] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return made
