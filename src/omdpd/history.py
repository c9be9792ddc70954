"""A run in memory: own problem, nature and learner in; exact scores, curves and the learnt policy out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omdpd.arrays import Floats, InvalidInputError, positive_integer
from omdpd.cmdp import CMDP
from omdpd.curves import Curves, band
from omdpd.evaluation import Comparator, Scores, scores
from omdpd.figures import draw, write_figure
from omdpd.learners.protocol import Learner, Report
from omdpd.natures.protocol import Nature
from omdpd.play import Metric, Row, Scene, first, met_comparator, play, seed_of
from omdpd.specs import NATURES, named


@dataclass(frozen=True, eq=False)
class History:
    """What happened: per-episode true `values` (K,) and `excess` costs (K, I), and what it amounts to."""

    label: str
    nature: str
    rows: Sequence[Row]
    comparator: Comparator
    scores: Scores
    report: Report
    policy: Floats

    @property
    def values(self) -> Floats:
        """True value of every episode's policy, (K,)."""
        return np.array([row.value for row in self.rows])

    @property
    def excess(self) -> Floats:
        """True excess cost of every episode's policy, (K, I)."""
        return np.array([row.excess for row in self.rows])

    @property
    def violation(self) -> Floats:
        """Cumulative strong violation, (K,)."""
        return np.array([row.violation_sum for row in self.rows])

    @property
    def regret(self) -> Floats | None:
        """Cumulative regret, (K,); None where no policy is safe in every episode."""
        best = self.comparator.value
        if best is None:
            return None
        return np.array([row.episode * best - row.value_sum for row in self.rows])


def run(
    cmdp: CMDP,
    learner: Learner[Any],
    nature: str | Nature = "fixed",
    n_episodes: int = 1000,
    seed: int = 0,
    label: str | None = None,
    metrics: Mapping[str, Metric] | None = None,
) -> History:
    """Play `learner` on `cmdp` for `n_episodes` and judge it exactly.

    `nature` is one of the names that ``omdpd list`` prints, or an object of your own (see `natures/protocol.py`).
    The same seed gives every learner the same luck and the same rounds.  `metrics` are functions of (cmdp, round,
    policy) whose numbers stand in every row.
    """
    positive_integer("n_episodes", n_episodes)
    nature_stream, rollouts = (np.random.SeedSequence(seed, spawn_key=(i,)) for i in (1, 2))
    if isinstance(nature, str):
        name, picked = nature, named(NATURES, nature, "nature")().build(cmdp, seed_of(nature_stream))
    else:
        name, picked = type(nature).__name__, nature
    scene = Scene(cmdp, picked, learner, n_episodes, metrics or {})
    end = start = first(scene)
    rows, values = [], []
    for value, row, now in play(scene, start, np.random.default_rng(rollouts), lambda k: True):
        assert row is not None
        rows.append(row)
        values.append(value)
        end = now
    best = met_comparator(scene, end)
    return History(
        label or type(learner).__name__, name, rows, best, scores(np.array(values), end.totals, best),
        learner.report(end.learner_state), learner.policy(end.learner_state),
    )  # fmt: skip


def plot(histories: Sequence[History], file: str | Path, title: str = "") -> Path:
    """Draw cumulative violation and regret of some histories; the file's ending chooses the format (png, svg, pdf).

    Histories with one label and nature are seeds of one curve.
    """
    if not histories:
        raise InvalidInputError("there is nothing to plot: the list of histories is empty")
    groups: dict[tuple[str, str], list[History]] = {}
    for history in histories:
        groups.setdefault((history.label, history.nature), []).append(history)
    curves = [_curves(label, nature, group) for (label, nature), group in groups.items()]
    return write_figure(draw(curves, title), Path(file))


def _curves(label: str, nature: str, group: Sequence[History]) -> Curves:
    lengths = {len(h.rows) for h in group}
    if len(lengths) > 1:
        raise InvalidInputError(f"the runs of {label!r} under {nature!r} have different lengths: {sorted(lengths)}")
    episodes = np.arange(1.0, lengths.pop() + 1.0)
    regrets = [h.regret for h in group if h.regret is not None]
    regret = band(episodes, np.stack(regrets)) if len(regrets) == len(group) else None
    return Curves(label, nature, band(episodes, np.stack([h.violation for h in group])), regret)
