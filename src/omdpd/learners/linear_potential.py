"""Primal-dual gradient descent: a multiplier that is linear in the costs paid so far, where OMDPD's is exponential.

    grad_k   = -r~_k + sum_i lam_{k,i} d_{k,i}
    lam_k    = [ lam_{k-1} + d_k.q_k / sqrt(HK) ]^+
    q_{k+1}  = Proj_{Q_k}( q_k - eta_k grad_k ),   eta_k = sqrt(H) / sqrt(sum_{j<=k} |grad_j|^2)

The textbook method, over the same polytope and with the same steps as its exponential relatives: what the potential is
worth shows beside it.  Costs of opposite sign cancel in the multiplier, so only the weak violation is kept small.
A reference of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator, Estimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import episodes_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import Hinges, SolveLog, mirror_step


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the occupancy in play, the multipliers and the summed squared gradients."""

    setting: Setting
    k: int
    counts: Counts
    q: Floats
    lam: Floats
    squares: float
    eta: float
    log: SolveLog


@dataclass(frozen=True)
class LinearPotential:
    """Projected gradient descent on the Lagrangian; `dual_scale` multiplies the multiplier's step 1 / sqrt(HK)."""

    estimator: Estimator = BoxEstimator.practical()
    dual_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=("dual_scale",))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        dual_scale: float = dual_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> LinearPotential:
        """Primal-dual gradient descent: the multiplier is linear in the costs paid."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return LinearPotential(box, dual_scale)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "primal-dual projected gradient descent, multiplier linear in the costs paid",
            ("bandit", "full"),
            "none stated here; weak violation only",
            "a reference",
        )

    def init(self, setting: Setting) -> State:
        """q_1 = the uniform policy under the uniform kernel."""
        self.estimator.check(setting)
        episodes_of(self, setting)
        H = setting.horizon
        q = uniform_occupancy(setting)
        lam = np.zeros(setting.n_constraints)
        return State(setting, 0, Counts.empty(setting), q, lam, 0.0, float(np.sqrt(H)), SolveLog())

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """The multipliers, then one projected gradient step with the newest estimates."""
        setting = state.setting
        H, K = setting.horizon, episodes_of(self, setting)
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, state.k + 1)
        d = feedback.cost if isinstance(feedback, FullFeedback) else believed.cost
        lam = np.maximum(state.lam + self.dual_scale * np.tensordot(d, state.q, axes=3) / np.sqrt(H * K), 0.0)
        grad = -believed.reward + np.tensordot(lam, d, axes=1)
        squares = state.squares + float((grad**2).sum())
        eta = float(np.sqrt(H / squares)) if squares > 0.0 else state.eta
        step = mirror_step(believed.region, setting.mu, state.q, grad, eta, Hinges.none(setting.shape))
        return replace(
            state, k=state.k + 1, counts=counts, q=step.occupancy, lam=lam, squares=squares, eta=eta,
            log=state.log.after(step),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size, largest multiplier and the certificates of the projections."""
        return Report(state.log, state.eta, float(state.lam.max()))
