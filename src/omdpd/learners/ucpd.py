"""UCPD: upper-confidence primal-dual mirror descent for a loss that may change and costs that are revealed.

One Kullback-Leibler step over the confidence polytope per episode, on a drift-plus-penalty objective:

    q~_k    = (1 - 1/K) q_k + (1/K) uniform
    q_{k+1} = argmin_{q in Q_epoch}  < -V r~_k + sum_i Q_{k,i} d_{k,i}, q > + alpha KL(q, q~_k)
    Q_{k+1} = [ Q_k + d_k.q_{k+1} ]^+                     V = H sqrt K,  alpha = H K

The set is renewed when the visits of some (h,s,a) have doubled.  Certain: setting, weak guarantee and structure.
From memory: V, alpha, the mixing share and the order of the queue's update.  Ours: the reward, which the paper is
shown whole, is met along the trajectory here and enters as r~; the library's box takes the place of the L1 set, with
its scales; the divergence is taken over (h,s,a), the paper's over (h,s,a,s'); the two factors on V and on the step (the
paper's step is short: ten times it learns the reward several times faster at some cost in violation).  With linear
losses this is Neely's drift plus penalty.
Source: Qiu, Wei, Yang, Ye, Wang (NeurIPS 2020), Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.mirrored import Mirrored, Renewed, everything, renewed
from omdpd.learners.needs import Needs, episodes_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import UNCLIPPED, Boxed, Preset, positive
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.mirror import Divergence, Hinges, mirror_step, smoothed
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State(Renewed):
    """Besides, the queue."""

    queue: Floats


@dataclass(frozen=True)
class UCPD(Boxed, Mirrored[State]):
    """Kullback-Leibler drift-plus-penalty steps; revealed costs.

    `reward_weight` multiplies V, `step_scale` divides alpha (1 is the paper).
    """

    reward_weight: float = positive(1.0)
    step_scale: float = positive(1.0)

    card = Card(
        "Kullback-Leibler steps over the confidence polytope, virtual queue",
        ("full",),
        "O~(sqrt K) regret and weak violation for stochastic costs",
        "Qiu, Wei, Yang, Ye, Wang (NeurIPS 2020)",
        "Slater condition; rewards shown whole, which are estimated here",
    )
    needs = Needs(episodes=True)
    factors = (*WIDTHS, step("step_scale"))
    theory = Preset("Confidence widths with scales of one, not clipped.", "", **UNCLIPPED)

    def start(self, setting: Setting) -> State:
        """An empty queue."""
        return State(**everything(self.estimator, setting), queue=np.zeros(setting.n_constraints))

    def stepped(self, state: State, believed: Estimate[Box], d: Floats) -> State:
        """One mirror step on the drift-plus-penalty objective, then the queue."""
        state, setting = renewed(state, believed), state.setting
        V, alpha, K = self._constants(setting)
        loss = -V * believed.reward + np.tensordot(state.queue, d, axes=1)
        plain, near = Hinges.none(setting.shape), smoothed(state.q, 1.0 / K)
        found = mirror_step(state.region, setting.mu, near, loss, 1.0 / alpha, plain, Divergence.KL)
        queue = np.maximum(state.queue + np.tensordot(d, found.occupancy, axes=3), 0.0)
        return replace(state, q=found.occupancy, queue=queue, log=state.log.after(found))

    def report(self, state: State) -> Report:
        """The step per unit of reward, and what a unit of cost weighs against it."""
        V, alpha, _ = self._constants(state.setting)
        return Report(state.log, V / alpha, float(state.queue.max()) / V)

    def _constants(self, setting: Setting) -> tuple[float, float, int]:
        """V = H sqrt K, alpha = H K, each with its factor; and K."""
        H, K = setting.horizon, episodes_of(self, setting)
        return self.reward_weight * H * float(np.sqrt(K)), H * K / self.step_scale, K
