"""A run watched with full knowledge: which inequality of the analysis held, in which episodes, and by how much.

The comparator q* is known only when a run is over, as its tables may be chosen on the way; but a run is determined by
its parts and seeds, so it is played once to find q*, and once more beside it.  A stored run is played again alike, and
held against what was stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from omdpd.experiments.one_run import scene_of
from omdpd.experiments.spec import RunSpec
from omdpd.experiments.writer import as_written_now, columns_of_rows, resumed
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures.protocol import Nature, changes_of
from omdpd.play.history import rollouts_of, scene_in_memory
from omdpd.play.judging import Comparator
from omdpd.play.loop import Progress, batches, met_comparator, play, start_of_run
from omdpd.play.rows import Rows, regret_curve
from omdpd.play.scene import Scene
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer, whole_number
from omdpd.problem.cmdp import CMDP
from omdpd.problem.markup import table_html
from omdpd.solvers.sweeps import occupancy_under
from omdpd.storage.npz import Arrays
from omdpd.storage.run_folder import RunFolder
from omdpd.theory.inequalities import HeldAgainst, Inequality, SeenEpisode
from omdpd.theory.omdpd import OMDPDWatch
from omdpd.theory.proximal import ProximalWatch

HEAD = ("inequality", "in", "left", "right", "verdict", "share")


@dataclass(frozen=True, eq=False, repr=False)
class Losses:
    """Regret and strong violation after every episode, and their split by what was planned (Section 5.2), (n,) each.

    Estimation error is what is lost because plans were made with wrong tables and laws, optimisation error what is lost
    under the learner's own tables; the two add up.  Regret is None where no policy is safe in every episode.
    """

    violation: Floats
    estimation_violation: Floats
    optimisation_violation: Floats
    regret: Floats | None
    estimation_regret: Floats
    optimisation_regret: Floats | None

    def __repr__(self) -> str:
        parts = [f"violation {self.violation[-1]:.4g} = {self.estimation_violation[-1]:.4g} by estimation + "]
        parts[0] += f"{self.optimisation_violation[-1]:.4g} by optimisation"
        if self.regret is not None and self.optimisation_regret is not None:
            split = (
                f"{self.estimation_regret[-1]:.4g} by estimation + {self.optimisation_regret[-1]:.4g} by optimisation"
            )
            parts.insert(0, f"regret {self.regret[-1]:.4g} = {split}")
        return f"Losses({'; '.join(parts)})"


@dataclass(frozen=True, eq=False, repr=False)
class Monitor:
    """The inequalities of the analysis on one run, in the units that the learner sees.

    ``monitor["surrogate regret"]`` is one of them, with both sides after every episode; ``monitor.failed`` are those
    that did not hold, ``monitor.losses`` the split of regret and violation, ``plot(monitor)`` draws it all.
    """

    label: str
    nature: str
    inequalities: tuple[Inequality, ...]
    losses: Losses
    comparator: Comparator
    rows: Rows

    def __getitem__(self, name: str) -> Inequality:
        for each in self.inequalities:
            if each.name == name:
                return each
        names = ", ".join(each.name for each in self.inequalities)
        raise InvalidInputError(f"no inequality is called {name!r}: there are {names}")

    def __iter__(self) -> Iterator[Inequality]:
        return iter(self.inequalities)

    def __len__(self) -> int:
        return len(self.inequalities)

    @property
    def failed(self) -> tuple[Inequality, ...]:
        """The inequalities that failed in some episode."""
        return tuple(each for each in self.inequalities if each.held is False)

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """A line each: name, where it stands, both sides (sums at the end, single ones at worst), verdict, share."""
        return tuple(line_of(each) for each in self.inequalities)

    def __repr__(self) -> str:
        applied = sum(each.applies for each in self.inequalities)
        held = f"{applied - len(self.failed)} of {applied} inequalities held"
        idle = len(self.inequalities) - applied
        rest = f", {idle} {'does' if idle == 1 else 'do'} not apply" if idle else ""
        return f"Monitor({self.label}, {self.nature}, {len(self.rows)} episodes: {held}{rest})"

    def _repr_html_(self) -> str:
        """The table in a notebook, with what has to be known to read it."""
        lines = zip(self.table, self, strict=True)
        return table_html(
            (*HEAD, "statement", "note"),
            [(*line, each.statement, each.note or each.reason or "") for line, each in lines],
        )


def monitor(
    cmdp: CMDP,
    learner: Learner[Any],
    nature: str | Nature = "fixed",
    n_episodes: int = 1000,
    seed: int = 0,
    label: str | None = None,
) -> Monitor:
    """Play `learner` like `run`, and say which inequality of its analysis held on the way.

    The same arguments give the same episodes as `run`.  `OMDPD` and `ProximalOMDPD` are monitored, on natures whose
    rewards and laws do not change; it takes somewhat over twice as long as `run`.
    """
    if not isinstance(cmdp, CMDP):
        raise InvalidInputError(f"cmdp is a {type(cmdp).__name__}, but must be a CMDP: build one with CMDP.from_arrays")
    positive_integer("n_episodes", n_episodes)
    whole_number("seed", seed, 0)
    name, scene = scene_in_memory(cmdp, learner, nature, n_episodes, seed)
    check_monitored(scene)
    ((_, _, end),) = deque(batches(scene, start_of_run(scene), rollouts_of(seed), lambda k: False), maxlen=1)
    return watch(scene, end, rollouts_of(seed), label or type(learner).__name__, name)


def watch(scene: Scene, end: Progress, rng: np.random.Generator, label: str, nature: str) -> Monitor:
    """Play the episodes up to `end` again beside the comparator of the tables that they met."""
    truth = _truth(scene, end)
    watching = _watching(scene.learner, truth)
    before, rows = start_of_run(scene), Rows()
    for _, row, now in play(scene, before, rng, lambda k: True):
        assert row is not None
        rows.extend([row])
        watching.see(_episode(scene, before, now))
        before = now
        if now.k == end.k:
            break
    return Monitor(label, nature, tuple(watching.done()), _losses(rows, truth.best), truth.best, rows)


def _watching(learner: Learner[Any], truth: HeldAgainst) -> OMDPDWatch | ProximalWatch:
    if isinstance(learner, OMDPD):
        return OMDPDWatch(learner, truth)
    assert isinstance(learner, ProximalOMDPD), "check_monitored refuses all others"
    return ProximalWatch(learner, truth)


def check_monitored(scene: Scene) -> None:
    """Refuse what cannot be monitored, with the reason."""
    learner, setting = scene.learner, scene.cmdp.setting(scene.episodes, scene.nature.feedback)
    if not isinstance(learner, OMDPD | ProximalOMDPD):
        raise InvalidInputError(
            f"{type(learner).__name__} is not monitored: only the analyses of OMDPD and ProximalOMDPD are known here"
        )
    if changed := changes_of(scene.nature):
        raise InvalidInputError(
            f"the nature changes {' and '.join(changed)}, so estimates of means cannot be held against the truth"
        )
    if isinstance(learner, ProximalOMDPD) and not learner.keeps_tables(setting):
        raise InvalidInputError(
            "a problem whose beliefs are held on a graph is not monitored: laws are compared as tables"
        )


def line_of(inequality: Inequality) -> tuple[str, ...]:
    """An inequality as texts."""
    if not inequality.applies:
        return inequality.name, inequality.where, "", "", inequality.verdict, ""
    left, right = inequality.sides
    return (
        inequality.name, inequality.where, f"{left:.4g}", f"{right:.4g}", inequality.verdict, f"{inequality.share:.1%}"
    )  # fmt: skip


def _truth(scene: Scene, end: Progress) -> HeldAgainst:
    best, cmdp = met_comparator(scene, end), scene.cmdp
    occupancy = None if best.policy is None else occupancy_under(cmdp.laws, best.policy, cmdp.initial)
    return HeldAgainst(cmdp, cmdp.setting(scene.episodes, scene.nature.feedback), best, occupancy)


def _episode(scene: Scene, before: Progress, after: Progress) -> SeenEpisode:
    """What happened between two moments of a run: a nature's draw can be asked for again."""
    cmdp, nature = scene.cmdp, scene.nature
    occupancy = occupancy_under(cmdp.laws, scene.learner.policy(before.learner_state), cmdp.initial)
    cost = nature.draw(before.k, occupancy).cost
    seen = before.learner_state, after.learner_state
    if isinstance(scene.learner, ProximalOMDPD):  # laws are compared as tables
        seen = scene.learner.in_tables(seen[0]), scene.learner.in_tables(seen[1])
    return SeenEpisode(after.k, *seen, occupancy, cost, nature.feedback == "full")


def _losses(rows: Rows, best: Comparator) -> Losses:
    """The split, from what the rows say."""
    episodes, value, planned, violation, planned_violation = (
        np.array(rows.column(name), dtype=np.float64)
        for name in ("episode", "value_sum", "planned_value_sum", "violation_sum", "planned_violation_sum")
    )
    return Losses(
        violation, violation - planned_violation, planned_violation, regret_curve(best.value, episodes, value),
        planned - value, regret_curve(best.value, episodes, planned),
    )  # fmt: skip


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
