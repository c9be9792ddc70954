"""Fair tuning: one procedure and the same number of tries for every learner, ours included.

A learner says which settings may be tuned, at most one for each role (`learners/factors.py`).  A try
multiplies them; the first try is the learner as it comes, the others are points of one Halton sequence in the
logarithms of the multiples, the same for everybody.  Every try is played on training instances that no comparison
uses, for a quarter of its episodes, and the one with the least criterion

    mean over the training instances of (positive regret + strong violation)

is taken.  Because a criterion that adds the two picks winners, the tries that no other one beats in both numbers are
kept beside it: the learner's frontier.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from omdpd.experiments.experiment import suitable_runs
from omdpd.experiments.one_run import scene_of
from omdpd.experiments.spec import Experiment, LearnerSpec, NatureSpec, RunSpec, WorldSpec
from omdpd.learners.factors import Factor, Role, factors_of
from omdpd.learners.settings import settings_of
from omdpd.problem.arrays import InvalidInputError

N_TRIES = 10
TRAINING_SEEDS = (900_000, 900_001, 900_002)
# Training lasts this share of the episodes of a comparison.
TRAINING_SHARE = 4
# The least and the largest multiple of a setting, by its role.  Widths reach far down, since the defaults that all
# learners share are wide for those that use them as a bonus; a step may be far off either way.
RANGES: dict[Role, tuple[float, float]] = {
    "reward width": (1 / 8, 2.0),
    "transition width": (1 / 64, 2.0),
    "cost pessimism": (1 / 4, 4.0),
    "step": (1 / 10, 30.0),
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
    on_frontier: bool = False


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
    """One try: a line of tries.csv."""

    world: str
    nature: str
    learner: str
    settings: str
    regret: float | None
    violation: float
    criterion: float
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


def tuned(runs: Sequence[RunSpec], n_tries: int, play: Play) -> Tuned:
    """Tune every learner once for each kind of feedback, on the first place of that kind that it plays."""
    kinds = _kinds(runs)
    first: dict[tuple[LearnerSpec, str], RunSpec] = {}
    for run, kind in zip(runs, kinds, strict=True):
        first.setdefault((run.learner, kind), run)
    wanted = {key: _training(run, n_tries) for key, run in first.items()}
    flat = [run for tried in wanted.values() if len(tried) > 1 for each in tried.values() for run in each]
    done = {record["run"]: record for record in play(flat)} if flat else {}
    chosen, lines, choices = {key: run.learner for key, run in first.items()}, [], []
    for key, tried in wanted.items():
        if len(tried) > 1:
            trials = judged({learner: [done[each.id] for each in played] for learner, played in tried.items()})
            best, short = best_trial(trials), next(iter(tried.values()))[0].episodes
            chosen[key] = best.learner
            run = first[key]
            names = run.world.label, run.nature.label, run.learner.label
            lines += [
                TryLine(*names, trial.learner.label, trial.regret, trial.violation, trial.criterion,
                        trial.on_frontier, trial is best)
                for trial in trials
            ]  # fmt: skip
            choices.append(Choice(*names, best.learner.label, len(tried), short, best.criterion))
    best_of = [
        msgspec.structs.replace(run, learner=chosen[run.learner, kind]) for run, kind in zip(runs, kinds, strict=True)
    ]  # fmt: skip
    return Tuned(tuple(best_of), tuple(lines), tuple(choices))


def _kinds(runs: Sequence[RunSpec]) -> list[str]:
    """How costs reach a learner in every run, asked once for each world and nature: choices are made for each kind."""
    known: dict[tuple[WorldSpec, NatureSpec], str] = {}
    for run in runs:
        if (run.world, run.nature) not in known:
            known[run.world, run.nature] = scene_of(run).nature.feedback
    return [known[run.world, run.nature] for run in runs]


def _training(run: RunSpec, n_tries: int) -> dict[LearnerSpec, list[RunSpec]]:
    """The training runs of a learner's tries; a try that it refuses is none."""
    tried = tries(run.learner, n_tries)
    planned = training_runs(run.world, run.nature, tried, run.episodes)
    return {learner: runs for learner, runs in planned.items() if _plays(runs[0])}


def _plays(run: RunSpec) -> bool:
    alone = Experiment((run.world,), (run.nature,), (run.learner,), run.episodes, 1, run.seed)
    return bool(suitable_runs(alone)[0])


def halton(i: int) -> dict[Role, float]:
    """The multiples of the i-th point of the sequence, by role.

    >>> [round(halton(i)["step"], 2) for i in (1, 2)]
    [0.23, 0.51]
    """
    return {
        role: float(low * (high / low) ** _radical_inverse(i, base))
        for (role, (low, high)), base in zip(RANGES.items(), BASES, strict=True)
    }


def tries(learner: LearnerSpec, n: int = N_TRIES) -> list[LearnerSpec]:
    """The learner as it comes and n - 1 others; one alone where nothing may be tuned.

    >>> from omdpd.experiments.registry import Registry
    >>> [spec.kappa for spec in tries(Registry.installed().spec("learners", "ProximalOMDPD.cautious"), 4)]
    [0.02, 0.00871, 0.0152, 0.0264]
    """
    factors = factors_for(learner)
    if not factors:
        return [learner]
    found, i = {learner: None}, 1
    while len(found) < n:
        row = halton(i)
        values = {factor.setting: multiplied(learner, factor, row[factor.role]) for factor in factors}
        found[msgspec.structs.replace(learner, **values)] = None
        i += 1
    return list(found)


def factors_for(learner: LearnerSpec) -> tuple[Factor, ...]:
    """What may be tuned of a learner."""
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


def training_runs(
    world: WorldSpec, nature: NatureSpec, tried: Sequence[LearnerSpec], episodes: int
) -> dict[LearnerSpec, list[RunSpec]]:
    """Each try's runs on the training instances of a comparison of `episodes`."""
    short = max(episodes // TRAINING_SHARE, 1)
    return {
        learner: [RunSpec(world, nature, learner, short, seed) for seed in TRAINING_SEEDS] for learner in tried
    }  # fmt: skip


def judged(trained: Mapping[LearnerSpec, Sequence[Mapping[str, Any]]]) -> list[Trial]:
    """Every try with its means on the training instances, and whether another one beats it in both numbers."""
    trials = []
    for learner, summaries in trained.items():
        regrets = [summary["regret"] for summary in summaries]
        regret = None if None in regrets else float(np.mean(regrets))
        violation = float(np.mean([summary["violation"] for summary in summaries]))
        loss = float(np.mean([(s["regret_positive"] or 0.0) + s["violation"] for s in summaries]))
        trials.append(Trial(learner, regret, violation, loss))
    return [_on_frontier(trial, trials) for trial in trials]


def best_trial(trials: Sequence[Trial]) -> Trial:
    """The try with the least criterion (the first on ties)."""
    return min(trials, key=lambda trial: trial.criterion)


def _on_frontier(trial: Trial, trials: Sequence[Trial]) -> Trial:
    """The trial, marked if no other one has less of one number and no more of the other."""
    mine = _point(trial)
    beaten = any(
        other != mine and other[0] <= mine[0] and other[1] <= mine[1] for other in (_point(each) for each in trials)
    )
    return Trial(trial.learner, trial.regret, trial.violation, trial.criterion, not beaten)


def _point(trial: Trial) -> tuple[float, float]:
    return (0.0 if trial.regret is None else trial.regret), trial.violation


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
