"""The world's own adversary: costs from the scenarios that the world names (a link's price, an intruder's target).

Scenarios keep the world's budgets, are revealed after the episode, and are switched at random, in blocks, cyclically,
or (`hostile`) chosen against the policy in play.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.natures.pool import Switching, chosen, chosen_ahead, rounds_of
from omdpd.natures.protocol import COSTLIEST, Safety
from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.problem.cmdp import CMDP, Noise, Round, Scenarios
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.compiled.products import costliest
from omdpd.solvers.planning import best_plan


@dataclass(frozen=True, eq=False)
class Natural:
    """The world's scenarios, switched whatever is played."""

    cmdp: CMDP
    scenarios: Scenarios
    seed: int
    switching: Switching = "random"
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The scenario of episode k."""
        return self._rounds[chosen(self.switching, self.seed, k, len(self._rounds))]

    def ahead(self, k: int, n: int) -> tuple[tuple[Round, ...], Integers]:
        """A round for every scenario, and those of n episodes from k on."""
        return self._rounds, chosen_ahead(self.switching, self.seed, k, n, len(self._rounds))

    @cached_property
    def _rounds(self) -> tuple[Round, ...]:
        return rounds_of(self.cmdp, self.scenarios.tables, self.reward_noise)

    def table(self, key: int) -> Floats:
        """The scenario of that number."""
        return self.scenarios.tables[key]

    def safety(self) -> Safety:
        """By the linear program over all scenarios."""
        return safety_in(self.cmdp, self.scenarios)


@dataclass(frozen=True, eq=False)
class Hostile:
    """From the world's scenarios the one that costs the policy in play the most (ties to the first)."""

    cmdp: CMDP
    scenarios: Scenarios
    reward_noise: Noise = "two-point"
    feedback: FeedbackKind = "full"
    repeats: bool = True

    def draw(self, k: int, occupancy: Floats) -> Round:
        """The costliest scenario; with several constraints the one whose largest excess is largest."""
        return self._rounds[costliest(self.scenarios.tables, occupancy)]

    def ahead(self, k: int, n: int) -> tuple[tuple[Round, ...], Integers]:
        """A round for every scenario, and that the costliest is picked."""
        return self._rounds, np.full(n, COSTLIEST)

    @cached_property
    def _rounds(self) -> tuple[Round, ...]:
        return rounds_of(self.cmdp, self.scenarios.tables, self.reward_noise)

    def table(self, key: int) -> Floats:
        """The scenario of that number."""
        return self.scenarios.tables[key]

    def safety(self) -> Safety:
        """By the linear program over all scenarios."""
        return safety_in(self.cmdp, self.scenarios)


def make(cmdp: CMDP, seed: int, switching: Switching = "random") -> Natural:
    """The world's own scenarios (a link's price, an intruder's target), switched and revealed."""
    if switching not in ("random", "blocks", "cyclic"):
        raise InvalidInputError(f"switching is {switching!r}, but must be 'random', 'blocks' or 'cyclic'")
    return Natural(cmdp, _scenarios(cmdp), seed, switching)


def make_hostile(cmdp: CMDP, seed: int) -> Hostile:
    """From the world's own scenarios, the one that costs the policy in play the most."""
    return Hostile(cmdp, _scenarios(cmdp))


def safety_in(cmdp: CMDP, scenarios: Scenarios) -> Safety:
    """Whether one policy is safe in every scenario."""
    plan = best_plan(cmdp.laws, cmdp.initial, cmdp.reward, scenarios.rows)
    if plan.feasible:
        return Safety(True, "the linear program over all scenarios has a solution")
    return Safety(False, f"every policy exceeds a budget in some scenario by at least {plan.violation:.4g}")


def _scenarios(cmdp: CMDP) -> Scenarios:
    if cmdp.scenarios is None:
        raise InvalidInputError(
            f"the world {cmdp.name!r} names no scenarios of its own; give some with CMDP.with_scenarios, or use one of "
            "the natures that draw their own tables: pool, adaptive, drifting, anchored"
        )
    return cmdp.scenarios
