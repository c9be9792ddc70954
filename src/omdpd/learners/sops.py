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

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import SAFE_COST_SCALE
from omdpd.learners.factors import exploration, kernel_width, margin, step
from omdpd.learners.needs import Needs, SafeChoice, SafePolicy, safe_policy_of
from omdpd.learners.projected import Projected, mixture, unprojected, worst_cost
from omdpd.learners.projected import State as Stepped
from omdpd.learners.protocol import Card
from omdpd.learners.settings import ONES, Boxed, Preset, given, nonnegative, positive
from omdpd.learners.widths import bounded_cost
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy


@dataclass(frozen=True, eq=False)
class State(Stepped):
    """Besides, the policy in play with the safe policy's share in it."""

    policy: Floats
    share: float


@dataclass(frozen=True)
class SOPS(Boxed, Projected[State]):
    """The same, mixed with a known safe policy; its cost bonus is not zero, since safety rests on it."""

    cost_scale: float = nonnegative(SAFE_COST_SCALE)
    step_scale: float = positive(1.0)
    safe_policy: SafeChoice = "least-cost"
    _: KW_ONLY
    gamma_scale: float | None = positive(None)
    safe: SafePolicy | None = given(None)

    card = Card(
        "KL projections on an optimistic safe set, mixed with a known safe policy",
        ("bandit",),
        "O~(sqrt K) regret, no violation, for stochastic costs and adversarial loss",
        "Stradi, Castiglioni, Marchesi, Gatti (ICML 2025)",
        "a strictly safe policy and its cost are known",
    )
    needs = Needs(episodes=True, safe=True)
    factors = (kernel_width(), margin("cost_scale"), step("step_scale"), exploration("gamma_scale"))
    theory = Preset("Confidence widths with scales of one.", "safe", **ONES)

    def start(self, setting: Setting) -> State:
        """The uniform occupancy, mixed with the safe policy as if it cost all there is."""
        first = unprojected(self.estimator, setting)
        return self.mixed(State(**first, policy=first["q"], share=1.0), True)

    def policy(self, state: State) -> Floats:
        """The mixture."""
        return state.policy.copy()

    def mixed(self, state: State, exact: bool) -> State:
        """The least share of the safe policy that makes the mixture safe at worst, and the mixture."""
        safe, counts = safe_policy_of(self, self.safe, state.setting), self.pooled(state.counts)
        bold, share = policy_of_occupancy(state.q), 1.0
        if exact:
            pessimistic = bounded_cost(self, state, counts, counts.cost_mean(), 1.0)
            worst = np.maximum([worst_cost(state, bold, d) for d in pessimistic], 0.0)
            share = float(np.max(worst / (worst - safe.cost)))
        policy = mixture(safe.policy, bold, share, counts.transition_mean(), state.setting.mu)
        return replace(state, share=share, policy=policy)
