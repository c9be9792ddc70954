"""Stored runs in the user's units: a run keeps the numbers that its learner saw, and what they are to the user.

Regret is in rewards, which a learner sees on the scale [0, 1]; an episode's violation is that of the constraint that
exceeds its budget most.  Where the costs have one scale both are a multiple of what is kept.  Constraints with scales
of their own might trade places, and which one exceeded most is not kept for every episode: such violation stays as it
is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

IN_REWARDS = ("regret", "regret_positive", "lagrangian_regret", "early_regret")
IN_COSTS = ("violation", "weak_violation", "late_violation", "early_violation")


def reward_unit(record: Mapping[str, Any]) -> float:
    """What a reward of 1 is to the user, from a run's summary; 1 where it does not say."""
    low, high = record.get("reward_range", (0.0, 1.0))
    return float(high - low)


def cost_unit(record: Mapping[str, Any]) -> float | None:
    """What a cost of 1 is to the user, from a run's summary; None where every constraint has its own."""
    scales = set(record.get("cost_scale", ())) or {1.0}
    return float(scales.pop()) if len(scales) == 1 else None


class Multiples(NamedTuple):
    """What a reward and a cost of 1 are to the user."""

    reward: float = 1.0
    cost: float = 1.0

    @staticmethod
    def of(record: Mapping[str, Any]) -> Multiples:
        """As a run's summary says; a cost stays as it is where every constraint has its own scale."""
        return Multiples(reward_unit(record), cost_unit(record) or 1.0)


def in_user_units(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run's summary with regret and violation in the user's units.

    >>> in_user_units({"regret": 2.0, "violation": 0.5, "reward_range": [0.0, 10.0], "cost_scale": [8.0]})["violation"]
    4.0
    """
    reward, cost = Multiples.of(record)
    units = dict.fromkeys(IN_REWARDS, reward) | dict.fromkeys(IN_COSTS, cost)
    return {key: value if key not in units or value is None else value * units[key] for key, value in record.items()}
