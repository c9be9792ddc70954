"""BV-OPS, published as SV-OPS (sublinear violation): a loss that may change, met on the way, and stochastic costs.

    lhat_k(h,s,a) = (1 - r) 1{met} / (u_k(h,s,a) + gamma),        u_k = largest occupancy of pi_k over the box
    q_{k+1}       = KL-projection of q_k exp(-eta lhat_k) on { q in Q_k : (d_hat_i - xi).q <= 0 for every i }
    eta = gamma   = sqrt(H u / (K |X| A)),   u = ln(8 I |X|^2 A K / delta),   |X| = H S

Certain: the estimator, the projection and these constants are those of S-OPS.  From memory: that this method is the
same loop without a safe policy, and its rates.  Ours: the divergence is taken over (h,s,a) rather than (h,s,a,s'); the
library's box and cost bonus with their scales (xi is `cost_scale` times the bonus); q_k is mixed with a share 1/K of
the uniform occupancy so that its logarithm stays bounded; where the set is empty the nearly least-violating point is
taken and counted; `gamma_scale` sets gamma apart from eta.  Importance weights pay for a loss that may change: where it
does not, methods that average what they meet learn faster.  `unconstrained` has the whole of Q_k for its set: UOB-REPS
(Jin, Jin, Luo, Sra, Yu, 2020), from which the loop comes.
Source: Stradi, Castiglioni, Marchesi, Gatti (ICML 2025; arXiv 2403.03672).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.exploration import exploring_loss, exploring_step
from omdpd.learners.needs import episodes_of, require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import LIGHTEST, Divergence, Hinges, SolveLog, constrained_step, mirror_step, smoothed
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the box of the data so far, the occupancy in play, and the weight that made the last projection exact."""

    setting: Setting
    k: int
    counts: Counts
    box: Box
    q: Floats
    weight: float
    log: SolveLog
    infeasible: int


@dataclass(frozen=True)
class BVOPS:
    """Exponential weights on importance-weighted losses, projected on the optimistic safe set."""

    estimator: BoxEstimator = BoxEstimator.practical()
    step_scale: float = 1.0
    gamma_scale: float | None = None
    constrained: bool = True

    def __post_init__(self) -> None:
        check_settings(self, positive=("step_scale", "gamma_scale"))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        step_scale: float = step_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
        gamma_scale: float | None = None,
    ) -> BVOPS:
        """Importance-weighted losses, projected on the optimistic safe set (published as SV-OPS)."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return BVOPS(box, step_scale, gamma_scale)

    @staticmethod
    def unconstrained(
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        step_scale: float = step_scale,
        *,
        gamma_scale: float | None = None,
        delta: float = DELTA,
    ) -> BVOPS:
        """UOB-REPS, the core without constraints: learns a reward that changes and heeds no cost."""
        box = BoxEstimator.practical(transition_scale=transition_scale, stationary=stationary, delta=delta)
        return BVOPS(box, step_scale, gamma_scale, constrained=False)

    @staticmethod
    def theory() -> BVOPS:
        """Confidence widths with scales of one."""
        return BVOPS(BoxEstimator(clip=True, trusting=True))

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        if not self.constrained:
            return Card(
                "KL steps on importance-weighted losses over the confidence set; no constraint",
                ("bandit",),
                "O~(sqrt K) regret against the best policy, for an adversarial loss",
                "Jin, Jin, Luo, Sra, Yu (2020), UOB-REPS",
                "known K",
            )
        return Card(
            "KL projections of importance-weighted losses on an optimistic safe set",
            ("bandit",),
            "O~(sqrt K) regret and strong violation for stochastic costs and adversarial loss",
            "Stradi, Castiglioni, Marchesi, Gatti (ICML 2025)",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy under the uniform kernel; every kernel is possible."""
        require_feedback(self, setting, "bandit")
        episodes_of(self, setting)
        self.estimator.check(setting)
        q = uniform_occupancy(setting)
        counts = Counts.empty(setting)
        box = self.estimator.estimate(setting, counts, 0).region
        return State(setting, 0, counts, box, q, LIGHTEST, SolveLog(), 0)

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """Estimate the loss under the box that was in force, then project on the newest safe set."""
        setting, mu, eta = state.setting, state.setting.mu, self._step(state.setting)
        loss = exploring_loss(setting, state.box, policy_of_occupancy(state.q), feedback, self._gamma(setting))
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, state.k + 1)
        box = believed.region
        near = smoothed(state.q, 1.0 / episodes_of(self, setting))
        if not self.constrained:
            step = mirror_step(box, mu, near, loss, eta, Hinges.none(setting.shape), Divergence.KL)
            return replace(
                state, k=state.k + 1, counts=counts, box=box, q=step.occupancy, log=state.log.after(step)
            )  # fmt: skip
        found = constrained_step(box, mu, near, loss, eta, believed.cost, state.weight)
        return replace(
            state, k=state.k + 1, counts=counts, box=box, q=found.step.occupancy, weight=found.weight,
            log=state.log.after(found.step), infeasible=state.infeasible + (not found.exact),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """The step, and how often the safe set was empty."""
        return Report(state.log, self._step(state.setting), infeasible=state.infeasible)

    def _gamma(self, setting: Setting) -> float:
        """The implicit exploration: eta's own number, or `gamma_scale` times the published one."""
        scale = self.step_scale if self.gamma_scale is None else self.gamma_scale
        return scale * exploring_step(setting, episodes_of(self, setting), self.estimator.delta)

    def _step(self, setting: Setting) -> float:
        """eta, times `step_scale`."""
        return self.step_scale * exploring_step(setting, episodes_of(self, setting), self.estimator.delta)
