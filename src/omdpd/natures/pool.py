"""Costs from a few tables: a pool with a common safe policy, or the world's own scenarios; also never revealed.

A pool's tables are drawn around an anchor, one policy that all of them leave room.  Scenarios are what the world names
(a link's price, an intruder's target); they keep its budgets.  Tables are switched, chosen against the policy in play,
or turn slowly into one another.

Where they are not revealed, an episode shows what its trajectory meets.  A learner that averages that estimates the
mean of the tables and may be safe on average.  But no learner can have sublinear regret and sublinear strong violation
on all such pools: what it meets has the law of noise around a mean that is safe (docs/theory.md, 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from omdpd.natures.anchor import Anchor
from omdpd.natures.protocol import COSTLIEST, Safety, episode_choice
from omdpd.problem.arrays import Floats, Integers, InvalidInputError, positive_integer
from omdpd.problem.cmdp import CMDP, Noise, Round, Scenarios
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.compiled.products import costliest
from omdpd.solvers.planning import best_plan

POOL_SIZE = 4
BLOCK = 50  # episodes per table when switching in blocks
PERIOD = 1000  # episodes per turn when drifting

Switching = Literal["random", "blocks", "cyclic"]
Choosing = Literal["random", "blocks", "adaptive"]
BY_CONSTRUCTION = Safety(True, "every table of the pool leaves the anchor policy room, by construction")


@dataclass(frozen=True, eq=False)
class Pool:
    """Tables (n, I, H, S, A), switched at random, in blocks or cyclically, or chosen against the policy in play.

    "adaptive" picks the table that costs the policy the most (ties to the first); with several constraints the one
    whose largest excess is largest.  Of the world's own `scenarios` it is not known that a policy is safe in all.
    """

    cmdp: CMDP
    seed: int
    tables: Floats
    switching: Switching | Choosing = "random"
    scenarios: Scenarios | None = None
    reward_noise: Noise = "two-point"
    cost_noise: Noise = "exact"
    feedback: FeedbackKind = "full"
    repeats: bool = True
    changes: tuple[str, ...] = ()

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The table of episode k."""
        if self.switching == "adaptive":
            return self._rounds[costliest(self.tables, occupancy)]
        return self._rounds[chosen(self.switching, self.seed, k, len(self.tables))]

    def ahead(self, k: int, n: int) -> tuple[tuple[Round, ...], Integers]:
        """A round for every table, and which of them n episodes from k on have."""
        if self.switching == "adaptive":
            return self._rounds, np.full(n, COSTLIEST)
        picked = [chosen(self.switching, self.seed, each, len(self.tables)) for each in range(k, k + n)]
        return self._rounds, np.array(picked, np.int64)

    @cached_property
    def _rounds(self) -> tuple[Round, ...]:
        noise = self.reward_noise, self.cost_noise
        return tuple(Round(self.cmdp.reward, table, key, *noise) for key, table in enumerate(self.tables))

    def table(self, key: int) -> Floats:
        """The table of that number."""
        return self.tables[key]

    def safety(self) -> Safety:
        """By construction; for scenarios by the linear program over all of them."""
        if self.scenarios is None:
            return BY_CONSTRUCTION
        plan = best_plan(self.cmdp.laws, self.cmdp.initial, self.cmdp.reward, self.scenarios.rows)
        if plan.feasible:
            return Safety(True, "the linear program over all scenarios has a solution")
        return Safety(False, f"every policy exceeds a budget in some scenario by at least {plan.violation:.4g}")


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
        """The combination at the key's place of the turn."""
        return turned(self.tables, key, self.period)

    def safety(self) -> Safety:
        """Combinations of safe tables are safe."""
        return BY_CONSTRUCTION


def turned(tables: Floats, key: int, period: int) -> Floats:
    """(1 - x) T_j + x T_{j+1} at place `key` of a turn of `period` through all tables."""
    n = len(tables)
    place = key * n / period
    j, x = int(place), place - int(place)
    return (1.0 - x) * tables[j % n] + x * tables[(j + 1) % n]


def chosen(switching: str, seed: int, k: int, n_tables: int, block: int = BLOCK) -> int:
    """Choose one of `n_tables` tables for episode k."""
    if switching == "random":
        return episode_choice(seed, k, n_tables)
    return (k // block if switching == "blocks" else k) % n_tables


def check_choice(name: str, value: str, kinds: object) -> None:
    """Refuse an unknown way to choose tables."""
    known = [repr(kind) for kind in get_args(kinds)]
    if repr(value) not in known:
        raise InvalidInputError(f"{name} is {value!r}, but must be {', '.join(known[:-1])} or {known[-1]}")


def make(cmdp: CMDP, seed: int, size: int = POOL_SIZE, switching: Switching = "random") -> Pool:
    """A few tables with a common safe policy, switched and revealed."""
    check_choice("switching", switching, Switching)
    return Pool(cmdp, seed, draw_pool(cmdp, seed, size), switching)


def make_adaptive(cmdp: CMDP, seed: int, size: int = POOL_SIZE) -> Pool:
    """From such a pool, the table that costs the policy in play the most."""
    return Pool(cmdp, seed, draw_pool(cmdp, seed, size), "adaptive")


def make_drifting(cmdp: CMDP, seed: int, size: int = POOL_SIZE, period: int = PERIOD) -> Drifting:
    """Such a pool's tables turning slowly into one another."""
    return Drifting(cmdp, draw_pool(cmdp, seed, size), period)


def make_natural(cmdp: CMDP, seed: int, switching: Switching = "random") -> Pool:
    """The world's own scenarios (a link's price, an intruder's target), switched and revealed."""
    check_choice("switching", switching, Switching)
    scenarios = _scenarios(cmdp)
    return Pool(cmdp, seed, scenarios.tables, switching, scenarios)


def make_hostile(cmdp: CMDP, seed: int) -> Pool:
    """From the world's own scenarios, the one that costs the policy in play the most."""
    scenarios = _scenarios(cmdp)
    return Pool(cmdp, seed, scenarios.tables, "adaptive", scenarios)


def make_unrevealed(cmdp: CMDP, seed: int, size: int = POOL_SIZE, choosing: Choosing = "blocks") -> Pool:
    """A pool of cost tables that is never revealed: only what the trajectory meets is seen."""
    check_choice("choosing", choosing, Choosing)
    return unrevealed(cmdp, seed, draw_pool(cmdp, seed, size), choosing)


def unrevealed(cmdp: CMDP, seed: int, tables: Floats, choosing: Choosing = "blocks") -> Pool:
    """Tables of which an episode shows what its trajectory meets."""
    return Pool(cmdp, seed, tables, choosing, cost_noise="two-point", feedback="bandit", changes=("cost",))


def draw_pool(cmdp: CMDP, seed: int, size: int) -> Floats:
    """`size` rounds of binding tables around the world's anchor, (size, I, H, S, A)."""
    positive_integer("size", size)
    anchor = Anchor.of(cmdp)
    rng = np.random.default_rng((seed, 2**32))  # apart from every episode's stream
    return np.stack([[anchor.binding_table(rng) for _ in range(cmdp.n_constraints)] for _ in range(size)])


def _scenarios(cmdp: CMDP) -> Scenarios:
    if cmdp.scenarios is None:
        raise InvalidInputError(
            f"the world {cmdp.name!r} names no scenarios of its own; give some with CMDP.with_scenarios, or use one of "
            "the natures that draw their own tables: pool, adaptive, drifting, anchored"
        )
    return cmdp.scenarios
