"""FlexDOME: the regularised primal-dual method with a safety margin that decays.

    Q_k       = TPE_{tau_k}(r~_k, pi_k) - sum_i lam_{k,i} TPE(d~_{k,i}, pi_k)
    pi_{k+1}  ~ pi_k^(1 - eta_k tau_k) exp(eta_k Q_k)
    lam_{k+1} = min( [ (1 - eta_k tau_k) lam_k + eta_k ( V_k(d~) + eps_k ) ]^+, H / xi )

    eta_k = (k+1)^(-2/3),   tau_k = (k+1)^-power,   eps_k = xi (k+1)^-power / 2         k = 0, 1, ...

Source: Zuo, Wang, He (2026), known here from two abstracts.  Certain: margins and regularisation that vary with time
inside a primal-dual method, the margin falling more slowly than the errors of optimisation and estimation, nearly
constant strong violation.  The two versions state different rates.  arXiv 2602.10917: strong regret O~(K^(5/6)), which
leaves room for a margin of order k^(-1/6), since sum_k eps_k is lost (`power` = 1/6, the default).  The version under
review (OpenReview hOywXVc7Qq): a margin of order k^(-1/8) and regret K^(7/8) (`reviewed`).  Ours: every formula above;
the exponent of eta makes both errors smaller than the margin.  The factors `eta_scale`, `tau_scale` and `margin_scale`
multiply the three sequences.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from omdpd.learners.factors import WIDTHS, exploration, margin, step
from omdpd.learners.logits import OnLogits, Rates
from omdpd.learners.needs import Needs, room_of
from omdpd.learners.protocol import Card
from omdpd.learners.settings import Bonused, Preset, later, nonnegative, positive, share
from omdpd.problem.setting import Setting


@dataclass(frozen=True)
class FlexDOME(Bonused, OnLogits):
    """Regularised primal-dual whose dual asks for a margin that decays."""

    room: float | None = positive(None)
    eta_scale: float = positive(1.0)
    tau_scale: float = positive(0.1)
    margin_scale: float = nonnegative(0.1)
    _: KW_ONLY
    power: float = later(share(1.0 / 6.0), 1.0 / 6.0)

    card = Card(
        "regularised primal-dual, decaying safety margin in the dual",
        ("bandit",),
        "O~(1) strong violation, sublinear strong regret (as its abstract says)",
        "Zuo, Wang, He (2026)",
        "stochastic costs, known Slater gap",
    )
    needs = Needs(room=True)
    factors = (*WIDTHS, margin("margin_scale"), step("eta_scale"), exploration("tau_scale"))
    reviewed = Preset("The exponent of the version under review: a margin that falls like k^(-1/8).", power=0.125)

    def rates(self, setting: Setting, k: int) -> Rates:
        """eta_k (at most 1 / tau_k) for both players, tau_k, eps_k (at most half the room), and H / xi."""
        room, slow = room_of(self, self.room), (k + 1.0) ** -self.power
        tau, eps = self.tau_scale * slow, 0.5 * room * min(self.margin_scale * slow, 1.0)
        eta = min(self.eta_scale * (k + 1.0) ** (-2.0 / 3.0), 1.0 / tau)
        return Rates(eta, tau, eta, eps, setting.horizon / room)
