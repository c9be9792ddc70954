"""A stored run, played again beside the truth (`theory/monitor.py`), and whether it is the run that was stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.experiments.one_run import scene_of
from omdpd.experiments.spec import RunSpec
from omdpd.experiments.writer import as_written_now, columns_of_rows, resumed
from omdpd.play.loop import start_of_run
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.npz import Arrays
from omdpd.storage.run_folder import RunFolder
from omdpd.theory.monitor import Monitor, check_monitored, watch


@dataclass(frozen=True, eq=False)
class Replay:
    """The monitor of a stored run, and the first recorded episode that came out otherwise (None if none did).

    A run depends on its parts and seeds alone; another version or another processor may still end in other digits, and
    then the monitor is about the episodes that were played now.
    """

    monitor: Monitor
    n_rows: int
    differs: int | None
    column: str | None

    def __str__(self) -> str:
        if self.differs is None:
            return f"played again: all {self.n_rows} recorded rows came out bit for bit"
        return (
            f"played again: {self.column} of episode {self.differs} is not what was recorded, so that this is about "
            "the episodes played now (another version or another processor recorded the run)"
        )


def monitor_stored(spec: RunSpec, record: RunFolder) -> Replay:
    """Play a stored run again, as far as it was committed; its folder is only read."""
    scene = scene_of(spec)
    check_monitored(scene)
    stored = record.rows()
    if stored is None:
        raise InvalidInputError(f"{record.path} holds no rows yet: there is nothing to monitor")
    end = resumed(record, scene.learner, start_of_run(scene), np.random.default_rng(spec.stream(2)))
    found = watch(scene, end, np.random.default_rng(spec.stream(2)), spec.learner.label, spec.nature.label)
    now = as_written_now(stored)
    places = now["episode"] - 1
    played = {name: column[places] for name, column in columns_of_rows(found.rows, ()).items()}
    differs, column = _first_difference(now, played)
    return Replay(found, len(places), differs, column)


def _first_difference(stored: Arrays, played: Arrays) -> tuple[int | None, str | None]:
    """The first row in which something that was recorded is not what was played, and its column.

    Equal is equal to the last bit; what an earlier version did not record, or could not (nan), is no difference.
    """
    first: tuple[int | None, str | None] = (None, None)
    for name in (name for name in played if name in stored):
        differs = ~((stored[name] == played[name]) | np.isnan(stored[name]))
        places = np.flatnonzero(differs.reshape(len(differs), -1).any(axis=1))
        if len(places) and (first[0] is None or stored["episode"][places[0]] < first[0]):
            first = int(stored["episode"][places[0]]), name
    return first
