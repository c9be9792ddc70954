"""Costs that change and are never revealed: a pool of tables of which an episode shows what its trajectory meets.

A learner that averages what it meets estimates the mean of the tables and may be safe on average.  All tables leave one
policy, the anchor, room: a policy safe in every episode exists.  But no learner can have sublinear regret and sublinear
strong violation on all such pools: what it meets has the law of noise around a mean that is safe (docs/theory.md, 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from omdpd.natures.pool import BY_CONSTRUCTION, POOL_SIZE, chosen, chosen_ahead, draw_pool, rounds_of
from omdpd.natures.protocol import COSTLIEST, Safety
from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.compiled.products import costliest

Choosing = Literal["random", "blocks", "adaptive"]


@dataclass(frozen=True, eq=False)
class Unrevealed:
    """Tables (n, I, H, S, A), switched or chosen against the policy in play, seen along the trajectory alone."""

    cmdp: CMDP
    seed: int
    tables: Floats
    choosing: Choosing = "blocks"
    reward_noise: Noise = "two-point"
    cost_noise: Noise = "two-point"
    feedback: FeedbackKind = "bandit"
    repeats: bool = True
    changes: tuple[str, ...] = ("cost",)

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The table of episode k."""
        return self._rounds[self._choice(k, occupancy)]

    def ahead(self, k: int, n: int) -> tuple[tuple[Round, ...], Integers]:
        """A round for every table, and which of them come."""
        if self.choosing == "adaptive":
            return self._rounds, np.full(n, COSTLIEST)
        return self._rounds, chosen_ahead(self.choosing, self.seed, k, n, len(self.tables))

    @cached_property
    def _rounds(self) -> tuple[Round, ...]:
        return rounds_of(self.cmdp, self.tables, self.reward_noise, self.cost_noise)

    def table(self, key: int) -> Floats:
        """The pool's table of that number."""
        return self.tables[key]

    def safety(self) -> Safety:
        """By construction."""
        return BY_CONSTRUCTION

    def _choice(self, k: int, occupancy: Floats) -> int:
        if self.choosing == "adaptive":
            return costliest(self.tables, occupancy)
        return chosen(self.choosing, self.seed, k, len(self.tables))


def make(cmdp: CMDP, seed: int, size: int = POOL_SIZE, choosing: Choosing = "blocks") -> Unrevealed:
    """A pool of cost tables that is never revealed: only what the trajectory meets is seen."""
    if choosing not in ("random", "blocks", "adaptive"):
        raise InvalidInputError(f"choosing is {choosing!r}, but must be 'random', 'blocks' or 'adaptive'")
    return Unrevealed(cmdp, seed, draw_pool(cmdp, seed, size), choosing)
