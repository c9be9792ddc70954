"""Worlds as named values; `WORLDS` resolves their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from omdpd.cmdp import CMDP
from omdpd.specs.base import Spec
from omdpd.worlds import random_dirichlet


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


WORLDS: dict[str, Any] = {str(cls.__struct_config__.tag): cls for cls in (RandomDirichletSpec, CorrelatedSpec)}

WorldSpec = RandomDirichletSpec | CorrelatedSpec
