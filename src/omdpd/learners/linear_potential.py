"""Primal-dual gradient descent: a multiplier that is linear in the costs paid so far, where OMDPD's is exponential.

    grad_k   = -r~_k + sum_i lam_{k,i} d_{k,i}
    lam_k    = [ lam_{k-1} + d_k.q_k / sqrt(HK) ]^+
    q_{k+1}  = Proj_{Q_k}( q_k - eta_k grad_k ),   eta_k = sqrt(H) / sqrt(sum_{j<=k} |grad_j|^2)

The textbook method, over the same polytope and with the same steps as its exponential relatives: what the potential is
worth shows beside it.  Costs of opposite sign cancel in the multiplier, so only the weak violation is kept small.
A reference of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.mirrored import Descended, Mirrored, descended, unmoved
from omdpd.learners.needs import Needs, episodes_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import Boxed, nonnegative
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State(Descended):
    """Besides, the multipliers."""

    lam: Floats


@dataclass(frozen=True)
class LinearPotential(Boxed, Mirrored[State]):
    """Primal-dual gradient descent: the multiplier is linear in the costs paid."""

    dual_scale: float = nonnegative(1.0)

    card = Card(
        "primal-dual projected gradient descent, multiplier linear in the costs paid",
        ("bandit", "full"),
        "none stated here; weak violation only",
        "a reference",
    )
    needs = Needs(episodes=True)
    factors = (*WIDTHS, step("dual_scale"))

    def start(self, setting: Setting) -> State:
        """A multiplier of zero."""
        none, root = np.zeros(setting.n_constraints), float(np.sqrt(setting.horizon))
        return State(**unmoved(setting), squares=0.0, eta=root, lam=none)

    def stepped(self, state: State, believed: Estimate[Box], d: Floats) -> State:
        """The multipliers, then one projected gradient step."""
        rise = self.dual_scale * np.tensordot(d, state.q, axes=3)
        root = np.sqrt(state.setting.horizon * episodes_of(self, state.setting))
        lam = np.maximum(state.lam + rise / root, 0.0)
        return descended(replace(state, lam=lam), believed.region, -believed.reward + np.tensordot(lam, d, axes=1))

    def report(self, state: State) -> Report:
        """Step size, largest multiplier and the certificates of the projections."""
        return Report(state.log, state.eta, float(state.lam.max()))
