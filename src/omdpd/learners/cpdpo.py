"""CPD-PO: a multiplier that is switched on or off, and policy optimisation with dilated bonuses against it.

    lam_{k,i} = (H+1)/xi  if the largest cost of pi_k that the data allow is positive, else 0
    loss      = ( 1 - r + sum_i lam_{k,i} (1 + d_i) ) / scale            in [0, 1],  scale = 1 + 2 I (H+1)/xi
    u, w      = largest and least occupancy of pi_k under any kernel of the box
    Q_k(s,a)  = (loss to go from (s,a)) 1{met} / (u + gamma)
    b_k(s)    = sum_a pi_k(a|s) (3 gamma H + H (u - w)) / (u + gamma)
    B_k(s,a)  = b_k(s) + (1 + 1/H) max_{p in box} E_{p, pi_k} B_k(s', a')
    pi_{k+1}  ~ pi_k exp(-eta (Q_k - B_k)),      eta = min(1/(24 H^3), 1/sqrt(X A H K)),  X = S H,   gamma = 2 eta H

Source: Stradi, Castiglioni, Marchesi, Gatti (ICLR 2025); the primal player is Luo, Wei, Lee (2021).  The two-valued
dual with an upper confidence bound, the synthetic loss, dilated bonuses and the need of the exact Slater gap are the
paper's.  Recalled and not compared with it: eta and gamma.  Signed costs (a cost of [0, 1] is (1 + d)/2, so the weight
on it is twice (H+1)/xi), the bound itself (the largest value of d_hat + `cost_scale` sqrt(L/n) over the box, 1 where
nothing was seen) and the scales of the estimates are ours.  `eta_scale`, `gamma_scale` and `bonus_scale`
multiply eta, gamma and b, and the defaults are ours.  At a few thousand episodes the theory is vacuous: the primal
player's own bound, H^2 X sqrt(A K) with X = S H, exceeds the largest possible regret H K until K > H^2 X^2 A (about
47 000 at the paper's size), and with the paper's constants nothing moves (the bonus drowns the losses).
`unconstrained` is that player alone, on the loss 1 - r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.learners.exploration import dilated_gains
from omdpd.learners.factors import PESSIMISM, kernel_width, margin, step
from omdpd.learners.logits import OnLogits, Rates, State
from omdpd.learners.needs import Needs, episodes_of, room_of
from omdpd.learners.policy_steps import policy_of_logits, tilted
from omdpd.learners.protocol import Card
from omdpd.learners.settings import ONES, Boxed, Preset, given, nonnegative, positive
from omdpd.learners.widths import bounded_cost
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.compiled.boxes import box_values_of_policy
from omdpd.solvers.regions import Box


@dataclass(frozen=True)
class CPDPO(Boxed, OnLogits):
    """Policy optimisation with dilated bonuses against a multiplier that is switched on and off."""

    room: float | None = positive(None)
    eta_scale: float = positive(50.0)
    gamma_scale: float = positive(0.003)
    bonus_scale: float = nonnegative(0.003)
    constrained: bool = given(True)

    needs = Needs(episodes=True, room=True)
    factors = (kernel_width(), margin("cost_scale", PESSIMISM), step("eta_scale"))
    unconstrained = Preset(
        "PO-DB, the primal player alone: policy optimisation with dilated bonuses, heeding no cost.",
        "transition_scale stationary eta_scale gamma_scale bonus_scale * delta",
        eta_scale=5.0, room=1.0, constrained=False,
    )  # fmt: skip
    theory = Preset(
        "The paper's confidence widths and constants.",
        "room", **ONES, trusting=False, eta_scale=1.0, gamma_scale=1.0,
        bonus_scale=1.0,
    )  # fmt: skip

    @property
    def card(self) -> Card:  # type: ignore[override]  # it depends on the preset
        """The learner's line in the table of learners."""
        if not self.constrained:
            return Card(
                "policy optimisation with dilated bonuses; no constraint",
                ("bandit",),
                "O~(sqrt K) regret against the best policy, for an adversarial loss",
                "Luo, Wei, Lee (2021), PO-DB",
                "known K",
            )
        return Card(
            "policy optimisation with dilated bonuses against a multiplier switched on and off",
            ("bandit",),
            "O~(sqrt K) strong regret and violation",
            "Stradi, Castiglioni, Marchesi, Gatti (ICLR 2025)",
            "stochastic costs, known Slater gap, known K",
        )

    def rates(self, setting: Setting, k: int) -> Rates:
        """eta, times `eta_scale`, and the multiplier (H+1)/xi where it is switched on."""
        (H, S, A), K = setting.shape, episodes_of(self, setting)
        eta = self.eta_scale * min(1.0 / (24.0 * H**3), 1.0 / float(np.sqrt(S * H * A * H * K)))
        return Rates(eta, 0.0, 0.0, 0.0, (H + 1.0) / room_of(self, self.room))

    def update(self, state: State, feedback: Feedback) -> State:
        """The dual's answer to pi_k, the loss that follows from it, and one step of exponential weights."""
        assert isinstance(feedback, BanditFeedback)
        setting, H, eta = state.setting, state.setting.horizon, self.rates(state.setting, state.k).eta
        policy = policy_of_logits(state.logits)
        box = self.estimator.region(setting, state.counts, state.k)  # data before episode k
        lam, scale = self._dual(state, policy, box)
        loss = (1.0 - feedback.rewards + lam @ (1.0 + feedback.costs)) / scale
        gamma = 2.0 * eta * H * self.gamma_scale
        gains = dilated_gains(setting, box, policy, feedback, loss, gamma, self.bonus_scale)
        logits = tilted(state.logits, gains, eta, 1.0)
        return replace(state, k=state.k + 1, counts=state.counts.add(feedback), lam=lam, logits=logits)

    def _dual(self, state: State, policy: Floats, box: Box) -> tuple[Floats, float]:
        """The multipliers, and the largest loss that they can make; zeros and one without constraints."""
        n, setting, counts = state.setting.n_constraints, state.setting, self.pooled(state.counts)
        if not self.constrained:
            return np.zeros(n), 1.0
        large = self.rates(setting, state.k).most
        pessimistic = bounded_cost(self, state, counts, counts.cost_mean(), 1.0)
        worst = [setting.mu @ box_values_of_policy(policy, box.lower, box.upper, d)[1][0] for d in pessimistic]
        return np.where(np.array(worst) > 0.0, large, 0.0), 1.0 + 2.0 * n * large
