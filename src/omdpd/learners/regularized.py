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

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus
from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE
from omdpd.beliefs.counts import Counts
from omdpd.learners.lagrangian import evaluate
from omdpd.learners.needs import episodes_of, require_feedback, room_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_logits
from omdpd.problem.arrays import Floats, InvalidInputError, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.policies import policy_of_logits, tilted


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the log-policy in play, the multipliers and the constants; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    logits: Floats
    lam: Floats
    eta: float
    tau: float
    most: float


@dataclass(frozen=True)
class RegularizedPrimalDual:
    """Primal-dual on the regularised Lagrangian; `room` must be given."""

    room: float | None = None
    bonus: Bonus = BernsteinBonus()
    eta_scale: float = 10.0
    tau_scale: float = 0.1

    def __post_init__(self) -> None:
        check_settings(self, positive=("room", "eta_scale", "tau_scale"))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        eta_scale: float = eta_scale,
        tau_scale: float = tau_scale,
        *,
        delta: float = DELTA,
    ) -> RegularizedPrimalDual:
        """Primal-dual with entropy on the policy and a square on the multipliers."""
        bonus = BernsteinBonus(reward_scale, cost_scale, transition_scale, stationary, delta)
        return RegularizedPrimalDual(room, bonus, eta_scale, tau_scale)

    @staticmethod
    def theory(room: float) -> RegularizedPrimalDual:
        """The paper's widths and constants."""
        return RegularizedPrimalDual(room, BernsteinBonus.theory(), 1.0, 1.0)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "exponential weights with entropy, multipliers with a square: the last iterate converges",
            ("bandit",),
            "O~(K^0.93) strong regret and violation",
            "Mueller, Alatur, Cevher, Ramponi, He (ICML 2024)",
            "stochastic costs, known Slater gap, known K",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy, lam_1 = 0."""
        self.bonus.check(setting)
        require_feedback(self, setting, "bandit")
        K = episodes_of(self, setting)
        most = setting.horizon / room_of(self, self.room)
        eta = self.eta_scale * K ** (-5.0 / 7.0)
        tau = self.tau_scale * K ** (-1.0 / 7.0)
        if eta * tau >= 1.0:
            raise InvalidInputError(f"eta tau is {eta * tau:.3g}, but must be below 1: lower eta_scale or tau_scale")
        logits = uniform_logits(setting)
        return State(setting, 0, Counts.empty(setting), logits, np.zeros(setting.n_constraints), eta, tau, most)

    def policy(self, state: State) -> Floats:
        """exp of the log-policy."""
        return policy_of_logits(state.logits)

    def update(self, state: State, feedback: Feedback) -> State:
        """Evaluate the policy that was played with the newest estimates; one regularised step of each player."""
        setting, eta, tau = state.setting, state.eta, state.tau
        counts = state.counts.add(feedback)
        believed = self.bonus.estimate(setting, counts, state.k + 1)
        found = evaluate(policy_of_logits(state.logits), believed, setting.mu, state.lam, tau)
        lam = np.minimum(np.maximum((1.0 - eta * tau) * state.lam + eta * found.costs, 0.0), state.most)
        logits = tilted(state.logits, found.gains, eta, 1.0 - eta * tau)
        return replace(state, k=state.k + 1, counts=counts, logits=logits, lam=lam)

    def report(self, state: State) -> Report:
        """The step size and the largest multiplier."""
        return Report(step_size=state.eta, weight=float(state.lam.max()))
