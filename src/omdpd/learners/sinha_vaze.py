"""Sinha and Vaze's online gradient descent with an exponential potential.

In raw units, over the confidence polytope of optimistic estimates:

    w_k = w0 exp(beta V_k),      grad_k = -r~_k + w_k d_k 1{d_k.q_k > 0}
    q_{k+1} = Proj_{Q_k}(q_k - eta_k grad_k),   eta_k = sqrt(H) / sqrt(sum_{i<=k} |grad_i|^2)

Source: Sinha, Vaze (NeurIPS 2024), AdaGrad-norm OGD on the surrogate.  `published`: w0 = 1/(2 sqrt K) and
beta = 1/(2 sqrt K 2 G D) with G = sqrt(HSA), which bounds the gradients of reward and cost, and D = sqrt(2H), the
diameter; its penalty enforces nothing for a long time.  Ours: w0 = 1 and beta = 1/sqrt(HK), the estimates under bandit
feedback, and the confidence polytope.

`anytime` is Sarkar and Sinha's (2025; arXiv 2510.22579) answer to an unknown K, a potential that varies with time;
known from the abstract, so that k in the place of K is ours.  `dial` is the trade of Sinha and Vaze (2025), regret of
the order K^dial against violation of K^(1 - dial): since a violation is bounded by the logarithm of what was lost over
the growth rate, the rate is (H K)^(dial - 1), and 1/2 is the first paper's; the form of the rate is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator, Estimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import episodes_of
from omdpd.learners.potential import Potential, positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, InvalidInputError, check_settings
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import Hinges, SolveLog, mirror_step

# Ours: with a weight of one and a growth of 1/sqrt(HK) the penalty is felt from the first episodes on.
W0 = 1.0
BETA_ROOT = 1.0


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the occupancy in play, the violation so far and the summed squared gradients."""

    setting: Setting
    k: int
    counts: Counts
    potential: Potential
    q: Floats
    V: Floats
    squares: float
    eta: float
    log: SolveLog


@dataclass(frozen=True)
class SinhaVaze:
    """Projected gradient descent on -r~.q + w [d.q]^+ with AdaGrad-norm steps.

    `beta_root` = b makes the growth rate b / sqrt(HK); constants left at None are the published ones.
    """

    estimator: Estimator = BoxEstimator.practical()
    w0: float | None = W0
    beta_root: float | None = BETA_ROOT
    known: bool = True
    dial: float = 0.5

    def __post_init__(self) -> None:
        check_settings(self, positive=("w0", "beta_root"), nonnegative=("dial",))
        if self.dial >= 1.0:
            raise InvalidInputError(f"SinhaVaze's dial is {self.dial}, but must lie in [0, 1)")

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        w0: float = W0,
        beta_root: float = BETA_ROOT,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
        dial: float = 0.5,
    ) -> SinhaVaze:
        """Online gradient descent with an exponential potential, initial weight one."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return SinhaVaze(box, w0, beta_root, dial=dial)

    @staticmethod
    def anytime(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        w0: float = W0,
        beta_root: float = BETA_ROOT,
        dial: float = 0.5,
        *,
        delta: float = DELTA,
    ) -> SinhaVaze:
        """The same without knowing the number of episodes: the potential's growth falls with k."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, True, True, delta)
        return SinhaVaze(box, w0, beta_root, known=False, dial=dial)

    @staticmethod
    def published(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> SinhaVaze:
        """The same with the published weight and growth, which enforce nothing for a long time."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return SinhaVaze(box, w0=None, beta_root=None)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "projected gradient descent, exponential potential",
            ("bandit", "full"),
            "O~(sqrt K) regret and strong violation (with the published weight, known model)",
            "Sinha, Vaze (NeurIPS 2024)",
            "a policy safe in every episode exists, known K",
        )

    def init(self, setting: Setting) -> State:
        """q_1 = the uniform policy under the uniform kernel."""
        self.estimator.check(setting)
        H, S, A = setting.shape
        K = episodes_of(self, setting) if self.known else 1
        q = uniform_occupancy(setting)
        slow = 4.0 * np.sqrt(K) * np.sqrt(H * S * A) * np.sqrt(2.0 * H)
        beta = 1.0 / slow if self.beta_root is None else self.beta_root / float(H * K) ** (1.0 - self.dial)
        w0 = 0.5 / np.sqrt(K) if self.w0 is None else self.w0
        potential = Potential(float(w0), float(beta))
        V = np.zeros(setting.n_constraints)
        return State(setting, 0, Counts.empty(setting), potential, q, V, 0.0, float(np.sqrt(H)), SolveLog())

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """One projected gradient step with the newest estimates."""
        setting = state.setting
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, state.k + 1)
        d = feedback.cost if isinstance(feedback, FullFeedback) else believed.cost
        excess = np.tensordot(d, state.q, axes=3)
        V = state.V + positive_part(excess)
        potential = state.potential if self.known else self._growing(setting, state.potential, state.k + 1)
        w = potential.slope(V) * (excess > 0.0)
        grad = -believed.reward + np.tensordot(w, d, axes=1)
        squares = state.squares + float((grad**2).sum())
        eta = float(np.sqrt(setting.horizon / squares)) if squares > 0.0 else state.eta
        step = mirror_step(believed.region, setting.mu, state.q, grad, eta, Hinges.none(setting.shape))
        return replace(
            state, k=state.k + 1, counts=counts, potential=potential, q=step.occupancy, V=V, squares=squares, eta=eta,
            log=state.log.after(step),
        )  # fmt: skip

    def _growing(self, setting: Setting, potential: Potential, k: int) -> Potential:
        """The potential of episode k where K is not known: k in its place."""
        rate = (self.beta_root or BETA_ROOT) * float(setting.horizon * k) ** (self.dial - 1.0)
        return Potential(potential.w0, rate, potential.w_max)

    def report(self, state: State) -> Report:
        """Step size, weight and the certificates of the projections."""
        return Report(state.log, state.eta, float(state.potential.slope(state.V).max()))
