"""One session in service: who writes, who makes it last, and who learns.

The loop of the server is the only writer: `begin`, `act`, `tell` and `end` are entered into the journal there, without
waiting for the disk.  A thread syncs: all that was told since its last sync is acknowledged by one.  Another learns,
episode by episode in the order of the journal, and puts the next policy in force when it is ready.  So acting waits for
neither.

A session that another process has open is looked at in a copy of its files.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from omdpd.experiments.registry import Registry
from omdpd.play.episodes import EpisodeConflictError
from omdpd.play.session import Session
from omdpd.problem.arrays import InvalidInputError
from omdpd.serve.described import open_described, open_shadow
from omdpd.serve.status import Belief, Status, believed, judged, status_of
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import SessionWarning

# Episodes that may be open at once: what never ends must not fill the memory.
MOST_OPEN = 20_000
# Seconds between looks for episodes that never ended, and for which a belief is shown before it is worked out anew.
LOOK_EVERY, BELIEVE_EVERY = 5.0, 5.0
# Episodes that are dropped before others are answered.
AT_ONCE = 50
# After an update the learner rests this many times as long as that took, and at most so many seconds: updates one after
# the other would take every other turn of the interpreter from the requests.  It rests less the more episodes wait, and
# not at all while as many do.
RESTS, MOST_REST, MANY_WAIT = 3.0, 0.002, 100
# Seconds that a stop waits for an update.
LAST_UPDATE = 10.0
# A snapshot that is taken while files are copied leaves a copy that does not fit together: then once more.
TRIES = 5
# Seconds for which a look is good.
GOOD_FOR = 2.0


class NotDurableError(Exception):
    """The disk did not confirm what was told: it may be lost in a crash."""


class TooManyOpenError(EpisodeConflictError):
    """Too many episodes are open for another one to begin."""


class Desk:
    """A session, with the threads that sync it and learn."""

    reads = False  # whether it only shows what somebody else does

    def __init__(self, name: str, session: Session, drop_after: float, shadow: Session | None = None) -> None:
        self.name, self.session, self.drop_after, self.shadow = name, session, drop_after, shadow
        self.wrong = ""
        self._untold: list[asyncio.Future[None]] = []
        self._told, self._ended, self._stopping = threading.Event(), threading.Event(), False
        self._belief: tuple[float, tuple[int, list[float] | None], Belief, Belief | None] | None = None
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"{name}, {word}", daemon=True)
            for word, work in (("sync", self._sync), ("learn", self._learn))
        ]
        session.lag()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the threads work."""
        self._loop = loop
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Make everything durable, keep a snapshot, and let go of the folder."""
        self._stopping = True
        for event, thread in zip((self._told, self._ended), self._threads, strict=True):
            event.set()
            thread.join(LAST_UPDATE)
        if not self._threads[1].is_alive() and not self.wrong:
            self.session.keep()
        self.session.close()

    async def durable(self) -> None:
        """Wait until what was told before is on the disk."""
        waiting = self._loop.create_future()
        self._untold.append(waiting)
        self._told.set()
        await waiting

    def ended(self) -> None:
        """Say that there is something to learn."""
        self._ended.set()

    def check_room(self) -> None:
        """Refuse another episode where too many are open, or wait to be learnt from."""
        if len(self.session.books.open) >= MOST_OPEN:
            raise TooManyOpenError(f"{MOST_OPEN} episodes are open: end or drop some first")
        if self.session.waiting >= MOST_OPEN:
            raise TooManyOpenError(f"{MOST_OPEN} episodes wait to be learnt from: begin others later")

    async def look(self) -> None:
        """Drop what never ended, again and again."""
        while True:
            dropped = self.session.drop_older(self.drop_after, AT_ONCE)
            await asyncio.sleep(0.0 if dropped else LOOK_EVERY)

    def status(self) -> Status:
        """The session as it stands; not in the server's loop, since a belief takes its time."""
        now, learnt = time.monotonic(), (self.session.learnt, self.session.books.budget)
        if self._belief is None or (now > self._belief[0] and learnt != self._belief[1]):
            shadow = None if self.shadow is None else judged(self.session, self.shadow.policy())
            self._belief = (now + BELIEVE_EVERY, learnt, believed(self.session), shadow)
        return status_of(self.session, *self._belief[2:])

    def _guarded(self, work: Callable[[], None]) -> None:
        """A thread's work; if it ends by an error, the service says so."""
        try:
            work()
        except BaseException as error:
            self.wrong = f"{type(error).__name__}: {error}"
            self._answer(self._untold, self.wrong)

    def _sync(self) -> None:
        while not self._stopping:
            self._told.wait()
            self._told.clear()
            waiting, self._untold = self._untold, []
            try:
                self.session.sync()
                self._answer(waiting, "")
            except Exception as error:
                self.wrong = f"the disk failed: {error}"
                self._answer(waiting, self.wrong)

    def _learn(self) -> None:
        while not self._stopping:
            began = time.perf_counter()
            if not self.session.learn_next():
                self._ended.wait()
                self._ended.clear()
            elif (room := 1.0 - self.session.waiting / MANY_WAIT) > 0.0:
                time.sleep(min(room * RESTS * (time.perf_counter() - began), MOST_REST))

    def _answer(self, waiting: list[asyncio.Future[None]], wrong: str) -> None:
        def tell() -> None:
            for each in waiting:
                if each.done():
                    continue
                if wrong:
                    each.set_exception(NotDurableError(wrong))
                else:
                    each.set_result(None)

        self._loop.call_soon_threadsafe(tell)


class Look(Desk):
    """A session that another process has open: only its status is shown."""

    reads = True

    def __init__(self, name: str, folder: Path, registry: Registry) -> None:
        self.name, self.folder, self.registry, self.wrong = name, folder, registry, ""
        self._seen: tuple[float, Status] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with nothing: it is read when it is asked for."""

    def stop(self) -> None:
        """End with nothing."""

    async def look(self) -> None:
        """Drop nothing: that is its owner's to do."""

    def status(self) -> Status:
        """The session as its files say it, now or a moment ago."""
        if self._seen is None or time.monotonic() > self._seen[0]:
            self._seen = (time.monotonic() + GOOD_FOR, read_status(self.folder, self.registry))
        return self._seen[1]


def read_status(folder: Path, registry: Registry) -> Status:
    """The status of a session, as its files say it now."""
    if not (folder / "session.json").exists():
        raise InvalidInputError(f"{folder} holds no session yet: omdpd serve {folder} begins it")
    for attempt in range(TRIES):
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore", SessionWarning)  # the last entry may be half written just now
            try:
                copy = Path(place) / folder.resolve().name
                shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("lock", "*.tmp"))
                with (
                    open_described(copy, registry, folder) as session,
                    open_shadow(copy, registry, session) or nullcontext() as shadow,
                ):
                    return status_of(session, None, None if shadow is None else judged(session, shadow.policy()))
            except (RecordError, InvalidInputError) as error:
                if attempt == TRIES - 1:
                    raise type(error)(str(error).replace(str(copy), str(folder))) from None
            except OSError:
                if attempt == TRIES - 1:
                    raise
    raise AssertionError("unreachable")
