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

from omdpd.beliefs.confidence import COST_SCALE, DELTA, REWARD_SCALE, TRANSITION_SCALE, BoxEstimator
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import episodes_of, require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.related import has_doubled
from omdpd.solvers.mirror import Divergence, Hinges, SolveLog, mirror_step, smoothed
from omdpd.solvers.regions import Region


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the visits when the set was last renewed and the set, the occupancy in play, the queue."""

    setting: Setting
    k: int
    counts: Counts
    renewed_at: Floats
    region: Region
    q: Floats
    queue: Floats
    log: SolveLog


@dataclass(frozen=True)
class UCPD:
    """Drift-plus-penalty mirror descent; `reward_weight` multiplies V, `step_scale` divides alpha (1 is the paper)."""

    estimator: BoxEstimator = BoxEstimator.practical()
    reward_weight: float = 1.0
    step_scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("reward_weight", "step_scale"))

    @staticmethod
    def practical(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        reward_weight: float = reward_weight,
        step_scale: float = step_scale,
        *,
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> UCPD:
        """Kullback-Leibler drift-plus-penalty steps; revealed costs."""
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
        return UCPD(box, reward_weight, step_scale)

    @staticmethod
    def theory() -> UCPD:
        """Confidence widths with scales of one, not clipped."""
        return UCPD(BoxEstimator())

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "Kullback-Leibler steps over the confidence polytope, virtual queue",
            ("full",),
            "O~(sqrt K) regret and weak violation for stochastic costs",
            "Qiu, Wei, Yang, Ye, Wang (NeurIPS 2020)",
            "Slater condition; rewards shown whole, which are estimated here",
        )

    def init(self, setting: Setting) -> State:
        """The uniform policy under the uniform kernel, an empty queue, and the set of all kernels."""
        self.estimator.check(setting)
        require_feedback(self, setting, "full")
        episodes_of(self, setting)
        q = uniform_occupancy(setting)
        counts = Counts.empty(setting)
        region = self.estimator.estimate(setting, counts, 0).region
        return State(setting, 0, counts, counts.visits, region, q, np.zeros(setting.n_constraints), SolveLog())

    def policy(self, state: State) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """One mirror step on the drift-plus-penalty objective, then the queue."""
        assert isinstance(feedback, FullFeedback)
        setting, d = state.setting, feedback.cost
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(setting, counts, state.k + 1)
        new = has_doubled(counts.visits, state.renewed_at)
        region, renewed_at = (believed.region, counts.visits) if new else (state.region, state.renewed_at)
        V, alpha, K = self._constants(setting)
        loss = -V * believed.reward + np.tensordot(state.queue, d, axes=1)
        plain, near = Hinges.none(setting.shape), smoothed(state.q, 1.0 / K)
        step = mirror_step(region, setting.mu, near, loss, 1.0 / alpha, plain, Divergence.KL)
        queue = np.maximum(state.queue + np.tensordot(d, step.occupancy, axes=3), 0.0)
        return replace(
            state, k=state.k + 1, counts=counts, renewed_at=renewed_at, region=region, q=step.occupancy, queue=queue,
            log=state.log.after(step),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """The step per unit of reward, and what a unit of cost weighs against it."""
        V, alpha, _ = self._constants(state.setting)
        return Report(state.log, V / alpha, float(state.queue.max()) / V)

    def _constants(self, setting: Setting) -> tuple[float, float, int]:
        """V = H sqrt K, alpha = H K, each with its factor; and K."""
        K = episodes_of(self, setting)
        H = setting.horizon
        return self.reward_weight * H * float(np.sqrt(K)), H * K / self.step_scale, K
