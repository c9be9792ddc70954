"""Locks that a dead owner does not hold: the system lets go of them, however their owner died; and turns of threads."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from omdpd.problem.arrays import InvalidInputError
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
        self._process = 0

    def acquire(self) -> bool:
        """Take the lock; return False if another owner has it."""
        import fcntl

        handle = self._opened()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._found = os.fstat(handle)
        if not leads_to(self.file, self._found):  # removed before it was locked, so that the next one locks another
            os.close(handle)
            return False
        self._handle, self._process = handle, os.getpid()
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

    @property
    def is_held(self) -> bool:
        """Whether this process has the lock, and its file is where it was."""
        try:
            self.check()
        except RecordError:
            return False
        return True

    def check(self) -> None:
        """Refuse all but the owner: a forked child, a lock that was let go, or one whose file is gone."""
        if self._process != os.getpid():
            raise RecordError(
                f"{self.file.parent} was opened by process {self._process}, and this one was forked from it: only that "
                "one may write; open it here once it is closed there"
            )
        if self._handle is None:
            raise RecordError(f"{self.file.parent} is closed, so nothing more can be written: open it again")
        if not leads_to(self.file, self._found):
            raise RecordError(f"{self.file.parent} was removed or replaced while it was open: nothing is kept there")

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


def leads_to(file: Path, opened: os.stat_result) -> bool:
    """Whether a file's name still leads to what was opened; what that is does not change while it is open."""
    try:
        return os.path.samestat(opened, os.stat(file, follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return False


class Turn:
    """One thread at a time; others wait.  A copy is free, and so is what a forked child inherits."""

    def __init__(self) -> None:
        self._process, self._lock, self._busy = os.getpid(), threading.RLock(), False

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return Turn, ()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """The time that a thread has it; one that has it already, as a signal's handler, cannot wait for itself."""
        if self._process != os.getpid():
            vars(self).update(vars(Turn()))
        with self._lock:
            if self._busy:
                raise InvalidInputError("the session is in the middle of an update: call it again when that is done")
            self._busy = True
            try:
                yield
            finally:
                self._busy = False


# The locks of this process: a child that is forked off must not keep them when its parent dies.
_HELD: WeakSet[Lock] = WeakSet()


def _let_go() -> None:
    for lock in list(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
