"""OptCMDP: replan every episode with an optimistic linear program; the cautious program when costs are revealed.

    max r~.q  subject to  d_j.q <= 0,  q in Q_k

with d~_k under bandit feedback, and with every distinct table revealed so far under full feedback (rows are put into
the program as they are found violated).  Where the program has no solution the least-violating policy is played, and
counted.  Source: Efroni, Mannor, Pirotta (2020), Algorithm 1.  The program and its optimism are the paper's; the scales
below one, what is played where it has no solution, and the cautious form for revealed costs are ours.

With `hoeffding` and `epochs` it is UCRL-CMDP of Singh, Gupta, Shroff (2020) made episodic: a box of Hoeffding's width,
and a plan that is kept until the visits of some (h,s,a) have doubled.  (Theirs is about average cost, and knows the
costs.)
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import Estimate, box_around, log_term_transition
from omdpd.beliefs.counting import has_doubled
from omdpd.beliefs.memory import labelled
from omdpd.learners.factors import WIDTHS
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Remembering, Replanned, planned_under, remembered, solved
from omdpd.learners.settings import UNCLIPPED, Boxed, Preset
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.programs import vertex_plan
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False, kw_only=True)
class State(Remembering):
    """Besides, the visits when the plan in play was made, where it is kept until they have doubled."""

    renewed_at: Floats | None = None


@dataclass(frozen=True)
class OptCMDP(Boxed, Replanned[State]):
    """Optimistic linear program every episode; the cautious program when costs are revealed."""

    _: KW_ONLY
    epochs: bool = False
    hoeffding: bool = False

    card = Card(
        "extended linear program, replanned every episode",
        ("bandit", "full"),
        "O~(sqrt K) strong regret and violation for stochastic costs, no Slater condition",
        "Efroni, Mannor, Pirotta (2020), Algorithm 1",
    )
    factors = WIDTHS
    theory = Preset("The paper's confidence widths.", "", **UNCLIPPED)

    def start(self, setting: Setting) -> State:
        """No data: everything looks good."""
        return State(**State.first(setting))

    def met(self, state: State, feedback: Feedback) -> State:
        """Remember revealed tables."""
        return remembered(state, feedback)

    def planned(self, state: State) -> State:
        """Solve the program, adding violated tables until none is left out."""
        if self.epochs:
            if state.renewed_at is not None and not has_doubled(state.counts.visits, state.renewed_at):
                return state
            state = replace(state, renewed_at=state.counts.visits)
        believed = self.believed(state)
        box, mu = believed.region, state.setting.mu
        if state.setting.feedback == "full":
            return planned_under(
                state, labelled(state.memory),
                lambda tables: vertex_plan(box.lower, box.upper, mu, believed.reward, tables, state.basis),
            )[0]  # fmt: skip
        plan = vertex_plan(box.lower, box.upper, mu, believed.reward, believed.cost, state.basis)
        basis = plan.basis if plan.basis is not None else state.basis
        return solved(replace(state, policy=plan.policy, basis=basis), 1, plan.feasible)

    def believed(self, state: State) -> Estimate[Box]:
        """The tables and the box; with `hoeffding` its half-width is scale sqrt(2 Lp / n) whatever p_hat is."""
        setting, counts, k = state.setting, self.pooled(state.counts), state.k
        if not self.hoeffding:
            return self.estimator.estimate(setting, state.counts, k)
        Lp, n = log_term_transition(setting, k, self.delta), counts.departures[..., None]
        reach = self.transition_scale * np.sqrt(2.0 * Lp / np.maximum(n, 1.0))
        return self.estimator.estimate_with(box_around(counts, reach), setting, state.counts, k)
