"""A fresh table in every episode, shifted so that the anchor is safe: costs that never repeat.

About half the tables are tight at the anchor, so with many more episodes than HS(A-1) the anchor is the only policy
that satisfies them all, and its value is the comparator's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.natures.anchor import Anchor
from omdpd.natures.protocol import Safety, episode_rng
from omdpd.natures.revealed import Revealed
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP


@dataclass(frozen=True, eq=False)
class Anchored(Revealed):
    """Fresh tables around an anchor."""

    @cached_property
    def anchor(self) -> Anchor:
        """The policy that every table leaves safe."""
        return Anchor.of(self.cmdp)

    def table(self, key: int) -> Floats:
        """A fresh table."""
        rng = episode_rng(self.seed, key)
        return np.stack([self.anchor.table(rng) for _ in range(self.cmdp.n_constraints)])

    def safety(self) -> Safety:
        """The anchor."""
        return Safety(True, "every table is shifted until the anchor policy is safe")


def make(cmdp: CMDP, seed: int) -> Anchored:
    """A fresh table every episode, around a policy that stays safe."""
    return Anchored(cmdp, seed)
