"""An append-only journal of feedback with snapshots of the state: what a session keeps on disk.

    session.json          whose session this is: a fingerprint of learner and setting
    snapshot.json         the last snapshot: episodes, the state's tree, its arrays' file and checksum
    state-<k>.npz         the snapshot's arrays
    journal-<k>.log       every feedback since episode k: length, checksum, content
    lock                  held by the process that has the session open

An entry is on disk before `append` returns.  A tail that was cut off by a crash was never acknowledged: it is dropped.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from omdpd.packing import Tree
from omdpd.problem import BanditFeedback, Feedback, FullFeedback, Trajectory
from omdpd.records import RecordError, arrays_of_npz, npz_of_arrays, read_json, write_atomically

HEADER = struct.Struct("<Q32s")  # length and SHA-256 of an entry


class SessionLockedError(RecordError):
    """Another process has the session open."""


class Journal:
    """The files of one session; open from construction until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(path / "lock")
        self._log: BinaryIO | None = None

    def close(self) -> None:
        """Let go of the files and the lock."""
        if self._log is not None:
            self._log.close()
            self._log = None
        self._lock.close()

    def claim(self, fingerprint: str) -> None:
        """Make the folder this learner's and setting's, or refuse one that is somebody else's."""
        known = read_json(self.path / "session.json")
        if known is None:
            write_atomically(self.path / "session.json", json.dumps({"fingerprint": fingerprint}).encode())
        elif known.get("fingerprint") != fingerprint:
            raise RecordError(f"{self.path} holds a session of another learner or setting")

    def snapshot(self) -> tuple[int, Tree, dict[str, np.ndarray[Any, Any]]] | None:
        """The last snapshot: episodes, tree and arrays; None if there is none."""
        kept = read_json(self.path / "snapshot.json")
        if kept is None:
            return None
        content = (self.path / Path(kept["file"]).name).read_bytes()
        if hashlib.sha256(content).hexdigest() != kept["sha256"]:
            raise RecordError(f"{self.path / kept['file']} is damaged: its checksum is not the one that was written")
        return int(kept["episodes"]), kept["tree"], arrays_of_npz(content, kept["file"])

    def replay(self, episodes: int) -> Iterator[Feedback]:
        """The feedback since a snapshot of `episodes`; then the journal is ready for more."""
        file = self.path / f"journal-{episodes:09d}.log"
        content = file.read_bytes() if file.exists() else b""
        good = 0
        for entry, end in _entries(content):
            good = end
            yield _decoded(entry, file.name)
        self._log = open(file, "ab")  # noqa: SIM115  (open until `close` or the next snapshot)
        if good < len(content):
            self._log.truncate(good)
            os.fsync(self._log.fileno())

    def append(self, feedback: Feedback) -> None:
        """Write one feedback; it is durable when this returns."""
        assert self._log is not None, "a journal is replayed before it is written"
        content = _encoded(feedback)
        self._log.write(HEADER.pack(len(content), hashlib.sha256(content).digest()) + content)
        self._log.flush()
        os.fsync(self._log.fileno())

    def take_snapshot(self, episodes: int, tree: Tree, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Keep the state, begin a new journal, and drop what is no longer needed."""
        name = f"state-{episodes:09d}.npz"
        checksum = write_atomically(self.path / name, npz_of_arrays(arrays))
        kept = {"episodes": episodes, "file": name, "sha256": checksum, "tree": tree}
        write_atomically(self.path / "snapshot.json", json.dumps(kept, allow_nan=False).encode())
        if self._log is not None:
            self._log.close()
        self._log = open(self.path / f"journal-{episodes:09d}.log", "ab")  # noqa: SIM115
        for old in (*self.path.glob("state-*.npz"), *self.path.glob("journal-*.log")):
            if f"{episodes:09d}" not in old.name:
                old.unlink()


def _locked(file: Path) -> BinaryIO:
    """An exclusive lock that the system lets go when its owner dies."""
    import fcntl

    handle = open(file, "ab")  # noqa: SIM115  (the lock lives as long as the handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise SessionLockedError(f"{file.parent} is open in another process; one session has one owner") from None
    return handle


def _entries(content: bytes) -> Iterator[tuple[bytes, int]]:
    """The whole entries of a journal and where each ends; stops at a tail that was cut off."""
    place = 0
    while place + HEADER.size <= len(content):
        length, checksum = HEADER.unpack_from(content, place)
        entry = content[place + HEADER.size : place + HEADER.size + length]
        if len(entry) < length or hashlib.sha256(entry).digest() != checksum:
            return
        place += HEADER.size + length
        yield entry, place


def _encoded(feedback: Feedback) -> bytes:
    met = feedback.trajectory
    shown = {"costs": feedback.costs} if isinstance(feedback, BanditFeedback) else {"cost": feedback.cost}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, states=met.states, actions=met.actions, rewards=feedback.rewards, **shown)
    return buffer.getvalue()


def _decoded(entry: bytes, name: str) -> Feedback:
    stored = arrays_of_npz(entry, name)
    met = Trajectory(stored["states"], stored["actions"])
    if "cost" in stored:
        return FullFeedback(met, stored["rewards"], stored["cost"])
    return BanditFeedback(met, stored["rewards"], stored["costs"])
