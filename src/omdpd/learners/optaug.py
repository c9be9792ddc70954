"""OptAug-CMDP: the augmented Lagrangian method on optimistic estimates.

    q_k       = argmax_{q in Q_k}  r~_k.q - sum_i 1/(2 eta_k) ( [ lam_{k,i} + eta_k d~_{k,i}.q ]^+ )^2
    lam_{k+1} = [ lam_k + eta_k d~_k.q_k ]^+

Source: Mueller, Alatur, Ramponi, He (2023; arXiv 2306.07001), known here from its abstract.  Certain: a model-based
dual method after the augmented Lagrangian, and its rate without cancellation of errors.  From memory: the two lines
above and the growth eta_k = k^2.5 (`penalty_scale` is tuned in a comparison).  Ours: eta_k stops at `max_penalty`
(beyond it the penalty is as good as a hard constraint and digits are lost), the inner problem is solved exactly by
dynamic programming where the paper is content with an accuracy that improves with k, and the scales of the estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.penalised import penalised_plan

# A solve whose relative gap is above this, a hundred times what was asked for, is counted as failed.
FAILED_GAP = 1e-7


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the multipliers after the plan in play, and its policy; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    lam: Floats
    policy: Floats
    log: SolveLog


@dataclass(frozen=True)
class OptAug:
    """Augmented Lagrangian with penalty eta_k = min(penalty_scale k^penalty_power, max_penalty)."""

    estimator: BoxEstimator = BoxEstimator.practical()
    penalty_scale: float = 1.0
    penalty_power: float = 2.5
    max_penalty: float = 1e4

    def __post_init__(self) -> None:
        check_settings(self, positive=("penalty_scale", "max_penalty"), nonnegative=("penalty_power",))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        penalty_scale: float = penalty_scale,
        penalty_power: float = penalty_power,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
        max_penalty: float = max_penalty,
    ) -> OptAug:
        """Augmented Lagrangian over the confidence polytope."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return OptAug(box, penalty_scale, penalty_power, max_penalty)

    @staticmethod
    def theory() -> OptAug:
        """The paper's confidence widths."""
        return OptAug(BoxEstimator())

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "augmented Lagrangian over the confidence polytope, replanned every episode",
            ("bandit",),
            "O~(sqrt K) strong regret and violation",
            "Mueller, Alatur, Ramponi, He (2023)",
            "stochastic costs, a Slater policy exists",
        )

    def init(self, setting: Setting) -> State:
        """lam_1 = 0, and the plan without data."""
        require_feedback(self, setting, "bandit")
        self.estimator.check(setting)
        start = State(
            setting, 0, Counts.empty(setting), np.zeros(setting.n_constraints), np.zeros(setting.shape), SolveLog()
        )
        return self._plan(start)

    def policy(self, state: State) -> Floats:
        """The policy of q_k; uniform where it has no mass."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count and replan with the newest multipliers."""
        return self._plan(replace(state, k=state.k + 1, counts=state.counts.add(feedback)))

    def report(self, state: State) -> Report:
        """Penalty, largest multiplier and the certificates of the solves."""
        return Report(state.log, self._penalty(state.k), float(state.lam.max()))

    def _plan(self, state: State) -> State:
        believed = self.estimator.estimate(state.setting, state.counts, state.k)
        box = believed.region
        plan = penalised_plan(
            box.lower, box.upper, state.setting.mu, believed.reward, believed.cost, state.lam, self._penalty(state.k)
        )
        log = state.log
        log = replace(
            log, solves=log.solves + 1, failures=log.failures + (plan.relative_gap > FAILED_GAP),
            iterations=log.iterations + plan.vertices, max_gap=max(log.max_gap, plan.relative_gap),
        )  # fmt: skip
        return replace(state, lam=plan.prices, policy=policy_of_occupancy(plan.occupancy), log=log)

    def _penalty(self, k: int) -> float:
        """eta of one-based episode k + 1."""
        return min(self.penalty_scale * (k + 1.0) ** self.penalty_power, self.max_penalty)
