"""Experiments as frozen values: what can be written in a file and run anywhere.

Every world, nature and learner is a struct whose fields are its settings; names resolve in the tables of this package,
and a key that is not a field is refused.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec
import numpy as np
import tomli_w

from omdpd.experiments.specs.base import MOST_INTEGER
from omdpd.experiments.specs.learners import OURS, OurSpec
from omdpd.experiments.specs.natures import (
    NATURES,
    AdaptiveSpec,
    AnchoredSpec,
    DriftingSpec,
    FixedSpec,
    IndependentSpec,
    NatureSpec,
    NoisySpec,
    PoolSpec,
    ScaledSpec,
)
from omdpd.experiments.specs.related import RELATED, CautiousLPSpec, RelatedSpec
from omdpd.experiments.specs.rivals import RIVALS, OptCMDPSpec, RivalSpec
from omdpd.experiments.specs.worlds import WORLDS, RandomDirichletSpec, WorldSpec
from omdpd.problem.arrays import InvalidInputError, named

__all__ = ["LEARNERS", "NATURES", "WORLDS", "Experiment", "RunSpec", "paper", "toml_of"]

LEARNERS: dict[str, Any] = OURS | RELATED | RIVALS
LearnerSpec = OurSpec | RelatedSpec | RivalSpec

# What `omdpd paper` runs: ours, the uniform policy, and two rivals to measure against.
PAPER_LEARNERS = (*OURS, "Uniform", "OptCMDP", "SinhaVaze")

# Part of every run's name: raised when the meaning of a spec or of a record changes.
FORMAT = 1


class RunSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run: everything its result depends on.

    `record`: rows for every episode, or (beyond ten thousand episodes) on a grid that is logarithmic in the end.
    """

    world: WorldSpec
    nature: NatureSpec
    learner: LearnerSpec
    episodes: int
    seed: int
    record: Literal["thinned", "all"] = "thinned"

    def __post_init__(self) -> None:
        if not 1 <= self.episodes <= MOST_INTEGER:
            raise InvalidInputError(f"episodes is {self.episodes}, but must be between 1 and {MOST_INTEGER}")
        if not 0 <= self.seed <= 2 * MOST_INTEGER:
            raise InvalidInputError(f"seed is {self.seed}, but must be between 0 and {2 * MOST_INTEGER}")

    @property
    def id(self) -> str:
        """A name made of the spec's hash: the same spec has the same name everywhere."""
        text = msgspec.json.encode((FORMAT, self), order="deterministic")
        return hashlib.sha256(text).hexdigest()[:20]

    def stream(self, number: int) -> np.random.SeedSequence:
        """Independent streams: 0 world, 1 nature, 2 rollouts, 3 learner."""
        return np.random.SeedSequence(self.seed, spawn_key=(number,))


def toml_of(spec: RunSpec | Experiment) -> str:
    """A spec as a TOML file; a setting of None is left out, TOML has no word for it."""
    return tomli_w.dumps(_without_none(msgspec.to_builtins(spec)))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grid of runs: every world with every nature, learner and seed, less what is left out."""

    worlds: tuple[WorldSpec, ...]
    natures: tuple[NatureSpec, ...]
    learners: tuple[LearnerSpec, ...]
    episodes: int
    seeds: int = 5
    first_seed: int = 0
    record: Literal["thinned", "all"] = "thinned"

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("seeds", 1), ("first_seed", 0)):
            value = getattr(self, name)
            if not least <= value <= MOST_INTEGER:
                raise InvalidInputError(f"{name} is {value}, but must be between {least} and {MOST_INTEGER}")

    def runs(self) -> list[RunSpec]:
        """Every run of the grid, once."""
        runs = (
            RunSpec(world, nature, learner, self.episodes, seed, self.record)
            for world in self.worlds
            for nature in self.natures
            for seed in range(self.first_seed, self.first_seed + self.seeds)
            for learner in self.learners
            if not left_out(nature, learner)
        )
        return list(dict.fromkeys(runs))


def left_out(nature: NatureSpec, learner: LearnerSpec) -> bool:
    """The cautious linear program grows by a row per episode when no table comes twice: it is left out there."""
    grows = isinstance(learner, OptCMDPSpec | CautiousLPSpec)
    return grows and isinstance(nature, AnchoredSpec | DriftingSpec | IndependentSpec)


def paper(episodes: int, seeds: int, first_seed: int, any_instance: bool, learners: list[str] | None) -> Experiment:
    """The paper's simulation: its random worlds, all natures that were asked about, our learners and two rivals."""
    chosen = list(PAPER_LEARNERS) if learners is None else learners
    return Experiment(
        worlds=(RandomDirichletSpec(binding=not any_instance),),
        natures=(
            FixedSpec(), NoisySpec(), ScaledSpec(), PoolSpec(), AdaptiveSpec(), AnchoredSpec(), IndependentSpec(),
        ),
        learners=tuple(named(LEARNERS, name, "learner")() for name in chosen),
        episodes=episodes, seeds=seeds, first_seed=first_seed,
    )  # fmt: skip
