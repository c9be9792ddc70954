"""A run in memory: own problem, nature and learner in; exact scores, curves and the learnt policy out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omdpd.learners.masked import name_of
from omdpd.learners.protocol import Learner, Report
from omdpd.natures import NATURES
from omdpd.natures.protocol import Nature
from omdpd.play.judging import Comparator, Scores, scores
from omdpd.play.loop import batches, met_comparator, seed_of, start_of_run
from omdpd.play.policy import Policy
from omdpd.play.rows import Row, Rows, regret_curve
from omdpd.play.scene import Metric, Scene, with_known_facts
from omdpd.play.start import NOTHING_BEFORE, Before, starting
from omdpd.play.units import Units
from omdpd.problem.arrays import Floats, InvalidInputError, named
from omdpd.problem.cmdp import CMDP
from omdpd.problem.markup import LINES, curve_svg, facts_html


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What happened: per-episode true `values` (K,) and `excess` costs (K, I), and what it amounts to.

    Values, costs and scores are in the user's units; `rows` and `comparator` in those that the learner sees.
    `policies` are those that were kept on the way, by the number of episodes played before.
    """

    label: str
    nature: str
    rows: Rows
    comparator: Comparator
    scores: Scores
    report: Report
    policy: Policy
    units: Units
    policies: Mapping[int, Policy] = field(default_factory=dict)

    @property
    def values(self) -> Floats:
        """True value of every episode's policy, (K,)."""
        return self.units.values(np.array(self.rows.column("value")))

    @property
    def excess(self) -> Floats:
        """True excess cost of every episode's policy, (K, I)."""
        return np.array(self.rows.column("excess")) * self.units.cost_scale

    @property
    def violation(self) -> Floats:
        """Cumulative strong violation, (K,)."""
        if self.units.plain:
            return np.array(self.rows.column("violation_sum"))
        return np.cumsum(np.maximum(self.excess.max(axis=1), 0.0))

    @property
    def regret(self) -> Floats | None:
        """Cumulative regret, (K,); None where no policy is safe in every episode."""
        episodes, values = (np.array(self.rows.column(name)) for name in ("episode", "value_sum"))
        seen = regret_curve(self.comparator.value, episodes, values)
        return None if seen is None else self.units.span * seen

    @property
    def _per_episode(self) -> str:
        return self.units.per_episode(self.scores.violation, len(self.rows))

    def __repr__(self) -> str:
        unknown = "regret undefined (no policy is safe in every episode)"
        regret = unknown if self.scores.regret is None else f"regret {self.scores.regret:.4g}"
        violation = f"strong violation {self.scores.violation:.4g} ({self._per_episode})"
        return f"History({self.label}, {self.nature}, {len(self.rows)} episodes: {regret}, {violation})"

    def __str__(self) -> str:
        regret = "undefined: no policy is safe in every episode"
        if self.scores.regret is not None:
            regret = f"{self.scores.regret:.4g} ({self.scores.regret / max(len(self.rows), 1):.3g} per episode)"
        violation = f"{self.scores.violation:.4g} ({self._per_episode})"
        head = f"{self.label}, {self.nature}, {len(self.rows)} episodes"
        return f"{head}\nregret            {regret}\nstrong violation  {violation}"

    def _repr_html_(self) -> str:
        """The history in a notebook: its scores, and regret and violation as small curves."""
        facts = {
            "episodes": len(self.rows), "strong violation": f"{self.scores.violation:.4g} ({self._per_episode})",
            "weak violation": f"{self.scores.weak_violation:.4g}",
            "regret": "none: no policy is safe in every episode" if self.scores.regret is None else (
                f"{self.scores.regret:.4g}"
            ),
        }  # fmt: skip
        curves = curve_svg("cumulative strong violation", self.violation, LINES[0])
        if self.regret is not None:
            curves += curve_svg("cumulative regret", self.regret, LINES[1])
        return facts_html(f"{self.label}, {self.nature}", facts, curves)


@dataclass(frozen=True, eq=False)
class Watched:
    """Who looks on while a run is played, and which of its policies are kept.

    `callback` gets every row in the user's units, `tell` the number of episodes played; `keep` says after how many
    episodes the policy that is played next is kept, `metrics` which numbers of the user stand in every row.
    """

    callback: Callable[[Row], None] | None = None
    tell: Callable[[int], None] | None = None
    keep: frozenset[int] = frozenset()
    metrics: Mapping[str, Metric] | None = None


def play_history(
    cmdp: CMDP, learner: Learner[Any] | None, nature: str | Nature, n_episodes: int, seed: int, label: str | None,
    watched: Watched, before: Before = NOTHING_BEFORE,
) -> History:  # fmt: skip
    """Play one run in memory: `omdpd.run` says what the parameters are."""
    name, scene = scene_in_memory(cmdp, learner, nature, n_episodes, seed, watched.metrics, before)
    units, learner = Units.of(cmdp), scene.learner
    label = label or name_of(learner)
    end = start = start_of_run(scene)
    rows, kept, paid = Rows(), {}, 0.0
    for _, fresh, now in batches(scene, start, rollouts_of(seed), lambda k: True, watched.keep):
        end = now
        if now.k in watched.keep:
            kept[now.k] = Policy(learner.policy(now.learner_state), cmdp.labels)
        rows.extend(fresh)
        if watched.callback is not None:
            for row in fresh:
                shown = units.row(row, paid)
                paid = shown.violation_sum
                watched.callback(shown)
        if watched.tell is not None:
            watched.tell(now.k)
    best = met_comparator(scene, end)
    found = units.scores(scores(np.array(rows.column("value")), end.totals, best), np.array(rows.column("excess")))
    return History(
        label, name, rows, best, found,
        learner.report(end.learner_state), Policy(learner.policy(end.learner_state), cmdp.labels), units, kept,
    )  # fmt: skip


def scene_in_memory(
    cmdp: CMDP, learner: Learner[Any] | None, nature: str | Nature, n_episodes: int, seed: int,
    metrics: Mapping[str, Metric] | None = None, before: Before = NOTHING_BEFORE,
) -> tuple[str, Scene]:  # fmt: skip
    """The nature's name, and what a seed makes of these parts: each draws from its own stream of random numbers."""
    nature_stream, own = (np.random.SeedSequence(seed, spawn_key=(i,)) for i in (1, 3))
    if isinstance(nature, str):
        name, picked = nature, named(NATURES, nature, "nature")(cmdp, seed_of(nature_stream))
    elif not hasattr(nature, "feedback"):
        raise InvalidInputError(f"nature is {nature!r}, but must be the name of a nature or one of your own")
    else:
        name, picked = type(nature).__name__, nature
    chosen = starting(learner, cmdp.setting(n_episodes, picked.feedback), before)
    informed = with_known_facts(chosen, cmdp, picked.feedback)
    return name, Scene(cmdp, picked, informed, n_episodes, metrics or {}, seed_of(own), logged=before.logged)


def rollouts_of(seed: int) -> np.random.Generator:
    """The random numbers of the episodes of a run in memory."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
