"""A look at a session without opening it: from a copy of its files, whoever has it open meanwhile."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path

from omdpd.experiments.registry import Registry
from omdpd.problem.arrays import InvalidInputError
from omdpd.serve.described import open_described
from omdpd.serve.status import Status, status_of
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import SessionWarning

# A snapshot that is taken while files are copied leaves a copy that does not fit together: then once more.
TRIES = 5


def read_status(folder: Path, registry: Registry) -> Status:
    """The status of a session, as its files say it now."""
    if not (folder / "session.json").exists():
        raise InvalidInputError(f"{folder} holds no session yet: omdpd serve {folder} begins it")
    for attempt in range(TRIES):
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore", SessionWarning)  # the last entry may be half written just now
            try:
                copy = Path(place) / folder.resolve().name
                shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("history-*", "lock", "*.part*"))
                with open_described(copy, registry) as session:
                    return status_of(session)
            except (RecordError, InvalidInputError, OSError):
                if attempt == TRIES - 1:
                    raise
    raise AssertionError("unreachable")
