"""Fair tuning: one procedure and the same number of tries for every learner, ours included.

A learner says which settings may be tuned, at most one for each role (`learners/factors.py`).  A try multiplies them.
The first is the learner as it comes; half are points of one Halton sequence in the logarithms of the multiples, the
same for everybody; a quarter are points of it in a third of the ranges, around the best so far, and the last quarter in
a sixth of them, around the best of all those.  All are played for as many episodes as the comparison has, on training
instances that it does not use:

    the first half on 1 instance,   their best third on 2 more,   both quarters on the same 3,
    the best third of all that played those on 3 more,   the best third of these on 6 more,   the best is taken

What is best depends on what a method promises.  Those of `STRICT` promise no violation, or one that does not grow:
theirs is positive regret, with `PENALTY` for every unit by which the mean of strong violation passes `ALLOWED` per
episode.  That of all others is the Lagrangian regret, in which violation has the price that reward has for it.
Because any such number picks winners, the tries that no other one beats in regret and violation are kept beside it: the
learner's frontier, among all that played the first three instances, and on these alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from omdpd.experiments.experiment import suitable_runs
from omdpd.experiments.one_run import scene_of
from omdpd.experiments.spec import Experiment, LearnerSpec, NatureSpec, RunSpec, WorldSpec
from omdpd.learners.factors import Factor, Role, factors_of
from omdpd.learners.settings import settings_of
from omdpd.natures.protocol import changes_of
from omdpd.problem.arrays import InvalidInputError

N_TRIES = 36
TRAINING_SEEDS = tuple(range(900_000, 900_012))
BEST_SHARE = 3


class Stage(NamedTuple):
    """The training instances of a stage, and who plays them: new tries near the best, or the best of the tries.

    `near` is the share of the ranges, around the best, that new tries are drawn from; None where none is drawn.
    """

    instances: slice
    near: float | None = None


STAGES = (
    Stage(slice(0, 1)), Stage(slice(1, 3)), Stage(slice(0, 3), 1 / 3), Stage(slice(0, 3), 1 / 6), Stage(slice(3, 6)),
    Stage(slice(6, 12)),
)  # fmt: skip
# So many records of a try are of the instances that all tries play which go on: there they are held against each other.
SHARED = 3
# Methods that promise no violation, or one that does not grow with K; and what is allowed to them in every episode.
STRICT = (
    "AlwaysSafe", "CVOPS", "DOPE", "DOPEPlus", "EpisodeSafe", "FlexDOME", "OptPessLP", "OptPessPrimalDual", "SOPS",
    "SafeStart",
)  # fmt: skip
ALLOWED, PENALTY = 0.025, 10.0
# Presets that are what somebody published, or a core without constraints, for reference: nobody tunes them.
AS_THEY_COME = ("published", "theory", "unconstrained")
# The least and the largest multiple of a setting, by its role.  Widths reach far down, since the defaults that all
# learners share are wide for those that use them as a bonus; a step may be far off either way.
RANGES: dict[Role, tuple[float, float]] = {
    "reward width": (1 / 8, 2.0),
    "transition width": (1 / 64, 2.0),
    "cost pessimism": (1 / 4, 8.0),
    "step": (1 / 10, 100.0),
    "kernel pessimism": (1 / 64, 4.0),
    "exploration": (1 / 100, 4.0),
}
# The bases of the Halton sequence, one per role.
BASES = (2, 3, 5, 7, 11, 13)


@dataclass(frozen=True)
class Trial:
    """A try of one learner: what came out on the training instances."""

    learner: LearnerSpec
    regret: float | None
    violation: float
    criterion: float
    on_frontier: bool


@dataclass(frozen=True)
class Choice:
    """What was chosen for a learner, and where: a line of choices.csv."""

    world: str
    nature: str
    learner: str
    chosen: str
    tries: int
    episodes: int
    criterion: float


@dataclass(frozen=True)
class TryLine:
    """One try: a line of tries.csv; numbers are means over so many instances, or over those that most tries played."""

    world: str
    nature: str
    learner: str
    settings: str
    instances: int
    regret: float | None
    violation: float
    criterion: float
    shared_regret: float | None
    shared_violation: float | None
    on_frontier: bool
    chosen: bool


@dataclass(frozen=True)
class Tuned:
    """The runs of a comparison with every learner's best try in its place, and how each was chosen."""

    runs: tuple[RunSpec, ...]
    tries: tuple[TryLine, ...]
    choices: tuple[Choice, ...]

    def experiment(self, episodes: int, seeds: int) -> Experiment:
        """A grid of the same worlds, natures and learners."""
        worlds, natures, learners = (
            tuple(dict.fromkeys(getattr(run, kind) for run in self.runs)) for kind in ("world", "nature", "learner")
        )
        return Experiment(worlds, natures, learners, episodes, seeds)


Play = Callable[[Sequence[RunSpec]], Sequence[Mapping[str, Any]]]


class Race:
    """The tries of one learner at one place, of which fewer go on after every stage."""

    def __init__(self, run: RunSpec, n_tries: int) -> None:
        self.run, self.near = run, n_tries // 4
        first = tries(run.learner, n_tries - 2 * self.near)
        self.records: dict[LearnerSpec, list[Mapping[str, Any]]] = {each: [] for each in first if self._plays(each)}
        self.left = list(self.records) if len(first) > 1 else []

    def wanted(self, number: int) -> list[RunSpec]:
        """Give the runs of a stage; tries that the learner refuses are left out."""
        stage = STAGES[number]
        if stage.near is not None:
            found = [each for best in self.trials()[:1] for each in tries(best.learner, 1 + self.near, stage.near)]
            self.left = [each for each in found if each not in self.records and self._plays(each)]
        elif number:
            begun = [trial.learner for trial in self.trials()]
            kept = [each for each in begun if len(self.records[each]) == stage.instances.start]
            self.left = kept[: -(-len(kept) // BEST_SHARE)]
        seeds = TRAINING_SEEDS[stage.instances]
        return [msgspec.structs.replace(self.run, learner=each, seed=seed) for each in self.left for seed in seeds]

    def trials(self) -> list[Trial]:
        """The tries, the best first of those that were played most."""
        played = {learner: records for learner, records in self.records.items() if records}
        return sorted(judged(played), key=lambda trial: (-len(played[trial.learner]), trial.criterion))

    def _plays(self, learner: LearnerSpec) -> bool:
        run = self.run
        alone = Experiment((run.world,), (run.nature,), (learner,), run.episodes, 1, run.seed)
        return bool(suitable_runs(alone)[0])


def tuned(runs: Sequence[RunSpec], n_tries: int, play: Play) -> Tuned:
    """Tune every learner once for each kind of place, on the first of that kind that it plays."""
    kinds = _kinds(runs)
    first: dict[tuple[LearnerSpec, str], RunSpec] = {}
    for run, kind in zip(runs, kinds, strict=True):
        first.setdefault((run.learner, kind), run)
    races = {key: Race(run, n_tries) for key, run in first.items()}
    for stage in range(len(STAGES)):
        wanted = {run.id: (race, run) for race in races.values() for run in race.wanted(stage)}
        for record in play([run for _, run in wanted.values()]) if wanted else ():
            race, run = wanted[record["run"]]
            race.records.setdefault(run.learner, []).append(record)
    chosen, lines, choices = {key: run.learner for key, run in first.items()}, [], []
    for key, race in races.items():
        if trials := race.trials():
            best, run = trials[0], race.run
            chosen[key] = best.learner
            names = run.world.label, run.nature.label, run.learner.label
            shared: dict[LearnerSpec, tuple[float | None, float | None, bool]]
            shared = dict.fromkeys(race.records, (None, None, False))
            for each in judged({each: rows[:SHARED] for each, rows in race.records.items() if len(rows) >= SHARED}):
                shared[each.learner] = each.regret, each.violation, each.on_frontier
            lines += [
                TryLine(*names, trial.learner.label, len(race.records[trial.learner]), trial.regret, trial.violation,
                        trial.criterion, *shared[trial.learner], trial is best)
                for trial in trials
            ]  # fmt: skip
            choices.append(Choice(*names, best.learner.label, len(trials), run.episodes, best.criterion))
    best_of = [
        msgspec.structs.replace(run, learner=chosen[run.learner, kind]) for run, kind in zip(runs, kinds, strict=True)
    ]  # fmt: skip
    return Tuned(tuple(best_of), tuple(lines), tuple(choices))


def _kinds(runs: Sequence[RunSpec]) -> list[str]:
    """How costs reach a learner in every run, and what else moves: choices are made for each kind."""
    known: dict[tuple[WorldSpec, NatureSpec], str] = {}
    for run in runs:
        if (run.world, run.nature) not in known:
            nature = scene_of(run).nature
            known[run.world, run.nature] = " ".join([nature.feedback, *changes_of(nature)])
    return [known[run.world, run.nature] for run in runs]


def halton(i: int, near: float | None = None) -> dict[Role, float]:
    """The multiples of the i-th point of the sequence, by role: in their ranges, or in a share of these around one.

    >>> [round(halton(i)["step"], 2) for i in (1, 2)], round(halton(1, near=1 / 3)["step"], 2)
    ([0.27, 0.72], 0.44)
    """
    found: dict[Role, float] = {}
    for (role, (low, high)), base in zip(RANGES.items(), BASES, strict=True):
        share = _radical_inverse(i, base)
        found[role] = float(low * (high / low) ** share if near is None else (high / low) ** (near * (share - 0.5)))
    return found


def tries(learner: LearnerSpec, n: int = N_TRIES, near: float | None = None) -> list[LearnerSpec]:
    """The learner as it comes and n - 1 others; one alone where nothing may be tuned.

    >>> from omdpd.experiments.registry import Registry
    >>> [spec.kappa for spec in tries(Registry.installed().spec("learners", "ProximalOMDPD.cautious"), 4)]
    [0.02, 0.01, 0.02, 0.04]
    """
    factors = factors_for(learner)
    found, i = {learner: None}, 1
    while factors and len(found) < n:
        row = halton(i, near)
        values = {factor.setting: multiplied(learner, factor, row[factor.role]) for factor in factors}
        found[msgspec.structs.replace(learner, **values)] = None
        i += 1
    return list(found)


def factors_for(learner: LearnerSpec) -> tuple[Factor, ...]:
    """What may be tuned of a learner."""
    if learner.name.partition(".")[2] in AS_THEY_COME:
        return ()
    settings = {name: each.default for name, each in settings_of(type(learner).factory).items()}
    return factors_of(learner.build(), settings)


def turned(learner: LearnerSpec, factor: Factor, multiple: float) -> LearnerSpec:
    """The learner with one setting multiplied."""
    return msgspec.structs.replace(learner, **{factor.setting: multiplied(learner, factor, multiple)})


def multiplied(learner: LearnerSpec, factor: Factor, multiple: float = 1.0) -> float:
    """The value of a setting, multiplied, with three digits."""
    return float(f"{_around(learner, factor) * multiple:.3g}")


def _around(learner: LearnerSpec, factor: Factor) -> float:
    """What is multiplied: the value that is set, else the factory's default, else the base of the factor."""
    value = getattr(learner, factor.setting)
    if value is msgspec.UNSET:
        value = inspect.signature(type(learner).factory).parameters[factor.setting].default
    if isinstance(value, float | int) and value > 0.0:
        return float(value)
    if factor.base is None:
        raise InvalidInputError(f"{learner.name}'s {factor.setting} is {value}: there is nothing to multiply")
    return factor.base


def judged(trained: Mapping[LearnerSpec, Sequence[Mapping[str, Any]]]) -> list[Trial]:
    """Every try with its means on the training instances, and whether another one beats it in both numbers."""
    trials, points = [], [
        (np.mean([each["regret"] or 0.0 for each in played]), np.mean([each["violation"] for each in played]))
        for played in trained.values()
    ]  # fmt: skip
    for (learner, played), (regret, violation) in zip(trained.items(), points, strict=True):
        beaten = any(x <= regret and y <= violation and (x, y) != (regret, violation) for x, y in points)
        known = None if None in [each["regret"] for each in played] else float(regret)
        trials.append(Trial(learner, known, float(violation), criterion(learner.name, played), not beaten))
    return trials


def criterion(name: str, played: Sequence[Mapping[str, Any]]) -> float:
    """What a method is tuned for; where a run has no shadow prices, what it lost and violated.

    >>> criterion("DOPE", [{"episodes": 1000, "regret_positive": 5.0, "violation": 27.0}])
    25.0
    """
    regret = float(np.mean([each["regret_positive"] or 0.0 for each in played]))
    violation = float(np.mean([each["violation"] for each in played]))
    if name in STRICT:
        return regret + PENALTY * max(violation - ALLOWED * played[0]["episodes"], 0.0)
    lagrangian = [each["lagrangian_regret"] for each in played]
    return regret + violation if None in lagrangian else float(np.mean(lagrangian))


def _radical_inverse(i: int, base: int) -> float:
    """The digits of i in `base`, mirrored behind the point.

    >>> [_radical_inverse(i, 2) for i in (1, 2, 3)]
    [0.5, 0.25, 0.75]
    """
    value, share = 0.0, 1.0
    while i:
        share /= base
        i, digit = divmod(i, base)
        value += share * digit
    return value
