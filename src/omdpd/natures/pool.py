"""Costs from a small pool of tables with a common safe policy: switched, chosen against the learner, or drifting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from omdpd.natures.anchor import Anchor
from omdpd.natures.protocol import COSTLIEST, Safety, episode_choice
from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.problem.cmdp import CMDP, Noise, Round
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.compiled.products import costliest

POOL_SIZE = 4
BLOCK = 50  # episodes per table when switching in blocks
PERIOD = 1000  # episodes per turn when drifting

Switching = Literal["random", "blocks", "cyclic"]
BY_CONSTRUCTION = Safety(True, "every table of the pool leaves the anchor policy room, by construction")


@dataclass(frozen=True, eq=False)
class Pool:
    """Tables (n, I, H, S, A) switched at random, in blocks or cyclically; revealed after the episode."""

    cmdp: CMDP
    seed: int
    tables: Floats
    switching: Switching = "random"
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The table of episode k, whatever is played."""
        return self._rounds[chosen(self.switching, self.seed, k, len(self.tables))]

    def ahead(self, k: int, n: int) -> tuple[tuple[Round, ...], Integers]:
        """A round for every table, and the tables of n episodes from k on."""
        return self._rounds, chosen_ahead(self.switching, self.seed, k, n, len(self.tables))

    @cached_property
    def _rounds(self) -> tuple[Round, ...]:
        return rounds_of(self.cmdp, self.tables, self.reward_noise)

    def table(self, key: int) -> Floats:
        """The pool's table of that number."""
        return self.tables[key]

    def safety(self) -> Safety:
        """By construction."""
        return BY_CONSTRUCTION


@dataclass(frozen=True, eq=False)
class Adaptive:
    """From the pool the table that costs the policy in play the most (ties to the first)."""

    cmdp: CMDP
    tables: Floats
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The costliest table; with several constraints the one whose largest excess is largest."""
        return self._rounds[costliest(self.tables, occupancy)]

    def ahead(self, k: int, n: int) -> tuple[tuple[Round, ...], Integers]:
        """A round for every table, and that the costliest is picked."""
        return self._rounds, np.full(n, COSTLIEST)

    @cached_property
    def _rounds(self) -> tuple[Round, ...]:
        return rounds_of(self.cmdp, self.tables, self.reward_noise)

    def table(self, key: int) -> Floats:
        """The pool's table of that number."""
        return self.tables[key]

    def safety(self) -> Safety:
        """By construction."""
        return BY_CONSTRUCTION


@dataclass(frozen=True, eq=False)
class Drifting:
    """Convex combinations of neighbours in the pool, turning slowly; revealed after the episode."""

    cmdp: CMDP
    tables: Floats
    period: int = PERIOD
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = True

    oblivious = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The table at this place of the turn."""
        key = k % self.period
        return Round(self.cmdp.reward, self.table(key), key, self.reward_noise)

    def table(self, key: int) -> Floats:
        """(1 - x) T_j + x T_{j+1} at the key's place of the turn."""
        n = len(self.tables)
        place = key * n / self.period
        j, x = int(place), place - int(place)
        return (1.0 - x) * self.tables[j % n] + x * self.tables[(j + 1) % n]

    def safety(self) -> Safety:
        """Combinations of safe tables are safe."""
        return BY_CONSTRUCTION


def chosen(switching: Switching, seed: int, k: int, n_tables: int) -> int:
    """Which of so many tables episode k has."""
    if switching == "random":
        return episode_choice(seed, k, n_tables)
    return (k // BLOCK if switching == "blocks" else k) % n_tables


def chosen_ahead(switching: Switching, seed: int, k: int, n: int, n_tables: int) -> Integers:
    """Which of them every one of n episodes from k on has."""
    return np.array([chosen(switching, seed, each, n_tables) for each in range(k, k + n)], np.int64)


def rounds_of(cmdp: CMDP, tables: Floats, reward_noise: Noise, cost_noise: Noise = "exact") -> tuple[Round, ...]:
    """A round for every table, named by its place."""
    return tuple(Round(cmdp.reward, table, key, reward_noise, cost_noise) for key, table in enumerate(tables))


def make(cmdp: CMDP, seed: int, size: int = POOL_SIZE, switching: Switching = "random") -> Pool:
    """A few tables with a common safe policy, switched and revealed."""
    if switching not in ("random", "blocks", "cyclic"):
        raise InvalidInputError(f"switching is {switching!r}, but must be 'random', 'blocks' or 'cyclic'")
    return Pool(cmdp, seed, draw_pool(cmdp, seed, size), switching)


def make_adaptive(cmdp: CMDP, seed: int, size: int = POOL_SIZE) -> Adaptive:
    """From such a pool, the table that costs the policy in play the most."""
    return Adaptive(cmdp, draw_pool(cmdp, seed, size))


def make_drifting(cmdp: CMDP, seed: int, size: int = POOL_SIZE, period: int = PERIOD) -> Drifting:
    """Such a pool's tables turning slowly into one another."""
    return Drifting(cmdp, draw_pool(cmdp, seed, size), period)


def draw_pool(cmdp: CMDP, seed: int, size: int) -> Floats:
    """`size` rounds of binding tables around the world's anchor, (size, I, H, S, A)."""
    if size < 1:
        raise InvalidInputError(f"a pool needs at least one table, not {size}")
    anchor = Anchor.of(cmdp)
    rng = np.random.default_rng((seed, 2**32))  # apart from every episode's stream
    return np.stack([[anchor.binding_table(rng) for _ in range(cmdp.n_constraints)] for _ in range(size)])
