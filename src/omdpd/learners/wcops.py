"""WC-OPS: costs that may be stochastic or change, met along the trajectory; recent ones weigh more.

    g_k(h,s,a)    = (1 - beta_n) g_{k-1}(h,s,a) + beta_n d_k(h,s,a)     at the pairs met in their n-th visit,
                                                                        beta_n = n^-power
    lhat_k(h,s,a) = (1 - r) 1{met} / (u_k(h,s,a) + gamma)
    q_{k+1}       = KL-projection of q_k exp(-eta lhat_k) on { q in Q_k : (g_{k,i} - xi).q <= 0 for every i }

so that a visit weighs beta_n times the product of (1 - beta) of all later ones.  With power 1 this is the mean, and the
method is BV-OPS; with a smaller power the estimate follows costs that change.

Source: Stradi, Chiefari, Castiglioni, Marchesi, Gatti (2025; arXiv 2509.20114).  Certain, from its abstract and a
summary: the loop of BV-OPS, weights that are such products, no Slater condition, positive violation.  Ours: the rule of
beta_n (theirs adapts to what was met), eta, gamma and the divergence over (h,s,a) as in BV-OPS, and the library's box
and bonus with their scales.  `gamma_scale` sets gamma apart from eta.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import REWARD_SCALE, Estimate
from omdpd.learners.factors import exploration, kernel_width, step
from omdpd.learners.projected import Projected, unprojected
from omdpd.learners.projected import State as Stepped
from omdpd.learners.protocol import Card
from omdpd.learners.settings import Boxed, given, later, positive
from omdpd.learners.widths import bounded_cost
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State(Stepped):
    """Besides, the weighted costs (I, H, S, A)."""

    cost: Floats


@dataclass(frozen=True)
class WCOPS(Boxed, Projected[State]):
    """BV-OPS with recency-weighted costs, for costs that change without being revealed."""

    reward_scale: float = given(REWARD_SCALE)  # it looks at losses, never at the estimated reward
    power: float = positive(0.75)
    step_scale: float = positive(1.0)
    _: KW_ONLY
    gamma_scale: float | None = later(positive(None), None)

    card = Card(
        "KL projections on a safe set of recency-weighted costs",
        ("bandit",),
        "O~(sqrt K) regret and strong violation for stochastic costs, sublinear violation for adversarial ones",
        "Stradi, Chiefari, Castiglioni, Marchesi, Gatti (2025)",
        "known K",
    )
    factors = (kernel_width(), step("step_scale"), exploration("gamma_scale"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.power > 1.0:
            raise InvalidInputError(f"WCOPS's power is {self.power}, but must lie in (0, 1]")

    def start(self, setting: Setting) -> State:
        """Every cost is zero."""
        first = unprojected(self.estimator, setting)
        return State(**first, cost=first["counts"].cost_sum)

    def met(self, state: State, feedback: Feedback) -> State:
        """Weigh the costs of the episode."""
        assert isinstance(feedback, BanditFeedback)
        return replace(state, cost=self.weighed(state.cost, state.counts.visits, feedback))

    def tables(self, state: State, believed: Estimate[Box]) -> Floats:
        """g - xi in [-1, 1], and -1 where nothing was seen."""
        return bounded_cost(self, state, state.counts, state.cost, -1.0)

    def weighed(self, cost: Floats, visits: Floats, feedback: BanditFeedback) -> Floats:
        """The weighted costs after an episode, of which `visits` know already."""
        at = (np.arange(len(visits)), feedback.trajectory.states, feedback.trajectory.actions)
        beta = visits[at] ** -self.power
        newer = cost.copy()
        newer[:, *at] = (1.0 - beta) * cost[:, *at] + beta * feedback.costs
        return newer
