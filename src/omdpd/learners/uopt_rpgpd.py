"""UOpt-RPGPD: the regularised primal-dual method with steps and temperature that fall by themselves.

    eta_k = (k+3)^-a,   tau_k = (k+3)^-b         k = 0, 1, ..., no knowledge of K
    Q_k       = TPE_{tau_k}(r~_k, pi_k) - sum_i lam_{k,i} TPE(d~_{k,i}, pi_k)
    pi_{k+1}  ~ pi_k^(1 - eta_k tau_k) exp(eta_k Q_k)
    lam_{k+1} = [ lam_k + eta_k ( V_k(d~, pi_{k+1}) - tau_k lam_k ) ]^+            with the new policy

Source: Kitamura et al. (2024), the update and a = 0.53, b = 0.4 as in the authors' released experiment, where rewards
and utilities are known.  That code differs in two places, which are not followed here: its dual takes the action
values of the *old* policy with the new policy at the first step alone instead of the new policy's value, and it cuts
values from above only.  Ours: estimated tables with bonuses, signed costs, and by default the
bonuses that every learner gets; `published` has the iterated-logarithm bonus with the experiment's factor of 0.001;
`eta_scale` multiplies eta (1 is the paper).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import inf

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus, IteratedLogBonus
from omdpd.beliefs.confidence import DELTA
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.logits import OnLogits, Rates
from omdpd.learners.protocol import Card
from omdpd.learners.settings import Bonused, Preset, nonnegative, positive, share
from omdpd.problem.arrays import InvalidInputError, check_number
from omdpd.problem.setting import Setting


@dataclass(frozen=True)
class UOptRPGPD(Bonused, OnLogits):
    """Regularised policy gradient primal-dual with uniform (anytime) constants.

    The published bonus has its own scale of the kernel, `published_scale`; `delta` is each bonus's own where None.
    """

    published: bool = False
    eta_power: float = share(0.53)
    tau_power: float = share(0.4)
    _: KW_ONLY
    published_scale: float = nonnegative(IteratedLogBonus.transition_scale)
    delta: float | None = share(None)  # type: ignore[assignment]
    eta_scale: float = positive(1.0)

    practical = Preset(
        "The same with steps and temperature that fall by themselves; `published` has the authors' bonus.",
        "reward_scale cost_scale transition_scale stationary published eta_power tau_power "
        "* published_scale delta eta_scale",
    )
    inside = (*Bonused.inside, "published", "published_scale")
    looks_ahead = True
    card = Card(
        "regularised primal-dual with falling steps and temperature",
        ("bandit",),
        "uniform PAC, hence last-iterate convergence and O~(K^(6/7)) strong regret and violation",
        "Kitamura et al. (2024)",
        "stochastic costs, a Slater policy exists",
    )
    factors = (*WIDTHS, step("eta_scale", 1.0))

    @cached_property
    def bonus(self) -> Bonus:
        """The authors' bonus, or the one that every learner gets."""
        if not self.published:
            delta = DELTA if self.delta is None else self.delta
            return BernsteinBonus(
                self.reward_scale, self.cost_scale, self.transition_scale, self.stationary, delta
            )  # fmt: skip
        delta = IteratedLogBonus.delta if self.delta is None else self.delta
        return IteratedLogBonus(self.reward_scale, self.cost_scale, self.published_scale, self.stationary, delta)

    def rates(self, setting: Setting, k: int) -> Rates:
        """eta_k, times `eta_scale`, and tau_k; eta_k tau_k is at most one: no power of the policy is negative."""
        if not self.eta_power > 0.5 or not self.tau_power < min(0.5, 1.0 - self.eta_power):
            raise InvalidInputError(
                "the powers must satisfy 1/2 < eta_power < 1, 0 < tau_power < min(1/2, 1 - eta_power)"
            )
        tau = (k + 3.0) ** -self.tau_power
        eta = min(self.eta_scale * (k + 3.0) ** -self.eta_power, 1.0 / tau)
        return Rates(eta, tau, eta, 0.0, inf)


def _published(
    reward_scale: float = BernsteinBonus.reward_scale,
    cost_scale: float = BernsteinBonus.cost_scale,
    transition_scale: float = IteratedLogBonus.transition_scale,
    stationary: bool = False,
    *,
    eta_power: float = UOptRPGPD.eta_power,
    tau_power: float = UOptRPGPD.tau_power,
    delta: float = IteratedLogBonus.delta,
    eta_scale: float = UOptRPGPD.eta_scale,
) -> UOptRPGPD:
    """The same with the iterated-logarithm bonus of the released experiment."""
    check_number("UOptRPGPD's transition_scale", transition_scale, "at least 0")  # by the name that it has here
    return UOptRPGPD(
        reward_scale, cost_scale, BernsteinBonus.transition_scale, stationary, True, eta_power, tau_power,
        published_scale=transition_scale, delta=delta, eta_scale=eta_scale,
    )  # fmt: skip


# The name of a preset and of a setting: the class has the first, and every learner the second.
setattr(UOptRPGPD, "published", staticmethod(_published))  # noqa: B010
