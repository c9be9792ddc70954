"""Learners that take one mirror step over the confidence box after every episode: the third skeleton.

    q_{k+1} = argmin_{q in Q_k}  eta_k <grad_k, q> + D(q, q_k)

A learner of this kind is its settings, its card, what it needs, and two methods:

    start(setting) -> state                     the uniform occupancy, no multiplier
    stepped(state, believed, d) -> state        after an episode that was counted already; d is revealed or believed
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from omdpd.beliefs.confidence import BoxEstimator, Estimate
from omdpd.beliefs.counting import has_doubled
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import Needs, check_needs
from omdpd.learners.potential import Potential
from omdpd.learners.protocol import Card
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import Hinges, SolveLog, mirror_step
from omdpd.solvers.regions import Box, Region


@dataclass(frozen=True, eq=False)
class Moved:
    """Counts, the occupancy in play and the certificates of the steps; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    q: Floats
    log: SolveLog


@dataclass(frozen=True, eq=False)
class Descended(Moved):
    """Besides, the summed squared gradients, and the step size that follows from them."""

    squares: float
    eta: float


@dataclass(frozen=True, eq=False)
class Renewed(Moved):
    """Besides, the set of kernels in force, and the visits when it was last renewed."""

    renewed_at: Floats
    region: Region


S = TypeVar("S", bound=Moved)
D = TypeVar("D", bound=Descended)
E = TypeVar("E", bound=Renewed)


class Mirrored(Generic[S]):
    """The verbs of such a learner."""

    card: ClassVar[Card]
    needs: ClassVar[Needs] = Needs()

    def start(self, setting: Setting) -> S:
        """The state before the first episode."""
        raise NotImplementedError

    def stepped(self, state: S, believed: Estimate[Box], d: Floats) -> S:
        """The state after the mirror step."""
        raise NotImplementedError

    def init(self, setting: Setting) -> S:
        """The uniform policy under the uniform kernel."""
        check_needs(self, setting)
        return self.start(setting)

    def policy(self, state: S) -> Floats:
        """The policy of q_k."""
        return policy_of_occupancy(state.q)

    def update(self, state: S, feedback: Feedback) -> S:
        """Count, and step with the newest estimates."""
        estimator: BoxEstimator = self.estimator  # type: ignore[attr-defined]  # the one of `Boxed`
        newer = replace(state, k=state.k + 1, counts=state.counts.add(feedback))
        believed = estimator.estimate(newer.setting, newer.counts, newer.k)
        return self.stepped(newer, believed, feedback.cost if isinstance(feedback, FullFeedback) else believed.cost)


def unmoved(setting: Setting) -> dict[str, Any]:
    """What every first state has: no data, the uniform policy under the uniform kernel."""
    return {
        "setting": setting, "k": 0, "counts": Counts.empty(setting), "q": uniform_occupancy(setting), "log": SolveLog(),
    }  # fmt: skip


def descended(state: D, region: Region, grad: Floats) -> D:
    """Project q_k - eta_k grad_k, with eta_k = sqrt(H) / sqrt(sum_{j<=k} |grad_j|^2)."""
    setting, squares = state.setting, state.squares + float((grad**2).sum())
    eta = float(np.sqrt(setting.horizon / squares)) if squares > 0.0 else state.eta
    step = mirror_step(region, setting.mu, state.q, grad, eta, Hinges.none(setting.shape))
    return replace(state, q=step.occupancy, squares=squares, eta=eta, log=state.log.after(step))


def everything(estimator: BoxEstimator, setting: Setting) -> dict[str, Any]:
    """What every first state has whose set is renewed now and then: the set of all kernels."""
    first = unmoved(setting)
    counts = first["counts"]
    return first | {"renewed_at": counts.visits, "region": estimator.estimate(setting, counts, 0).region}


def renewed(state: E, believed: Estimate[Box]) -> E:
    """The state with a new set if the visits of some (h,s,a) have doubled since the last one."""
    if not has_doubled(state.counts.visits, state.renewed_at):
        return state
    return replace(state, region=believed.region, renewed_at=state.counts.visits)


def growing_weight(setting: Setting, K: int, w0: float | None, beta: float | None) -> Potential:
    """w0 exp(beta V); None stands for 1/(2 sqrt K), and for 1/(4 sqrt K G D) with G = sqrt(HSA), D = sqrt(2H)."""
    H, S, A = setting.shape
    slow = 4.0 * np.sqrt(K) * np.sqrt(H * S * A) * np.sqrt(2.0 * H)
    return Potential(float(0.5 / np.sqrt(K) if w0 is None else w0), float(1.0 / slow if beta is None else beta))
