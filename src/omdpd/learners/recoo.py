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

from omdpd.beliefs.confidence import Estimate
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.mirrored import Mirrored, Moved, unmoved
from omdpd.learners.potential import positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import Boxed, positive
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.mirror import HEAVIEST, Hinges, mirror_step
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State(Moved):
    """Besides, the queues, the last weights, and how often they were cut."""

    queue: Floats
    weights: Floats
    saturations: int = 0


@dataclass(frozen=True)
class RECOO(Boxed, Mirrored[State]):
    """One proximal step with the exact hinge, weighted by a rectified queue."""

    alpha_scale: float = positive(1.0)
    epsilon: float = positive(0.01)

    card = Card(
        "one proximal step with the exact hinge, weighted by a rectified queue",
        ("bandit", "full"),
        "fixed costs: O(sqrt K) regret, O(1) strong violation; adversarial: O(sqrt K), O(K^(3/4)) (known model)",
        "Guo, Liu, Wei, Ying (NeurIPS 2022)",
        "a policy safe in every episode exists",
    )
    factors = (*WIDTHS, step("alpha_scale"))

    def start(self, setting: Setting) -> State:
        """Empty queues."""
        nothing = np.zeros(setting.n_constraints)
        return State(**unmoved(setting), queue=nothing, weights=nothing)

    def stepped(self, state: State, believed: Estimate[Box], d: Floats) -> State:
        """The queue, then the proximal step."""
        setting, k = state.setting, state.k
        gamma, eta = k ** (0.5 + self.epsilon), self._step_size(setting, k)
        paid = positive_part(np.tensordot(d, state.q, axes=3))
        queue = np.maximum(state.queue + gamma * paid, float(k) ** self.epsilon)
        weights = np.minimum(queue * gamma, HEAVIEST / eta)
        found = mirror_step(believed.region, setting.mu, state.q, -believed.reward, eta, Hinges(d, weights))
        return replace(
            state, q=found.occupancy, queue=queue, weights=weights, log=state.log.after(found),
            saturations=state.saturations + bool(np.any(queue * gamma > HEAVIEST / eta)),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size, largest weight and the certificates of the steps."""
        eta = self._step_size(state.setting, max(state.k, 1))
        return Report(state.log, eta, float(state.weights.max()), saturations=state.saturations)

    def _step_size(self, setting: Setting, k: int) -> float:
        """1 / (2 alpha_k), so that the step is eta (...) + 1/2 |q - q_k|^2; G/D = sqrt(SA/2)."""
        return 0.5 / (self.alpha_scale * float(np.sqrt(0.5 * setting.n_states * setting.n_actions * k)))
