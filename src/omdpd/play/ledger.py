"""The ledger measures, while a run is played, what the theory is about: Appendix B's good event, and parts of regret.

    F^p, F^r, F^d   |p - p_hat| <= radius,  |r - r_hat| <= sqrt(L/n),  |d - d_hat| <= sqrt(2L/n)        in every episode
    F^N             sum_k <q^{pi_k}, 1/(n v 1)>      <= 4 HSA + 2 HSA ln k + 4 ln(2Hk/delta')
                    sum_k <q^{pi_k}, 1/sqrt(n v 1)>  <= 6 HSA + 2 H sqrt(SAk) + 2 HSA ln k + 5 ln(2Hk/delta')

(the theorem's own widths whatever the learner's scales are, but for the 2 that costs in [-1, 1] need and the paper does
not have; delta' = delta/3, and k for K, so that the event can be read off every row).  Section 5.2 splits what a
learner loses by what it plans with, r~_k, d~_k and its occupancy q_k:

    regret     = [ K V* - sum_k r~_k.q_k ]         + [ sum_k r~_k.q_k - V^{pi_k}(r) ]
    violation  = [ sum_k max_i (d~_{k,i}.q_k)^+ ]  + [ violation - that sum ]
                   optimisation error                  estimation error

Only learners that report the plan of their next policy are followed: it takes a table of counts per episode.  A
learner that keeps the sums of what it planned itself (a `Promise`) has its losses split too, without the event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import COST_WIDTH, DELTA, log_term, log_term_transition
from omdpd.beliefs.counts import Counts
from omdpd.learners.protocol import PlanInputs, Promise, Report
from omdpd.play.compiled.event import inverse_visits, kernel_within, means_within
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.setting import Feedback, FullFeedback, Setting

# Means that are met exactly differ from the truth by rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Ledger:
    """The counts so far, both sums of F^N, what plans promised, and whether every estimate was within its width."""

    counts: Counts
    inverse: float
    inverse_root: float
    planned_value: float
    planned_violation: float
    within: bool

    @staticmethod
    def empty(setting: Setting) -> Ledger:
        """Before the first episode."""
        return Ledger(Counts.empty(setting), 0.0, 0.0, 0.0, 0.0, True)

    def after(
        self, cmdp: CMDP, setting: Setting, plan: PlanInputs, round_: Round, occupancy: Floats, feedback: Feedback
    ) -> Ledger:
        """One more episode, of this true occupancy, that was planned like this."""
        inverse, inverse_root = inverse_visits(occupancy, self.counts.visits)
        # Costs that are revealed are what they are: nothing was estimated.
        cost = round_.cost if isinstance(feedback, FullFeedback) else plan.cost
        promised = cost.reshape(len(cost), -1) @ plan.occupancy.ravel()
        return Ledger(
            self.counts.add(feedback),
            self.inverse + inverse,
            self.inverse_root + inverse_root,
            self.planned_value + float(np.vdot(plan.reward, plan.occupancy)),
            self.planned_violation + max(float(promised.max()), 0.0),
            self.within and all_within(self.counts, cmdp, setting),
        )

    def good(self, setting: Setting, k: int) -> bool:
        """Whether the good event holds after k episodes."""
        first, second = visit_bounds(setting, k)
        return self.within and self.inverse <= first and self.inverse_root <= second


def promised(ledger: Ledger | None, report: Report, changes: bool) -> Promise | None:
    """What plans promised so far, by the ledger or as the learner says; nothing where rewards or laws change."""
    if ledger is not None:
        return Promise(ledger.planned_value, ledger.planned_violation)
    return None if changes else report.promise


def all_within(counts: Counts, cmdp: CMDP, setting: Setting) -> bool:
    """Whether none of F^p, F^r and (where costs are estimated) F^d failed: both sides of every width."""
    n, L = counts.visits, log_term(setting, 0, DELTA)
    if not means_within(counts.reward_sum[None], n, np.ascontiguousarray(cmdp.reward)[None], L, ROUNDING):
        return False
    estimated = setting.feedback == "bandit"
    wide = COST_WIDTH**2 * L
    if estimated and not means_within(counts.cost_sum, n, np.ascontiguousarray(cmdp.excess), wide, ROUNDING):
        return False
    return kernel_within(counts.transitions, cmdp.transition, log_term_transition(setting, 0, DELTA), ROUNDING)


def visit_bounds(setting: Setting, k: int) -> tuple[float, float]:
    """The two bounds of F^N after k episodes.

    >>> tuple(round(bound) for bound in visit_bounds(Setting(5, 5, 3, n_episodes=3000), 3000))
    (1565, 3852)
    """
    H, S, A = setting.shape
    HSA, log = H * S * A, float(np.log(2.0 * H * k / (DELTA / 3.0)))
    common = 2.0 * HSA * float(np.log(k))
    return 4.0 * HSA + common + 4.0 * log, 6.0 * HSA + 2.0 * H * float(np.sqrt(S * A * k)) + common + 5.0 * log
