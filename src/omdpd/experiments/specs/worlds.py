"""Worlds as named values; `WORLDS` resolves their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from omdpd.experiments.specs.base import Spec
from omdpd.problem.cmdp import CMDP
from omdpd.worlds import (
    cyclic,
    frozen_lake,
    garnet,
    grid,
    intrusion,
    inventory,
    job_queue,
    paradox,
    queue,
    random_dirichlet,
    streaming,
)


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


class GarnetSpec(Spec, frozen=True, tag="garnet"):
    """Random CMDPs with few successors and a budget that binds by a chosen slack."""

    n_states: int = 10
    n_actions: int = 3
    horizon: int = 6
    branching: int = 2
    n_constraints: int = 1
    slack: float = 0.5

    def build(self, rng: np.random.Generator) -> CMDP:
        """Draw the world."""
        return garnet.make(
            rng, self.n_states, self.n_actions, self.horizon, self.branching, self.n_constraints, self.slack
        )


class Settled(Spec, frozen=True):
    """What worlds share in which nothing is random: their sizes are read off the world itself."""

    def make(self) -> CMDP:
        """The world."""
        raise NotImplementedError

    def build(self, rng: np.random.Generator) -> CMDP:
        """The world; no random number is taken."""
        return self.make()

    @property
    def n_states(self) -> int:
        """S."""
        return self.make().shape[1]

    @property
    def n_actions(self) -> int:
        """A."""
        return self.make().shape[2]


class StreamingSpec(Settled, frozen=True, tag="streaming"):
    """A media buffer: pay for the fast link, or risk that playback stops."""

    n_levels: int = 10
    horizon: int = 10
    fast: float = 0.9
    slow: float = 0.1
    playback: float = 0.8
    budget: float = 5.0

    def make(self) -> CMDP:
        """The world."""
        return streaming.make(self.n_levels, self.horizon, self.fast, self.slow, self.playback, self.budget)


class InventorySpec(Settled, frozen=True, tag="inventory"):
    """A small shop: stock earns when it is asked for, and costs to order and to keep."""

    capacity: int = 5
    horizon: int = 7
    budget: float = 66.5
    demand: tuple[float, ...] = inventory.DEMAND

    def make(self) -> CMDP:
        """The world."""
        return inventory.make(self.capacity, self.horizon, self.budget, self.demand)


class QueueSpec(Settled, frozen=True, tag="queue"):
    """Admission and service in a single-server queue: two constraints."""

    capacity: int = 5
    horizon: int = 10
    service_budget: float = 4.0
    refusal_budget: float = 3.0

    def make(self) -> CMDP:
        """The world."""
        return queue.make(self.capacity, self.horizon, self.service_budget, self.refusal_budget)


class JobQueueSpec(Settled, frozen=True, tag="job_queue"):
    """Jobs to be done while working is dear at midday: a constraint on progress."""

    n_jobs: int = 10
    horizon: int = 10
    success: float = 0.9
    arrival: float = 0.1
    progress: float = 3.5

    def make(self) -> CMDP:
        """The world."""
        return job_queue.make(self.n_jobs, self.horizon, self.success, self.arrival, self.progress)


class GridSpec(Settled, frozen=True, tag="grid"):
    """A grid whose short way crosses obstacles that cost."""

    rows: tuple[str, ...] = grid.OBSTACLES
    horizon: int = 12
    slip: float = 0.1
    budget: float = 0.5

    def make(self) -> CMDP:
        """The world."""
        return grid.make(self.rows, self.horizon, self.slip, self.budget)


class MarsRoverSpec(Settled, frozen=True, tag="mars_rover"):
    """A rover among pits, on a map of 8x8 (or 4x4) cells; horizon 0 and budget -1 stand for the map's own."""

    map: str = "8x8"
    horizon: int = 0
    slip: float = 0.1
    budget: float = -1.0

    def make(self) -> CMDP:
        """The world."""
        own_risk = self.budget if self.budget >= 0.0 else None
        return grid.make_rover(self.map, self.horizon or None, self.slip, own_risk)


class FrozenLakeSpec(Settled, frozen=True, tag="frozen_lake"):
    """The frozen lake, with thin ice along one shore."""

    horizon: int = 9
    slip: float = 0.1
    budget: float = 2.5

    def make(self) -> CMDP:
        """The world."""
        return frozen_lake.make(self.horizon, self.slip, self.budget)


class ParadoxSpec(Settled, frozen=True, tag="paradox"):
    """The constraint is the reward: a stress test for oscillation."""

    horizon: int = 10
    budget: float = 5.0

    def make(self) -> CMDP:
        """The world."""
        return paradox.make(self.horizon, self.budget)


class CyclicSpec(Settled, frozen=True, tag="cyclic"):
    """A ring that pays more the further one is, with a toll for every move."""

    n_places: int = 3
    horizon: int = 6
    budget: float = 3.0

    def make(self) -> CMDP:
        """The world."""
        return cyclic.make(self.n_places, self.horizon, self.budget)


class IntrusionSpec(Settled, frozen=True, tag="intrusion"):
    """A defender of a network against an intruder whose target changes."""

    horizon: int = 8
    advance: float = 0.4
    detect: float = 0.6
    budget: float = 0.8

    def make(self) -> CMDP:
        """The world."""
        return intrusion.make(self.horizon, self.advance, self.detect, self.budget)


WORLDS: dict[str, Any] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        RandomDirichletSpec, CorrelatedSpec, GarnetSpec, StreamingSpec, InventorySpec, QueueSpec, JobQueueSpec,
        GridSpec, MarsRoverSpec, FrozenLakeSpec, ParadoxSpec, CyclicSpec, IntrusionSpec,
    )
}  # fmt: skip

WorldSpec = (
    RandomDirichletSpec
    | CorrelatedSpec
    | GarnetSpec
    | StreamingSpec
    | InventorySpec
    | QueueSpec
    | JobQueueSpec
    | GridSpec
    | MarsRoverSpec
    | FrozenLakeSpec
    | ParadoxSpec
    | CyclicSpec
    | IntrusionSpec
)
