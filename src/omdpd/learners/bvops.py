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

from dataclasses import KW_ONLY, dataclass

from omdpd.beliefs.confidence import Estimate
from omdpd.learners.factors import exploration, kernel_width, step
from omdpd.learners.projected import Projected, State, unprojected
from omdpd.learners.protocol import Card
from omdpd.learners.settings import ONES, Boxed, Preset, given, positive
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box


@dataclass(frozen=True)
class BVOPS(Boxed, Projected[State]):
    """Importance-weighted losses, projected on the optimistic safe set (published as SV-OPS)."""

    step_scale: float = positive(1.0)
    _: KW_ONLY
    gamma_scale: float | None = positive(None)
    constrained: bool = given(True)

    factors = (kernel_width(), step("step_scale"), exploration("gamma_scale"))
    unconstrained = Preset(
        "UOB-REPS, the core without constraints: learns a reward that changes and heeds no cost.",
        "transition_scale stationary step_scale * gamma_scale delta", constrained=False,
    )  # fmt: skip
    theory = Preset("Confidence widths with scales of one.", "", **ONES)

    @property
    def card(self) -> Card:  # type: ignore[override]  # it depends on the preset
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

    def start(self, setting: Setting) -> State:
        """Nothing is known."""
        return State(**unprojected(self.estimator, setting))

    def tables(self, state: State, believed: Estimate[Box]) -> Floats | None:
        """d_hat - xi, if there are constraints."""
        return believed.cost if self.constrained else None
