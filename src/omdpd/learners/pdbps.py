"""Best of both worlds by policy optimisation: costs and rewards met on the way, nothing told about a Slater gap.

    lam_{k+1} = clip( lam_k + eta_d sum_h d_k(h, s_h, a_h), 0, K^(1/4) ),           eta_d = `dual_scale` / (H sqrt K)
    loss_k    = ( 1 - r_k + sum_i lam_{k,i} (1 + d_{k,i}) ) / Xi_k,                 Xi_k = max_{j<=k} 1 + 2 |lam_j|_1
    pi'       ~ pi_k exp(eta gains_k)                             PO-DB with dilated bonuses (`learners/exploration.py`)
    pi_{k+1}  = (1 - sigma) pi' + sigma / A                       fixed share, sigma = 1/K: nothing is given up for good

Certain, from the abstract and a summary: a primal player that optimises policies and has no regret on any interval, a
dual player by online gradient steps, bandit feedback, multipliers that stay bounded without the Slater gap, weak
violation.  From memory: that the primal player is PO-DB with a fixed share, its constants (those of `CPDPO`), the
dual's box K^(1/4) (as in `Germano`) and the order of its step.  Ours: signed costs, as in `CPDPO`; the library's box
with its scale; `eta_scale`, `gamma_scale` and `bonus_scale`, with the defaults of `CPDPO`; losses are divided by their
largest range so far, as in `Germano`.
Source: Stradi, Lunghi, Castiglioni, Marchesi, Gatti (2024; arXiv 2410.02269), PDB-PS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import DELTA, TRANSITION_SCALE, BoxEstimator
from omdpd.learners.exploration import dilated_gains
from omdpd.learners.factors import exploration, kernel_width, step
from omdpd.learners.logits import OnLogits, Rates
from omdpd.learners.logits import State as Tilted
from omdpd.learners.needs import Needs, episodes_of
from omdpd.learners.policy_steps import policy_of_logits, tilted
from omdpd.learners.protocol import Card
from omdpd.learners.settings import Settings, nonnegative, positive, share
from omdpd.problem.setting import BanditFeedback, Feedback, Setting


@dataclass(frozen=True, eq=False)
class State(Tilted):
    """Besides, the largest range that a loss had so far."""

    largest: float = 1.0


@dataclass(frozen=True)
class PDBPS(Settings, OnLogits):
    """Policy optimisation with a fixed share against multipliers by gradient steps (best of both worlds)."""

    transition_scale: float = nonnegative(TRANSITION_SCALE)
    stationary: bool = False
    eta_scale: float = positive(50.0)
    gamma_scale: float = positive(0.003)
    bonus_scale: float = nonnegative(0.003)
    dual_scale: float = positive(1.0)
    delta: float = share(DELTA)

    card = Card(
        "policy optimisation with dilated bonuses and a fixed share, gradient steps on bounded multipliers",
        ("bandit",),
        "weak; stochastic costs: O~(sqrt K), without Slater O~(K^(3/4)); adversarial costs: a fraction of V*",
        "Stradi, Lunghi, Castiglioni, Marchesi, Gatti (2024; arXiv 2410.02269)",
        "known K; its constants are from memory",
    )
    needs = Needs(episodes=True)
    factors = (kernel_width(), step("eta_scale"), exploration("gamma_scale"))

    def rates(self, setting: Setting, k: int) -> Rates:
        """eta of PO-DB, times `eta_scale`; the dual's step and its box."""
        (H, S, A), K = setting.shape, episodes_of(self, setting)
        eta = self.eta_scale * min(1.0 / (24.0 * H**3), 1.0 / (H * float(np.sqrt(S * A * K))))
        return Rates(eta, 0.0, self.dual_scale / (H * float(np.sqrt(K))), 0.0, K**0.25)

    def init(self, setting: Setting) -> State:
        """The uniform policy, lam = 0."""
        first = super().init(setting)
        return State(setting, 0, first.counts, first.logits, first.lam)

    def update(self, state: State, feedback: Feedback) -> State:  # type: ignore[override]  # its own state
        """The loss that the multipliers make, a step of exponential weights, a fixed share, a step of the dual."""
        assert isinstance(feedback, BanditFeedback)
        setting, (eta, _, rate, _, most) = state.setting, self.rates(state.setting, state.k)
        beliefs = BoxEstimator.practical(0.0, 0.0, self.transition_scale, self.stationary, delta=self.delta)
        box = beliefs.region(setting, state.counts, state.k)  # data before episode k
        largest = max(state.largest, 1.0 + 2.0 * float(state.lam.sum()))
        loss = (1.0 - feedback.rewards + state.lam @ (1.0 + feedback.costs)) / largest
        gamma = 2.0 * eta * setting.horizon * self.gamma_scale
        gains = dilated_gains(setting, box, self.policy(state), feedback, loss, gamma, self.bonus_scale)
        kept = 1.0 / episodes_of(self, setting)
        shared = (1.0 - kept) * policy_of_logits(tilted(state.logits, gains, eta, 1.0)) + kept / setting.n_actions
        lam = np.clip(state.lam + rate * feedback.costs.sum(axis=-1), 0.0, most)
        counts = state.counts.add(feedback)
        return replace(state, k=state.k + 1, counts=counts, logits=np.log(shared), lam=lam, largest=largest)
