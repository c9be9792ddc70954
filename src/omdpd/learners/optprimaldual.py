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

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus
from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE
from omdpd.beliefs.counts import Counts
from omdpd.learners.lagrangian import evaluate
from omdpd.learners.needs import episodes_of, require_feedback, room_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_logits
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.policies import policy_of_logits, tilted


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the log-policy in play, the multipliers and the step sizes; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    logits: Floats
    lam: Floats
    primal_rate: float
    dual_rate: float
    most: float


@dataclass(frozen=True)
class OptPrimalDual:
    """The primal-dual method; `room` must be given."""

    room: float | None = None
    bonus: Bonus = BernsteinBonus()
    primal_scale: float = 100.0
    dual_scale: float = 1.0
    tightening: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("room", "primal_scale", "dual_scale"), nonnegative=("tightening",))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        primal_scale: float = primal_scale,
        dual_scale: float = dual_scale,
        *,
        delta: float = DELTA,
        tightening: float = 0.0,
    ) -> OptPrimalDual:
        """Exponential weights on the Lagrangian, gradient steps on the multipliers."""
        bonus = BernsteinBonus(reward_scale, cost_scale, transition_scale, stationary, delta)
        return OptPrimalDual(room, bonus, primal_scale, dual_scale, tightening)

    @staticmethod
    def theory(room: float) -> OptPrimalDual:
        """The paper's widths and steps."""
        return OptPrimalDual(room, BernsteinBonus.theory(), 1.0)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "exponential weights on the Lagrangian, gradient steps on the multipliers",
            ("bandit",),
            "O~(sqrt K) weak regret and violation",
            "Efroni, Mannor, Pirotta (2020), Algorithm 4",
            "stochastic costs, known Slater gap, known K",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy, lam_1 = 0."""
        self.bonus.check(setting)
        require_feedback(self, setting, "bandit")
        K = episodes_of(self, setting)
        H, _, A = setting.shape
        I = setting.n_constraints  # noqa: E741
        rho = H / room_of(self, self.room)
        primal = self.primal_scale * np.sqrt(2.0 * np.log(A) / K) / (H * (1.0 + I * rho))
        dual = self.dual_scale * rho / (H * np.sqrt(I * K))
        logits = uniform_logits(setting)
        return State(setting, 0, Counts.empty(setting), logits, np.zeros(I), float(primal), float(dual), rho)

    def policy(self, state: State) -> Floats:
        """exp of the log-policy."""
        return policy_of_logits(state.logits)

    def update(self, state: State, feedback: Feedback) -> State:
        """Evaluate the policy that was played with the newest estimates; one step of each player."""
        setting = state.setting
        counts = state.counts.add(feedback)
        believed = self.bonus.estimate(setting, counts, state.k + 1)
        found = evaluate(policy_of_logits(state.logits), believed, setting.mu, state.lam)
        kappa = self.tightening * setting.horizon / float(np.sqrt(episodes_of(self, setting)))
        lam = np.minimum(np.maximum(state.lam + state.dual_rate * (found.costs + kappa), 0.0), state.most)
        logits = tilted(state.logits, found.gains, state.primal_rate, 1.0)
        return replace(state, k=state.k + 1, counts=counts, logits=logits, lam=lam)

    def report(self, state: State) -> Report:
        """The primal step size and the largest multiplier."""
        return Report(step_size=state.primal_rate, weight=float(state.lam.max()))
