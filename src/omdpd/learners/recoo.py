"""RECOO: one proximal step per episode with the hinge kept exact, weighted by a queue that cannot empty.

    Q_k     = max( Q_{k-1} + gamma_k [d_k.q_k]^+, theta_k )                    "rectified": bounded from below
    q_{k+1} = argmin_{Q_k}  -r~_k.q + sum_i Q_{k,i} gamma_k [d_{k,i}.q]^+ + alpha_k |q - q_k|^2

    alpha_k = alpha_scale (G/D) sqrt(k),   gamma_k = k^(1/2 + epsilon),   theta_k = k^epsilon

Source: Guo, Liu, Wei, Ying (NeurIPS 2022), whose text was not at hand.  Certain: hard constraints and a rectified
queue.  From memory: the step, the rates of the card, and the exponents of alpha, gamma and theta (theta_k = sqrt(k) is
possible too).  Ours: their factors (G = sqrt(HSA) bounds the reward, D = sqrt(2H) is the diameter; `alpha_scale` is
tuned in a comparison), the estimates under bandit feedback and the confidence polytope.  The weight of a hinge in a
step is capped where it is as good as hard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator, Estimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.potential import positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import HEAVIEST, Hinges, SolveLog, mirror_step


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the occupancy in play, the queues and the last weights; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    q: Floats
    queue: Floats
    weights: Floats
    log: SolveLog
    saturations: int


@dataclass(frozen=True)
class RECOO:
    """Rectified queue, exact hinge; needs no K."""

    estimator: Estimator = BoxEstimator.practical()
    alpha_scale: float = 1.0
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        check_settings(self, positive=("alpha_scale", "epsilon"))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        alpha_scale: float = alpha_scale,
        epsilon: float = epsilon,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> RECOO:
        """One proximal step with the exact hinge, weighted by a rectified queue."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return RECOO(box, alpha_scale, epsilon)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "one proximal step with the exact hinge, weighted by a rectified queue",
            ("bandit", "full"),
            "fixed costs: O(sqrt K) regret, O(1) strong violation; adversarial: O(sqrt K), O(K^(3/4)) (known model)",
            "Guo, Liu, Wei, Ying (NeurIPS 2022)",
            "a policy safe in every episode exists",
        )

    def init(self, setting: Setting) -> State:
        """q_1 = the uniform policy under the uniform kernel; empty queues."""
        self.estimator.check(setting)
        q = uniform_occupancy(setting)
        nothing = np.zeros(setting.n_constraints)
        return State(setting, 0, Counts.empty(setting), q, nothing, nothing, SolveLog(), 0)

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """The queue, then the proximal step with the newest estimates."""
        setting, k = state.setting, state.k + 1
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, k)
        d = feedback.cost if isinstance(feedback, FullFeedback) else believed.cost
        gamma, eta = k ** (0.5 + self.epsilon), self._step_size(setting, k)
        queue = np.maximum(
            state.queue + gamma * positive_part(np.tensordot(d, state.q, axes=3)), float(k) ** self.epsilon
        )
        weights = np.minimum(queue * gamma, HEAVIEST / eta)
        step = mirror_step(believed.region, setting.mu, state.q, -believed.reward, eta, Hinges(d, weights))
        return replace(
            state, k=k, counts=counts, q=step.occupancy, queue=queue, weights=weights, log=state.log.after(step),
            saturations=state.saturations + bool(np.any(queue * gamma > HEAVIEST / eta)),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size, largest weight and the certificates of the steps."""
        eta = self._step_size(state.setting, max(state.k, 1))
        return Report(state.log, eta, float(state.weights.max()), saturations=state.saturations)

    def _step_size(self, setting: Setting, k: int) -> float:
        """1 / (2 alpha_k), so that the step is eta (...) + 1/2 |q - q_k|^2; G/D = sqrt(SA/2)."""
        return 0.5 / (self.alpha_scale * float(np.sqrt(0.5 * setting.n_states * setting.n_actions * k)))
