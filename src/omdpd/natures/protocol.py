"""What every nature is: a pure function from its seed, the episode and the occupancy in play to a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import Round
from omdpd.problem.setting import FeedbackKind


@dataclass(frozen=True)
class Safety:
    """Whether some policy is safe in every episode, and why."""

    exists: bool
    why: str


class Nature(Protocol):
    """Picks the tables of an episode; may look at the true occupancy of the policy in play."""

    @property
    def feedback(self) -> FeedbackKind:
        """What a learner is shown: "bandit" where costs are stochastic, "full" where they are revealed."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether tables come again (keys name them); otherwise episode k has a table of its own, with key k."""
        ...

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The round of zero-based episode k; the same arguments give the same round."""
        ...

    def table(self, key: int) -> Floats:
        """The cost table (I, H, S, A) that a round's key names, up to a positive factor: a row of the comparator."""
        ...

    def safety(self) -> Safety:
        """Whether a policy safe in every episode exists."""
        ...


def episode_rng(seed: int, k: int) -> np.random.Generator:
    """The random numbers of one episode: tables are regenerated, never stored."""
    return np.random.default_rng((seed, k))
