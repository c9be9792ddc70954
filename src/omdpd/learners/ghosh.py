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

from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.needs import Needs, episodes_of, require_single_constraint, room_of
from omdpd.learners.policy_steps import least_price, soft_policy
from omdpd.learners.protocol import Card, Report
from omdpd.learners.replanned import Counted, Planning
from omdpd.learners.settings import Bonused, Preset, given, positive
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting


@dataclass(frozen=True, eq=False)
class State(Counted):
    """Besides, the optimistic costs of the policy in play, and the prices."""

    costs: Floats
    prices: Floats


@dataclass(frozen=True)
class GhoshZhouShroff(Bonused, Planning[State]):
    """Soft-max policies on optimistic values; build one with `average` or `hard`.  `room` must be given."""

    room: float | None = positive(None)
    alpha_scale: float = positive(10.0)
    dual_scale: float = positive(1.0)
    dual: Literal["average", "hard"] = given("hard")

    needs = Needs(episodes=True, room=True)
    factors = (*WIDTHS, step("dual_scale"), step("alpha_scale"))
    average = Preset("Soft-max policies on optimistic values, a dual that moves with the cost (2022).", dual="average")
    hard = Preset(
        "Soft-max policies on optimistic values, the least dual that is safe searched in every episode (2024).",
        dual="hard", dual_scale=1.0,
    )  # fmt: skip

    @property
    def card(self) -> Card:  # type: ignore[override]  # it depends on the preset
        """The learner's line in the table of learners."""
        hard = self.dual == "hard"
        return Card(
            f"soft-max policies on optimistic values, {'searched' if hard else 'moved'} dual",
            ("bandit",),
            f"O~(sqrt K) regret and {'strong' if hard else 'weak'} violation for stochastic costs",
            f"Ghosh, Zhou, Shroff ({'AISTATS 2024' if hard else 'NeurIPS 2022'}), tabular",
            "Slater condition with a known gap, known K" + ("; one constraint" if hard else ""),
        )

    def start(self, setting: Setting) -> State:
        """A price of zero."""
        if self.dual == "hard":
            require_single_constraint(self, setting)
        none = np.zeros(setting.n_constraints)
        return State(setting, 0, Counts.empty(setting), uniform_policy(setting), none, none)

    def met(self, state: State, feedback: Feedback) -> State:
        """Move the dual if it is one that moves."""
        if self.dual == "hard":
            return state
        K, H, most = episodes_of(self, state.setting), state.setting.horizon, self._largest(state.setting)
        eta = self.dual_scale * most / float(np.sqrt(K * H**2))
        return replace(state, prices=np.clip(state.prices + eta * state.costs, 0.0, most))

    def planned(self, state: State) -> State:
        """The soft-max policy of the next episode."""
        setting, prices, most = state.setting, state.prices, self._largest(state.setting)
        believed = self.bonus.estimate(setting, state.counts, state.k)
        tables = (believed.transition, believed.reward, believed.cost)
        root = float(np.log(setting.n_actions) * np.sqrt(episodes_of(self, setting)))
        alpha = self.alpha_scale * root / (2.0 * (1.0 + most + setting.horizon))
        if self.dual == "hard":
            prices = np.array([least_price(*tables, np.empty(0), alpha, most, setting.mu)])
        policy, costs = soft_policy(*tables, prices, alpha, setting.mu)
        return replace(state, policy=policy, costs=costs, prices=prices)

    def report(self, state: State) -> Report:
        """The largest price."""
        return Report(weight=float(state.prices.max()))

    def _largest(self, setting: Setting) -> float:
        """xi = 2 H / room."""
        return 2.0 * setting.horizon / room_of(self, self.room)
