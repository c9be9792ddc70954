"""UOpt-RPGPD: the regularised primal-dual method with steps and temperature that fall by themselves.

    eta_k = (k+3)^-a,   tau_k = (k+3)^-b         k = 0, 1, ..., no knowledge of K
    Q_k       = TPE_{tau_k}(r~_k, pi_k) - sum_i lam_{k,i} TPE(d~_{k,i}, pi_k)
    pi_{k+1}  ~ pi_k^(1 - eta_k tau_k) exp(eta_k Q_k)
    lam_{k+1} = [ lam_k + eta_k ( V_k(d~, pi_{k+1}) - tau_k lam_k ) ]^+            with the new policy

Source: Kitamura et al. (2024), the update and a = 0.53, b = 0.4 as in the authors' released experiment, where rewards
and utilities are known.  That code differs in three places, which are not followed here: its dual takes the action
values of the *old* policy with the new policy at the first step alone instead of the new policy's value; it cuts values
from above only; its bonus has no factor H.  Ours: estimated tables with bonuses, signed costs, and by default the
bonuses that every learner gets; `published` has the iterated-logarithm bonus with the experiment's factor of 0.001;
`eta_scale` multiplies eta (1 is the paper).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus, IteratedLogBonus
from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE
from omdpd.beliefs.counts import Counts
from omdpd.learners.lagrangian import costs_of, evaluate
from omdpd.learners.needs import require_feedback
from omdpd.learners.potential import positive_part
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_logits
from omdpd.problem.arrays import Floats, InvalidInputError, check_number, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.policies import policy_of_logits, tilted


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the log-policy in play and the multipliers; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    logits: Floats
    lam: Floats


@dataclass(frozen=True)
class UOptRPGPD:
    """Regularised policy gradient primal-dual with uniform (anytime) constants."""

    bonus: Bonus = BernsteinBonus()
    eta_power: float = 0.53
    tau_power: float = 0.4
    eta_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("eta_scale",), shares=("eta_power", "tau_power"))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        published: bool = False,
        eta_power: float = eta_power,
        tau_power: float = tau_power,
        *,
        published_scale: float = IteratedLogBonus.transition_scale,
        delta: float | None = None,
        eta_scale: float = eta_scale,
    ) -> UOptRPGPD:
        """The same with steps and temperature that fall by themselves; `published` has the authors' bonus.

        The published bonus has its own scale of the kernel, `published_scale`; `delta` is each bonus's own where None.
        """
        check_number("published_scale", published_scale, "at least 0")  # idle or not
        bonus: Bonus = BernsteinBonus(
            reward_scale, cost_scale, transition_scale, stationary, DELTA if delta is None else delta
        )
        if published:
            own = IteratedLogBonus.delta if delta is None else delta
            bonus = IteratedLogBonus(reward_scale, cost_scale, published_scale, stationary, own)
        return UOptRPGPD(bonus, eta_power, tau_power, eta_scale)

    @staticmethod
    def published(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = IteratedLogBonus.transition_scale,
        stationary: bool = False,
        *,
        eta_power: float = eta_power,
        tau_power: float = tau_power,
        delta: float = IteratedLogBonus.delta,
        eta_scale: float = eta_scale,
    ) -> UOptRPGPD:
        """The same with the iterated-logarithm bonus of the released experiment."""
        bonus = IteratedLogBonus(reward_scale, cost_scale, transition_scale, stationary, delta)
        return UOptRPGPD(bonus, eta_power, tau_power, eta_scale)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "regularised primal-dual with falling steps and temperature",
            ("bandit",),
            "uniform PAC, hence last-iterate convergence and O~(K^(6/7)) strong regret and violation",
            "Kitamura et al. (2024)",
            "stochastic costs, a Slater policy exists",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy, lam = 0."""
        require_feedback(self, setting, "bandit")
        self.bonus.check(setting)
        if not self.eta_power > 0.5 or not self.tau_power < min(0.5, 1.0 - self.eta_power):
            raise InvalidInputError(
                "the powers must satisfy 1/2 < eta_power < 1, 0 < tau_power < min(1/2, 1 - eta_power)"
            )
        logits = uniform_logits(setting)
        return State(setting, 0, Counts.empty(setting), logits, np.zeros(setting.n_constraints))

    def policy(self, state: State) -> Floats:
        """exp of the log-policy."""
        return policy_of_logits(state.logits)

    def update(self, state: State, feedback: Feedback) -> State:
        """One step of the policy, then one of the multipliers against the new policy."""
        setting = state.setting
        counts = state.counts.add(feedback)
        believed = self.bonus.estimate(setting, counts, state.k + 1)
        eta, tau = self._steps(state.k)
        gains = evaluate(policy_of_logits(state.logits), believed, setting.mu, state.lam, tau).gains
        logits = tilted(state.logits, gains, eta, 1.0 - eta * tau)
        costs = costs_of(policy_of_logits(logits), believed, setting.mu)
        lam = positive_part(state.lam + eta * (costs - tau * state.lam))
        return replace(state, k=state.k + 1, counts=counts, logits=logits, lam=lam)

    def report(self, state: State) -> Report:
        """The next step size and the largest multiplier."""
        return Report(step_size=self._steps(state.k)[0], weight=float(state.lam.max()))

    def _steps(self, k: int) -> tuple[float, float]:
        """eta_k, times `eta_scale`, and tau_k; eta_k tau_k is at most one: no power of the policy is negative."""
        tau = (k + 3.0) ** -self.tau_power
        return min(self.eta_scale * (k + 3.0) ** -self.eta_power, 1.0 / tau), tau
