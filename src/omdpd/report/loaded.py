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
from omdpd.report.results import StoredRun, stored_run, stored_runs
from omdpd.storage.atomic import RecordError

# What a sentence and a notebook show of a summary.
SHOWN = ("regret", "violation", "weak_violation", "regret_exponent", "violation_exponent", "seconds")


@dataclass(frozen=True, eq=False, repr=False)
class LoadedRun:
    """A run as its folder tells it; `summary` is None while it is not finished."""

    stored: StoredRun
    summary: Mapping[str, Any] | None

    @property
    def rows(self) -> pa.Table:
        """The recorded episodes."""
        rows = self.stored.folder.rows()
        if rows is None:
            raise RecordError(f"{self.stored.folder.path} holds no rows yet")
        return rows

    @property
    def policies(self) -> dict[int, Policy]:
        """The policies that were kept on the way, by the episodes played before; the last one is `policy`.

        They are kept in single precision, and their rows are scaled to sum to one.
        """
        kept = self.stored.folder.policies()
        if kept is None:
            raise InvalidInputError(f'{self.stored.folder.path} kept no policies: run it with policies = "log"')
        if "episodes" not in kept or kept.get("policies", np.zeros(0)).shape[:1] != kept["episodes"].shape:
            raise RecordError(f"{self.stored.folder.path} is damaged: its policies are not those of its episodes")
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
            raise InvalidInputError(
                f"{self.stored.folder.path} names a part that nothing here knows: it cannot be played"
            )
        return monitor_stored(self.stored.spec, self.stored.folder).monitor

    def __repr__(self) -> str:
        run = self.stored
        return f"LoadedRun({run.learner}, {run.world}, {run.nature}, seed {run.seed}, {run.state}: {self._progress()})"

    def _repr_html_(self) -> str:
        """The run in a notebook."""
        run = self.stored
        numbers = {name: f"{value:.4g}" for name in SHOWN if (value := self._shown(name)) is not None}
        facts = {"world": run.world, "nature": run.nature, "seed": run.seed, "episodes": self._progress()} | numbers
        return facts_html(f"{run.learner} ({run.state})", facts)

    def _shown(self, name: str) -> float | None:
        """A number of the summary; of exponents those that tell something."""
        value = (self.summary or {}).get(name)
        return telling_exponent(value, self.stored.episodes) if name.endswith("_exponent") else value

    def _progress(self) -> str:
        return f"{self.stored.episodes} of {self.stored.n_episodes} episodes"

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
            example = f", for example {runs[0].folder.path}" if runs else ""
            raise InvalidInputError(f"{path} holds {len(runs)} runs: name one of them{example}")
        found = runs[0]
    elif (path / "spec.toml").is_file():
        found = stored_run(path)
    else:
        raise InvalidInputError(f"{path} holds no run: there is neither a spec.toml nor a folder runs in it")
    return LoadedRun(found, found.folder.summary)
