"""The state of ProximalOMDPD, and what one of its steps stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omdpd.beliefs import rules
from omdpd.beliefs.confidence import Estimate, KnownModel
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.evidence import Evidence, Scores
from omdpd.beliefs.layouts import uniform_rows
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.shared_rows import SharedRows
from omdpd.beliefs.standard import SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.learners.standard import weights as rules_of_weights
from omdpd.learners.start import uniform_occupancy
from omdpd.learners.surrogate import Surrogate, flow, matching, remembered_tables
from omdpd.problem.arrays import Floats
from omdpd.problem.records import quick
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.products import largest, largest_dot
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import Hinges, SolveLog, Status, Step, mirror_step
from omdpd.solvers.regions import Region


@quick
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


class Ground(NamedTuple):
    """What a step stands on: beliefs from the data before it, and where it starts.

    `shared` and `caution` are of an estimator that shares between steps; `margin` is what other estimators raise
    revealed tables by, in all.  `memory` says whether a margin on revealed tables is of any use.  `multipliers` of an
    earlier step are a start for the solver's.
    """

    setting: Setting
    believed: Estimate[Region]
    margin: float
    shared: SharedRows | None
    caution: Caution | None
    memory: tuple[TableMemory, ...]
    q_hat: Floats
    eta: float
    multipliers: Floats

    def surrogate(self, estimator: object, memory: tuple[TableMemory, ...], weights: Floats) -> Surrogate:
        """-r~.q plus one hinge per constraint (its estimate), or per table of `memory` (with its margin)."""
        believed, start = self.believed, self.multipliers
        if self.setting.feedback == "bandit":
            return Surrogate(believed.reward, Hinges(believed.cost, weights, matching(start, len(weights))))
        kept = remembered_tables(weights, memory)
        if kept is None:
            return Surrogate(believed.reward, Hinges.none(self.q_hat.shape))
        tables, each = kept
        return Surrogate(believed.reward, Hinges(self._lifted(estimator, tables), each, matching(start, len(each))))

    def step(self, surrogate: Surrogate, shortened: float = 1.0) -> Step:
        """argmin_{Q_k} eta_k surrogate(q) + D(q, q_hat_k), or the same with eta_k / shortened."""
        mu, region = self.setting.mu, self.believed.region
        return mirror_step(region, mu, self.q_hat, -surrogate.reward, self.eta / shortened, surrogate.hinges)

    def step_or_shorter(self, surrogate: Surrogate) -> tuple[Step, float]:
        """The step, and by how much it had to be shortened to be solved.

        Prices in the thousands make a surrogate of that size: the step is then a linear program in all but name, at
        whose degenerate vertices an interior-point method may come to a halt; a shorter step is a step too.
        """
        shortened = 1.0
        while True:
            step = self.step(surrogate, shortened)
            if step.status is not Status.FAILED or shortened >= rules_of_weights.SHORTEST:
                return step, shortened
            shortened *= rules_of_weights.SHORTER

    def _lifted(self, estimator: object, tables: Floats) -> Floats:
        """Revealed tables with their margins, under these beliefs."""
        if isinstance(estimator, SharingEstimator) and self.shared is not None and self.caution is not None:
            return self.shared.lifted(estimator, self.caution, self.memory, tables)
        scale = self.margin / self.setting.horizon
        if not scale > 0.0:
            return tables
        sizes = np.array([largest(table) for table in tables])
        return tables + scale * sizes.reshape(-1, *(1,) * (tables.ndim - 1))


def caution_after(state: State, feedback: Feedback) -> Caution | None:
    """What margins depend on after an episode: the plan just played, whether it had room, how new its tables were."""
    if state.caution is None:
        return None
    revealed, excess = isinstance(feedback, FullFeedback), state.predicted.excess(flow(state.believed.region, state.q))
    caution = state.caution.after_plan(state.q, excess, state.setting.horizon, revealed)
    if not isinstance(feedback, FullFeedback):
        return caution
    return caution.after_tables(state.memory, feedback.cost.reshape(-1, *state.q.shape))


def prices_of(state: State, q: Floats, w0: float) -> Floats:
    """What the last plan q would pay for a little more of each cost, (J,), as the next bonus sees it."""
    prices = state.multipliers / state.eta
    if state.caution is None or state.setting.feedback == "bandit":
        return prices
    total = 0.0
    for each in prices.tolist():  # one after another, as compiled code adds them
        total += each
    held = max([largest_dot(kept.stack, q) for kept in state.memory if kept.tables], default=0.0)
    return prices * rules_of_weights.fair_price(total, w0, not rules.is_exceeded(held, state.setting.horizon))


def forgiven(state: State, f: Surrogate, weights: Floats, q: Floats, V: Floats) -> float:
    """By how much the penalty of f at the plan q is less than sum_i w_i x_i, where x = V - state.V."""
    if state.caution is None:
        return 0.0
    return rules_of_weights.forgiven(state.caution.share, float(weights @ (V - state.V)), f.hinges.value(q))


def first_occupancy(estimator: object, setting: Setting, region: Region) -> Floats:
    """q_hat_1: of the uniform policy, under the kernel whose laws are all uniform, or under the known one."""
    if isinstance(region, Graph):
        return uniform_rows(setting, region)
    return uniform_occupancy(setting, estimator.transition if isinstance(estimator, KnownModel) else None)
