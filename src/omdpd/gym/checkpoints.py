"""Learning that survives a crash: a durable session, and the returns of its episodes beside it.

    <folder>/session/      the learner (`Session.open`): every update is on disk before the next episode
    <folder>/returns.csv   episode, reward, length and costs of every episode played

A line is written before its update, so there are never fewer lines than updates; one line more is an episode that was
played and not learnt from, and is dropped.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from omdpd.gym.episode import Episode
from omdpd.learners.protocol import Learner
from omdpd.play.session import Session
from omdpd.play.start import Start
from omdpd.problem.setting import Feedback, Setting
from omdpd.storage.atomic import RecordError, make_folder, read_bounded, write_atomically

# A line per episode: the numbers as Python writes them, which reads them back to the last bit.
FILE = "returns.csv"


@dataclass(frozen=True)
class Return:
    """What an episode came to, in the environment's units."""

    reward: float
    length: int
    costs: tuple[float, ...]

    @staticmethod
    def of(episode: Episode) -> Return:
        """The numbers of an episode that was played."""
        return Return(episode.reward, episode.length, tuple(episode.costs.tolist()))


class Returns:
    """The file of returns, open at its end; what was there before is in `kept`."""

    def __init__(self, folder: Path, n_kept: int, n_costs: int) -> None:
        self.file = folder / FILE
        self.kept = self._read(n_kept, n_costs)
        # A line that was played but not learnt from goes, and so does half a line.
        write_atomically(self.file, "".join(_line(k, found) for k, found in enumerate(self.kept)).encode())
        self._stream: TextIO = open(self.file, "a", newline="")  # noqa: SIM115

    def append(self, k: int, found: Return) -> None:
        """Write an episode's line through to the disk."""
        self._stream.write(_line(k, found))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def _read(self, n: int, n_costs: int) -> list[Return]:
        if not n:
            return []
        try:
            lines = list(csv.reader(read_bounded(self.file).decode().splitlines()))[:n]
            found = [Return(float(line[1]), int(line[2]), tuple(map(float, line[3:]))) for line in lines]
        except (ValueError, IndexError, csv.Error) as error:
            raise RecordError(f"{self.file} is damaged: {error}") from None
        if len(found) < n or any(len(each.costs) != n_costs for each in found):
            raise RecordError(f"{self.file} is damaged: it lacks episodes that were learnt from")
        return found


def opened_checkpoint(
    folder: Path, learner: Learner[Any] | None, setting: Setting, logged: Sequence[Feedback], start: Start
) -> tuple[Session, Returns]:
    """The session of a folder and the returns so far; both are new where there is nothing yet."""
    make_folder(folder)
    session = Session.open(folder / "session", learner, setting, logged=logged, start=start)
    try:
        return session, Returns(folder, session.episodes, setting.n_constraints)
    except BaseException:
        session.close()
        raise


def _line(k: int, found: Return) -> str:
    numbers: Sequence[float] = (k, found.reward, found.length, *found.costs)
    return ",".join(repr(x) for x in numbers) + "\n"
