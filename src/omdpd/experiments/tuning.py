"""Own best scales: one procedure, the same effort for every learner.

Every setting of a learner that scales a bonus or a margin is multiplied by each of a few common factors; on training
instances that no comparison uses, the factor with the least (positive regret + strong violation), averaged over the
instances, is chosen.  A learner without such a setting has one candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from omdpd.experiments.spec import LearnerSpec, RunSpec

FACTORS = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
# What is scaled: bonuses on rewards, costs and transitions, and the margins on cost.
SCALED = ("reward_scale", "cost_scale", "transition_scale", "kappa", "exploration", "z")
TRAINING_SEEDS = (900_000, 900_001, 900_002, 900_003)


def candidates(learner: LearnerSpec) -> list[LearnerSpec]:
    """The learner with all its scales multiplied by each factor.

    >>> from omdpd.experiments.registry import Registry
    >>> [spec.kappa for spec in candidates(Registry.installed().spec("learners", "ProximalOMDPD.cautious"))]
    [0.0003125, 0.00125, 0.005, 0.01, 0.02, 0.04, 0.08]
    """
    scaled = {name: getattr(learner, name) for name in SCALED if hasattr(learner, name)}
    found = [
        msgspec.structs.replace(learner, **{name: value * factor for name, value in scaled.items()})
        for factor in FACTORS
    ]
    return list(dict.fromkeys(found))


def training_runs(runs: Sequence[RunSpec], episodes: int) -> dict[tuple[Any, ...], dict[LearnerSpec, list[RunSpec]]]:
    """For every (world, nature, learner) of the runs: each candidate's runs on the training instances."""
    wanted: dict[tuple[Any, ...], dict[LearnerSpec, list[RunSpec]]] = {}
    for world, nature, learner in dict.fromkeys((run.world, run.nature, run.learner) for run in runs):
        wanted[world, nature, learner] = {
            candidate: [RunSpec(world, nature, candidate, episodes, seed) for seed in TRAINING_SEEDS]
            for candidate in candidates(learner)
        }
    return wanted


def best_candidate(trained: Mapping[LearnerSpec, Sequence[Mapping[str, Any]]]) -> LearnerSpec:
    """The candidate whose summaries have the least mean of positive regret plus violation (the first on ties)."""
    loss = {
        learner: float(np.mean([(s["regret_positive"] or 0.0) + s["violation"] for s in summaries]))
        for learner, summaries in trained.items()
    }
    return min(loss, key=lambda learner: loss[learner])
