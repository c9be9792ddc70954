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

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.protocol import Card, Report
from omdpd.learners.replanned import Counted, Planning
from omdpd.learners.settings import UNCLIPPED, Boxed, Preset, nonnegative, positive
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.penalised import penalised_plan

# A solve whose relative gap is above this, a hundred times what was asked for, is counted as failed.
FAILED_GAP = 1e-7


@dataclass(frozen=True, eq=False)
class State(Counted):
    """Besides, the multipliers after the plan in play, and the certificates of the solves."""

    lam: Floats
    log: SolveLog


@dataclass(frozen=True)
class OptAug(Boxed, Planning[State]):
    """Augmented Lagrangian over the confidence polytope."""

    penalty_scale: float = positive(1.0)
    penalty_power: float = nonnegative(2.5)
    _: KW_ONLY
    max_penalty: float = positive(1e4)

    card = Card(
        "augmented Lagrangian over the confidence polytope, replanned every episode",
        ("bandit",),
        "O~(sqrt K) strong regret and violation",
        "Mueller, Alatur, Ramponi, He (2023)",
        "stochastic costs, a Slater policy exists",
    )
    factors = (*WIDTHS, step("penalty_scale"))
    theory = Preset("The paper's confidence widths.", "", **UNCLIPPED)

    def start(self, setting: Setting) -> State:
        """lam_1 = 0."""
        none = np.zeros(setting.n_constraints)
        return State(setting, 0, Counts.empty(setting), uniform_policy(setting), none, SolveLog())

    def planned(self, state: State) -> State:
        """q_k, and the multipliers that it leads to."""
        believed = self.estimator.estimate(state.setting, state.counts, state.k)
        box, log, eta = believed.region, state.log, self.penalty(state.k)
        plan = penalised_plan(box.lower, box.upper, state.setting.mu, believed.reward, believed.cost, state.lam, eta)
        log = replace(
            log, solves=log.solves + 1, failures=log.failures + (plan.relative_gap > FAILED_GAP),
            iterations=log.iterations + plan.vertices, max_gap=max(log.max_gap, plan.relative_gap),
        )  # fmt: skip
        return replace(state, lam=plan.prices, policy=policy_of_occupancy(plan.occupancy), log=log)

    def report(self, state: State) -> Report:
        """Penalty, largest multiplier and the certificates of the solves."""
        return Report(state.log, self.penalty(state.k), float(state.lam.max()))

    def penalty(self, k: int) -> float:
        """eta of one-based episode k + 1: min(penalty_scale k^penalty_power, max_penalty)."""
        return min(self.penalty_scale * (k + 1.0) ** self.penalty_power, self.max_penalty)
