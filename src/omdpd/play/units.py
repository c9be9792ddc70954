"""The user's units: rewards between any two numbers, costs of any size, where a learner sees [0, 1] and [-1, 1].

value = H low + (high - low) v,   cost - budget = scale (d.q),   violation = sum_k max_i [scale_i (d_i.q_k)]^+
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from omdpd.play.judging import EXPONENT_START, LATE_SHARE, Scores, growth_exponent
from omdpd.play.rows import SUMMARY, Column, Row
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP


@dataclass(frozen=True, eq=False)
class Units:
    """What rewards of 0 and 1 and costs of 1 are to the user, `cost_scale` (I,), in episodes of `horizon` steps.

    `budget` (I,) is in the user's units, infinite where there is no limit; None where it is not known.
    """

    horizon: int
    reward_range: tuple[float, float]
    cost_scale: Floats
    budget: Floats | None = None

    @staticmethod
    def of(cmdp: CMDP) -> Units:
        """The units of a problem."""
        return Units(cmdp.shape[0], cmdp.reward_range, cmdp.cost_scale, cmdp.limits)

    @staticmethod
    def of_record(record: Mapping[str, Any]) -> Units:
        """The units that a run's summary says; those of its learner where it says none."""
        low, high = record.get("reward_range", (0.0, 1.0))
        scales = np.array(record.get("cost_scale") or (1.0,), dtype=np.float64)
        return Units(int(record.get("horizon", 0)), (float(low), float(high)), scales)

    @property
    def plain(self) -> bool:
        """Whether a learner sees the user's own numbers."""
        return self.reward_range == (0.0, 1.0) and bool((self.cost_scale == 1.0).all())

    @property
    def span(self) -> float:
        """What a difference of rewards of 1 is to the user."""
        return self.reward_range[1] - self.reward_range[0]

    @property
    def common_scale(self) -> float | None:
        """What a cost of 1 is to the user; None where every constraint has its own."""
        return float(self.cost_scale[0]) if bool((self.cost_scale == self.cost_scale[0]).all()) else None

    def multiple(self, column: Column | None) -> float:
        """Say what 1 of a column is to the user; the user's own metrics have no column and stay unchanged.

        An episode's violation is that of the constraint that exceeds its budget most.  Constraints with scales of their
        own might trade places, and which one exceeded most is not kept for every episode: such violation stays.
        """
        unit = "" if column is None else column.unit
        return self.span if unit == "rewards" else (self.common_scale or 1.0) if unit == "costs" else 1.0

    def values(self, values: Floats) -> Floats:
        """Values of episodes."""
        return self.horizon * self.reward_range[0] + self.span * values

    def violations(self, excess: Floats) -> Floats:
        """max_i [cost - budget]^+ of episodes, from the learner's excess (K, I)."""
        return np.maximum((excess * self.cost_scale).max(axis=1), 0.0)

    def per_episode(self, violation: float, n_episodes: int) -> str:
        """Say what a sum of violation is per episode, and in percent of the budget where there is one above zero.

        >>> Units(8, (0.0, 1.0), np.ones(1), np.array([12.0])).per_episode(242.8, 1500)
        '0.162 per episode, 1.3 % of the budget'
        """
        mean = violation / max(n_episodes, 1)
        one = self.budget is not None and len(self.budget) == 1 and 0.0 < float(self.budget[0]) < np.inf
        share = (
            f", {100.0 * mean / float(self.budget[0]):.2g} % of the budget" if one and self.budget is not None else ""
        )
        return f"{mean:.3g} per episode{share}"

    def row(self, seen: Row, violation_before: float) -> Row:
        """A row, after episodes of this much violation; certificates are bounds on what the learner sees, and stay."""
        if self.plain:
            return seen
        excess = np.array(seen.excess) * self.cost_scale
        low = self.reward_range[0]
        return seen._replace(
            value=self.horizon * low + self.span * seen.value, excess=tuple(excess.tolist()),
            value_sum=seen.episode * self.horizon * low + self.span * seen.value_sum,
            violation_sum=violation_before + max(float(excess.max()), 0.0),
        )  # fmt: skip

    def scores(self, seen: Scores, excess: Floats) -> Scores:
        """A run's scores, from those of the learner's units and its excess (K, I)."""
        if self.plain:
            return seen
        paid = self.violations(excess)
        late, quarter = paid[len(paid) - len(paid) // LATE_SHARE :], len(paid) // EXPONENT_START
        regrets = {
            name: None if getattr(seen, name) is None else self.span * getattr(seen, name)
            for name in ("regret", "regret_positive", "lagrangian_regret")
        }
        return replace(
            seen, **regrets, violation=float(paid.sum()),
            weak_violation=float(np.maximum((excess * self.cost_scale).sum(axis=0), 0.0).max()),
            late_violation=float(late.mean()) if len(late) else 0.0,
            violation_exponent=growth_exponent(quarter, float(paid[:quarter].sum()), len(paid), float(paid.sum())),
        )  # fmt: skip


def in_user_units(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run's summary with regret and violation in the user's units.

    >>> in_user_units({"regret": 2.0, "violation": 0.5, "reward_range": [0.0, 10.0], "cost_scale": [8.0]})["violation"]
    4.0
    """
    units, shown = Units.of_record(record), dict(record)
    for key, column in SUMMARY.items():
        if column.unit and record.get(key) is not None:
            shown[key] *= units.multiple(column)
    return shown
