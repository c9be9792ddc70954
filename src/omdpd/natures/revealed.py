"""A table of costs of its own in every episode, whatever is played, revealed after it: what such natures share."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.setting import FeedbackKind


@dataclass(frozen=True, eq=False)
class Revealed:
    """The draw of such a nature; its own are `table` and `safety`."""

    cmdp: CMDP
    seed: int
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = False

    oblivious = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The table of that episode."""
        return Round(self.cmdp.reward, self.table(k), k, self.reward_noise)

    def table(self, key: int) -> Floats:
        """The table (I, H, S, A) of episode `key`."""
        raise NotImplementedError
