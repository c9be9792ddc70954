"""Ghosh, Zhou and Shroff's soft-max policies on optimistic values, tabular: a dual that moves, or one that is searched.

Backwards in h, with optimistic r~, d~ and p_hat:

    Q_r = min(r~ + p_hat V_r, H - h),   Q_i = max(d~_i + p_hat V_i, -(H - h))
    pi_h(.|s)  proportional to  exp( alpha (Q_r - sum_i Y_i Q_i) ),      V_h(s) = sum_a pi_h(a|s) Q_h(s,a)

    "average" (2022):  Y <- clip( Y + eta V(d~), 0, xi )                   weak violation
    "hard" (2024):     Y = the least price in [0, xi] with V(d~) <= 0, anew in every episode         strong violation

    alpha = ln(A) sqrt K / (2 (1 + xi + H)),   eta = xi / sqrt(K H^2),   xi = 2 H / room

Certain: soft-max instead of greedy policies (so that values are smooth in Y), the moved dual of 2022, the search for
the least dual in every episode of 2024 and what each is for.  From memory: alpha, eta and xi.  Ours: one-hot features,
signed costs, the library's bonuses with their scales, the bisection, the largest price xi where none is enough, and for
"hard" one constraint.  `alpha_scale` and `dual_scale` multiply alpha and eta.
Source: Ghosh, Zhou, Shroff (NeurIPS 2022; AISTATS 2024).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus
from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import (
    episodes_of,
    require_feedback,
    require_single_constraint,
    room_of,
)
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.related import least_price, soft_policy

Dual = Literal["average", "hard"]


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the policy in play, its optimistic costs and the prices; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    costs: Floats
    prices: Floats


@dataclass(frozen=True)
class GhoshZhouShroff:
    """Soft-max policies on optimistic values; build one with `average` or `hard`.  `room` must be given."""

    dual: Dual = "hard"
    room: float | None = None
    bonus: Bonus = BernsteinBonus()
    alpha_scale: float = 10.0
    dual_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("room", "alpha_scale", "dual_scale"))

    @staticmethod
    def average(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        alpha_scale: float = alpha_scale,
        dual_scale: float = dual_scale,
        *,
        delta: float = DELTA,
    ) -> GhoshZhouShroff:
        """Soft-max policies on optimistic values, a dual that moves with the cost (2022)."""
        bonus = BernsteinBonus(reward_scale, cost_scale, transition_scale, stationary, delta)
        return GhoshZhouShroff("average", room, bonus, alpha_scale, dual_scale)

    @staticmethod
    def hard(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        alpha_scale: float = alpha_scale,
        *,
        delta: float = DELTA,
    ) -> GhoshZhouShroff:
        """Soft-max policies on optimistic values, the least dual that is safe searched in every episode (2024)."""
        bonus = BernsteinBonus(reward_scale, cost_scale, transition_scale, stationary, delta)
        return GhoshZhouShroff("hard", room, bonus, alpha_scale)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        hard = self.dual == "hard"
        return Card(
            f"soft-max policies on optimistic values, {'searched' if hard else 'moved'} dual",
            ("bandit",),
            f"O~(sqrt K) regret and {'strong' if hard else 'weak'} violation for stochastic costs",
            f"Ghosh, Zhou, Shroff ({'AISTATS 2024' if hard else 'NeurIPS 2022'}), tabular",
            "Slater condition with a known gap, known K" + ("; one constraint" if hard else ""),
        )

    def init(self, setting: Setting) -> State:
        """Plan with no data and a price of zero."""
        self.bonus.check(setting)
        require_feedback(self, setting, "bandit")
        if self.dual == "hard":
            require_single_constraint(self, setting)
        episodes_of(self, setting)
        room_of(self, self.room)
        none = np.zeros(setting.n_constraints)
        return self._planned(State(setting, 0, Counts.empty(setting), np.zeros(setting.shape), none, none))

    def policy(self, state: State) -> Floats:
        """The soft-max policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count, move the dual if it is one that moves, and plan."""
        prices = state.prices
        if self.dual == "average":
            K, H = episodes_of(self, state.setting), state.setting.horizon
            eta = self.dual_scale * self._largest(state.setting) / float(np.sqrt(K * H**2))
            prices = np.clip(prices + eta * state.costs, 0.0, self._largest(state.setting))
        return self._planned(replace(state, k=state.k + 1, counts=state.counts.add(feedback), prices=prices))

    def report(self, state: State) -> Report:
        """The largest price."""
        return Report(weight=float(state.prices.max()))

    def _planned(self, state: State) -> State:
        """The policy of the next episode."""
        setting, prices = state.setting, state.prices
        believed = self.bonus.estimate(setting, state.counts, state.k)
        alpha, tables = self._alpha(setting), (believed.transition, believed.reward, believed.cost)
        if self.dual == "hard":
            prices = np.array([least_price(*tables, alpha, self._largest(setting), setting.mu)])
        policy, costs = soft_policy(*tables, prices, alpha, setting.mu)
        return replace(state, policy=policy, costs=costs, prices=prices)

    def _alpha(self, setting: Setting) -> float:
        K, H, A = episodes_of(self, setting), setting.horizon, setting.n_actions
        return self.alpha_scale * float(np.log(A) * np.sqrt(K)) / (2.0 * (1.0 + self._largest(setting) + H))

    def _largest(self, setting: Setting) -> float:
        """xi = 2 H / room."""
        return 2.0 * setting.horizon / room_of(self, self.room)
