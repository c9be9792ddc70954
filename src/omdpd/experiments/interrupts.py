"""Ctrl-C and SIGTERM between batches of episodes: a run that is stopped commits what it has, and then stops."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

# In a worker: the flag that its parent raises before it passes Ctrl-C on.
_FLAG: list[Any] = []


@dataclass
class Stop:
    """Whether Ctrl-C or SIGTERM asked for a stop."""

    asked: bool = False
    terminated: bool = False


@contextmanager
def noting_interrupts() -> Iterator[Stop]:
    """While this lasts Ctrl-C only makes a note, which the loop inside looks at; a second one stops it at once.

    In a worker the second one is ignored: a terminal sends Ctrl-C to the worker and its parent, and the parent passes
    it on.  A worker that is told to terminate ends after the loop has seen the note.  Outside the main thread nothing
    changes, because signals do not arrive there.
    """
    # A Ctrl-C that came earlier may have been lost: what it raises inside a destructor or a callback is dropped.
    stop = Stop(asked=parent_stopped())
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    worker = multiprocessing.parent_process() is not None
    deaf = not worker and signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def note(number: int, frame: FrameType | None) -> None:
        if deaf and number == signal.SIGINT:
            return
        if stop.asked and not worker:
            raise KeyboardInterrupt
        stop.asked = True
        stop.terminated = stop.terminated or (worker and number == signal.SIGTERM)

    numbers = (signal.SIGINT, signal.SIGTERM) if worker else (signal.SIGINT,)
    before = [signal.signal(number, note) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        if stop.terminated:
            signal.raise_signal(signal.SIGTERM)


@contextmanager
def hearing_terminate() -> Iterator[Stop]:
    """While this lasts SIGTERM is taken for Ctrl-C, and noted; also where the shell has made this deaf to Ctrl-C."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def pass_on(number: int, frame: FrameType | None) -> None:
        stop.terminated = True
        _take(signal.getsignal(signal.SIGINT), number, frame)

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Ctrl-C waits until the end; processes that are started inside are deaf to it until they `ignore_interrupts`."""
    with interrupts_at_the_end():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_at_the_end() -> Iterator[None]:
    """Ctrl-C and SIGTERM that come inside are raised at the end.

    This belongs around everything that touches futures: Python code takes their locks, and an exception that a signal
    raises between taking one and entering its block leaves it taken for ever.  Blocking the signals is not enough:
    another thread may take them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = Stop()

    def note(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        stop.terminated = stop.terminated or number == signal.SIGTERM

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if stop.asked:
        _take(before, signal.SIGTERM if stop.terminated else signal.SIGINT, None)


def _take(handler: Any, number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does now.  A process that a shell started in the background ignores it, but not SIGTERM."""
    if callable(handler):
        handler(number, frame)
    elif number == signal.SIGTERM:
        raise KeyboardInterrupt


def parent_stopped() -> bool:
    """Whether this is a worker whose parent was asked to stop."""
    return any(flag.value for flag in _FLAG)


def ignore_interrupts(flag: Any) -> None:
    """An idle worker does not care for Ctrl-C: its parent raises the flag, and ends it."""
    _FLAG[:] = [flag]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """Ctrl-C ends what is inside with InterruptedError; before and after it is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedError("stopped") from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
