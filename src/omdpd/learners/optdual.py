"""OptDual-CMDP: optimistic planning for the Lagrangian, and a projected gradient step on the multipliers.

    (pi_k, p_k) = argmax_{pi, p in B_k} (r~_k - sum_i lam_{k,i} d~_{k,i}).q^pi(p)         extended value iteration
    lam_{k+1}   = [ lam_k + (1/t) d~_k.q_k ]^+,      t = H sqrt(I K) / rho,   rho = H / xi

Policies are deterministic and jump between two sides of the budget; only their average is safe.

Source: Efroni, Mannor, Pirotta (2020), Algorithm 3.  The update and t are the paper's; rho (a bound on the sum of the
optimal multipliers) is taken as H / xi with a known Slater gap xi, and the scales of the estimates are ours.
`dual_scale` multiplies 1/t; the paper's is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import episodes_of, require_feedback, room_of
from omdpd.learners.potential import positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import optimistic_policy
from omdpd.solvers.compiled.flow import occupancy_of_policy


@dataclass(frozen=True, eq=False)
class State:
    """Counts, multipliers, and the policy in play with its believed cost d~_k.q_k; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    lam: Floats
    rate: float
    policy: Floats
    believed_cost: Floats


@dataclass(frozen=True)
class OptDual:
    """The dual method; `room` must be given."""

    room: float | None = None
    estimator: BoxEstimator = BoxEstimator.practical()
    dual_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("room", "dual_scale"))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        dual_scale: float = dual_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> OptDual:
        """Optimistic planning for the Lagrangian, gradient steps on the multipliers."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return OptDual(room, box, dual_scale)

    @staticmethod
    def theory(room: float) -> OptDual:
        """The paper's confidence widths."""
        return OptDual(room, BoxEstimator())

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "optimistic planning for the Lagrangian, gradient steps on the multipliers",
            ("bandit",),
            "O~(sqrt K) weak regret and violation",
            "Efroni, Mannor, Pirotta (2020), Algorithm 3",
            "stochastic costs, known Slater gap, known K",
        )

    def init(self, setting: Setting) -> State:
        """lam_1 = 0, and the optimistic plan without data."""
        self.estimator.check(setting)
        require_feedback(self, setting, "bandit")
        K = episodes_of(self, setting)
        rho = setting.horizon / room_of(self, self.room)
        rate = self.dual_scale * rho / (setting.horizon * np.sqrt(setting.n_constraints * K))
        return self._plan(setting, 0, Counts.empty(setting), np.zeros(setting.n_constraints), float(rate))

    def policy(self, state: State) -> Floats:
        """The deterministic policy of the optimistic plan."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """The dual step for the plan that was played, then a new plan with the newest estimates."""
        lam = positive_part(state.lam + state.rate * state.believed_cost)
        return self._plan(state.setting, state.k + 1, state.counts.add(feedback), lam, state.rate)

    def report(self, state: State) -> Report:
        """The dual step size and the largest multiplier."""
        return Report(step_size=state.rate, weight=float(state.lam.max()))

    def _plan(self, setting: Setting, k: int, counts: Counts, lam: Floats, rate: float) -> State:
        believed = self.estimator.estimate(setting, counts, k)
        box = believed.region
        table = believed.reward - np.tensordot(lam, believed.cost, axes=1)
        policy, kernel, _ = optimistic_policy(box.lower, box.upper, table)
        cost = np.tensordot(believed.cost, occupancy_of_policy(policy, kernel, setting.mu), axes=3)
        return State(setting, k, counts, lam, rate, policy, cost)
