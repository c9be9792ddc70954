"""Fair tuning: one procedure and the same number of tries for every learner, ours included.

A learner says which settings may be tuned, at most one for each of four roles (`learners/factors.py`).  A try
multiplies them; the first try is the learner as it comes, the others are points of one Halton sequence in the
logarithms of the multiples, the same for everybody.  Every try is played on training instances that no comparison
uses, for a quarter of its episodes, and the one with the least criterion

    mean over the training instances of (positive regret + strong violation)

is taken.  Because a criterion that adds the two picks winners, the tries that no other one beats in both numbers are
kept beside it: the learner's frontier.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from omdpd.experiments.spec import LearnerSpec, NatureSpec, RunSpec, WorldSpec
from omdpd.learners.factors import ROLES, Factor, Role, factors_of
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
}
# The bases of the Halton sequence, one per role.
BASES = (2, 3, 5, 7)


@dataclass(frozen=True)
class Trial:
    """A try of one learner: what came out on the training instances."""

    learner: LearnerSpec
    regret: float | None
    violation: float
    criterion: float
    on_frontier: bool = False


def multiples(n: int) -> list[dict[Role, float]]:
    """The multiples of `n` tries, by role; the first has ones.

    >>> [round(row["step"], 2) for row in multiples(3)]
    [1.0, 0.23, 0.51]
    """
    rows: list[dict[Role, float]] = [dict.fromkeys(ROLES, 1.0)]
    for i in range(1, n):
        row: dict[Role, float] = {}
        for role, base in zip(ROLES, BASES, strict=True):
            low, high = RANGES[role]
            row[role] = float(low * (high / low) ** _radical_inverse(i, base))
        rows.append(row)
    return rows


def tries(learner: LearnerSpec, n: int = N_TRIES) -> list[LearnerSpec]:
    """The learner as it comes and n - 1 others; one alone where nothing may be tuned.

    >>> from omdpd.experiments.registry import Registry
    >>> [spec.kappa for spec in tries(Registry.installed().spec("learners", "ProximalOMDPD.cautious"), 4)]
    [0.02, 0.00871, 0.0152, 0.0264]
    """
    fields = {field.name: field.default for field in msgspec.structs.fields(type(learner))}
    factors = [factor for factor in factors_of(learner.name, fields) if factor.setting in fields]
    if not factors:
        return [learner]
    found = [learner]
    for row in multiples(n)[1:]:
        values = {factor.setting: multiplied(learner, factor, row[factor.role]) for factor in factors}
        found.append(msgspec.structs.replace(learner, **values))
    return found


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
