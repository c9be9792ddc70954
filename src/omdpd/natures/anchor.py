"""The anchor: a known policy that the natures of this folder keep safe, and tables drawn around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.sweeps import greedy_under, occupancy_under

# A pool's tables leave the anchor this much room per step.
SLACK = 0.02


@dataclass(frozen=True, eq=False)
class Anchor:
    """Half the reward-optimal occupancy plus half the uniform policy's, under the true kernel."""

    cmdp: CMDP
    occupancy: Floats
    optimum: Floats

    @staticmethod
    def of(cmdp: CMDP) -> Anchor:
        """The anchor of a world."""
        H, S, A = cmdp.shape
        best, _ = greedy_under(cmdp.laws, cmdp.reward)
        q_opt = occupancy_under(cmdp.laws, best, cmdp.initial)
        q_uniform = occupancy_under(cmdp.laws, np.full((H, S, A), 1.0 / A), cmdp.initial)
        return Anchor(cmdp, 0.5 * q_opt + 0.5 * q_uniform, q_opt)

    def binding_table(self, rng: np.random.Generator) -> Floats:
        """A table that the anchor satisfies with slack and that makes the reward-optimal policy pay."""
        H = self.occupancy.shape[0]
        w = self._drawn(rng)
        w -= float(np.vdot(w, self.occupancy)) / H
        if np.vdot(w, self.optimum) < 0.0:
            w = -w
        w -= SLACK
        return w / np.abs(w).max()

    def table(self, rng: np.random.Generator) -> Floats:
        """A table shifted, if need be, until the anchor is just safe."""
        H = self.occupancy.shape[0]
        w = self._drawn(rng)
        w -= max(float(np.vdot(w, self.occupancy)) / H, 0.0)
        return w / np.abs(w).max()

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Independent numbers in [-1, 1]."""
        return self.cmdp.copied(rng.uniform(-1.0, 1.0, self.occupancy.shape))
