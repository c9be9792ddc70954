"""d_k = c_k d with c_k drawn from seven values of both signs: our reading of the paper's adversarial simulation.

Being safe in every episode means d.q = 0: such a policy exists when V(d) changes sign, and it has no slack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.natures.protocol import Safety, episode_choice
from omdpd.natures.revealed import Revealed
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP, Round
from omdpd.solvers.planning import best_plan

LEVELS = (-1.0, -0.6, -0.2, 0.0, 0.2, 0.6, 1.0)
SIGNS = (0.0, 1.0, -1.0)  # by key


@dataclass(frozen=True, eq=False)
class Scaled(Revealed):
    """The mean cost table times a random factor."""

    repeats: bool = True

    oblivious = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """c_k d."""
        factor = LEVELS[episode_choice(self.seed, k, len(LEVELS))]
        key = SIGNS.index(float(np.sign(factor)))
        size = abs(factor) if factor else 1.0
        return Round(self.cmdp.reward, factor * self.cmdp.excess, key, self.reward_noise, factor=size)

    def table(self, key: int) -> Floats:
        """0, d or -d."""
        return SIGNS[key] * self.cmdp.excess

    def safety(self) -> Safety:
        """d.q <= 0 and -d.q <= 0 at once."""
        cmdp = self.cmdp
        both = np.concatenate([cmdp.excess, -cmdp.excess])
        plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, both)
        if plan.feasible:
            return Safety(True, "some policy meets the budget exactly, which is safe for d and for -d")
        return Safety(False, "no policy meets the budget exactly, so d and -d cannot both be satisfied")


def make(cmdp: CMDP, seed: int) -> Scaled:
    """The cost table times a random sign and size, revealed."""
    return Scaled(cmdp, seed)
