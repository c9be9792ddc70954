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
from typing import Any

import numpy as np

from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import MAX_JSON_BYTES, RecordError, read_bounded
from omdpd.storage.journal import verify_session
from omdpd.storage.run_folder import RunFolder
from omdpd.storage.sealed import FORMAT, read_toml

# Sums of the same numbers in another order differ by rounding.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Verdict:
    """What was read, what is wrong (a sentence each), and which runs are of a format without checksums."""

    runs: int
    sessions: int
    wrong: tuple[str, ...]
    unsealed: int


def verify_tree(folder: Path) -> Verdict:
    """Read every run and session under a folder; links are not followed."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder")
    n_runs = n_sessions = unsealed = 0
    wrong: list[str] = []
    for path, names in _folders(folder):
        try:
            if "session.json" in names or "snapshot.json" in names:
                n_sessions += 1
                verify_session(path)
            elif path.parent.name == "runs" or "spec.toml" in names:
                if names & {"spec.toml", "commit.json", "summary.json", "error.json"}:
                    n_runs += 1
                    unsealed += _verify_run(path)
            elif "runs" in names:
                _verify_results(path)
        except (RecordError, OSError) as error:
            wrong.append(" ".join(str(error).split()))
    if not n_runs and not n_sessions:
        raise InvalidInputError(f"{folder} holds no run and no session")
    return Verdict(n_runs, n_sessions, tuple(wrong), unsealed)


def _folders(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """Every folder of a tree with the names in it, in a fixed order."""
    for path, folders, files in os.walk(folder):
        folders.sort()
        yield Path(path), {*folders, *files}


def _verify_run(path: Path) -> bool:
    """Refuse a run that is not what was written; whether it is of a format without checksums."""
    record = RunFolder(path, path.name if path.parent.name == "runs" else "")
    record.spec()
    record.verify()
    manifest, summary, rows = record.manifest(), record.summary, record.rows()
    if summary is not None and (manifest is None or rows is None):
        raise RecordError(f"{path / 'summary.json'} sums up a run without rows")
    if manifest is None or rows is None:
        return False
    _check_rows(path, rows, record.values())
    if summary is not None:
        _check_summary(path, summary, rows, manifest.episodes)
    return manifest.format != FORMAT


def _check_rows(path: Path, rows: Any, values: Any) -> None:
    """Recorded episodes rise, and have the values that all episodes have."""
    episodes = rows["episode"].to_numpy()
    if episodes[0] < 1 or episodes[-1] > len(values) or np.any(np.diff(episodes) <= 0):
        raise RecordError(f"the rows of {path} are of other episodes than its values")
    if not np.array_equal(rows["value"].to_numpy(), values[episodes - 1]):
        raise RecordError(f"the rows of {path} have other values than its values")
    total = float(values[: episodes[-1]].sum())
    if abs(float(rows["value_sum"][-1].as_py()) - total) > TOLERANCE * max(1.0, abs(total), len(values)):
        raise RecordError(f"the values of {path} have another sum than its last row says")


def _check_summary(path: Path, summary: dict[str, Any], rows: Any, episodes: int) -> None:
    violation = float(rows["violation_sum"][-1].as_py())
    stated = summary.get("violation")
    same = isinstance(stated, int | float) and abs(stated - violation) <= TOLERANCE * max(1.0, violation, episodes)
    if summary.get("episodes") != episodes or not same:
        raise RecordError(f"{path / 'summary.json'} does not sum up the rows of its run")


def _verify_results(path: Path) -> None:
    """A folder of results: its experiment, and its summary against those of its runs."""
    if (path / "experiment.toml").exists():
        read_toml(path / "experiment.toml")
    file = path / "summary.json"
    if not file.exists():
        return
    try:
        records = json.loads(read_bounded(file, MAX_JSON_BYTES))
        named = {record["run"]: record for record in records}
    except (ValueError, RecursionError, TypeError, KeyError):
        raise RecordError(f"{file} is damaged: it is no list of summaries") from None
    for name, record in named.items():
        if Path(str(name)).name == name and RunFolder(path / "runs" / name, name).summary != record:
            raise RecordError(f"{file} does not say of the run {name} what its own summary says")
