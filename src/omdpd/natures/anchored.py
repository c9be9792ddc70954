"""A fresh table in every episode, shifted so that the anchor is safe: costs that never repeat.

About half the tables are tight at the anchor, so with many more episodes than HS(A-1) the anchor is the only policy
that satisfies them all, and its value is the comparator's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.natures.anchor import Anchor
from omdpd.natures.protocol import Safety, episode_rng
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.setting import FeedbackKind


@dataclass(frozen=True, eq=False)
class Anchored:
    """Fresh tables around an anchor, revealed after the episode."""

    cmdp: CMDP
    seed: int
    anchor: Anchor
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = False

    oblivious = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """A fresh table."""
        return Round(self.cmdp.reward, self.table(k), k, self.reward_noise)

    def table(self, key: int) -> Floats:
        """The table of episode `key`."""
        rng = episode_rng(self.seed, key)
        return np.stack([self.anchor.table(rng) for _ in range(self.cmdp.n_constraints)])

    def safety(self) -> Safety:
        """The anchor."""
        return Safety(True, "every table is shifted until the anchor policy is safe")


def make(cmdp: CMDP, seed: int) -> Anchored:
    """A fresh table every episode, around a policy that stays safe."""
    return Anchored(cmdp, seed, Anchor.of(cmdp))
