"""Safe in every episode: optimistic rewards, pessimistic costs, and the least price at which the policy is surely safe.

    b       = cost_scale sqrt(L/n) + cost_transition_scale H width,    d^ = d_hat + b             width of the kernel
    pi^lam  = the soft-max policy of Q_r + B Q_b - lam Q_d backwards in h, for r~ optimistic, b and d^, under p_hat
    lam_k   = the least price in [0, most] with V^{pi^lam}(d^) <= 0            the safe policy where none is enough

Pessimism b about the cost keeps every episode safe, and would keep the learner from what it knows little about; B Q_b
pays that back, with B = compensation H / room (room: how far the safe policy stays below the budget).

Source: Kitamura et al. (2025), episode-wise safe learning in linear CMDPs, in tabular form.  Certain, from its abstract
and released experiment: no violation in any episode, the three value functions, soft-max policies, a search over the
multiplier, pessimism for the kernel, and a known safe policy where the search fails.  Ours: one-hot features, estimated
rewards and costs (known there), the soft-max temperature `alpha`, the size of B, the largest price, the bisection, the
library's bonuses with their scales, one constraint.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.bonuses import BernsteinBonus
from omdpd.beliefs.confidence import SAFE_COST_SCALE, log_term_transition
from omdpd.beliefs.counting import bernstein_width
from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import WIDTHS, Factor, margin, step
from omdpd.learners.needs import Needs, SafeChoice, SafePolicy, safe_policy_of
from omdpd.learners.policy_steps import least_price, soft_policy
from omdpd.learners.protocol import Card, Report
from omdpd.learners.replanned import Counted, Planning
from omdpd.learners.settings import Scaled, given, later, nonnegative, positive
from omdpd.learners.widths import mean_width
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting


@dataclass(frozen=True, eq=False)
class State(Counted):
    """Besides, the price of the policy in play, and how often no price was enough."""

    price: float = 0.0
    infeasible: int = 0


@dataclass(frozen=True)
class EpisodeSafe(Scaled, Planning[State]):
    """The least price between optimistic reward and pessimistic cost, around a known safe policy."""

    cost_scale: float = nonnegative(SAFE_COST_SCALE)
    cost_transition_scale: float = nonnegative(0.0005)
    alpha: float = positive(100.0)
    most: float = positive(100.0)
    safe_policy: SafeChoice = "least-cost"
    _: KW_ONLY
    compensation: float = later(nonnegative(0.1), 0.0)
    safe: SafePolicy | None = given(None)

    card = Card(
        "soft-max policies between optimistic reward and pessimistic cost, searched multiplier",
        ("bandit",),
        "O~(sqrt K) regret, no violation in any episode, for stochastic costs",
        "Kitamura et al. (2025), tabular",
        "a strictly safe policy is known; one constraint",
    )
    needs = Needs(safe=True, single_constraint=True)
    factors = (*WIDTHS, margin("cost_scale"), step("alpha"), Factor("kernel pessimism", "cost_transition_scale"))

    def start(self, setting: Setting) -> State:
        """The safe policy."""
        return State(setting, 0, Counts.empty(setting), safe_policy_of(self, self.safe, setting).policy)

    def planned(self, state: State) -> State:
        """Search the price, and fall back on the safe policy where even the largest one is not enough."""
        setting, counts, k = state.setting, state.counts, state.k
        bonus = BernsteinBonus(self.reward_scale, 0.0, self.transition_scale, self.stationary, self.delta)
        believed = bonus.estimate(setting, counts, k)
        safe, cost = safe_policy_of(self, self.safe, setting), self.pessimistic(setting, counts, k)
        pessimism = cost - self.pooled(counts).cost_mean()
        tables = (believed.transition, believed.reward, np.concatenate([cost, pessimism]))
        repaid = np.array([-self.compensation * setting.horizon / safe.room])
        price = least_price(*tables, repaid, self.alpha, self.most, setting.mu)
        policy, costs = soft_policy(*tables, np.concatenate([[price], repaid]), self.alpha, setting.mu)
        if costs[0] <= 0.0:
            return replace(state, policy=policy, price=price)
        return replace(state, policy=safe.policy, price=price, infeasible=state.infeasible + 1)

    def report(self, state: State) -> Report:
        """The price, and how often the safe policy was played because none was enough."""
        return Report(weight=state.price, infeasible=state.infeasible)

    def pessimistic(self, setting: Setting, counts: Counts, k: int) -> Floats:
        """d_hat plus its bonuses, cut to what an episode can still cost; that much where nothing was seen."""
        counts = self.pooled(counts)
        left = np.arange(setting.horizon, 0, -1.0)[:, None, None]
        cost = np.minimum(counts.cost_mean() + self.cost_scale * mean_width(setting, counts, k, self.delta), 1.0)
        if self.cost_transition_scale > 0.0:
            Lp, p = log_term_transition(setting, k, self.delta), counts.transition_mean()
            for_kernel = bernstein_width(counts.transitions, counts.departures, p, Lp)
            for_kernel[-1] = 0.0  # nothing follows the last step
            cost = cost + self.cost_transition_scale * setting.horizon * for_kernel
        return np.where(counts.visits > 0.0, np.minimum(cost, left), left)
