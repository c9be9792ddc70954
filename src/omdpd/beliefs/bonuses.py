"""Optimism by bonuses: tables that pay for what is not known, planned with under the empirical kernel alone.

    r~_h = r_hat + reward_scale sqrt(L/n) + transition_scale H width
    d~_h = d_hat - cost_scale sqrt(L/n) - transition_scale H width

where width(h,s,a) measures how far p_hat may be off.  r~ is cut to [0, H-h] and d~ to [-(H-h), H-h], what an episode
can still bring; a pair that was never seen is worth that much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import (
    COST_SCALE,
    DELTA,
    REWARD_SCALE,
    SCALES,
    TRANSITION_SCALE,
    log_term,
    log_term_transition,
)
from omdpd.beliefs.counting import bernstein_width, iterated_log_width
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Setting


@dataclass(frozen=True, eq=False)
class Optimism:
    """r~ (H, S, A), d~ (I, H, S, A) and p_hat (H, S, A, S)."""

    reward: Floats
    cost: Floats
    transition: Floats


@dataclass(frozen=True)
class Bonus:
    """How counts become optimistic tables.

    The default scales are those of `ProximalOMDPD.optimistic`, the same for every learner.  `stationary` pools the
    counts over the steps.
    """

    reward_scale: float = REWARD_SCALE
    cost_scale: float = COST_SCALE
    transition_scale: float = TRANSITION_SCALE
    stationary: bool = False
    delta: float = DELTA

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=SCALES, shares=("delta",))

    def margin(self, setting: Setting, counts: Counts, p: Floats, k: int) -> Floats:
        """transition_scale H width, (H, S, A)."""
        raise NotImplementedError

    def estimate(self, setting: Setting, counts: Counts, k: int) -> Optimism:
        """r~, d~ and p_hat before episode k (zero-based: k episodes have been seen)."""
        counts = counts.pooled() if self.stationary else counts
        p, root = counts.transition_mean(), np.sqrt(log_term(setting, k, self.delta))
        margin = self.margin(setting, counts, p, k)
        return _optimism(counts, p, margin, self.reward_scale * root, self.cost_scale * root)


@dataclass(frozen=True)
class BernsteinBonus(Bonus):
    """The confidence box as a bonus: H times the summed half-widths of every row."""

    def margin(self, setting: Setting, counts: Counts, p: Floats, k: int) -> Floats:
        """The half-widths of the box, summed."""
        width = bernstein_width(counts.transitions, counts.departures, p, log_term_transition(setting, k, self.delta))
        found: Floats = self.transition_scale * setting.horizon * width
        return found


@dataclass(frozen=True)
class IteratedLogBonus(Bonus):
    """Kitamura et al.'s uniform bonus: scale ( phi sum_t sqrt(p) + 5 phi^2 ), valid for every k at once.

    The terms of the reward and the cost (which are known in that paper) are ours.
    """

    transition_scale: float = 0.001
    delta: float = 0.1

    def margin(self, setting: Setting, counts: Counts, p: Floats, k: int) -> Floats:
        """The bonus of the kernel."""
        H, S, A = setting.shape
        constant = 2.0 * float(np.log(48.0 * S * S * A * H / self.delta))
        found: Floats = self.transition_scale * iterated_log_width(counts.departures, p, constant)
        return found


def _optimism(counts: Counts, p: Floats, margin: Floats, reward_width: float, cost_width: float) -> Optimism:
    """Means, what the visits leave open, and the margin of the kernel, cut to what an episode can still bring."""
    H = len(p)
    left = np.arange(H, 0, -1.0)[:, None, None]
    root = 1.0 / np.sqrt(np.maximum(counts.visits, 1.0))
    margin[-1] = 0.0  # nothing follows the last step
    reward = np.minimum(counts.reward_mean() + reward_width * root, 1.0) + margin
    cost = np.maximum(counts.cost_mean() - cost_width * root, -1.0) - margin
    unseen = counts.visits == 0.0
    reward = np.where(unseen, left, np.minimum(reward, left))
    cost = np.where(unseen, -left, np.maximum(cost, -left))
    return Optimism(reward, cost, p)
