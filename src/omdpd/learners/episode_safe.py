"""Safe in every episode: optimistic rewards, pessimistic costs, and the least price at which the policy is surely safe.

    pi^lam  = the soft-max policy of Q_r - lam Q_d backwards in h, r~ optimistic, d^ pessimistic, under p_hat
    lam_k   = the least price in [0, most] with V^{pi^lam}(d^) <= 0            the safe policy where none is enough

Source: Kitamura et al. (2025), episode-wise safe learning in linear CMDPs, in tabular form.  Certain, from its abstract
and released experiment: no violation in any episode, a search over the multiplier between an optimistic reward and a
pessimistic cost, and a known safe policy where the search fails.  Ours: one-hot features, the soft-max temperature
`alpha`, the largest price, bisection, the library's bonuses (`reward_scale`, `transition_scale` for the reward;
`cost_scale` and `cost_transition_scale` of pessimism for the cost), one constraint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.bonuses import BernsteinBonus
from omdpd.beliefs.confidence import (
    DELTA,
    REWARD_SCALE,
    SAFE_COST_SCALE,
    SCALES,
    TRANSITION_SCALE,
    log_term,
    log_term_transition,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import (
    SafeChoice,
    SafePolicy,
    require_feedback,
    require_single_constraint,
    safe_policy_of,
)
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.policies import bernstein_width
from omdpd.solvers.compiled.related import least_price, soft_policy


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the policy in play, its price, and how often no price was enough; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    price: float
    infeasible: int


@dataclass(frozen=True)
class EpisodeSafe:
    """The least price that makes a soft-max policy surely safe; `safe` is what is played where there is none."""

    safe: SafePolicy | SafeChoice = "least-cost"
    reward_scale: float = REWARD_SCALE
    cost_scale: float = SAFE_COST_SCALE
    transition_scale: float = TRANSITION_SCALE
    cost_transition_scale: float = 0.0
    stationary: bool = False
    alpha: float = 100.0
    most: float = 100.0
    delta: float = DELTA

    def __post_init__(self) -> None:
        check_settings(
            self, positive=("alpha", "most"), nonnegative=(*SCALES, "cost_transition_scale"), shares=("delta",)
        )

    @staticmethod
    def practical(
        reward_scale: float = reward_scale,
        cost_scale: float = cost_scale,
        transition_scale: float = transition_scale,
        stationary: bool = stationary,
        cost_transition_scale: float = cost_transition_scale,
        alpha: float = alpha,
        most: float = most,
        safe_policy: SafeChoice = "least-cost",
        *,
        delta: float = delta,
    ) -> EpisodeSafe:
        """The least price between optimistic reward and pessimistic cost, around a known safe policy."""
        return EpisodeSafe(
            safe_policy, reward_scale, cost_scale, transition_scale, cost_transition_scale, stationary, alpha, most,
            delta,
        )  # fmt: skip

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "soft-max policies between optimistic reward and pessimistic cost, searched multiplier",
            ("bandit",),
            "O~(sqrt K) regret, no violation in any episode, for stochastic costs",
            "Kitamura et al. (2025), tabular",
            "a strictly safe policy is known; one constraint",
        )

    def init(self, setting: Setting) -> State:
        """The safe policy."""
        require_feedback(self, setting, "bandit")
        require_single_constraint(self, setting)
        safe = safe_policy_of(self, self.safe, setting)
        return State(setting, 0, Counts.empty(setting), safe.policy, 0.0, 0)

    def policy(self, state: State) -> Floats:
        """The soft-max policy of the least price, or the safe one."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count, search, and fall back on the safe policy where even the largest price is not enough."""
        setting, counts, k = state.setting, state.counts.add(feedback), state.k + 1
        bonus = BernsteinBonus(self.reward_scale, 0.0, self.transition_scale, self.stationary, self.delta)
        believed = bonus.estimate(setting, counts, k)
        tables = (believed.transition, believed.reward, self.pessimistic(setting, counts, k))
        price = least_price(*tables, self.alpha, self.most, setting.mu)
        policy, costs = soft_policy(*tables, np.array([price]), self.alpha, setting.mu)
        safe = bool(costs[0] <= 0.0)
        if not safe:
            policy = safe_policy_of(self, self.safe, setting).policy
        return replace(
            state, k=k, counts=counts, policy=policy, price=price, infeasible=state.infeasible + (not safe)
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """The price, and how often the safe policy was played because none was enough."""
        return Report(weight=state.price, infeasible=state.infeasible)

    def pessimistic(self, setting: Setting, counts: Counts, k: int) -> Floats:
        """d_hat plus its bonuses, cut to what an episode can still cost; that much where nothing was seen."""
        counts = counts.pooled() if self.stationary else counts
        left = np.arange(setting.horizon, 0, -1.0)[:, None, None]
        width = self.cost_scale * np.sqrt(log_term(setting, k, self.delta) / np.maximum(counts.visits, 1.0))
        cost = np.minimum(counts.cost_mean() + width, 1.0)
        if self.cost_transition_scale > 0.0:
            Lp, p = log_term_transition(setting, k, self.delta), counts.transition_mean()
            margin = bernstein_width(counts.transitions, counts.departures, p, Lp)
            margin[-1] = 0.0  # nothing follows the last step
            cost = cost + self.cost_transition_scale * setting.horizon * margin
        return np.where(counts.visits > 0.0, np.minimum(cost, left), left)
