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
and bonus with their scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator, log_term
from omdpd.beliefs.counts import Counts
from omdpd.learners.exploration import exploring_loss, exploring_step
from omdpd.learners.needs import episodes_of, require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, InvalidInputError, check_settings
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import LIGHTEST, SolveLog, constrained_step, smoothed
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, weighted costs (I, H, S, A), the box of the data so far, the occupancy in play, the last weight."""

    setting: Setting
    k: int
    counts: Counts
    cost: Floats
    box: Box
    q: Floats
    weight: float
    log: SolveLog
    infeasible: int


@dataclass(frozen=True)
class WCOPS:
    """Importance-weighted losses on a safe set of costs in which recent ones weigh more."""

    estimator: BoxEstimator = BoxEstimator.practical()
    power: float = 0.75
    step_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("power", "step_scale"))
        if self.power > 1.0:
            raise InvalidInputError(f"WCOPS's power is {self.power}, but must lie in (0, 1]")

    @staticmethod
    def practical(
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        power: float = power,
        step_scale: float = step_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> WCOPS:
        """BV-OPS with recency-weighted costs, for costs that change without being revealed."""
        box = BoxEstimator.practical(REWARD_SCALE, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return WCOPS(box, power, step_scale)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "KL projections on a safe set of recency-weighted costs",
            ("bandit",),
            "O~(sqrt K) regret and strong violation for stochastic costs, sublinear violation for adversarial ones",
            "Stradi, Chiefari, Castiglioni, Marchesi, Gatti (2025)",
            "known K",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy under the uniform kernel; every kernel is possible, every cost zero."""
        require_feedback(self, setting, "bandit")
        episodes_of(self, setting)
        self.estimator.check(setting)
        counts, q = Counts.empty(setting), uniform_occupancy(setting)
        box = self.estimator.estimate(setting, counts, 0).region
        return State(setting, 0, counts, counts.cost_sum, box, q, LIGHTEST, SolveLog(), 0)

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """Weigh the costs that were met, then project on the newest safe set."""
        assert isinstance(feedback, BanditFeedback)
        setting, eta = state.setting, self._step(state.setting)
        loss = exploring_loss(setting, state.box, policy_of_occupancy(state.q), feedback, eta)
        counts = state.counts.add(feedback)
        cost = self.weighed(state.cost, counts.visits, feedback)
        box = self.estimator.estimate(setting, counts, state.k + 1).region
        near = smoothed(state.q, 1.0 / episodes_of(self, setting))
        tables = self._optimistic(state, counts, cost)
        found = constrained_step(box, setting.mu, near, loss, eta, tables, state.weight)
        return replace(
            state, k=state.k + 1, counts=counts, cost=cost, box=box, q=found.step.occupancy, weight=found.weight,
            log=state.log.after(found.step), infeasible=state.infeasible + (not found.exact),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """The step, and how often the safe set was empty."""
        return Report(state.log, self._step(state.setting), infeasible=state.infeasible)

    def weighed(self, cost: Floats, visits: Floats, feedback: BanditFeedback) -> Floats:
        """The weighted costs after an episode, of which `visits` know already."""
        at = (np.arange(len(visits)), feedback.trajectory.states, feedback.trajectory.actions)
        beta = visits[at] ** -self.power
        newer = cost.copy()
        newer[:, *at] = (1.0 - beta) * cost[:, *at] + beta * feedback.costs
        return newer

    def _optimistic(self, state: State, counts: Counts, cost: Floats) -> Floats:
        """g - xi in [-1, 1], and -1 where nothing was seen."""
        L = log_term(state.setting, state.k + 1, self.estimator.delta)
        xi = self.estimator.cost_scale * np.sqrt(L / np.maximum(counts.visits, 1.0))
        return np.where(counts.visits > 0.0, np.clip(cost - xi, -1.0, 1.0), -1.0)

    def _step(self, setting: Setting) -> float:
        """eta = gamma, times `step_scale`."""
        return self.step_scale * exploring_step(setting, episodes_of(self, setting), self.estimator.delta)
