"""Rewards that change from episode to episode: switched, turning slowly, or chosen against the policy in play.

The tables r_j = (1 - strength) r + strength u_j lie between the world's mean reward and independent uniform tables.
Costs are the world's own, met through noise (bandit feedback), or with ``costs = "pool"`` a pool of tables that is
revealed.  Regret is judged against what was realised: the comparator is the best safe policy for the mean of the reward
tables that the run met, which with an adaptive nature depends on who plays.

The paper claims adversarial rewards and proves nothing about them: a learner that averages what it meets learns the
mean table, which is what it is judged by where tables are switched blindly, and is led astray where they are chosen
against it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from omdpd.natures import pool
from omdpd.natures.fixed import Fixed
from omdpd.natures.pool import BLOCK, PERIOD, POOL_SIZE, Switching, check_choice, chosen, turned
from omdpd.natures.protocol import Nature, Safety
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.setting import FeedbackKind

STRENGTH = 0.7
Costs = Literal["mean", "pool"]
Choosing = Literal["switching", "drifting", "adaptive"]


@dataclass(frozen=True, eq=False)
class ChangingRewards:
    """Reward tables (n, H, S, A), chosen as `choosing` says; everything else is another nature's."""

    tables: Floats
    base: Nature
    seed: int
    choosing: Choosing
    switching: Switching = "blocks"
    block: int = BLOCK
    period: int = PERIOD
    changes: tuple[str, ...] = ("reward",)

    @property
    def feedback(self) -> FeedbackKind:
        """The other nature's."""
        return self.base.feedback

    @property
    def repeats(self) -> bool:
        """The other nature's: keys name cost tables."""
        return self.base.repeats

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The other nature's round with another reward."""
        return replace(self.base.draw(k, occupancy), reward=self.reward(k, occupancy))

    def reward(self, k: int, occupancy: Floats) -> Floats:
        """The reward table of episode k."""
        if self.choosing == "adaptive":
            return self.tables[int(np.argmin(np.tensordot(self.tables, occupancy, axes=3)))]
        if self.choosing == "drifting":
            return turned(self.tables, k % self.period, self.period)
        return self.tables[chosen(self.switching, self.seed, k, len(self.tables), self.block)]

    def table(self, key: int) -> Floats:
        """The other nature's cost table."""
        return self.base.table(key)

    def safety(self) -> Safety:
        """Rewards have no say in it."""
        return self.base.safety()


def make_switching(
    cmdp: CMDP,
    seed: int,
    size: int = POOL_SIZE,
    switching: Switching = "blocks",
    block: int = BLOCK,
    strength: float = STRENGTH,
    costs: Costs = "mean",
) -> ChangingRewards:
    """A few reward tables, switched in blocks, at random or cyclically; costs of the world, or of a pool."""
    check_choice("switching", switching, Switching)
    positive_integer("block", block)
    tables = draw_rewards(cmdp, seed, size, strength)
    return ChangingRewards(tables, _base(cmdp, seed, costs), seed, "switching", switching, block)


def make_drifting(
    cmdp: CMDP,
    seed: int,
    size: int = POOL_SIZE,
    period: int = PERIOD,
    strength: float = STRENGTH,
    costs: Costs = "mean",
) -> ChangingRewards:
    """Such reward tables turning slowly into one another."""
    positive_integer("period", period)
    tables = draw_rewards(cmdp, seed, size, strength)
    return ChangingRewards(tables, _base(cmdp, seed, costs), seed, "drifting", period=period)


def make_adaptive(
    cmdp: CMDP, seed: int, size: int = POOL_SIZE, strength: float = STRENGTH, costs: Costs = "mean"
) -> ChangingRewards:
    """From such reward tables, the one that pays the policy in play the least."""
    tables = draw_rewards(cmdp, seed, size, strength)
    return ChangingRewards(tables, _base(cmdp, seed, costs), seed, "adaptive")


def draw_rewards(cmdp: CMDP, seed: int, size: int, strength: float) -> Floats:
    """`size` tables between the world's reward and uniform ones, (size, H, S, A)."""
    positive_integer("size", size)
    if not 0.0 <= strength <= 1.0:
        raise InvalidInputError(f"strength is {strength}, but must lie between 0 and 1")
    rng = np.random.default_rng((seed, 2**32 + 1))  # apart from every episode's stream and from the pool's
    return (1.0 - strength) * cmdp.reward + strength * cmdp.copied(rng.uniform(0.0, 1.0, (size, *cmdp.shape)))


def _base(cmdp: CMDP, seed: int, costs: Costs) -> Nature:
    if costs == "pool":
        return pool.make(cmdp, seed)
    if costs == "mean":
        return Fixed(cmdp, reward_noise="two-point", cost_noise="two-point")
    raise InvalidInputError(f"costs is {costs!r}, but must be 'mean' or 'pool'")
