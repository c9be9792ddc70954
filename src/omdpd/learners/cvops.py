"""CV-OPS: constant violation with a strictly safe policy that exists and is not known: find one, then be safe with it.

    phase 1   play the policy whose cost is least at best (over the box, costs d_hat - xi), until its cost at worst
              (over the box, costs d_hat + xi) is at most -room / 2: that policy is kept, with this cost
    phase 2   lhat_k = (1 - r) 1{met} / (u_k + gamma),    q_{k+1} = KL-projection of q_k exp(-eta lhat_k) on the
              optimistic safe set, and the policy kept is mixed in with the least share that makes it safe at worst:
              share = w / (w - cost of the policy kept),    w = worst cost of the policy of q_{k+1}

Source: Stradi, Castiglioni, Marchesi, Gatti (ICML 2025; arXiv 2403.03672), the third algorithm.  Certain: the two
phases, a strictly safe policy that is learnt in the first, the safe method (S-OPS) with it in the second, constant
positive violation.  Ours: the first phase is optimism about one cost (the paper runs a regret minimiser on the
constraints), the rule that ends it, `room` as the Slater gap in it, one constraint, and what is ours in S-OPS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import DELTA, REWARD_SCALE, SAFE_COST_SCALE, TRANSITION_SCALE, BoxEstimator, log_term
from omdpd.beliefs.counts import Counts
from omdpd.learners.exploration import exploring_loss, exploring_step
from omdpd.learners.needs import episodes_of, require_feedback, require_single_constraint, room_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import box_values_of_policy, optimistic_policy
from omdpd.solvers.compiled.flow import occupancy_of_policy, policy_of_occupancy
from omdpd.solvers.mirror import LIGHTEST, SolveLog, constrained_step, smoothed
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the box, the policy in play, the policy kept with its worst cost (None in phase 1), phase 2's point."""

    setting: Setting
    k: int
    counts: Counts
    box: Box
    policy: Floats
    kept: Floats | None
    kept_cost: float
    q: Floats
    share: float
    weight: float
    log: SolveLog
    infeasible: int


@dataclass(frozen=True)
class CVOPS:
    """Learn a strictly safe policy, then mix it into importance-weighted steps; `room` must be given."""

    room: float | None = None
    estimator: BoxEstimator = BoxEstimator.practical(cost_scale=SAFE_COST_SCALE)
    step_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("room", "step_scale"))

    @staticmethod
    def practical(
        cost_scale: float = SAFE_COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        room: float | None = room,
        step_scale: float = step_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> CVOPS:
        """A strictly safe policy is learnt first, then mixed into S-OPS: constant violation without a known one."""
        box = BoxEstimator.practical(REWARD_SCALE, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return CVOPS(room, box, step_scale)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "learns a strictly safe policy, then KL projections mixed with it",
            ("bandit",),
            "O~(sqrt K) regret, constant strong violation, for stochastic costs and adversarial loss",
            "Stradi, Castiglioni, Marchesi, Gatti (ICML 2025)",
            "Slater condition with a known gap, known K; one constraint",
        )

    def init(self, setting: Setting) -> State:
        """Phase 1 with no data."""
        self.estimator.check(setting)
        require_feedback(self, setting, "bandit")
        require_single_constraint(self, setting)
        episodes_of(self, setting)
        room_of(self, self.room)
        counts, q = Counts.empty(setting), uniform_occupancy(setting)
        box = self.estimator.estimate(setting, counts, 0).region
        start = State(
            setting, 0, counts, box, policy_of_occupancy(q), None, 0.0, q, 1.0, LIGHTEST, SolveLog(), 0
        )  # fmt: skip
        return self._first_phase(start)

    def policy(self, state: State) -> Floats:
        """The least costly policy at best, or the mixture."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count; look for a safe policy, or step and mix."""
        setting, eta = state.setting, self._step(state.setting)
        counts = state.counts.add(feedback)
        box = self.estimator.estimate(setting, counts, state.k + 1).region
        newer = replace(state, k=state.k + 1, counts=counts, box=box)
        if state.kept is None:
            return self._first_phase(newer)
        loss = exploring_loss(setting, state.box, state.policy, feedback, eta)
        near = smoothed(state.q, 1.0 / episodes_of(self, setting))
        low = self._bound(newer, -1.0)[None]
        found = constrained_step(box, setting.mu, near, loss, eta, low, state.weight)
        stepped = replace(
            newer, q=found.step.occupancy, weight=found.weight, log=state.log.after(found.step),
            infeasible=state.infeasible + (not found.exact),
        )  # fmt: skip
        return self._mixed(stepped)

    def report(self, state: State) -> Report:
        """The step, the share of the policy kept as the weight, and how often the safe set was empty."""
        return Report(state.log, self._step(state.setting), state.share, infeasible=state.infeasible)

    def _first_phase(self, state: State) -> State:
        """The least costly policy at best; kept once it is surely safe, and then mixed for the first time."""
        box, mu = state.box, state.setting.mu
        policy, _, _ = optimistic_policy(box.lower, box.upper, -self._bound(state, -1.0))
        worst = self._worst(state, policy)
        if worst > -0.5 * room_of(self, self.room):
            return replace(state, policy=policy)
        p = (state.counts.pooled() if self.estimator.stationary else state.counts).transition_mean()
        near = smoothed(occupancy_of_policy(policy, p, mu), 1.0 / episodes_of(self, state.setting))
        return self._mixed(replace(state, kept=policy, kept_cost=worst, q=near))

    def _mixed(self, state: State) -> State:
        """The least share of the policy kept that makes the mixture safe at worst, and the mixture."""
        assert state.kept is not None
        bold, mu = policy_of_occupancy(state.q), state.setting.mu
        worst = max(self._worst(state, bold), 0.0)
        share = worst / (worst - state.kept_cost)
        p = (state.counts.pooled() if self.estimator.stationary else state.counts).transition_mean()
        q = share * occupancy_of_policy(state.kept, p, mu) + (1.0 - share) * occupancy_of_policy(bold, p, mu)
        unreached = q.sum(axis=-1, keepdims=True) <= 0.0
        return replace(state, share=share, policy=np.where(unreached, state.kept, policy_of_occupancy(q)))

    def _worst(self, state: State, policy: Floats) -> float:
        """The largest cost over the box, with d_hat + xi."""
        box = state.box
        values = box_values_of_policy(policy, box.lower, box.upper, self._bound(state, 1.0))[1]
        return float(state.setting.mu @ values[0])

    def _bound(self, state: State, sign: float) -> Floats:
        """d_hat + sign xi in [-1, 1], and `sign` where nothing was seen."""
        counts = state.counts.pooled() if self.estimator.stationary else state.counts
        L = log_term(state.setting, state.k, self.estimator.delta)
        xi = sign * self.estimator.cost_scale * np.sqrt(L / np.maximum(counts.visits, 1.0))
        return np.where(counts.visits > 0.0, np.clip(counts.cost_mean()[0] + xi, -1.0, 1.0), sign)

    def _step(self, setting: Setting) -> float:
        """eta = gamma, times `step_scale`."""
        return self.step_scale * exploring_step(setting, episodes_of(self, setting), self.estimator.delta)
