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

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator, log_term
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import episodes_of, require_feedback, room_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_logits
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.compiled.boxes import box_values_of_policy
from omdpd.solvers.compiled.policies import dilated_bonus, occupancy_range, policy_of_logits, tilted
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the log-policy in play, the last multipliers and the constants; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    logits: Floats
    lam: Floats
    large: float
    eta: float


@dataclass(frozen=True)
class CPDPO:
    """Policy optimisation against a switched multiplier; `room` must be given."""

    room: float | None = None
    estimator: BoxEstimator = BoxEstimator.practical()
    eta_scale: float = 50.0
    gamma_scale: float = 0.003
    bonus_scale: float = 0.003
    constrained: bool = True

    def __post_init__(self) -> None:
        check_settings(self, positive=("room", "eta_scale", "gamma_scale"), nonnegative=("bonus_scale",))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        eta_scale: float = eta_scale,
        gamma_scale: float = gamma_scale,
        bonus_scale: float = bonus_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> CPDPO:
        """Policy optimisation with dilated bonuses against a multiplier that is switched on and off."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return CPDPO(room, box, eta_scale, gamma_scale, bonus_scale)

    @staticmethod
    def unconstrained(
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        eta_scale: float = 5.0,
        gamma_scale: float = gamma_scale,
        bonus_scale: float = bonus_scale,
        *,
        delta: float = DELTA,
    ) -> CPDPO:
        """PO-DB, the primal player alone: policy optimisation with dilated bonuses, heeding no cost."""
        box = BoxEstimator.practical(transition_scale=transition_scale, stationary=stationary, delta=delta)
        return CPDPO(1.0, box, eta_scale, gamma_scale, bonus_scale, constrained=False)

    @staticmethod
    def theory(room: float) -> CPDPO:
        """The paper's confidence widths and constants."""
        return CPDPO(room, BoxEstimator(clip=True), 1.0, 1.0, 1.0)

    @property
    def card(self) -> Card:
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

    def init(self, setting: Setting) -> State:
        """The uniform policy."""
        self.estimator.check(setting)
        require_feedback(self, setting, "bandit")
        K = episodes_of(self, setting)
        H, S, A = setting.shape
        large = (H + 1.0) / room_of(self, self.room)
        eta = self.eta_scale * min(1.0 / (24.0 * H**3), 1.0 / float(np.sqrt(S * H * A * H * K)))
        logits = uniform_logits(setting)
        return State(setting, 0, Counts.empty(setting), logits, np.zeros(setting.n_constraints), large, eta)

    def policy(self, state: State) -> Floats:
        """exp of the log-policy."""
        return policy_of_logits(state.logits)

    def update(self, state: State, feedback: Feedback) -> State:
        """The dual's answer to pi_k, the loss that follows from it, and one step of exponential weights."""
        assert isinstance(feedback, BanditFeedback)
        setting, H, eta = state.setting, state.setting.horizon, state.eta
        policy = policy_of_logits(state.logits)
        box = self.estimator.region(setting, state.counts, state.k)  # data before episode k
        lam, scale = self._dual(state, policy, box)
        loss = (1.0 - feedback.rewards + lam @ (1.0 + feedback.costs)) / scale
        gamma = 2.0 * eta * H * self.gamma_scale
        w, u = occupancy_range(policy, box.lower, box.upper, setting.mu)
        bonus = self.bonus_scale * _bonus(policy, u, w, gamma)
        at = (np.arange(H), feedback.trajectory.states, feedback.trajectory.actions)
        gains = dilated_bonus(policy, box.lower, box.upper, bonus, 1.0 + 1.0 / H)
        gains[at] -= np.cumsum(loss[::-1])[::-1] / (u[at] + gamma)
        return replace(
            state, k=state.k + 1, counts=state.counts.add(feedback), lam=lam,
            logits=tilted(state.logits, gains, eta, 1.0),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """The step size and the largest multiplier of the last episode."""
        return Report(step_size=state.eta, weight=float(state.lam.max()))

    def _dual(self, state: State, policy: Floats, box: Box) -> tuple[Floats, float]:
        """The multipliers, and the largest loss that they can make; zeros and one without constraints."""
        n = state.setting.n_constraints
        if not self.constrained:
            return np.zeros(n), 1.0
        worst = [self._largest_cost(state.setting, policy, box, d) for d in self._pessimistic(state)]
        return np.where(np.array(worst) > 0.0, state.large, 0.0), 1.0 + 2.0 * n * state.large

    def _pessimistic(self, state: State) -> Floats:
        """d_hat + `cost_scale` sqrt(L/n) in [-1, 1], and 1 where nothing was seen."""
        counts = state.counts.pooled() if self.estimator.stationary else state.counts
        L = log_term(state.setting, state.k, self.estimator.delta)
        width = self.estimator.cost_scale * np.sqrt(L / np.maximum(counts.visits, 1.0))
        # What np.clip says, in a fifth of its time for tables of this size.
        cost = np.minimum(np.maximum(counts.cost_mean() + width, -1.0), 1.0)
        return np.where(counts.visits > 0.0, cost, 1.0)

    def _largest_cost(self, setting: Setting, policy: Floats, box: Box, table: Floats) -> float:
        """max over the kernels of the box of the policy's cost."""
        return float(setting.mu @ box_values_of_policy(policy, box.lower, box.upper, table)[1][0])


def _bonus(policy: Floats, u: Floats, w: Floats, gamma: float) -> Floats:
    """b(s) = sum_a pi(a|s) (3 gamma H + H (u - w)) / (u + gamma)."""
    H = len(policy)
    return (policy * (3.0 * gamma * H + H * (u - w)) / (u + gamma)).sum(axis=-1)
