"""The state of ProximalOMDPD where it is not one vector: tables and records, as version 0.2 stored them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Evidence, Scores
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.visits import Visits
from omdpd.learners.standard import state as at
from omdpd.learners.surrogate import Surrogate
from omdpd.problem.arrays import Floats
from omdpd.problem.records import fast_init
from omdpd.problem.setting import Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.regions import Region


@fast_init
@dataclass(frozen=True, eq=False)
class State:
    """Everything carried from one episode to the next; `k` episodes have been seen, and q is played in the next.

    `drift` is what a believed kernel that moves has added to the certificate so far, together with surprises that did
    not slow the steps and what margins below zero forgave (None in a run that an earlier version began: nothing is
    certified then).  `evidence` and `caution` belong to estimators that share between steps.  `planned_violation` is
    sum_j max_i of what V_i grew by in episode j (None in such a run too).
    """

    setting: Setting
    k: int
    counts: Counts | Visits
    believed: Estimate[Region]
    margin: float
    memory: tuple[TableMemory, ...]
    weights: Floats
    predicted: Surrogate
    multipliers: Floats
    q: Floats
    q_hat: Floats
    V: Floats
    eta: float
    reward_sum: float
    inexactness: float
    log: SolveLog
    saturations: int
    capped: bool
    ignored: float
    drift: float | None = None
    evidence: Evidence | Scores | None = None
    caution: Caution | None = None
    planned_violation: float | None = None


def account_of(state: State) -> Floats:
    """The numbers of a state by their places (`standard.state`); what an earlier version did not know is not one."""
    a, log, caution = np.zeros(at.N_ACCOUNT), state.log, state.caution or Caution()
    numbers = {
        at.K: state.k, at.ETA: state.eta, at.REWARD_SUM: state.reward_sum, at.INEXACTNESS: state.inexactness,
        at.DRIFT: state.drift, at.IGNORED: state.ignored, at.PLANNED: state.planned_violation, at.CAPPED: state.capped,
        at.SATURATIONS: state.saturations, at.SOLVES: log.solves, at.FAILURES: log.failures,
        at.ITERATIONS: log.iterations, at.MAX_GAP: log.max_gap, at.MAX_RESIDUAL: log.max_residual,
        at.HINGES: len(state.multipliers), at.STARTED: state.k > 0, at.WEIGHT: max(state.weights.tolist()),
        at.SHARE: caution.share, at.NOVELTY: caution.novelty, at.LOSS: None,
    }  # fmt: skip
    for place, number in numbers.items():
        a[place] = np.nan if number is None else number
    return a
