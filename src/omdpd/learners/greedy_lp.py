"""The greedy linear program: replan every episode under the running mean of the costs, as if it were the truth.

    max r~.q  subject to  dbar_i.q <= 0,   q an occupancy of the region

dbar is the mean of the tables revealed so far, or the estimate of what was met under bandit feedback.  No caution: with
tables that change, the mean allows what single tables forbid.  A reference of ours, without a guarantee.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.learners.factors import PESSIMISM, margin, reward_width
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, before_plans
from omdpd.learners.replanned import State as Planned
from omdpd.learners.settings import Empirical, nonnegative
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.regions import Box, bounds_of


@dataclass(frozen=True, eq=False, kw_only=True)
class State(Planned):
    """Besides, the sum of the tables revealed so far (I, H, S, A)."""

    shown: Floats


@dataclass(frozen=True)
class GreedyLP(Empirical, Replanned[State]):
    """A linear program under the running mean of the costs."""

    stationary: bool = False
    _: KW_ONLY
    kappa: float = nonnegative(0.0)

    card = Card("linear program under the running mean of the costs", ("bandit", "full"), "none", "a reference")
    factors = (reward_width(), margin("kappa", PESSIMISM))

    def start(self, setting: Setting) -> State:
        """No data and no table."""
        none = np.zeros((setting.n_constraints, *setting.shape))
        return State(**before_plans(setting), shown=none)

    def met(self, state: State, feedback: Feedback) -> State:
        """Add up a revealed table."""
        return replace(state, shown=state.shown + feedback.cost) if isinstance(feedback, FullFeedback) else state

    def program(self, state: State) -> Program:
        """The best plan under the mean."""
        believed = self.estimator.estimate(state.setting, state.counts, state.k)
        mean = believed.cost if state.setting.feedback == "bandit" else state.shown / max(state.k, 1)
        return Program(Box(*bounds_of(believed.region)), believed.reward, mean)
