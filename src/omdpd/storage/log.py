"""An append-only file of entries: each is on disk before `append` returns, and what never was is told from damage.

The file begins with a mark that names the session it belongs to, and with the number of entries that are acknowledged;
then come entries: number, length and SHA-256, a checksum of these three; the content; an end mark.  Room is filled with
zeros ahead of the entries, so that an append changes nothing but data that is there already: one sync, and no journal
of the file system.

**Why nothing acknowledged is dropped.**  An entry is written and synced; only then is it counted (a write that the next
sync takes to the disk, or closing); only then does `append` return.  So the count on the disk never exceeds the entries
on the disk, whatever a crash of the machine took with it, and after the death of the process alone it is exact.  Hence
fewer whole entries than were counted mean that the file was cut (a copy that was not finished) or damaged: refused.
Behind the count are entries that no sync has confirmed, and a crash of the machine breaks them in one way: sectors that
were not written still hold zeros.  The first broken one was never acknowledged: it is cut off with all behind it.
Whatever else is broken is damage: refused.  An entry that is written without a sync survives the death of its process,
and not that of the machine, until the next sync; nor is the room for it synced before: the next sync takes both to the
disk, and a file that is shorter after a crash of the machine ends in a tail that was never acknowledged.

Logs up to version 0.2 have no count.  They are read as they were then, and get one when they are opened.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path

from omdpd.storage.atomic import RecordError, read_bounded, sync_folder, write_atomically
from omdpd.storage.locks import leads_to

FACTS = struct.Struct("<QQ32s")
HEADER_SIZE = FACTS.size + 4
# Not zero, so that a tail the system had made room for but never filled is seen to be unfinished.
END = b"\n"
FIRST_MAGIC, MAGIC = b"omdpdlog", b"omdpdlg2"
MARK = struct.Struct("<8s32s")
MARK_SIZE = MARK.size + 4
COUNT = struct.Struct("<Q")
# Mark and count lie in one sector.
HEAD_SIZE = MARK_SIZE + COUNT.size + 4
# A disk writes a sector whole or not at all; none has smaller ones.
SECTOR = 512
# Zeros are written ahead in steps of this many bytes: more than a hundred entries of the usual size.
ROOM = 2**18


class EntryLog:
    """An open log, ready for more; `cut_off` says whether a tail that was never acknowledged was dropped."""

    def __init__(self, file: Path, entries: int, end: int, cut_off: bool = False) -> None:
        self.file, self.entries, self.end, self.cut_off = file, entries, end, cut_off
        self._synced = entries
        flags = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        self._handle = os.open(file, flags)
        self._found = os.fstat(self._handle)
        self._filled = end
        self.broken = False
        # What a killed process wrote may be there and not yet be durable: it is, before it is counted.
        os.ftruncate(self._handle, end)
        os.fsync(self._handle)
        self._count(entries)

    def begin_at(self, entries: int) -> None:
        """Say after how many entries it begins: of one that has none yet."""
        self.entries = self._synced = entries
        self._count(entries)

    def append(self, number: int, content: bytes, sync: bool = True) -> None:
        """Write the next entry; it is durable when this returns, and not there if this raises.

        Without `sync` it is durable with the next one that is synced.
        """
        self._check_sound(number == self.entries)
        if sync:
            self._check_place()
        entry = _framed(number, content)
        end = self.end + len(entry)
        try:
            self._make_room(len(entry), sync)
            self._write(entry, self.end)
            if sync:
                os.fdatasync(self._handle)
                self._count(self.entries + 1)
                self._synced = self.entries + 1
        except BaseException:
            self._undo()
            raise
        self.entries, self.end = self.entries + 1, end

    def sync(self) -> None:
        """Make every entry written before this call durable; others may be written meanwhile.

        After a failure nobody knows what is on the disk: nothing more is acknowledged until the log is opened again.
        """
        entries = self.entries
        self._check_sound()
        self._check_place()
        try:
            os.fdatasync(self._handle)
            self._synced = max(self._synced, entries)
            self._count(self._synced)
        except BaseException:
            self.broken = True
            raise

    def close(self, tidy: bool) -> None:
        """Let go of the file; its owner also gives back the room that was not used."""
        with suppress(OSError):
            if tidy and not self.broken:
                os.ftruncate(self._handle, self.end)
                os.fsync(self._handle)
                self._count(self.entries)
        os.close(self._handle)

    def _check_sound(self, is_next: bool = True) -> None:
        if self.broken or not is_next:
            raise RecordError(
                f"{self.file} takes no more updates: a write failed and could not be undone, or somebody else wrote; "
                "open the session again"
            )

    def _check_place(self) -> None:
        if not leads_to(self.file, self._found):
            raise RecordError(f"{self.file} was removed or replaced while the session was open: nothing is kept there")

    def _make_room(self, n_bytes: int, sync: bool) -> None:
        if self.end + n_bytes > self._filled:
            more = max(ROOM, n_bytes)
            self._write(b"\0" * more, self.end)
            if sync:
                os.fsync(self._handle)
            self._filled = self.end + more

    def _count(self, entries: int) -> None:
        self._write(_counted(entries), MARK_SIZE)

    def _write(self, content: bytes, place: int) -> None:
        if os.pwrite(self._handle, content, place) != len(content):
            raise OSError(f"{self.file}: no room is left on the disk")

    def _undo(self) -> None:
        """Half an entry must not stay before the next one: if it does, nothing behind it may be acknowledged."""
        self.broken, self._filled = True, self.end
        with suppress(OSError):
            self._count(self._synced)  # first: an entry that is counted must be there
            os.fsync(self._handle)
            os.ftruncate(self._handle, self.end)
            os.fsync(self._handle)
            self.broken = False


def begin(file: Path, session: str, entries: int) -> None:
    """An empty log of a session from some entry on, durable."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(file, flags, 0o666), "wb") as log:
        log.write(_head(session, entries))
        log.flush()
        os.fsync(log.fileno())
    sync_folder(file.parent)


def reopened(file: Path, session: str, entries: int, end: int | None) -> EntryLog:
    """A log that was read up to `end` (None: it has no entry), ready for more."""
    content = read_bounded(file)
    start, counted = _start_of(content, file, session)
    end = start if end is None else end
    cut_off = any(content[end:])
    if counted is None:
        write_atomically(file, _head(session, entries) + content[start:end])
        end += HEAD_SIZE - start
    return EntryLog(file, entries, end, cut_off)


def read(file: Path, first: int, session: str) -> Iterator[tuple[bytes, int]]:
    """The entries of a log and where each ends; stops at a tail that was never acknowledged, refuses other damage."""
    content = read_bounded(file)
    place, counted = _start_of(content, file, session)
    for number in count(first):
        end, wrong = _looked_at(content, place, number)
        if wrong:
            break
        yield content[place + HEADER_SIZE : end - 1], end
        place = end
    unfinished = end > len(content) or not any(content[end - 1 :])
    if not unfinished and (counted is None or not _is_torn(content, place)):
        raise RecordError(
            f"{file} is damaged at entry {number} (byte {place}): {wrong}; to go on without this and all later "
            f"entries, cut the file to {place} bytes"
        )
    if counted is not None and number < counted:
        raise RecordError(
            f"{file} holds {number} entries, but {counted} were acknowledged: it is damaged, or a copy that was "
            "not finished; take the whole file"
        )


def acknowledged(file: Path, session: str) -> int | None:
    """How many entries were counted when the log was last synced; None in one that has no count."""
    return _start_of(read_bounded(file), file, session)[1]


def is_empty(file: Path) -> bool:
    """Whether a log has no entry, not even a half one: nothing that was ever acknowledged is in it."""
    return not file.is_symlink() and file.is_file() and not any(read_bounded(file)[HEAD_SIZE:])


def _start_of(content: bytes, file: Path, session: str) -> tuple[int, int | None]:
    """Where the entries begin, once the mark is known to be this session's, and how many entries are counted."""
    facts = content[: MARK.size]
    if not facts.startswith((MAGIC, FIRST_MAGIC)):
        raise RecordError(f"{file} is damaged: it does not begin with the mark of its session")
    if _checksum(facts) != content[MARK.size : MARK_SIZE]:
        raise RecordError(f"{file} is damaged: the mark of its session is not what was written")
    magic, found = MARK.unpack(facts)
    if found != session.encode():
        raise RecordError(f"{file} belongs to another session")
    if magic == FIRST_MAGIC:
        return MARK_SIZE, None
    counted = content[MARK_SIZE:HEAD_SIZE]
    if _checksum(counted[: COUNT.size]) != counted[COUNT.size :]:
        raise RecordError(f"{file} is damaged: the number of its entries is not what was written")
    return HEAD_SIZE, COUNT.unpack_from(counted)[0]


def _looked_at(content: bytes, place: int, number: int) -> tuple[int, str]:
    """Where the entry at a place ends, as far as its header tells, and what is wrong with it ("": nothing)."""
    facts = content[place : place + FACTS.size]
    start = place + HEADER_SIZE
    if len(content) < start:
        return start, "its header is cut off"
    if _checksum(facts) != content[start - 4 : start]:
        return place + 1, "its header is not what was written"
    found, length, checksum = FACTS.unpack(facts)
    if found != number:
        return place + 1, f"entry {found} stands in its place"
    end = start + length + len(END)
    if hashlib.sha256(content[start : end - 1]).digest() != checksum or content[end - 1 : end] != END:
        return end, "its checksum is not the one that was written"
    return end, ""


def _is_torn(content: bytes, place: int) -> bool:
    """Whether a sector of what was written from a place on still holds the zeros of before."""
    end = len(content.rstrip(b"\0"))
    edges = [place, *range(place - place % SECTOR + SECTOR, end, SECTOR), end]
    return end < place + HEADER_SIZE or not all(any(content[a:b]) for a, b in pairwise(edges))


def _framed(number: int, content: bytes) -> bytes:
    facts = FACTS.pack(number, len(content), hashlib.sha256(content).digest())
    return facts + _checksum(facts) + content + END


def _head(session: str, entries: int) -> bytes:
    facts = MARK.pack(MAGIC, session.encode())
    return facts + _checksum(facts) + _counted(entries)


def _counted(entries: int) -> bytes:
    facts = COUNT.pack(entries)
    return facts + _checksum(facts)


def _checksum(facts: bytes) -> bytes:
    return zlib.crc32(facts).to_bytes(4, "little")
