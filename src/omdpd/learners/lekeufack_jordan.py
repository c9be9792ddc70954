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

from omdpd.beliefs.confidence import Estimate
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.mirrored import Mirrored, Moved, growing_weight, unmoved
from omdpd.learners.needs import Needs, episodes_of
from omdpd.learners.potential import Potential, positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import Boxed, Preset, positive
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.mirror import Hinges, mirror_step, step_size
from omdpd.solvers.regions import Box

# Ours: with a weight of one and a growth of 1/sqrt(HK) the penalty is felt from the first episodes on.
W0, BETA_ROOT = 1.0, 1.0


@dataclass(frozen=True, eq=False)
class State(Moved):
    """Besides, the other point, the prediction that made q, the violation so far and the summed prediction errors."""

    potential: Potential
    q_hat: Floats
    hint: Floats
    V: Floats
    errors: float
    eta: float


@dataclass(frozen=True)
class LekeufackJordan(Boxed, Mirrored[State]):
    """Optimistic mirror descent, prediction at the intermediate point.

    `beta_root` = b makes the growth rate b / sqrt(HK).  Constants left at None are the published ones.
    """

    w0: float | None = positive(W0)
    beta_root: float | None = positive(BETA_ROOT)

    card = Card(
        "optimistic mirror descent, prediction at the intermediate point",
        ("bandit", "full"),
        "regret and strong violation of the order of the root of the summed prediction errors (known model)",
        "Lekeufack, Jordan (2024)",
        "a policy safe in every episode exists, known K",
    )
    needs = Needs(episodes=True)
    factors = (*WIDTHS, step("beta_root"))
    published = Preset(
        "The same with the published weight and growth, which enforce nothing for a long time.",
        w0=None, beta_root=None,
    )  # fmt: skip

    def start(self, setting: Setting) -> State:
        """q_1 = q_hat_1; nothing predicted."""
        first, K = unmoved(setting), episodes_of(self, setting)
        beta = None if self.beta_root is None else self.beta_root / np.sqrt(setting.horizon * K)
        return State(
            **first, potential=growing_weight(setting, K, self.w0, beta), q_hat=first["q"],
            hint=np.zeros(setting.shape), V=np.zeros(setting.n_constraints), errors=0.0,
            eta=step_size(setting.horizon, 0.0, 0.0),
        )  # fmt: skip

    def stepped(self, state: State, believed: Estimate[Box], d: Floats) -> State:
        """The step along the observed gradient, then the step along the predicted one."""
        r, mu, region, plain = believed.reward, state.setting.mu, believed.region, Hinges.none(state.setting.shape)
        V = state.V + positive_part(np.tensordot(d, state.q, axes=3))
        weights = state.potential.slope(V)
        grad = _gradient(r, d, weights, state.q)
        to_q_hat = mirror_step(region, mu, state.q_hat, grad, state.eta, plain)
        errors = state.errors + float(((grad - state.hint) ** 2).sum())
        eta = step_size(state.setting.horizon, errors, state.errors)
        hint = _gradient(r, d, weights, to_q_hat.occupancy)
        to_q = mirror_step(region, mu, to_q_hat.occupancy, hint, eta, plain)
        return replace(
            state, q=to_q.occupancy, q_hat=to_q_hat.occupancy, hint=hint, V=V, errors=errors, eta=eta,
            log=state.log.after(to_q_hat).after(to_q),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size, weight and the certificates of the steps."""
        return Report(state.log, state.eta, float(state.potential.slope(state.V).max()))


def _gradient(reward: Floats, cost: Floats, weights: Floats, q: Floats) -> Floats:
    """A subgradient of -r.q + sum_i w_i [d_i.q]^+ at q."""
    active = np.tensordot(cost, q, axes=3) > 0.0
    return np.tensordot(weights * active, cost, axes=1) - reward
