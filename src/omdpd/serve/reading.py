"""A look at a session without opening it: from a copy of its files, whoever has it open meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

from omdpd.experiments.registry import Registry
from omdpd.problem.arrays import InvalidInputError
from omdpd.serve.described import open_described, open_shadow
from omdpd.serve.desk import Desk
from omdpd.serve.status import Status, judged, status_of
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import SessionWarning

# A snapshot that is taken while files are copied leaves a copy that does not fit together: then once more.
TRIES = 5
# Seconds for which a look is good.
LOOK_EVERY = 2.0


class Look(Desk):
    """A session that somebody else has open: nothing but its status is shown."""

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
            self._seen = (time.monotonic() + LOOK_EVERY, read_status(self.folder, self.registry))
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
            except (RecordError, InvalidInputError, OSError):
                if attempt == TRIES - 1:
                    raise
    raise AssertionError("unreachable")
