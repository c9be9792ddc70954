"""S-OPS: no violation in any episode, with a strictly safe policy that is known in advance.

    lhat_k(h,s,a) = (1 - r) 1{met} / (u_k(h,s,a) + gamma),   u_k = largest occupancy of the played policy in the box
    q_{k+1}       = KL-projection of q_k exp(-eta lhat_k) on { q in Q_k : (d_hat_i - xi).q <= 0 for every i }
    w_i           = max over the box of the value of d_hat_i + xi under the policy of q_{k+1}
    share         = max over i with w_i > 0 of w_i / (w_i - V(d_i, safe policy))           1 where the set is empty
    played        = the safe policy with that share, the policy of q_{k+1} with the rest

    eta = gamma   = sqrt(H u / (K |X| A)),   u = ln(8 I |X|^2 A K / delta),   |X| = H S

Certain: all of the above in the published form (costs in [0,1], a coin per episode).  Ours: costs in [-1,1], for which
w_i is the exact worst value over the box instead of a sum of upper occupancies; the mixture is played as one policy,
the one whose occupancy under the empirical kernel is the mixture of the two occupancies, so that every episode has the
mixture's cost (to the accuracy of that kernel) and no coin is needed; the divergence over (h,s,a); the library's box
and bonus with their scales (xi is `cost_scale` times the bonus, and 1 where nothing was seen); a share 1/K of the
uniform occupancy in q_k; `gamma_scale` sets gamma apart from eta.
Source: Stradi, Castiglioni, Marchesi, Gatti (ICML 2025; arXiv 2403.03672).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import (
    DELTA,
    REWARD_SCALE,
    SAFE_COST_SCALE,
    TRANSITION_SCALE,
    BoxEstimator,
    log_term,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.exploration import exploring_loss, exploring_step
from omdpd.learners.needs import SafeChoice, SafePolicy, episodes_of, require_feedback, safe_policy_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import box_values_of_policy
from omdpd.solvers.compiled.flow import occupancy_of_policy, policy_of_occupancy
from omdpd.solvers.mirror import LIGHTEST, SolveLog, constrained_step, smoothed
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the box, the projected occupancy, the policy in play with the safe policy's share in it."""

    setting: Setting
    k: int
    counts: Counts
    box: Box
    q: Floats
    policy: Floats
    share: float
    weight: float
    log: SolveLog
    infeasible: int


@dataclass(frozen=True)
class SOPS:
    """Exponential weights on importance-weighted losses, mixed with the `safe` policy until the mixture is safe."""

    safe: SafePolicy | SafeChoice = "least-cost"
    estimator: BoxEstimator = BoxEstimator.practical(cost_scale=SAFE_COST_SCALE)
    step_scale: float = 1.0
    gamma_scale: float | None = None

    def __post_init__(self) -> None:
        check_settings(self, positive=("step_scale", "gamma_scale"))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = SAFE_COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        step_scale: float = step_scale,
        safe_policy: SafeChoice = "least-cost",
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
        gamma_scale: float | None = None,
    ) -> SOPS:
        """The same, mixed with a known safe policy; its cost bonus is not zero, since safety rests on it."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return SOPS(safe_policy, box, step_scale, gamma_scale)

    @staticmethod
    def theory(safe: SafePolicy) -> SOPS:
        """Confidence widths with scales of one."""
        return SOPS(safe, BoxEstimator(clip=True, trusting=True))

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "KL projections on an optimistic safe set, mixed with a known safe policy",
            ("bandit",),
            "O~(sqrt K) regret, no violation, for stochastic costs and adversarial loss",
            "Stradi, Castiglioni, Marchesi, Gatti (ICML 2025)",
            "a strictly safe policy and its cost are known",
        )

    def init(self, setting: Setting) -> State:
        """The uniform occupancy, mixed with the safe policy as if it cost all there is."""
        self.estimator.check(setting)
        require_feedback(self, setting, "bandit")
        episodes_of(self, setting)
        safe_policy_of(self, self.safe, setting)
        q = uniform_occupancy(setting)
        counts = Counts.empty(setting)
        box = self.estimator.estimate(setting, counts, 0).region
        return self._mixed(State(setting, 0, counts, box, q, q, 1.0, LIGHTEST, SolveLog(), 0), True)

    def policy(self, state: State) -> Floats:
        """The mixture."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Estimate the loss under the box that was in force, project on the newest safe set, mix."""
        setting, mu, eta = state.setting, state.setting.mu, self._step(state.setting)
        loss = exploring_loss(setting, state.box, state.policy, feedback, self._gamma(setting))
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, state.k + 1)
        box = believed.region
        near = smoothed(state.q, 1.0 / episodes_of(self, setting))
        found = constrained_step(box, mu, near, loss, eta, believed.cost, state.weight)
        projected = replace(
            state, k=state.k + 1, counts=counts, box=box, q=found.step.occupancy, weight=found.weight,
            log=state.log.after(found.step), infeasible=state.infeasible + (not found.exact),
        )  # fmt: skip
        return self._mixed(projected, found.exact)

    def report(self, state: State) -> Report:
        """The step, the safe policy's share as the weight, and how often the safe set was empty."""
        return Report(state.log, self._step(state.setting), state.share, infeasible=state.infeasible)

    def _mixed(self, state: State, exact: bool) -> State:
        """The least share of the safe policy that makes the mixture safe at worst, and the mixture."""
        safe = safe_policy_of(self, self.safe, state.setting)
        mu, counts = state.setting.mu, state.counts
        bold = policy_of_occupancy(state.q)
        share = 1.0
        if exact:
            worst = np.array([self._worst(state, bold, d) for d in self._pessimistic(state)])
            share = float(np.max(np.maximum(worst, 0.0) / (np.maximum(worst, 0.0) - safe.cost)))
        p = (counts.pooled() if self.estimator.stationary else counts).transition_mean()
        q = share * occupancy_of_policy(safe.policy, p, mu) + (1.0 - share) * occupancy_of_policy(bold, p, mu)
        policy = policy_of_occupancy(q)
        unreached = q.sum(axis=-1, keepdims=True) <= 0.0
        return replace(state, share=share, policy=np.where(unreached, safe.policy, policy))

    def _pessimistic(self, state: State) -> Floats:
        """d_hat + xi in [-1, 1], and 1 where nothing was seen."""
        counts = state.counts.pooled() if self.estimator.stationary else state.counts
        L = log_term(state.setting, state.k, self.estimator.delta)
        xi = self.estimator.cost_scale * np.sqrt(L / np.maximum(counts.visits, 1.0))
        return np.where(counts.visits > 0.0, np.clip(counts.cost_mean() + xi, -1.0, 1.0), 1.0)

    def _worst(self, state: State, policy: Floats, table: Floats) -> float:
        """The largest value of the table over the box."""
        return float(state.setting.mu @ box_values_of_policy(policy, state.box.lower, state.box.upper, table)[1][0])

    def _gamma(self, setting: Setting) -> float:
        """The implicit exploration: eta's own number, or `gamma_scale` times the published one."""
        scale = self.step_scale if self.gamma_scale is None else self.gamma_scale
        return scale * exploring_step(setting, episodes_of(self, setting), self.estimator.delta)

    def _step(self, setting: Setting) -> float:
        """eta, times `step_scale`."""
        return self.step_scale * exploring_step(setting, episodes_of(self, setting), self.estimator.delta)
