"""Best of both worlds: primal-dual gradient descent whose guarantees follow how the costs are drawn.

    grad_k       = -r~_k + sum_i lam_{k,i} d_{k,i}
    q_{k+1}      = Proj_{Q_epoch}( q_k - eta_k grad_k ),   eta_k = 1 / (Xi_k sqrt k),  Xi_k = max_{j<=k} |grad_j|_inf
    lam_{k+1}    = clip( lam_k + eta_dual d_k.q_k, 0, K^(1/4) ),  eta_dual = 1 / (H sqrt K)

The set is renewed when the visits of some (h,s,a) have doubled.  Certain, from abstracts and a later paper's summary:
gradient descent for both players, full feedback on the costs, the dual's box [0, K^(1/4)]^I, no knowledge of the Slater
gap, long-term (weak) violation and the rates.  From memory: the epochs, the orders of both step sizes and how the
primal one adapts to the losses (`primal_scale` is tuned in a comparison).  Ours: the reward, shown whole in the paper,
is met along the trajectory and enters as r~; the library's box with its scales; the two factors on the steps.
Source: Stradi, Germano, Genalti, Castiglioni, Marchesi, Gatti (ICML 2024; arXiv 2304.14326), PDGD-OPS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.mirrored import Mirrored, Renewed, everything, renewed
from omdpd.learners.needs import Needs, episodes_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import UNCLIPPED, Boxed, Preset, nonnegative, positive
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.mirror import Hinges, mirror_step
from omdpd.solvers.regions import Box

# What the largest loss so far is taken for where all losses were zero: the step along them is zero whatever it is.
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class State(Renewed):
    """Besides, the dual's point, the largest loss so far and the step size."""

    lam: Floats
    largest: float
    eta: float


@dataclass(frozen=True)
class Germano(Boxed, Mirrored[State]):
    """Primal-dual gradient descent with a bounded dual; revealed costs."""

    primal_scale: float = positive(1.0)
    dual_scale: float = nonnegative(1.0)

    card = Card(
        "primal-dual projected gradient descent, dual kept below K^(1/4)",
        ("full",),
        "weak; stochastic costs: O~(sqrt K), without Slater O~(K^(3/4)); adversarial costs: a fraction of V*",
        "Stradi, Germano, Genalti, Castiglioni, Marchesi, Gatti (ICML 2024)",
        "rewards shown whole, which are estimated here",
    )
    needs = Needs(episodes=True)
    factors = (*WIDTHS, step("primal_scale"))
    theory = Preset("Confidence widths with scales of one, not clipped.", "", **UNCLIPPED)

    def start(self, setting: Setting) -> State:
        """A dual of zero."""
        none = np.zeros(setting.n_constraints)
        return State(**everything(self.estimator, setting), lam=none, largest=0.0, eta=self.primal_scale)

    def stepped(self, state: State, believed: Estimate[Box], d: Floats) -> State:
        """A projected gradient step for the primal, a clipped one for the dual."""
        state, setting, K = renewed(state, believed), state.setting, episodes_of(self, state.setting)
        grad = -believed.reward + np.tensordot(state.lam, d, axes=1)
        largest = max(state.largest, float(np.abs(grad).max()))
        eta = self.primal_scale / (max(largest, TINY) * float(np.sqrt(state.k)))
        found = mirror_step(state.region, setting.mu, state.q, grad, eta, Hinges.none(setting.shape))
        rise = self.dual_scale / (setting.horizon * np.sqrt(K))
        lam = np.clip(state.lam + rise * np.tensordot(d, state.q, axes=3), 0.0, K**0.25)
        return replace(
            state, q=found.occupancy, lam=lam, largest=largest, eta=eta, log=state.log.after(found)
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size and the largest dual."""
        return Report(state.log, state.eta, float(state.lam.max()))
