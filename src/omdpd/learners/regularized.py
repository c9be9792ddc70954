"""Regularised primal-dual: entropy on the policy and a square on the multipliers make the last iterate converge.

    Q_k       = TPE_tau(r~_k, pi_k) - sum_i lam_{k,i} TPE(d~_{k,i}, pi_k)       TPE_tau adds the entropy of later steps
    pi_{k+1}  ~ pi_k^(1 - eta tau) exp(eta Q_k)
    lam_{k+1} = min([(1 - eta tau) lam_k + eta V_k(d~)]^+, H / xi)

Source: Mueller, Alatur, Cevher, Ramponi, He (ICML 2024; arXiv 2402.15776), known here from its abstract and a summary.
Certain: entropy and a square in the Lagrangian, closed updates, truncated evaluation of an optimistic model, the rate
K^0.93 of strong regret and violation.  From memory: the lines above, tau = K^(-1/7) and eta = K^(-5/7), which agree
with that rate (K^(13/14)), up to factors of H, xi and I that are left out, and the bound H / xi on the multipliers,
which may have to grow slowly with K.  Ours: the scales of the estimates, signed costs and the two-sided cut that they
need, and `eta_scale` and `tau_scale`, which multiply eta and tau: 1 has the orders above, and the defaults are 10 and
0.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.logits import OnLogits, Rates
from omdpd.learners.needs import Needs, episodes_of, room_of
from omdpd.learners.protocol import Card
from omdpd.learners.settings import ONES, Bonused, Preset, positive
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting


@dataclass(frozen=True)
class RegularizedPrimalDual(Bonused, OnLogits):
    """Primal-dual with entropy on the policy and a square on the multipliers."""

    room: float | None = positive(None)
    eta_scale: float = positive(10.0)
    tau_scale: float = positive(0.1)

    card = Card(
        "exponential weights with entropy, multipliers with a square: the last iterate converges",
        ("bandit",),
        "O~(K^0.93) strong regret and violation",
        "Mueller, Alatur, Cevher, Ramponi, He (ICML 2024)",
        "stochastic costs, known Slater gap, known K",
    )
    needs = Needs(episodes=True, room=True)
    factors = (*WIDTHS, step("eta_scale"))
    theory = Preset("The paper's widths and constants.", "room", **ONES, eta_scale=1.0, tau_scale=1.0)

    def rates(self, setting: Setting, k: int) -> Rates:
        """eta for both players, tau, and H / xi."""
        K = episodes_of(self, setting)
        eta, tau = self.eta_scale * K ** (-5.0 / 7.0), self.tau_scale * K ** (-1.0 / 7.0)
        if eta * tau >= 1.0:
            raise InvalidInputError(f"eta tau is {eta * tau:.3g}, but must be below 1: lower eta_scale or tau_scale")
        return Rates(eta, tau, eta, 0.0, setting.horizon / room_of(self, self.room))
