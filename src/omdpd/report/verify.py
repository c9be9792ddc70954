"""Is every file under a folder what was written?  Runs and sessions are read whole; nothing is changed.

Of every run: each file's checksum and the run it names; every table, read to its end; the rows against the values of
all episodes, and the summary against the rows.  Of a folder of results: its summary against those of its runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from omdpd.problem.arrays import InvalidInputError
from omdpd.report.stored import RUN_NAME, read_run
from omdpd.storage.atomic import MAX_FILE_BYTES, MAX_JSON_BYTES, RecordError, read_bounded
from omdpd.storage.journal import verify_session
from omdpd.storage.run_folder import RunFolder
from omdpd.storage.sealed import read_toml


@dataclass(frozen=True)
class Verification:
    """What was read, what is wrong (a sentence each), and which runs are of a format without checksums."""

    runs: int
    sessions: int
    wrong: tuple[str, ...]
    unsealed: int


def verify_tree(folder: Path) -> Verification:
    """Read every run and session under a folder; links are not followed."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder")
    n_runs = n_sessions = unsealed = 0
    wrong: list[str] = []
    for path, names in _folders(folder, wrong):
        try:
            if path.is_symlink() and path != folder:
                raise RecordError(f"{path} is a link, and links are not followed: what it leads to was not read")
            if "session.json" in names or "snapshot.json" in names:
                n_sessions += 1
                verify_session(path)
            elif path.parent.name == "runs" or "spec.toml" in names:
                run = read_run(path, None if path.parent.name == "runs" else "")
                n_runs += run.state != "waiting"
                unsealed += not run.sound().whole(MAX_FILE_BYTES).sealed
            elif "runs" in names:
                _verify_results(path)
        except (InvalidInputError, OSError) as error:
            wrong.append(" ".join(str(error).split()))
    if not n_runs and not n_sessions and not wrong:
        raise InvalidInputError(f"{folder} holds no run and no session")
    return Verification(n_runs, n_sessions, tuple(wrong), unsealed)


def _folders(folder: Path, wrong: list[str]) -> Iterator[tuple[Path, set[str]]]:
    """Every folder of a tree with the names in it, in a fixed order; links that stand for folders have none."""
    for path, folders, files in os.walk(folder, onerror=lambda error: wrong.append(str(error))):
        folders.sort()
        here = Path(path)
        yield here, {*folders, *files}
        others = folders if here.name != "runs" else [*folders, *filter(RUN_NAME.fullmatch, sorted(files))]
        yield from ((here / name, set()) for name in others if name in files or (here / name).is_symlink())


def _verify_results(path: Path) -> None:
    """A folder of results: its experiment, and its summary against those of its runs."""
    if os.path.lexists(path / "experiment.toml"):
        read_toml(path / "experiment.toml")
    file = path / "summary.json"
    if not os.path.lexists(file):
        return
    try:
        records = json.loads(read_bounded(file, MAX_JSON_BYTES))
        named = {record["run"]: record for record in records}
    except (ValueError, RecursionError, TypeError, KeyError):
        raise RecordError(f"{file} is damaged: it is no list of summaries") from None
    for name, record in named.items():
        if Path(str(name)).name == name and RunFolder(path / "runs" / name, name).summary != record:
            raise RecordError(f"{file} does not say of the run {name} what its own summary says")
