"""The cautious linear program: replan every episode under every cost table that was ever revealed.

    max r~.q  subject to  d.q + b <= 0 for every table d seen so far,   q an occupancy of the region

The region is the empirical kernel (default) or a confidence box, by the estimator; b = (margin . q_k) max|d| is what
the cautious estimator adds for what is not known yet, with the occupancy of the plan in play (0 for a box).  Tables
become rows of the program as they are found violated.  Where no point satisfies them all, the one whose largest excess
is least is played, and counted.  A reference of ours, without a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from omdpd.beliefs.confidence import BoxEstimator, EmpiricalEstimator
from omdpd.beliefs.memory import labelled
from omdpd.learners.factors import margin, reward_width
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Remembering, Replanned, planned_under, remembered
from omdpd.learners.settings import Empirical, nonnegative
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.programs import Plan, plan_in_kernel, vertex_plan
from omdpd.solvers.regions import Box, bounds_of


@dataclass(frozen=True, eq=False, kw_only=True)
class State(Remembering):
    """Besides, the occupancy of the plan in play."""

    q: Floats


@dataclass(frozen=True)
class CautiousLP(Empirical, Replanned[State]):
    """A linear program with every table seen so far; `kappa` is the margin on the empirical kernel, unless `box`.

    With `box` the plan is over the confidence box that the learners of a comparison share, at its scales.
    """

    kappa: float = nonnegative(EmpiricalEstimator.kappa)
    box: bool = False
    stationary: bool = False

    card = Card("linear program with every cost table seen so far", ("full",), "none", "a reference")
    factors = (reward_width(), margin("kappa"))

    @cached_property
    def estimator(self) -> BoxEstimator | EmpiricalEstimator:
        """What turns counts into tables and a region."""
        if self.box:
            return BoxEstimator.practical(stationary=self.stationary, delta=self.delta)
        return super().estimator

    def start(self, setting: Setting) -> State:
        """No data and no table."""
        return State(**State.first(setting), q=np.zeros(setting.shape))

    def met(self, state: State, feedback: Feedback) -> State:
        """Remember the revealed tables."""
        return remembered(state, feedback)

    def planned(self, state: State) -> State:
        """Solve the program, with every table lifted by the margin, adding violated ones until none is left out."""
        believed = self.estimator.estimate(state.setting, state.counts, state.k)
        region, mu, reward = believed.region, state.setting.mu, believed.reward
        lower, upper = bounds_of(region)

        def plan(tables: Floats) -> Plan:
            if isinstance(region, Box):
                return vertex_plan(lower, upper, mu, reward, tables, state.basis)
            return plan_in_kernel(lower, mu, reward, tables)

        lift = float(np.vdot(state.q, believed.margin)) / state.setting.horizon
        lifted = {row: table + lift * float(np.abs(table).max()) for row, table in labelled(state.memory).items()}
        newer, found = planned_under(state, lifted, plan)
        return replace(newer, q=found.occupancy)
