"""One run of a folder of results, read back: what ran, its scores, its rows, and the policies that it kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omdpd.experiments.monitoring import monitor_stored
from omdpd.play.judging import telling_exponent
from omdpd.play.monitor import Monitor
from omdpd.play.policy import Policy
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import Labels
from omdpd.problem.markup import facts_html
from omdpd.report.stored import StoredRun, read_run, stored_runs
from omdpd.storage.atomic import RecordError

# What a sentence and a notebook show of a summary.
SHOWN = ("regret", "violation", "weak_violation", "regret_exponent", "violation_exponent", "seconds")


@dataclass(frozen=True, eq=False, repr=False)
class LoadedRun:
    """A run as its folder tells it; `summary` is None while it is not finished."""

    stored: StoredRun

    @property
    def summary(self) -> Mapping[str, Any] | None:
        """The scores."""
        return self.stored.summary

    @property
    def rows(self) -> pa.Table:
        """The recorded episodes."""
        rows = self.stored.rows()
        if rows is None:
            raise RecordError(f"{self.stored.path} holds no rows yet")
        return rows

    @property
    def policies(self) -> dict[int, Policy]:
        """The policies that were kept on the way, by the episodes played before; the last one is `policy`.

        They are kept in single precision, and their rows are scaled to sum to one.
        """
        kept = self.stored.policies()
        if not kept:
            raise InvalidInputError(f'{self.stored.path} kept no policies: run it with policies = "log"')
        labels = self._labels()
        tables = kept["policies"].astype(np.float64)
        tables /= tables.sum(axis=-1, keepdims=True)
        return {int(k): Policy(table, labels) for k, table in zip(kept["episodes"], tables, strict=True)}

    @property
    def policy(self) -> Policy:
        """The last policy that was kept: after the last episode of a finished run."""
        kept = self.policies
        return kept[max(kept)]

    def monitor(self) -> Monitor:
        """The run played again beside the truth; ``omdpd monitor`` also says whether it came out as recorded."""
        if self.stored.spec is None:
            raise InvalidInputError(f"{self.stored.path} names a part that nothing here knows: it cannot be played")
        return monitor_stored(self.stored.spec, self.stored.folder).monitor

    def __repr__(self) -> str:
        (world, nature, learner), seed = self._names()
        return f"LoadedRun({learner}, {world}, {nature}, seed {seed}, {self.stored.state}: {self._progress()})"

    def _repr_html_(self) -> str:
        """The run in a notebook."""
        (world, nature, learner), seed = self._names()
        numbers = {name: f"{value:.4g}" for name in SHOWN if (value := self._shown(name)) is not None}
        facts = {"world": world, "nature": nature, "seed": seed, "episodes": self._progress()} | numbers
        return facts_html(f"{learner} ({self.stored.state})", facts)

    def _names(self) -> tuple[tuple[str, str, str], int | None]:
        return self.stored.labels, None if self.stored.asked is None else self.stored.asked.seed

    def _shown(self, name: str) -> float | None:
        """A number of the summary; of exponents those that tell something."""
        value = (self.summary or {}).get(name)
        return telling_exponent(value, self.stored.episodes) if name.endswith("_exponent") else value

    def _progress(self) -> str:
        return f"{self.stored.episodes} of {self.stored.asked.episodes if self.stored.asked else '?'} episodes"

    def _labels(self) -> Labels:
        """The names of the world's states and actions; none where the world cannot be built here."""
        cmdp = self.stored.cmdp()
        return Labels() if cmdp is None else cmdp.labels


def load_run(folder: str | Path) -> LoadedRun:
    """One run: its own folder (``results/NAME/runs/ID``), or a folder of results that holds a single run."""
    path = Path(folder)
    if (path / "runs").is_dir():
        runs = stored_runs(path)
        if len(runs) != 1:
            example = f", for example {runs[0].path}" if runs else ""
            raise InvalidInputError(f"{path} holds {len(runs)} runs: name one of them{example}")
        found = runs[0]
    elif (path / "spec.toml").is_file():
        found = read_run(path).sound()
    else:
        raise InvalidInputError(f"{path} holds no run: there is neither a spec.toml nor a folder runs in it")
    return LoadedRun(found)
