"""FlexDOME: the regularised primal-dual method with a safety margin that decays.

    Q_k       = TPE_{tau_k}(r~_k, pi_k) - sum_i lam_{k,i} TPE(d~_{k,i}, pi_k)
    pi_{k+1}  ~ pi_k^(1 - eta_k tau_k) exp(eta_k Q_k)
    lam_{k+1} = min( [ (1 - eta_k tau_k) lam_k + eta_k ( V_k(d~) + eps_k ) ]^+, H / xi )

    eta_k = (k+1)^(-2/3),   tau_k = (k+1)^(-1/6),   eps_k = xi (k+1)^(-1/6) / 2         k = 0, 1, ...

Source: Zuo, Wang, He (2026; arXiv 2602.10917), known here from its abstract: margins and regularisation that vary with
time inside a primal-dual method, the margin falling more slowly than the errors of optimisation and estimation, nearly
constant strong violation.  Ours: every formula above.  The exponent of the margin is what a strong regret of
O~(K^(5/6)) leaves room for, since sum_k eps_k is lost; the others make both errors smaller than it.  The factors
`eta_scale`, `tau_scale` and `margin_scale` multiply the three sequences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus
from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE
from omdpd.beliefs.counts import Counts
from omdpd.learners.lagrangian import evaluate
from omdpd.learners.needs import require_feedback, room_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_logits
from omdpd.problem.arrays import Floats, check_settings
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
class FlexDOME:
    """Regularised primal-dual with a decaying margin; `room` must be given."""

    room: float | None = None
    bonus: Bonus = BernsteinBonus()
    eta_scale: float = 1.0
    tau_scale: float = 0.1
    margin_scale: float = 0.1

    def __post_init__(self) -> None:
        check_settings(self, positive=("room", "eta_scale", "tau_scale"), nonnegative=("margin_scale",))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        eta_scale: float = eta_scale,
        tau_scale: float = tau_scale,
        margin_scale: float = margin_scale,
        *,
        delta: float = DELTA,
    ) -> FlexDOME:
        """Regularised primal-dual whose dual asks for a margin that decays."""
        bonus = BernsteinBonus(reward_scale, cost_scale, transition_scale, stationary, delta)
        return FlexDOME(room, bonus, eta_scale, tau_scale, margin_scale)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "regularised primal-dual, decaying safety margin in the dual",
            ("bandit",),
            "O~(1) strong violation, sublinear strong regret (as its abstract says)",
            "Zuo, Wang, He (2026)",
            "stochastic costs, known Slater gap",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy, lam = 0."""
        self.bonus.check(setting)
        require_feedback(self, setting, "bandit")
        room_of(self, self.room)
        return State(setting, 0, Counts.empty(setting), uniform_logits(setting), np.zeros(setting.n_constraints))

    def policy(self, state: State) -> Floats:
        """exp of the log-policy."""
        return policy_of_logits(state.logits)

    def update(self, state: State, feedback: Feedback) -> State:
        """One regularised step of each player; the dual sees the cost and the margin."""
        setting = state.setting
        counts = state.counts.add(feedback)
        believed = self.bonus.estimate(setting, counts, state.k + 1)
        eta, tau, eps = self._sequences(state.k)
        found = evaluate(policy_of_logits(state.logits), believed, setting.mu, state.lam, tau)
        moved = (1.0 - eta * tau) * state.lam + eta * (found.costs + eps)
        lam = np.minimum(np.maximum(moved, 0.0), setting.horizon / room_of(self, self.room))
        logits = tilted(state.logits, found.gains, eta, 1.0 - eta * tau)
        return replace(state, k=state.k + 1, counts=counts, logits=logits, lam=lam)

    def report(self, state: State) -> Report:
        """The next step size and the largest multiplier."""
        return Report(step_size=self._sequences(state.k)[0], weight=float(state.lam.max()))

    def _sequences(self, k: int) -> tuple[float, float, float]:
        """eta_k (at most 1 / tau_k), tau_k and eps_k (at most half the room)."""
        tau = self.tau_scale * (k + 1.0) ** (-1.0 / 6.0)
        eps = 0.5 * room_of(self, self.room) * min(self.margin_scale * (k + 1.0) ** (-1.0 / 6.0), 1.0)
        return min(self.eta_scale * (k + 1.0) ** (-2.0 / 3.0), 1.0 / tau), tau, eps
