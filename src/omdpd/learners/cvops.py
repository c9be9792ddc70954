"""CV-OPS: constant violation with a strictly safe policy that exists and is not known: find one, then be safe with it.

    phase 1   play the policy whose cost is least at best (b: over the box, costs d_hat - xi), until its cost at worst
              (w: over the box, costs d_hat + xi) is at most b / 2 < 0: that policy is kept, with this cost
    phase 2   lhat_k = (1 - r) 1{met} / (u_k + gamma),    q_{k+1} = KL-projection of q_k exp(-eta lhat_k) on the
              optimistic safe set, and the policy kept is mixed in with the least share that makes it safe at worst:
              share = w / (w - cost of the policy kept),    w = worst cost of the policy of q_{k+1}

Source: Stradi, Castiglioni, Marchesi, Gatti (ICML 2025; arXiv 2403.03672), the third algorithm.  Certain: the two
phases, a strictly safe policy that is learnt in the first, the safe method (S-OPS) with it in the second, constant
positive violation.  Ours: the first phase is optimism about one cost (the paper runs a regret minimiser on the
constraints), the rule that ends it, one constraint, and what is ours in S-OPS.  The rule needs no Slater gap: no policy
stays further below the budget than -b, so the policy kept has at least half of the gap.  Where the gap is known, `room`
may be set, and phase 1 ends with w <= -room / 2.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

from omdpd.beliefs.confidence import REWARD_SCALE, SAFE_COST_SCALE, Estimate
from omdpd.learners.factors import exploration, kernel_width, margin, step
from omdpd.learners.needs import Needs, episodes_of
from omdpd.learners.projected import Projected, mixture, unprojected, worst_cost
from omdpd.learners.projected import State as Stepped
from omdpd.learners.protocol import Card
from omdpd.learners.settings import Boxed, given, later, nonnegative, positive
from omdpd.learners.widths import bounded_cost
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import optimistic_policy
from omdpd.solvers.compiled.flow import occupancy_of_policy, policy_of_occupancy
from omdpd.solvers.mirror import smoothed
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State(Stepped):
    """Besides, the policy in play, and the policy kept with its worst cost and its share (None in phase 1)."""

    policy: Floats
    kept: Floats | None
    kept_cost: float
    share: float


@dataclass(frozen=True)
class CVOPS(Boxed, Projected[State]):
    """A strictly safe policy is learnt first, then mixed into S-OPS: constant violation without a known one."""

    reward_scale: float = given(REWARD_SCALE)  # it looks at losses, never at the estimated reward
    cost_scale: float = nonnegative(SAFE_COST_SCALE)
    room: float | None = positive(None)
    step_scale: float = positive(1.0)
    _: KW_ONLY
    gamma_scale: float | None = later(positive(None), None)

    card = Card(
        "learns a strictly safe policy, then KL projections mixed with it",
        ("bandit",),
        "O~(sqrt K) regret, constant strong violation, for stochastic costs and adversarial loss",
        "Stradi, Castiglioni, Marchesi, Gatti (ICML 2025)",
        "Slater condition, known K; one constraint",
    )
    needs = Needs(episodes=True, single_constraint=True)
    factors = (kernel_width(), margin("cost_scale"), step("step_scale"), exploration("gamma_scale"))

    def start(self, setting: Setting) -> State:
        """Phase 1 with no data."""
        first = unprojected(self.estimator, setting)
        return self._first_phase(
            State(**first, policy=policy_of_occupancy(first["q"]), kept=None, kept_cost=0.0, share=1.0)
        )

    def policy(self, state: State) -> Floats:
        """The least costly policy at best, or the mixture."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback, played: Floats | None = None) -> State:
        """Look for a safe policy, or step and mix."""
        if state.kept is not None:
            return super().update(state, feedback, played)
        k, counts = state.k + 1, state.counts.add(feedback)
        box = self.estimator.region(state.setting, counts, k)
        return self._first_phase(replace(state, k=k, counts=counts, box=box))

    def tables(self, state: State, believed: Estimate[Box]) -> Floats:
        """d_hat - xi."""
        return self._bound(state, -1.0)[None]

    def mixed(self, state: State, exact: bool) -> State:
        """The least share of the policy kept that makes the mixture safe at worst, and the mixture."""
        assert state.kept is not None
        bold, p = policy_of_occupancy(state.q), self.pooled(state.counts).transition_mean()
        worst = max(worst_cost(state, bold, self._bound(state, 1.0)), 0.0)
        share = worst / (worst - state.kept_cost)
        return replace(state, share=share, policy=mixture(state.kept, bold, share, p, state.setting.mu))

    def _first_phase(self, state: State) -> State:
        """The least costly policy at best; kept once it is surely safe, and then mixed for the first time."""
        box, setting = state.box, state.setting
        policy, _, savings = optimistic_policy(box.lower, box.upper, -self._bound(state, -1.0))
        worst = worst_cost(state, policy, self._bound(state, 1.0))
        most = float(setting.mu @ savings[0]) if self.room is None else self.room
        if worst > -0.5 * most or worst >= 0.0:
            return replace(state, policy=policy)
        q = occupancy_of_policy(policy, self.pooled(state.counts).transition_mean(), setting.mu)
        near = smoothed(q, 1.0 / episodes_of(self, setting))
        return self.mixed(replace(state, kept=policy, kept_cost=worst, q=near), True)

    def _bound(self, state: State, sign: float) -> Floats:
        """d_hat + sign xi in [-1, 1], and `sign` where nothing was seen."""
        counts = self.pooled(state.counts)
        return bounded_cost(self, state, counts, counts.cost_mean()[0], sign)
