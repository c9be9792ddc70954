"""OptPrimalDual-CMDP: exponential weights on truncated optimistic values, gradient steps on the multipliers.

    Q_k       = TPE(r~_k, pi_k) - sum_i lam_{k,i} TPE(d~_{k,i}, pi_k)          evaluated under p_hat, cut to its range
    pi_{k+1}  ~ pi_k exp(t_K Q_k),                      t_K = sqrt(2 ln A / (H^2 (1 + I rho)^2 K))
    lam_{k+1} = min([lam_k + (1/t) V_k(d~)]^+, rho),    t = H sqrt(I K) / rho,   rho = H / xi

Source: Efroni, Mannor, Pirotta (2020), Algorithm 4.  The updates, t_K and t are the paper's; rho is H / xi with a known
Slater gap xi, costs are signed (cut to [-(H-h), H-h]), and the scales of the estimates are ours.  `primal_scale` and
`dual_scale` multiply t_K and 1/t; the paper's are 1, with which the policy hardly moves in thousands of episodes, so
the default t_K is a hundred times that.  `tightening` = c adds c H / sqrt K to the cost that the dual sees, the
conservative budget of Bai et al. (2022), whose own method draws from a generative model; the form is ours.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.logits import OnLogits, Rates
from omdpd.learners.needs import Needs, episodes_of, room_of
from omdpd.learners.protocol import Card
from omdpd.learners.settings import ONES, Bonused, Preset, nonnegative, positive
from omdpd.problem.setting import Setting


@dataclass(frozen=True)
class OptPrimalDual(Bonused, OnLogits):
    """Exponential weights on the Lagrangian, gradient steps on the multipliers."""

    room: float | None = positive(None)
    primal_scale: float = positive(100.0)
    dual_scale: float = positive(1.0)
    _: KW_ONLY
    tightening: float = nonnegative(0.0)

    card = Card(
        "exponential weights on the Lagrangian, gradient steps on the multipliers",
        ("bandit",),
        "O~(sqrt K) weak regret and violation",
        "Efroni, Mannor, Pirotta (2020), Algorithm 4",
        "stochastic costs, known Slater gap, known K",
    )
    needs = Needs(episodes=True, room=True)
    factors = (*WIDTHS, step("primal_scale"))
    theory = Preset("The paper's widths and steps.", "room", **ONES, primal_scale=1.0)

    def rates(self, setting: Setting, k: int) -> Rates:
        """t_K and 1/t, the conservative budget, and rho."""
        (H, _, A), K, I = setting.shape, episodes_of(self, setting), setting.n_constraints  # noqa: E741
        rho = H / room_of(self, self.room)
        primal = self.primal_scale * np.sqrt(2.0 * np.log(A) / K) / (H * (1.0 + I * rho))
        dual = self.dual_scale * rho / (H * np.sqrt(I * K))
        return Rates(float(primal), 0.0, float(dual), self.tightening * H / float(np.sqrt(K)), rho)
