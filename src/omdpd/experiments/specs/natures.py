"""Natures as named values; `NATURES` resolves their names."""

from __future__ import annotations

from typing import Any

from omdpd.experiments.specs.base import Spec
from omdpd.natures import anchored, fixed, independent, natural, pool, scaled
from omdpd.natures.protocol import Nature
from omdpd.problem.cmdp import CMDP


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


class NaturalSpec(Spec, frozen=True, tag="natural"):
    """The world's own scenarios (a link's price, an intruder's target), switched and revealed."""

    switching: pool.Switching = "random"

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return natural.make(cmdp, seed, self.switching)


class HostileSpec(Spec, frozen=True, tag="hostile"):
    """From the world's own scenarios, the one that costs the policy in play the most."""

    def build(self, cmdp: CMDP, seed: int) -> Nature:
        """The nature of this world."""
        return natural.make_hostile(cmdp, seed)


NATURES: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        FixedSpec, NoisySpec, ScaledSpec, PoolSpec, AdaptiveSpec, AnchoredSpec, DriftingSpec, IndependentSpec,
        NaturalSpec, HostileSpec,
    )
}  # fmt: skip

NatureSpec = (
    FixedSpec
    | NoisySpec
    | ScaledSpec
    | PoolSpec
    | AdaptiveSpec
    | AnchoredSpec
    | DriftingSpec
    | IndependentSpec
    | NaturalSpec
    | HostileSpec
)


def natures_for(cmdp: CMDP) -> tuple[str, ...]:
    """The natures that suit a world: stochastic costs, its own scenarios if it names some, and the pools."""
    own = () if cmdp.scenarios is None else ("natural", "hostile")
    return ("fixed", "noisy", *own, "pool", "adaptive", "drifting", "anchored")
