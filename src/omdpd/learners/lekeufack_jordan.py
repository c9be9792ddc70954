"""Lekeufack and Jordan's optimistic mirror descent, whose prediction is met at the intermediate point.

In raw units, over the confidence polytope of optimistic estimates:

    V_k = V_{k-1} + [d_k.q_k]^+,   w_k = w0 exp(beta V_k)
    L_k(q) = -r~_k.q + sum_i w_{k,i} [d_{k,i}.q]^+
    q_hat_{k+1} = argmin_{Q_k} eta_k     <grad L_k(q_k), q>          + 1/2 |q - q_hat_k|^2
    q_{k+1}     = argmin_{Q_k} eta_{k+1} <grad L^_{k+1}(q_hat_{k+1}), q> + 1/2 |q - q_hat_{k+1}|^2

The prediction L^_{k+1} has the newest reward, the last cost table and the weight w_k.

Source: Lekeufack, Jordan (2024).  The template (surrogate, potential, two steps, prediction at the intermediate point)
is the paper's.  Recalled and not compared with it: the rule eta = sqrt(H) min(1, 1/(sqrt E + sqrt E')) with E the
summed squared errors of the predicted gradients.  Ours: w0 = 1 and beta = 1/sqrt(HK), last-value predictions, the
estimates.  `published` has the weight and the growth of the family's source, w0 = 1/(2 sqrt K) and
beta = 1/(4 sqrt K G D) with G = sqrt(HSA) and D = sqrt(2H): that this paper takes the same ones is recalled.
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
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import Hinges, SolveLog, mirror_step, step_size

# Ours: with a weight of one and a growth of 1/sqrt(HK) the penalty is felt from the first episodes on.
W0 = 1.0
BETA_ROOT = 1.0


@dataclass(frozen=True, eq=False)
class State:
    """Counts, both points, the prediction that made q, the violation so far and the summed prediction errors."""

    setting: Setting
    k: int
    counts: Counts
    potential: Potential
    q: Floats
    q_hat: Floats
    hint: Floats
    V: Floats
    errors: float
    eta: float
    log: SolveLog


@dataclass(frozen=True)
class LekeufackJordan:
    """Optimistic mirror descent on the surrogate; `beta_root` = b makes the growth rate b / sqrt(HK).

    Constants left at None are the published ones.
    """

    estimator: Estimator = BoxEstimator.practical()
    w0: float | None = W0
    beta_root: float | None = BETA_ROOT

    def __post_init__(self) -> None:
        check_settings(self, positive=("w0", "beta_root"))

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
    ) -> LekeufackJordan:
        """Optimistic mirror descent, prediction at the intermediate point."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return LekeufackJordan(box, w0, beta_root)

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
    ) -> LekeufackJordan:
        """The same with the published weight and growth, which enforce nothing for a long time."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return LekeufackJordan(box, w0=None, beta_root=None)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "optimistic mirror descent, prediction at the intermediate point",
            ("bandit", "full"),
            "regret and strong violation of the order of the root of the summed prediction errors (known model)",
            "Lekeufack, Jordan (2024)",
            "a policy safe in every episode exists, known K",
        )

    def init(self, setting: Setting) -> State:
        """q_1 = q_hat_1 = the uniform policy under the uniform kernel; nothing predicted."""
        self.estimator.check(setting)
        H, S, A = setting.shape
        K = episodes_of(self, setting)
        slow = 4.0 * np.sqrt(K) * np.sqrt(H * S * A) * np.sqrt(2.0 * H)
        beta = 1.0 / slow if self.beta_root is None else self.beta_root / np.sqrt(H * K)
        potential = Potential(float(0.5 / np.sqrt(K) if self.w0 is None else self.w0), float(beta))
        q = uniform_occupancy(setting)
        V = np.zeros(setting.n_constraints)
        eta = step_size(H, 0.0, 0.0)
        return State(setting, 0, Counts.empty(setting), potential, q, q, np.zeros((H, S, A)), V, 0.0, eta, SolveLog())

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """The step along the gradient that was met, then the step along the predicted one."""
        setting, mu = state.setting, state.setting.mu
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, state.k + 1)
        r, d = believed.reward, feedback.cost if isinstance(feedback, FullFeedback) else believed.cost
        V = state.V + positive_part(np.tensordot(d, state.q, axes=3))
        weights = state.potential.slope(V)
        grad = _gradient(r, d, weights, state.q)
        plain = Hinges.none(setting.shape)
        to_q_hat = mirror_step(believed.region, mu, state.q_hat, grad, state.eta, plain)
        errors = state.errors + float(((grad - state.hint) ** 2).sum())
        eta = step_size(setting.horizon, errors, state.errors)
        hint = _gradient(r, d, weights, to_q_hat.occupancy)
        to_q = mirror_step(believed.region, mu, to_q_hat.occupancy, hint, eta, plain)
        return replace(
            state, k=state.k + 1, counts=counts, q=to_q.occupancy, q_hat=to_q_hat.occupancy, hint=hint, V=V,
            errors=errors, eta=eta, log=state.log.after(to_q_hat).after(to_q),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size, weight and the certificates of the steps."""
        return Report(state.log, state.eta, float(state.potential.slope(state.V).max()))


def _gradient(reward: Floats, cost: Floats, weights: Floats, q: Floats) -> Floats:
    """A subgradient of -r.q + sum_i w_i [d_i.q]^+ at q."""
    active = np.tensordot(cost, q, axes=3) > 0.0
    return np.tensordot(weights * active, cost, axes=1) - reward
