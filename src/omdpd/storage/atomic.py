"""Files that last: there whole or not at all, read with a bound, and locks that a dead owner does not hold.

A file is written beside its name, synced and moved into place; then its folder is synced.  What a killed process left
beside a name (``.name.pid.tmp``) never counts, and `sweep` removes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakSet

from omdpd.problem.arrays import InvalidInputError

# No file of a run is larger; a larger one is refused unread.
MOST_FILE_BYTES = 2**31
# A manifest or a summary is small; a larger one is refused unread.
MOST_JSON_BYTES = 2**26
# How often a lock is tried while somebody else holds it, in seconds.
LOCK_PATIENCE = 0.2


class RecordError(InvalidInputError):
    """A file of a run cannot be used; the message says which one and why."""


def write_atomically(file: Path, content: bytes) -> str:
    """Write a file so that it is there whole or not at all, even after a crash; return its checksum."""
    with replacing(file) as stream:
        stream.write(content)
    return hashlib.sha256(content).hexdigest()


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A stream whose content takes the file's place, all at once, when the block ends well."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, file)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Make what was created, moved or removed in a folder survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_bounded(file: Path, most: int = MOST_FILE_BYTES) -> bytes:
    """The content of a plain file of at most `most` bytes; links are not followed."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise RecordError(f"{file} is missing") from None
    except OSError as error:
        why = "it is a link, and links are not followed" if file.is_symlink() else error.strerror
        raise RecordError(f"{file} cannot be read: {why}") from None
    known = os.fstat(handle)
    if not stat.S_ISREG(known.st_mode):
        os.close(handle)
        raise RecordError(f"{file} is not a plain file")
    with open(handle, "rb") as stream:
        if known.st_size > most:
            raise RecordError(f"{file} is larger than {most} bytes, too large for what it should hold")
        return stream.read(most + 1)


def read_json(file: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is no such file."""
    if not os.path.lexists(file):
        return None
    text = read_bounded(file, MOST_JSON_BYTES)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file} is damaged: it does not hold JSON ({error})") from None
    if not isinstance(content, dict):
        raise RecordError(f"{file} does not hold a record")
    return content


def json_bytes(content: object) -> bytes:
    """JSON as a file holds it; a number that is not finite is refused."""
    return json.dumps(content, indent=1, allow_nan=False).encode()


def is_half_written(name: str) -> bool:
    """Whether a name is one that a file has before it is moved into place."""
    return name.startswith(".") and name.endswith(".tmp")


def sweep(folder: Path, known: Collection[str], made: Callable[[str], bool]) -> None:
    """Remove what a killed process left behind: half-written files, and files of ours that nothing names."""
    for file in folder.iterdir():
        if is_half_written(file.name) or (made(file.name) and file.name not in known):
            with suppress(OSError):
                file.unlink()


class Lock:
    """An exclusive lock on a file, which the system lets go when its owner dies, however it dies."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._handle: BinaryIO | None = None

    def acquire(self) -> bool:
        """Take the lock; False if somebody else has it."""
        import fcntl

        handle = open(self.file, "ab")  # noqa: SIM115  (the lock lives as long as the handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return False
        self._handle = handle
        _HELD.add(self)
        return True

    def wait(self) -> None:
        """Take the lock as soon as it is free."""
        while not self.acquire():
            time.sleep(LOCK_PATIENCE)

    def release(self) -> None:
        """Let go."""
        _HELD.discard(self)
        if self._handle is not None:
            self._handle.close()
            self._handle = None


# The locks of this process: a child that is forked off must not keep them when its parent dies.
_HELD: WeakSet[Lock] = WeakSet()


def _let_go() -> None:
    for lock in list(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
