"""Learning that survives a crash: a durable session, and the returns of its episodes beside it.

    <folder>/session/      the learner (`Session.open`): every update is on disk before the next episode
    <folder>/returns.csv   episode, reward, length and costs of every episode played
    <folder>/task.json     the units that the learner is told them in: budget, range of rewards, scale of costs; and
                           the names of the functions that are asked for again

A line is written before its update, so there are never fewer lines than updates; one line more is an episode that was
played and not learnt from, and is dropped.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from omdpd.gym.episode import EpisodeRow
from omdpd.gym.settings import ask_again, functions_of
from omdpd.gym.task import Task
from omdpd.learners.protocol import Learner
from omdpd.play.session import Session
from omdpd.play.start import Start
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Feedback
from omdpd.storage.atomic import RecordError, make_folder, read_bounded, write_atomically

# A line per episode: the numbers as Python writes them, which reads them back to the last bit.
FILE, UNITS = "returns.csv", "task.json"


class Returns:
    """The file of returns, open at its end; what was there before is in `kept`."""

    def __init__(self, folder: Path, n_kept: int, n_costs: int) -> None:
        self.file = folder / FILE
        self.kept = self._read(n_kept, n_costs)
        # A line that was played but not learnt from goes, and so does half a line.
        write_atomically(self.file, "".join(map(_line, self.kept)).encode())
        self._stream: TextIO = open(self.file, "a", newline="")  # noqa: SIM115

    def append(self, row: EpisodeRow) -> None:
        """Write an episode's line through to the disk."""
        self._stream.write(_line(row))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def _read(self, n: int, n_costs: int) -> list[EpisodeRow]:
        if not n:
            return []
        try:
            lines = list(csv.reader(read_bounded(self.file).decode().splitlines()))[:n]
            found = [
                EpisodeRow(k, float(line[1]), tuple(map(float, line[3:])), int(line[2]))
                for k, line in enumerate(lines, 1)
            ]
        except (ValueError, IndexError, csv.Error) as error:
            raise RecordError(f"{self.file} is damaged: {error}") from None
        if len(found) < n or any(len(each.costs) != n_costs for each in found):
            raise RecordError(f"{self.file} is damaged: it lacks episodes that were learnt from")
        return found


def opened_checkpoint(
    folder: Path, learner: Learner[Any] | None, task: Task, n_episodes: int, logged: Sequence[Feedback], start: Start
) -> tuple[Session, Returns]:
    """The session of a folder and the returns so far; both are new where there is nothing yet."""
    setting = task.setting(n_episodes)
    make_folder(folder)
    _same_units(folder / UNITS, task)
    session = Session.open(folder / "session", learner, setting, logged=logged, start=start)
    try:
        return session, Returns(folder, session.episodes, setting.n_constraints)
    except BaseException:
        session.close()
        raise


def _same_units(file: Path, task: Task) -> None:
    """Refuse to go on in other units than those that a folder was begun with."""
    now = {"budget": task.limits.tolist(), "reward_range": [*task.reward_range], "cost_scale": task.scale.tolist()}
    if not file.exists():
        write_atomically(file, json.dumps(now | {"functions": functions_of(task)}).encode())
        return
    try:
        before = dict(json.loads(read_bounded(file)))
    except (ValueError, TypeError) as error:
        raise RecordError(f"{file} is damaged: {error}") from None
    ask_again(map(str, before.get("functions", ())), task, str(file.parent))
    for name, value in now.items():
        if before.get(name) != value:
            raise InvalidInputError(
                f"{file.parent} was begun with {name} {before.get(name)}, not {value}: take another folder"
            )


def _line(row: EpisodeRow) -> str:
    numbers: Sequence[float] = (row.episode - 1, row.reward, row.length, *row.costs)
    return ",".join(repr(x) for x in numbers) + "\n"
