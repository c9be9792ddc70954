"""Locks that a dead owner does not hold: the system lets go of them, however their owner died."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from weakref import WeakSet

from omdpd.storage.atomic import RecordError

# How often a lock is tried while somebody else holds it, in seconds.
LOCK_PATIENCE = 0.2
# A link is not followed, and a pipe not waited for: what is no plain file is refused.
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Lock:
    """An exclusive lock on a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Take the lock; False if somebody else has it."""
        import fcntl

        handle = self._opened()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        if not self._names(handle):  # the file was removed before it was locked, so that the next one locks another
            os.close(handle)
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
            os.close(self._handle)
            self._handle = None

    def _opened(self) -> int:
        try:
            handle = os.open(self.file, LOCK_FLAGS, 0o666)
        except OSError as error:
            why = "it is a link, and links are not followed" if self.file.is_symlink() else error.strerror
            raise RecordError(f"{self.file} cannot be locked: {why}") from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise RecordError(f"{self.file} cannot be locked: it is not a plain file")
        return handle

    def _names(self, handle: int) -> bool:
        """Whether the file's name still leads to what was opened."""
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.file, follow_symlinks=False))
        except FileNotFoundError:
            return False


# The locks of this process: a child that is forked off must not keep them when its parent dies.
_HELD: WeakSet[Lock] = WeakSet()


def _let_go() -> None:
    for lock in list(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
