"""From counts to what a learner believes: optimistic tables, and the set of kernels it plans in.

    bonus  = scale * sqrt(L / (n v 1)),                                        L  = ln(6 (I+1) SAHK / delta)
    radius = scale * (2 sqrt(p(1-p) Lp / (n v 1)) + (14/3) Lp / (n v 1)),      Lp = ln(6 SAHK / delta)

(Appendix B of the paper; with scales of one these are its constants.  For costs a scale of `COST_WIDTH` is needed.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from omdpd.beliefs.counting import bernstein, box_bounds, empirical_tables, optimistic_tables, write_box
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.rules import episodes_for
from omdpd.problem.arrays import Floats, InvalidInputError, check_settings
from omdpd.problem.records import fast_init
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box, Kernel, Region

# The probability with which a confidence set may fail; it stands in logarithms, where one usual value is like another.
DELTA = 0.01
# How many sqrt(L/n) the mean of n costs can be off: Hoeffding's width is for a range of one, and costs have [-1, 1].
COST_WIDTH = math.sqrt(2.0)
# Scales of the bonuses and of the box that every learner of a comparison shares.  With the theorem's ones a run of
# thousands of episodes does nothing but explore; these were tuned on the paper's random worlds for ours.
REWARD_SCALE = 0.2
COST_SCALE = 0.0
TRANSITION_SCALE = 0.005
# The scale of the cost bonus where safety rests on it, pessimistic and so not zero.
SAFE_COST_SCALE = 0.02
# The settings that hold them; none may be negative.
SCALES = ("reward_scale", "cost_scale", "transition_scale")


R = TypeVar("R", bound=Region, covariant=True)


@fast_init
@dataclass(frozen=True, eq=False)
class Estimate(Generic[R]):
    """What a learner believes before an episode, with the kind of region that its estimator makes.

    Attributes
    ----------
    reward : (H, S, A)
        r~, optimistic.
    cost : (I, H, S, A)
        d~ for the surrogate (meaningless under full feedback, where costs are revealed).
    counted_cost : (I, H, S, A)
        The cost that counts as violation: d~ itself, or d_hat without the margin of a cautious estimator.
    margin : (H, S, A)
        What an occupancy pays per unit for what is not known yet: the scalar margin on a revealed table is
        sum(q * margin).  Zero for optimistic estimators.
    region : R
    """

    reward: Floats
    cost: Floats
    counted_cost: Floats
    margin: Floats
    region: R


class Estimator(Protocol):
    """How counts become an estimate for episode k (zero-based: k episodes have been seen)."""

    @property
    def covers_truth(self) -> bool:
        """Whether the region is meant to contain the true kernel, so that run-time certificates apply."""
        ...

    def check(self, setting: Setting) -> None:
        """Refuse a setting this estimator cannot serve."""
        ...

    def estimate(self, setting: Setting, counts: Counts, k: int) -> Estimate[Region]:
        """The belief before episode k."""
        ...


@dataclass(frozen=True)
class BoxEstimator:
    """Optimism in every table: r_hat + bonus, d_hat - bonus, and a confidence box around p_hat.

    `clip` keeps r~ in [0, 1] and d~ in [-1, 1]; with `trusting` an unvisited pair has r~ = 1 and d~ = -1, otherwise
    means of zero and the bonus with n = 1 (the paper).  `stationary` pools the counts over the steps.
    """

    reward_scale: float = 1.0
    cost_scale: float = 1.0
    transition_scale: float = 1.0
    clip: bool = False
    trusting: bool = False
    stationary: bool = False
    delta: float = DELTA

    covers_truth = True

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=SCALES, shares=("delta",))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> BoxEstimator:
        """Small bonuses, clipped: the scales that every learner of a comparison shares."""
        return BoxEstimator(reward_scale, cost_scale, transition_scale, clip, trusting, stationary, delta)

    def check(self, setting: Setting) -> None:
        """Any setting will do."""

    def estimate(self, setting: Setting, counts: Counts, k: int) -> Estimate[Box]:
        """r~, d~ and the box before episode k."""
        return self.estimate_with(self.region(setting, counts, k), setting, counts, k)

    def region(self, setting: Setting, counts: Counts, k: int) -> Box:
        """The box before episode k, without the tables around it."""
        counts = counts.pooled() if self.stationary else counts
        return confidence_box(counts, self.transition_scale, log_term_transition(setting, k, self.delta))

    def estimate_with(self, box: Box, setting: Setting, counts: Counts, k: int) -> Estimate[Box]:
        """r~ and d~ before episode k with a box that is known already."""
        counts = counts.pooled() if self.stationary else counts
        reward, cost = np.empty(counts.visits.shape), np.empty(counts.cost_sum.shape)
        optimistic_tables(
            counts.visits, counts.reward_sum, counts.cost_sum, log_term(setting, k, self.delta),
            self.reward_scale, self.cost_scale, self.clip, self.trusting, reward, cost,
        )  # fmt: skip
        return Estimate(reward, cost, cost, np.zeros(reward.shape), box)


@dataclass(frozen=True)
class EmpiricalEstimator:
    """p_hat alone; exploration in the reward, and a margin on the cost that shrinks with data.

        r~ = r_hat + reward_scale sqrt(L/n) + one_over_n / n         not clipped; n = 0 counts as r_hat = 1, n = 1
        d~ = clip(sum / (n + pseudo) + kappa sqrt(L/n), -1, 1)       0 where n = 0

    `kappa` is the safety dial: 0 has no margin, larger is safer and slower.
    """

    kappa: float = 0.02
    reward_scale: float = 0.1
    one_over_n: float = 1.0
    pseudo_observations: float = 2.0
    stationary: bool = False
    delta: float = DELTA

    covers_truth = False

    def __post_init__(self) -> None:
        dials = ("kappa", "reward_scale", "one_over_n", "pseudo_observations")
        check_settings(self, nonnegative=dials, shares=("delta",))

    def check(self, setting: Setting) -> None:
        """Any setting will do."""

    def estimate(self, setting: Setting, counts: Counts, k: int) -> Estimate[Kernel]:
        """r~, d~, d_hat, the margin and p_hat before episode k."""
        counts = counts.pooled() if self.stationary else counts
        shape, each = counts.visits.shape, counts.cost_sum.shape
        reward, cost, mean = np.zeros(shape), np.zeros(each), np.zeros(each)
        margin, kernel = np.zeros(shape), np.zeros(counts.transitions.shape)
        empirical_tables(
            counts.visits, counts.transitions, counts.reward_sum, counts.cost_sum, log_term(setting, k, self.delta),
            self.kappa, self.reward_scale, self.one_over_n, self.pseudo_observations,
            reward, cost, mean, margin, kernel,
        )  # fmt: skip
        return Estimate(reward, cost, mean, margin, Kernel(kernel))


@dataclass(frozen=True, eq=False)
class KnownModel:
    """No estimation: the kernel and the mean reward are given, and the cost too where it is known and fixed."""

    transition: Floats
    reward: Floats
    cost: Floats | None = None

    covers_truth = True

    def check(self, setting: Setting) -> None:
        """The tables must fit the setting, and an unknown cost must be revealed."""
        H, S, A = setting.shape
        if self.transition.shape != (H, S, A, S) or self.reward.shape != (H, S, A):
            raise InvalidInputError(f"the known model's tables do not fit a setting of shape {(H, S, A)}")
        if self.cost is not None and self.cost.shape != (setting.n_constraints, H, S, A):
            raise InvalidInputError(f"the known cost needs shape {(setting.n_constraints, H, S, A)}")
        if self.cost is None and setting.feedback == "bandit":
            raise InvalidInputError("a known model without its cost needs full feedback: nothing is estimated")
        if self.cost is not None and setting.feedback == "full":
            raise InvalidInputError("with full feedback the costs are revealed: leave the cost out of the known model")

    def estimate(self, setting: Setting, counts: Counts, k: int) -> Estimate[Kernel]:
        """The truth, as far as it was given."""
        cost = np.zeros((setting.n_constraints, *setting.shape)) if self.cost is None else self.cost
        return Estimate(self.reward, cost, cost, np.zeros(setting.shape), Kernel(self.transition))


def confidence_box(counts: Counts, scale: float, Lp: float) -> Box:
    """The tightened box of half-width `radius` around p_hat; the whole simplex where nothing was seen."""
    lower, upper = np.empty(counts.transitions.shape), np.empty(counts.transitions.shape)
    box_bounds(counts.transitions, scale, Lp, lower, upper)
    return Box(lower, upper)


def box_around(counts: Counts, reach: Floats) -> Box:
    """The tightened box of half-width `reach` around p_hat; the whole simplex where nothing was seen."""
    lower, upper = np.empty(counts.transitions.shape), np.empty(counts.transitions.shape)
    write_box(counts.transitions, np.ascontiguousarray(np.broadcast_to(reach, lower.shape)), lower, upper)
    return Box(lower, upper)


def radius(p_hat: Floats, n: Floats, scale: float, Lp: float) -> Floats:
    """Bernstein's half-width for every entry of the kernel."""
    return np.asarray(scale * bernstein(p_hat, Lp / np.maximum(n, 1.0)))


def log_term(setting: Setting, k: int, delta: float) -> float:
    """L = ln(6 (I+1) SAHK / delta) before zero-based episode k."""
    return log_term_transition(setting, k, delta) + math.log(setting.n_constraints + 1.0)


def log_term_transition(setting: Setting, k: int, delta: float) -> float:
    """Lp = ln(6 SAHK / delta)."""
    H, S, A = setting.shape
    return math.log(6.0 * S * A * H * effective_episodes(setting, k + 1) / delta)


def effective_episodes(setting: Setting, k: int) -> int:
    """K, or max(k, 256) before one-based episode k if K is not known."""
    return int(episodes_for(float(setting.n_episodes or 0), float(k)))
