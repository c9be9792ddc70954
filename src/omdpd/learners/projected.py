"""Learners that meet losses on the way and project on a set believed safe (the family of OPS): the fourth skeleton.

    lhat_k(h,s,a) = (1 - r) 1{met} / (u_k(h,s,a) + gamma),      u_k = largest occupancy of the played policy in the box
    q_{k+1}       = KL-projection of q_k exp(-eta lhat_k) on { q in Q_k : table_i.q <= 0 for every i }

A learner of this kind is its settings, its card, what it needs, and up to four methods:

    start(setting) -> state             the uniform occupancy
    met(state, feedback) -> state       what else an episode changes
    tables(state, believed) -> tables   the costs of the safe set; None: heed none
    mixed(state, exact) -> state        what is played in the place of q_{k+1}; exact: the safe set was not empty
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from omdpd.beliefs.confidence import BoxEstimator, Estimate
from omdpd.beliefs.counts import Counts
from omdpd.learners.exploration import exploring_loss, exploring_step
from omdpd.learners.needs import Needs, check_needs, episodes_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import box_values_of_policy
from omdpd.solvers.compiled.flow import occupancy_of_policy, policy_of_occupancy
from omdpd.solvers.mirror import LIGHTEST, Divergence, Hinges, SolveLog, constrained_step, mirror_step, smoothed
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the box of the data so far, the projected occupancy, and the weight that made the projection exact."""

    setting: Setting
    k: int
    counts: Counts
    box: Box
    q: Floats
    weight: float
    log: SolveLog
    infeasible: int


S = TypeVar("S", bound=State)


class Projected(Generic[S]):
    """The verbs of such a learner; it has the settings of `Boxed`, `step_scale` and perhaps `gamma_scale`."""

    card: ClassVar[Card]
    needs: ClassVar[Needs] = Needs(episodes=True)
    weights_by_policy: ClassVar[bool] = True

    def start(self, setting: Setting) -> S:
        """The state before the first episode."""
        raise NotImplementedError

    def met(self, state: S, feedback: Feedback) -> S:
        """The state, in which the episode was counted, with what else it changes."""
        return state

    def tables(self, state: S, believed: Estimate[Box]) -> Floats | None:
        """The costs (I, H, S, A) of the safe set."""
        return believed.cost

    def mixed(self, state: S, exact: bool) -> S:
        """The state with what is played."""
        return state

    def init(self, setting: Setting) -> S:
        """The uniform policy under the uniform kernel; every kernel is possible."""
        check_needs(self, setting)
        return self.start(setting)

    def update(self, state: S, feedback: Feedback, played: Floats | None = None) -> S:
        """Estimate the loss under the box that was in force, then project on the newest safe set.

        `played` is the policy of the episode, if it was not that of this state.
        """
        own: Any = self
        setting, eta = state.setting, self.step(state.setting)
        gamma = self.step(setting, getattr(own, "gamma_scale", None))
        loss = exploring_loss(setting, state.box, self.policy(state) if played is None else played, feedback, gamma)
        counts = state.counts.add(feedback)
        believed: Estimate[Box] = own.estimator.estimate(setting, counts, state.k + 1)
        state = self.met(replace(state, k=state.k + 1, counts=counts, box=believed.region), feedback)
        near, tables = smoothed(state.q, 1.0 / episodes_of(self, setting)), self.tables(state, believed)
        if tables is None:
            step = mirror_step(state.box, setting.mu, near, loss, eta, Hinges.none(setting.shape), Divergence.KL)
            return replace(state, q=step.occupancy, log=state.log.after(step))
        found = constrained_step(state.box, setting.mu, near, loss, eta, tables, state.weight)
        projected = replace(
            state, q=found.step.occupancy, weight=found.weight, log=state.log.after(found.step),
            infeasible=state.infeasible + (not found.exact),
        )  # fmt: skip
        return self.mixed(projected, found.exact)

    def policy(self, state: S) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def report(self, state: S) -> Report:
        """The step, the share of a safe policy as the weight where one is mixed in, and how often the set was empty."""
        share = getattr(state, "share", None)
        return Report(state.log, self.step(state.setting), share, infeasible=state.infeasible)

    def step(self, setting: Setting, scale: float | None = None) -> float:
        """eta = gamma, times `step_scale` or another factor."""
        own: Any = self
        factor: float = own.step_scale if scale is None else scale
        return factor * exploring_step(setting, episodes_of(self, setting), own.delta)


def unprojected(estimator: BoxEstimator, setting: Setting) -> dict[str, Any]:
    """What every first state has: no data, the uniform policy under the uniform kernel, the box of all kernels."""
    counts = Counts.empty(setting)
    return {
        "setting": setting, "k": 0, "counts": counts, "box": estimator.region(setting, counts, 0),
        "q": uniform_occupancy(setting), "weight": LIGHTEST, "log": SolveLog(), "infeasible": 0,
    }  # fmt: skip


def worst_cost(state: State, policy: Floats, table: Floats) -> float:
    """The largest cost of a policy over the box."""
    return float(state.setting.mu @ box_values_of_policy(policy, state.box.lower, state.box.upper, table)[1][0])


def mixture(safe: Floats, bold: Floats, share: float, p: Floats, mu: Floats) -> Floats:
    """The policy whose occupancy under p is the mixture of two; the safe one where it does not come."""
    q = share * occupancy_of_policy(safe, p, mu) + (1.0 - share) * occupancy_of_policy(bold, p, mu)
    return np.where(q.sum(axis=-1, keepdims=True) <= 0.0, safe, policy_of_occupancy(q))
