"""Experiments as frozen values: what can be written in a file and run anywhere.

Every world, nature and learner is a struct whose fields are its settings; names resolve in the unions below, and a key
that is not a field is refused.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import numpy as np

from omdpd.arrays import InvalidInputError
from omdpd.cmdp import CMDP
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.optcmdp import OptCMDP
from omdpd.learners.protocol import Learner
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.sinha_vaze import SinhaVaze
from omdpd.learners.uniform import Uniform
from omdpd.natures import anchored, fixed, independent, pool, scaled
from omdpd.natures.protocol import Nature
from omdpd.worlds import random_dirichlet

# Part of every run's name: raised when the meaning of a spec or of a record changes.
FORMAT = 1


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """A named value; equal specs are equal experiments."""

    @property
    def name(self) -> str:
        """The tag under which it is written."""
        return str(type(self).__struct_config__.tag)


# --- worlds ---------------------------------------------------------------------------------------------------------


class RandomDirichletSpec(Spec, frozen=True, tag="random_dirichlet"):
    """The paper's random CMDP; only instances whose constraint binds unless `binding` is off."""

    n_states: int = 5
    n_actions: int = 3
    horizon: int = 5
    n_constraints: int = 1
    concentration: float = 0.5
    binding: bool = True

    def build(self, rng: np.random.Generator) -> CMDP:
        """Draw the world."""
        return random_dirichlet.make(
            rng, self.n_states, self.n_actions, self.horizon, self.n_constraints, self.concentration, self.binding
        )


class CorrelatedSpec(Spec, frozen=True, tag="correlated"):
    """The random CMDP with costs that follow the rewards."""

    n_states: int = 5
    n_actions: int = 3
    horizon: int = 5
    concentration: float = 0.5

    def build(self, rng: np.random.Generator) -> CMDP:
        """Draw the world."""
        return random_dirichlet.make_correlated(rng, self.n_states, self.n_actions, self.horizon, self.concentration)


# --- natures --------------------------------------------------------------------------------------------------------


class FixedSpec(Spec, frozen=True, tag="fixed"):
    """Costs held fixed and observed exactly."""

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return fixed.make(cmdp, seed)


class NoisySpec(Spec, frozen=True, tag="noisy"):
    """Fixed means, observed as 0/1 rewards and -1/+1 costs."""

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return fixed.make_noisy(cmdp, seed)


class ScaledSpec(Spec, frozen=True, tag="scaled"):
    """The cost table times a random sign and size, revealed."""

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return scaled.make(cmdp, seed)


class IndependentSpec(Spec, frozen=True, tag="independent"):
    """Every entry drawn afresh: the literal reading of the paper; nobody can be safe."""

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return independent.make(cmdp, seed)


class PoolSpec(Spec, frozen=True, tag="pool"):
    """A few tables with a common safe policy, switched and revealed."""

    size: int = pool.POOL_SIZE
    switching: pool.Switching = "random"

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return pool.make(cmdp, seed, self.size, self.switching)


class AdaptiveSpec(Spec, frozen=True, tag="adaptive"):
    """From such a pool, the table that costs the policy in play the most."""

    size: int = pool.POOL_SIZE

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return pool.make_adaptive(cmdp, seed, self.size)


class DriftingSpec(Spec, frozen=True, tag="drifting"):
    """Such a pool's tables turning slowly into one another."""

    size: int = pool.POOL_SIZE
    period: int = pool.PERIOD

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return pool.make_drifting(cmdp, seed, self.size, self.period)


class AnchoredSpec(Spec, frozen=True, tag="anchored"):
    """A fresh table every episode, around a policy that stays safe."""

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return anchored.make(cmdp, seed)


# --- learners -------------------------------------------------------------------------------------------------------


class CautiousSpec(Spec, frozen=True, tag="ProximalOMDPD.cautious"):
    """The default: empirical kernel, exact hinges, a shrinking margin on cost (`kappa` is the safety dial)."""

    kappa: float = 0.02
    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.cautious(self.kappa, self.stationary)


class BalancedSpec(Spec, frozen=True, tag="ProximalOMDPD.balanced"):
    """The same without the margin."""

    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.balanced(self.stationary)


class OptimisticSpec(Spec, frozen=True, tag="ProximalOMDPD.optimistic"):
    """The same loop over a small confidence box, closest to the paper's optimism."""

    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return ProximalOMDPD.optimistic(self.stationary)


class TunedSpec(Spec, frozen=True, tag="OMDPD.tuned"):
    """The paper's algorithm with practical constants."""

    stationary: bool = False

    def build(self) -> Learner[Any]:
        """The learner."""
        return OMDPD.tuned(self.stationary)


class TheorySpec(Spec, frozen=True, tag="OMDPD.theory"):
    """The paper's algorithm with the theorem's constants, which enforce nothing at usual K."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return OMDPD.theory()


class UniformSpec(Spec, frozen=True, tag="Uniform"):
    """The uniform policy."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return Uniform()


class OptCMDPSpec(Spec, frozen=True, tag="OptCMDP"):
    """Optimistic linear program every episode; the cautious program when costs are revealed."""

    def build(self) -> Learner[Any]:
        """The learner."""
        return OptCMDP()


class SinhaVazeSpec(Spec, frozen=True, tag="SinhaVaze"):
    """Online gradient descent with an exponential potential, initial weight one."""

    w0: float = 1.0

    def build(self) -> Learner[Any]:
        """The learner."""
        return SinhaVaze(w0=self.w0)


WORLDS: dict[str, Any] = {str(cls.__struct_config__.tag): cls for cls in (RandomDirichletSpec, CorrelatedSpec)}
NATURES: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        FixedSpec, NoisySpec, ScaledSpec, PoolSpec, AdaptiveSpec, AnchoredSpec, DriftingSpec, IndependentSpec,
    )
}  # fmt: skip
LEARNERS: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        CautiousSpec, BalancedSpec, OptimisticSpec, TunedSpec, TheorySpec, UniformSpec, OptCMDPSpec, SinhaVazeSpec,
    )
}  # fmt: skip

WorldSpec = RandomDirichletSpec | CorrelatedSpec
NatureSpec = (
    FixedSpec | NoisySpec | ScaledSpec | PoolSpec | AdaptiveSpec | AnchoredSpec | DriftingSpec | IndependentSpec
)
LearnerSpec = (
    CautiousSpec | BalancedSpec | OptimisticSpec | TunedSpec | TheorySpec | UniformSpec | OptCMDPSpec | SinhaVazeSpec
)


class RunSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run: everything its result depends on."""

    world: WorldSpec
    nature: NatureSpec
    learner: LearnerSpec
    episodes: int
    seed: int

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise InvalidInputError(f"episodes is {self.episodes}, but must be at least 1")
        if self.seed < 0:
            raise InvalidInputError(f"seed is {self.seed}, but must not be negative")

    @property
    def id(self) -> str:
        """A name made of the spec's hash: the same spec has the same name everywhere."""
        text = msgspec.json.encode((FORMAT, self), order="deterministic")
        return hashlib.sha256(text).hexdigest()[:20]

    def stream(self, number: int) -> np.random.SeedSequence:
        """Independent streams: 0 world, 1 nature, 2 rollouts, 3 learner."""
        return np.random.SeedSequence(self.seed, spawn_key=(number,))


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grid of runs: every world with every nature, learner and seed, less what is left out."""

    worlds: tuple[WorldSpec, ...]
    natures: tuple[NatureSpec, ...]
    learners: tuple[LearnerSpec, ...]
    episodes: int
    seeds: int = 5
    first_seed: int = 0

    def runs(self) -> list[RunSpec]:
        """Every run of the grid."""
        return [
            RunSpec(world, nature, learner, self.episodes, seed)
            for world in self.worlds
            for nature in self.natures
            for seed in range(self.first_seed, self.first_seed + self.seeds)
            for learner in self.learners
            if not left_out(nature, learner)
        ]


def left_out(nature: NatureSpec, learner: LearnerSpec) -> bool:
    """The cautious linear program grows by a row per episode when no table comes twice: it is left out there."""
    return isinstance(learner, OptCMDPSpec) and isinstance(nature, AnchoredSpec | DriftingSpec | IndependentSpec)


def paper(episodes: int, seeds: int, first_seed: int, any_instance: bool, learners: list[str] | None) -> Experiment:
    """The paper's simulation: its random worlds, all natures that were asked about, our learners and two rivals."""
    chosen = list(LEARNERS) if learners is None else learners
    return Experiment(
        worlds=(RandomDirichletSpec(binding=not any_instance),),
        natures=(
            FixedSpec(), NoisySpec(), ScaledSpec(), PoolSpec(), AdaptiveSpec(), AnchoredSpec(), IndependentSpec(),
        ),
        learners=tuple(named(LEARNERS, name, "learner")() for name in chosen),
        episodes=episodes, seeds=seeds, first_seed=first_seed,
    )  # fmt: skip


def named(table: dict[str, Any], name: str, kind: str) -> Any:
    """Look a name up, or say which names there are."""
    if name not in table:
        raise InvalidInputError(f"there is no {kind} {name!r}; there are {', '.join(table)}")
    return table[name]
