"""Stochastic costs: one mean table, observed exactly (`fixed`) or through noise (`noisy`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.natures.protocol import Safety
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.planning import best_plan


@dataclass(frozen=True, eq=False)
class Fixed:
    """d_k = d in every episode, met along the trajectory."""

    cmdp: CMDP
    reward_noise: Noise = "exact"
    cost_noise: Noise = "exact"
    feedback: FeedbackKind = "bandit"
    repeats: bool = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The mean tables."""
        return self._round

    def ahead(self, k: int, n: int) -> tuple[tuple[Round, ...], Integers]:
        """The one round there is, n times."""
        return (self._round,), np.zeros(n, np.int64)

    @cached_property
    def _round(self) -> Round:
        return Round(self.cmdp.reward, self.cmdp.excess, 0, self.reward_noise, self.cost_noise)

    def table(self, key: int) -> Floats:
        """d."""
        return self.cmdp.excess

    def safety(self) -> Safety:
        """By the linear program on the mean."""
        cmdp = self.cmdp
        plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess)
        if plan.feasible:
            return Safety(True, "the linear program on the mean costs has a solution")
        return Safety(False, f"every policy exceeds some budget by at least {plan.violation:.4g} in expectation")


def make(cmdp: CMDP, seed: int) -> Fixed:
    """Costs held fixed and observed exactly."""
    return Fixed(cmdp)


def make_noisy(cmdp: CMDP, seed: int, *, noise: Noise = "two-point") -> Fixed:
    """Fixed means, observed as 0/1 rewards and -1/+1 costs; with "own-range" as the least and largest cost there is."""
    return Fixed(cmdp, reward_noise="two-point" if noise == "own-range" else noise, cost_noise=noise)
