"""OptDual-CMDP: optimistic planning for the Lagrangian, and a projected gradient step on the multipliers.

    (pi_k, p_k) = argmax_{pi, p in B_k} (r~_k - sum_i lam_{k,i} d~_{k,i}).q^pi(p)         extended value iteration
    lam_{k+1}   = [ lam_k + (1/t) d~_k.q_k ]^+,      t = H sqrt(I K) / rho,   rho = H / xi

Policies are deterministic and jump between two sides of the budget; only their average is safe.

Source: Efroni, Mannor, Pirotta (2020), Algorithm 3.  The update and t are the paper's; rho (a bound on the sum of the
optimal multipliers) is taken as H / xi with a known Slater gap xi, and the scales of the estimates are ours.
`dual_scale` multiplies 1/t; the paper's is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.needs import Needs, episodes_of, room_of
from omdpd.learners.potential import positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.learners.replanned import Counted, Planning
from omdpd.learners.settings import UNCLIPPED, Boxed, Preset, positive
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import optimistic_policy
from omdpd.solvers.compiled.flow import occupancy_of_policy


@dataclass(frozen=True, eq=False)
class State(Counted):
    """Besides, the multipliers, and the believed cost d~_k.q_k of the policy in play."""

    lam: Floats
    believed_cost: Floats

    retired: ClassVar[tuple[str, ...]] = ("rate",)  # of version 0.2: it follows from the settings


@dataclass(frozen=True)
class OptDual(Boxed, Planning[State]):
    """Optimistic planning for the Lagrangian, gradient steps on the multipliers."""

    room: float | None = positive(None)
    dual_scale: float = positive(1.0)

    card = Card(
        "optimistic planning for the Lagrangian, gradient steps on the multipliers",
        ("bandit",),
        "O~(sqrt K) weak regret and violation",
        "Efroni, Mannor, Pirotta (2020), Algorithm 3",
        "stochastic costs, known Slater gap, known K",
    )
    needs = Needs(episodes=True, room=True)
    factors = (*WIDTHS, step("dual_scale"))
    theory = Preset("The paper's confidence widths.", "room", **UNCLIPPED)

    def start(self, setting: Setting) -> State:
        """lam_1 = 0."""
        none = np.zeros(setting.n_constraints)
        return State(setting, 0, Counts.empty(setting), uniform_policy(setting), none, none)

    def met(self, state: State, feedback: Feedback) -> State:
        """The dual step for the plan that was played."""
        return replace(state, lam=positive_part(state.lam + self.rate(state.setting) * state.believed_cost))

    def planned(self, state: State) -> State:
        """The deterministic policy of the optimistic plan for the Lagrangian."""
        believed = self.estimator.estimate(state.setting, state.counts, state.k)
        box, table = believed.region, believed.reward - np.tensordot(state.lam, believed.cost, axes=1)
        policy, kernel, _ = optimistic_policy(box.lower, box.upper, table)
        q = occupancy_of_policy(policy, kernel, state.setting.mu)
        return replace(state, policy=policy, believed_cost=np.tensordot(believed.cost, q, axes=3))

    def report(self, state: State) -> Report:
        """The dual step size and the largest multiplier."""
        return Report(step_size=self.rate(state.setting), weight=float(state.lam.max()))

    def rate(self, setting: Setting) -> float:
        """1/t, times `dual_scale`."""
        H, K = setting.horizon, episodes_of(self, setting)
        rho = H / room_of(self, self.room)
        return float(self.dual_scale * rho / (H * np.sqrt(setting.n_constraints * K)))
