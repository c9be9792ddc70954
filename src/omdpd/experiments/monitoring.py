"""A stored run, played again beside the truth (`play/monitor.py`), and whether it is the run that was stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from omdpd.experiments.one_run import scene_of
from omdpd.experiments.spec import RunSpec
from omdpd.experiments.writer import as_written_now, resumed, table_of_rows
from omdpd.play.loop import first
from omdpd.play.monitor import Monitor, check_monitored, watch
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.run_folder import RunFolder


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
    end = resumed(record, scene.learner, first(scene), np.random.default_rng(spec.stream(2)))
    found = watch(scene, end, np.random.default_rng(spec.stream(2)), spec.learner.label, spec.nature.label)
    played = table_of_rows(found.rows, ())
    now = as_written_now(stored)
    places = now["episode"].to_numpy() - 1
    differs, column = _first_difference(now.to_pydict(), played.take(places).to_pydict())
    return Replay(found, len(places), differs, column)


def _first_difference(
    stored: dict[str, list[object]], played: dict[str, list[object]]
) -> tuple[int | None, str | None]:
    """The first row in which something that was recorded is not what was played, and its column."""
    for place, episode in enumerate(stored["episode"]):
        for name in played:
            if name in stored and not _same(stored[name][place], played[name][place]):
                return int(str(episode)), name
    return None, None


def _same(stored: object, played: object) -> bool:
    """Equal to the last bit; what an earlier version did not record is no difference."""
    if stored is None or stored == played:
        return True
    return isinstance(stored, float) and isinstance(played, float) and math.isnan(stored) and math.isnan(played)
