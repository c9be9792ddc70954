"""The user's units: rewards between any two numbers, costs of any size, where a learner sees [0, 1] and [-1, 1].

value = H low + (high - low) v,   cost - budget = scale (d.q),   violation = sum_k max_i [scale_i (d_i.q_k)]^+
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.play.judging import EXPONENT_START, LATE_SHARE, Scores, growth_exponent
from omdpd.play.rows import Row
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP


@dataclass(frozen=True, eq=False)
class Units:
    """What rewards of 0 and 1 and costs of 1 are to the user, `cost_scale` (I,), in episodes of `horizon` steps."""

    horizon: int
    reward_range: tuple[float, float]
    cost_scale: Floats

    @staticmethod
    def of(cmdp: CMDP) -> Units:
        """The units of a problem."""
        return Units(cmdp.shape[0], cmdp.reward_range, cmdp.cost_scale)

    @property
    def plain(self) -> bool:
        """Whether a learner sees the user's own numbers."""
        return self.reward_range == (0.0, 1.0) and bool((self.cost_scale == 1.0).all())

    @property
    def span(self) -> float:
        """What a difference of rewards of 1 is to the user."""
        return self.reward_range[1] - self.reward_range[0]

    def values(self, values: Floats) -> Floats:
        """Values of episodes."""
        return self.horizon * self.reward_range[0] + self.span * values

    def violations(self, excess: Floats) -> Floats:
        """max_i [cost - budget]^+ of episodes, from the learner's excess (K, I)."""
        return np.maximum((excess * self.cost_scale).max(axis=1), 0.0)

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
