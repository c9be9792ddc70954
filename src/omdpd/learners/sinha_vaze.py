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

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.mirrored import Descended, Mirrored, descended, growing_weight, unmoved
from omdpd.learners.needs import episodes_of
from omdpd.learners.potential import Potential, positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import Boxed, Preset, given, nonnegative, positive
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box

# Ours: with a weight of one and a growth of 1/sqrt(HK) the penalty is felt from the first episodes on.
W0 = 1.0
BETA_ROOT = 1.0


@dataclass(frozen=True, eq=False)
class State(Descended):
    """Besides, the potential and the violation so far."""

    potential: Potential
    V: Floats


@dataclass(frozen=True)
class SinhaVaze(Boxed, Mirrored[State]):
    """Online gradient descent with an exponential potential, initial weight one.

    `beta_root` = b makes the growth rate b / sqrt(HK); constants left at None are the published ones.
    """

    w0: float | None = positive(W0)
    beta_root: float | None = positive(BETA_ROOT)
    _: KW_ONLY
    dial: float = nonnegative(0.5)
    known: bool = given(True)

    card = Card(
        "projected gradient descent, exponential potential",
        ("bandit", "full"),
        "O~(sqrt K) regret and strong violation (with the published weight, known model)",
        "Sinha, Vaze (NeurIPS 2024)",
        "a policy safe in every episode exists, known K",
    )
    factors = (*WIDTHS, step("beta_root"))
    published = Preset(
        "The same with the published weight and growth, which enforce nothing for a long time.",
        w0=None, beta_root=None, dial=0.5,
    )  # fmt: skip
    anytime = Preset(
        "The same without knowing the number of episodes: the potential's growth falls with k.",
        "reward_scale cost_scale transition_scale stationary w0 beta_root dial * delta", known=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dial >= 1.0:
            raise InvalidInputError(f"SinhaVaze's dial is {self.dial}, but must lie in [0, 1)")

    def start(self, setting: Setting) -> State:
        """No violation."""
        H, K = setting.horizon, episodes_of(self, setting) if self.known else 1
        beta = None if self.beta_root is None else self.beta_root / float(H * K) ** (1.0 - self.dial)
        return State(
            **unmoved(setting), squares=0.0, eta=float(np.sqrt(H)), V=np.zeros(setting.n_constraints),
            potential=growing_weight(setting, K, self.w0, beta),
        )  # fmt: skip

    def stepped(self, state: State, believed: Estimate[Box], d: Floats) -> State:
        """One projected gradient step on -r~.q + w [d.q]^+."""
        excess, potential = np.tensordot(d, state.q, axes=3), state.potential
        if not self.known:  # k in the place of K
            rate = (self.beta_root or BETA_ROOT) * float(state.setting.horizon * state.k) ** (self.dial - 1.0)
            potential = replace(potential, beta=rate)
        V = state.V + positive_part(excess)
        w = potential.slope(V) * (excess > 0.0)
        newer = replace(state, V=V, potential=potential)
        return descended(newer, believed.region, -believed.reward + np.tensordot(w, d, axes=1))

    def report(self, state: State) -> Report:
        """Step size, weight and the certificates of the projections."""
        return Report(state.log, state.eta, float(state.potential.slope(state.V).max()))
