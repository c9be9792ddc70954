"""An append-only journal of feedback with snapshots of the state: what a session keeps on disk.

    session.json          whose session this is: the format, and a fingerprint of learner and setting
    snapshot.json         the last snapshot: episodes, the state's tree, its arrays' file and checksum
    state-<k>.npz         the snapshot's arrays
    journal-<k>.log       every feedback since episode k: header, content, end mark
    lock                  held by the process that has the session open

An entry is on disk before `append` returns.  A tail that was cut off by a crash was never acknowledged: it is dropped.
Damage anywhere else means that something acknowledged is lost: it is refused, never skipped.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from omdpd.problem.setting import BanditFeedback, Feedback, FullFeedback, Trajectory
from omdpd.storage.atomic import (
    RecordError,
    is_half_written,
    json_bytes,
    make_folder,
    read_bounded,
    read_json,
    sweep,
    sync_folder,
    write_atomically,
)
from omdpd.storage.locks import Lock
from omdpd.storage.npz import Arrays, arrays_of_npz, npz_of_arrays
from omdpd.storage.packing import Tree

# Raised when the meaning of the files changes; 3: a fingerprint without the names of modules.
FORMAT = 3
# An entry: its episode, its length and SHA-256, then a checksum of these three; the content; the end mark.
FACTS = struct.Struct("<QQ32s")
HEADER_SIZE = FACTS.size + 4
# Not zero, so that a tail the system had made room for but never filled is seen to be unfinished.
END = b"\n"
MADE = re.compile(r"(state-\d{9,}\.npz|journal-\d{9,}\.log)")


class SessionLockedError(RecordError):
    """Another process has the session open."""


class _Claim(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    fingerprint: str


class _Snapshot(msgspec.Struct, forbid_unknown_fields=True):
    episodes: int
    file: str
    sha256: str
    tree: Any

    def __post_init__(self) -> None:
        if self.file != f"state-{self.episodes:09d}.npz":
            raise ValueError(f"it names {self.file!r}, which is not its own state")


class Journal:
    """The files of one session; open from construction until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path)
        self._lock = Lock(path / "lock")
        if not self._lock.acquire():
            raise SessionLockedError(f"{path} is open in another process; one session has one owner")
        self._log: BinaryIO | None = None
        self._episodes = 0
        self._end = 0
        self._broken = False

    def close(self) -> None:
        """Let go of the files and the lock."""
        if self._log is not None:
            self._log.close()
            self._log = None
        self._lock.release()

    def claim(self, fingerprint: str) -> None:
        """Make the folder this learner's and setting's, or refuse one that is somebody else's."""
        file = self.path / "session.json"
        content = read_json(file)
        if content is None:
            self._refuse_what_is_not_new()
            self._begin(0)
            write_atomically(file, json_bytes({"format": FORMAT, "fingerprint": fingerprint}))
            return
        if content.get("format") != FORMAT:
            raise RecordError(
                f"{file} has format {content.get('format')!r}, but this version reads format {FORMAT}: go on with the "
                "version that wrote it, or begin a session in a new folder"
            )
        if _converted(content, _Claim, file).fingerprint != fingerprint:
            raise RecordError(f"{self.path} holds a session of another learner or setting")

    def _refuse_what_is_not_new(self) -> None:
        """Refuse a folder that holds anything but what a crash before the first update can have left."""
        for other in self.path.iterdir():
            empty_log = other.name == _log_name(0) and not other.is_symlink() and other.stat().st_size == 0
            if not (empty_log or other.name == "lock" or is_half_written(other.name)):
                raise RecordError(
                    f"{self.path / 'session.json'} is missing, but the folder holds {other.name}: a new session "
                    "needs an empty folder, and an old one its session.json"
                )

    def snapshot(self) -> tuple[int, Tree, Arrays] | None:
        """The last snapshot: episodes, tree and arrays; None if there is none."""
        file = self.path / "snapshot.json"
        content = read_json(file)
        if content is None:
            return None
        kept = _converted(content, _Snapshot, file)
        state = self.path / kept.file
        arrays = read_bounded(state)
        if hashlib.sha256(arrays).hexdigest() != kept.sha256:
            raise RecordError(f"{state} is damaged: its checksum is not the one that was written")
        return kept.episodes, kept.tree, arrays_of_npz(arrays, str(state))

    def replay(self, episodes: int) -> Iterator[Feedback]:
        """The feedback since a snapshot of `episodes`; then the journal is ready for more."""
        file = self.path / _log_name(episodes)
        content = read_bounded(file)
        self._episodes, self._end = episodes, 0
        for entry, end in _entries(content, episodes, file):
            feedback = _decoded(entry, f"{file}, episode {self._episodes}")
            self._episodes, self._end = self._episodes + 1, end
            yield feedback
        self._refuse_later_journals(episodes)
        log = open(file, "r+b", buffering=0)  # noqa: SIM115  (open until `close` or the next snapshot)
        self._log = log
        if self._end < len(content):
            log.truncate(self._end)
            os.fsync(log.fileno())
        log.seek(self._end)
        known = {file.name, f"state-{episodes:09d}.npz"}
        sweep(self.path, known, lambda name: bool(MADE.fullmatch(name)))

    def _refuse_later_journals(self, episodes: int) -> None:
        """A later journal with entries in it means that the snapshot before it is lost; an empty one means nothing."""
        for later in self.path.glob("journal-*.log"):
            if MADE.fullmatch(later.name) and later.name > _log_name(episodes) and later.lstat().st_size:
                raise RecordError(f"{later} is there, but the snapshot that it goes on from is missing")

    def append(self, feedback: Feedback) -> None:
        """Write one feedback; it is durable when this returns, and not there if this raises."""
        assert self._log is not None, "a journal is replayed before it is written"
        if self._broken:
            raise RecordError(
                f"{self.path} takes no more updates: a write failed and could not be undone; open the session again"
            )
        entry = _framed(self._episodes, _encoded(feedback))
        try:
            if self._log.write(entry) != len(entry):
                raise OSError(f"{self.path} is full: the feedback could not be written")
            os.fsync(self._log.fileno())
        except BaseException:
            # Half an entry must not stay before the next one: if it does, nothing behind it may be acknowledged.
            self._broken = True
            with suppress(OSError):
                self._log.truncate(self._end)
                self._log.seek(self._end)
                self._broken = False
            raise
        self._episodes, self._end = self._episodes + 1, self._end + len(entry)

    def take_snapshot(self, episodes: int, tree: Tree, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Keep the state, begin a new journal, and drop what is no longer needed."""
        name = f"state-{episodes:09d}.npz"
        checksum = write_atomically(self.path / name, npz_of_arrays(arrays))
        # The new journal is there before the snapshot that needs it: one that is missing then means damage.
        self._begin(episodes)
        kept = {"episodes": episodes, "file": name, "sha256": checksum, "tree": tree}
        write_atomically(self.path / "snapshot.json", json_bytes(kept))
        if self._log is not None:
            self._log.close()
        self._log = open(self.path / _log_name(episodes), "r+b", buffering=0)  # noqa: SIM115
        self._episodes, self._end = episodes, 0
        known = {name, _log_name(episodes)}
        sweep(self.path, known, lambda other: bool(MADE.fullmatch(other)))

    def _begin(self, episodes: int) -> None:
        """An empty journal, durable."""
        with open(self.path / _log_name(episodes), "wb") as log:
            os.fsync(log.fileno())
        sync_folder(self.path)


def _log_name(episodes: int) -> str:
    return f"journal-{episodes:09d}.log"


def _framed(episode: int, content: bytes) -> bytes:
    facts = FACTS.pack(episode, len(content), hashlib.sha256(content).digest())
    return facts + zlib.crc32(facts).to_bytes(4, "little") + content + END


def _entries(content: bytes, first: int, file: Path) -> Iterator[tuple[bytes, int]]:
    """The whole entries of a journal and where each ends; stops at a tail that was cut off, refuses other damage."""
    place, episode = 0, first
    while place + HEADER_SIZE <= len(content):
        facts = content[place : place + FACTS.size]
        start = place + HEADER_SIZE
        if zlib.crc32(facts).to_bytes(4, "little") != content[place + FACTS.size : start]:
            if not any(content[place:]):
                return
            raise _damaged(file, place, episode, "its header is not what was written")
        number, length, checksum = FACTS.unpack(facts)
        if number != episode:
            raise _damaged(file, place, episode, f"an entry of episode {number} stands in its place")
        end = start + length + len(END)
        if end > len(content) or not any(content[end - 1 :]):
            return
        entry = content[start : end - 1]
        if hashlib.sha256(entry).digest() != checksum or content[end - 1 : end] != END:
            raise _damaged(file, place, episode, "its checksum is not the one that was written")
        place, episode = end, episode + 1
        yield entry, place


def _damaged(file: Path, place: int, episode: int, why: str) -> RecordError:
    return RecordError(
        f"{file} is damaged at episode {episode} (byte {place}): {why}; to go on without this and all later episodes, "
        f"cut the file to {place} bytes"
    )


def _converted(content: dict[str, Any], kind: type[Any], file: Path) -> Any:
    try:
        return msgspec.convert(content, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise RecordError(f"{file} is damaged: {error}") from None


def _encoded(feedback: Feedback) -> bytes:
    met = feedback.trajectory
    shown = {"costs": feedback.costs} if isinstance(feedback, BanditFeedback) else {"cost": feedback.cost}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, states=met.states, actions=met.actions, rewards=feedback.rewards, **shown)
    return buffer.getvalue()


def _decoded(entry: bytes, name: str) -> Feedback:
    stored = arrays_of_npz(entry, name)
    try:
        met = Trajectory(stored["states"], stored["actions"])
        if "cost" in stored:
            return FullFeedback(met, stored["rewards"], stored["cost"])
        return BanditFeedback(met, stored["rewards"], stored["costs"])
    except KeyError as error:
        raise RecordError(f"{name} holds no {error.args[0]}, so it is no feedback") from None
