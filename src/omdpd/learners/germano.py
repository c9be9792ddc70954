"""Best of both worlds: primal-dual gradient descent whose guarantees follow how the costs are drawn.

    grad_k       = -r~_k + sum_i lam_{k,i} d_{k,i}
    q_{k+1}      = Proj_{Q_epoch}( q_k - eta_k grad_k ),   eta_k = 1 / (Xi_k sqrt k),  Xi_k = max_{j<=k} |grad_j|_inf
    lam_{k+1}    = clip( lam_k + eta_dual d_k.q_k, 0, K^(1/4) ),  eta_dual = 1 / (H sqrt K)

The set is renewed when the visits of some (h,s,a) have doubled.  Certain, from abstracts and a later paper's summary:
gradient descent for both players, full feedback on the costs, the dual's box [0, K^(1/4)]^I, no knowledge of the Slater
gap, long-term (weak) violation and the rates.  From memory: the epochs, the orders of both step sizes and how the
primal one adapts to the losses (`primal_scale` is tuned in a comparison).  Ours: the reward, shown whole in the paper,
is met along the trajectory and enters as r~; the library's box with its scales; the two factors on the steps.
Source: Stradi, Germano, Genalti, Castiglioni, Marchesi, Gatti (ICML 2024; arXiv 2304.14326), PDGD-OPS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import episodes_of, require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.related import has_doubled
from omdpd.solvers.mirror import Hinges, SolveLog, mirror_step
from omdpd.solvers.regions import Region

# What the largest loss so far is taken for where all losses were zero: the step along them is zero whatever it is.
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the visits when the set was last renewed and the set, both players' points, the largest loss so far."""

    setting: Setting
    k: int
    counts: Counts
    renewed_at: Floats
    region: Region
    q: Floats
    lam: Floats
    largest: float
    eta: float
    log: SolveLog


@dataclass(frozen=True)
class Germano:
    """Projected gradient descent against a bounded dual; `primal_scale` and `dual_scale` multiply the steps."""

    estimator: BoxEstimator = BoxEstimator.practical()
    primal_scale: float = 1.0
    dual_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("primal_scale",), nonnegative=("dual_scale",))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        primal_scale: float = primal_scale,
        dual_scale: float = dual_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> Germano:
        """Primal-dual gradient descent with a bounded dual; revealed costs."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return Germano(box, primal_scale, dual_scale)

    @staticmethod
    def theory() -> Germano:
        """Confidence widths with scales of one, not clipped."""
        return Germano(BoxEstimator())

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "primal-dual projected gradient descent, dual kept below K^(1/4)",
            ("full",),
            "weak; stochastic costs: O~(sqrt K), without Slater O~(K^(3/4)); adversarial costs: a fraction of V*",
            "Stradi, Germano, Genalti, Castiglioni, Marchesi, Gatti (ICML 2024)",
            "rewards shown whole, which are estimated here",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy under the uniform kernel, a dual of zero, and the set of all kernels."""
        self.estimator.check(setting)
        require_feedback(self, setting, "full")
        episodes_of(self, setting)
        q = uniform_occupancy(setting)
        counts = Counts.empty(setting)
        region = self.estimator.estimate(setting, counts, 0).region
        lam = np.zeros(setting.n_constraints)
        return State(setting, 0, counts, counts.visits, region, q, lam, 0.0, self.primal_scale, SolveLog())

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """A projected gradient step for the primal, a clipped one for the dual."""
        assert isinstance(feedback, FullFeedback)
        setting, d, k = state.setting, feedback.cost, state.k + 1
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, k)
        new = has_doubled(counts.visits, state.renewed_at)
        region, renewed_at = (believed.region, counts.visits) if new else (state.region, state.renewed_at)
        grad = -believed.reward + np.tensordot(state.lam, d, axes=1)
        largest = max(state.largest, float(np.abs(grad).max()))
        eta = self.primal_scale / (max(largest, TINY) * float(np.sqrt(k)))
        step = mirror_step(region, setting.mu, state.q, grad, eta, Hinges.none(setting.shape))
        K = episodes_of(self, setting)
        rise = self.dual_scale / (setting.horizon * np.sqrt(K))
        lam = np.clip(state.lam + rise * np.tensordot(d, state.q, axes=3), 0.0, K**0.25)
        return replace(
            state, k=k, counts=counts, renewed_at=renewed_at, region=region, q=step.occupancy, lam=lam, largest=largest,
            eta=eta, log=state.log.after(step),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size and the largest dual."""
        return Report(state.log, state.eta, float(state.lam.max()))
