"""An append-only file of entries: each is on disk before `append` returns, and a cut-off tail is told from damage.

The file begins with a mark that names the session it belongs to; then come entries, one per episode: its number, its
length and SHA-256, a checksum of these three; the content; an end mark.  Room is filled with zeros ahead of the
entries, so that an append changes nothing but data that is there already: one sync, and no journal of the file system.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from omdpd.storage.atomic import RecordError, read_bounded, sync_folder

FACTS = struct.Struct("<QQ32s")
HEADER_SIZE = FACTS.size + 4
# Not zero, so that a tail the system had made room for but never filled is seen to be unfinished.
END = b"\n"
MAGIC = b"omdpdlog"
MARK = struct.Struct("<8s32s")
MARK_SIZE = MARK.size + 4
# Zeros are written ahead in steps of this many bytes: more than a hundred episodes of the usual size.
ROOM = 2**18


class Log:
    """An open log, ready for more."""

    def __init__(self, file: Path, episodes: int, end: int) -> None:
        self.file, self.episodes, self.end = file, episodes, end
        flags = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        self._handle = os.open(file, flags)
        self._filled = end
        self.broken = False
        if os.fstat(self._handle).st_size > end:  # a tail that was never acknowledged
            os.ftruncate(self._handle, end)
            os.fsync(self._handle)

    def append(self, content: bytes) -> None:
        """Write one entry; it is durable when this returns, and not there if this raises."""
        if self.broken:
            raise RecordError(
                f"{self.file} takes no more updates: a write failed and could not be undone; open the session again"
            )
        entry = _framed(self.episodes, content)
        try:
            self._make_room(len(entry))
            self._write(entry, self.end)
            os.fdatasync(self._handle)
        except BaseException:
            self._undo()
            raise
        self.episodes, self.end = self.episodes + 1, self.end + len(entry)

    def close(self) -> None:
        """Give back the room that was not used, and let go of the file."""
        with suppress(OSError):
            os.ftruncate(self._handle, self.end)
        os.close(self._handle)

    def _make_room(self, n_bytes: int) -> None:
        if self.end + n_bytes > self._filled:
            more = max(ROOM, n_bytes)
            self._write(b"\0" * more, self.end)
            os.fsync(self._handle)
            self._filled = self.end + more

    def _write(self, content: bytes, place: int) -> None:
        if os.pwrite(self._handle, content, place) != len(content):
            raise OSError(f"{self.file}: no room is left on the disk")

    def _undo(self) -> None:
        """Half an entry must not stay before the next one: if it does, nothing behind it may be acknowledged."""
        self.broken, self._filled = True, self.end
        with suppress(OSError):
            os.ftruncate(self._handle, self.end)
            self.broken = False


def begin(file: Path, session: str) -> None:
    """An empty log of a session, durable."""
    facts = MARK.pack(MAGIC, session.encode())
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(file, flags, 0o666), "wb") as log:
        log.write(facts + zlib.crc32(facts).to_bytes(4, "little"))
        log.flush()
        os.fsync(log.fileno())
    sync_folder(file.parent)


def read(file: Path, first: int, session: str) -> Iterator[tuple[bytes, int]]:
    """The whole entries of a log and where each ends; stops at a tail that was cut off, refuses other damage."""
    content = read_bounded(file)
    place, episode = start_of(content, file, session), first
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


def start_of(content: bytes, file: Path, session: str) -> int:
    """Where the entries of a log begin, once its mark is known to be this session's."""
    facts = content[: MARK.size]
    if not facts.startswith(MAGIC):
        raise RecordError(f"{file} is damaged: it does not begin with the mark of its session")
    if zlib.crc32(facts).to_bytes(4, "little") != content[MARK.size : MARK_SIZE]:
        raise RecordError(f"{file} is damaged: the mark of its session is not what was written")
    if MARK.unpack(facts)[1] != session.encode():
        raise RecordError(f"{file} belongs to another session")
    return MARK_SIZE


def is_empty(file: Path) -> bool:
    """Whether a log has no entry, not even a half one: nothing that was ever acknowledged is in it."""
    return not file.is_symlink() and file.is_file() and not any(read_bounded(file)[MARK_SIZE:])


def _framed(episode: int, content: bytes) -> bytes:
    facts = FACTS.pack(episode, len(content), hashlib.sha256(content).digest())
    return facts + zlib.crc32(facts).to_bytes(4, "little") + content + END


def _damaged(file: Path, place: int, episode: int, why: str) -> RecordError:
    return RecordError(
        f"{file} is damaged at episode {episode} (byte {place}): {why}; to go on without this and all later episodes, "
        f"cut the file to {place} bytes"
    )
