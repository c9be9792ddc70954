"""From one episode to the next beliefs, compiled: the arithmetic of a learner's update between its solves.

`Counts.add`, `Evidence.after`, `shared_beliefs` and the `estimate` of every estimator say in NumPy what is computed
here; tests hold the two to each other.  An estimator without a compiled version is asked itself.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from omdpd.beliefs.confidence import (
    BoxEstimator,
    EmpiricalEstimator,
    Estimate,
    Estimator,
    log_term,
    log_term_transition,
)
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.sharing import Evidence, SharedKernel
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.compiled.counting import add_episode, box_bounds, empirical_tables, optimistic_tables
from omdpd.solvers.compiled.sharing import POOLED, TRUST, best_weight, shared_kernel
from omdpd.solvers.compiled.standard import add_evidence, standard_beliefs
from omdpd.solvers.regions import Box, Kernel, Region

# Costs that are not summed: none, of as many steps as there are.
NO_COSTS = np.zeros((0, 1))


def counts_after(counts: Counts, feedback: Feedback) -> Counts:
    """`counts.add(feedback)`."""
    walk = feedback.trajectory
    costs = feedback.costs if isinstance(feedback, BanditFeedback) else NO_COSTS
    visits, transitions = counts.visits.copy(), counts.transitions.copy()
    reward_sum, cost_sum = counts.reward_sum.copy(), counts.cost_sum.copy()
    add_episode(visits, transitions, reward_sum, cost_sum, walk.states, walk.actions, feedback.rewards, costs)
    return Counts(visits, transitions, reward_sum, cost_sum)


def evidence_after(evidence: Evidence, counts: Counts, feedback: Feedback) -> Evidence:
    """`evidence.after(counts, feedback)`; `counts` are those before the episode."""
    walk = feedback.trajectory
    costs = feedback.costs if isinstance(feedback, BanditFeedback) else NO_COSTS
    squares, cost_squares = evidence.reward_squares.copy(), evidence.cost_squares.copy()
    kernel, reward, cost = evidence.kernel_score.copy(), evidence.reward_score.copy(), evidence.cost_score.copy()
    add_evidence(
        squares, cost_squares, kernel, reward, cost,
        counts.visits, counts.transitions, counts.reward_sum, counts.cost_sum,
        walk.states, walk.actions, feedback.rewards, costs,
    )  # fmt: skip
    return Evidence(squares, cost_squares, kernel, reward, cost)


@overload
def estimate(estimator: BoxEstimator, setting: Setting, counts: Counts, k: int) -> Estimate[Box]: ...


@overload
def estimate(estimator: Estimator, setting: Setting, counts: Counts, k: int) -> Estimate[Region]: ...


def estimate(estimator: Estimator, setting: Setting, counts: Counts, k: int) -> Estimate[Region]:
    """`estimator.estimate(setting, counts, k)`."""
    if isinstance(estimator, EmpiricalEstimator):
        return _empirical(estimator, setting, counts.pooled() if estimator.stationary else counts, k)
    if isinstance(estimator, BoxEstimator):
        counts = counts.pooled() if estimator.stationary else counts
        return _around(_box(estimator, setting, counts, k), estimator, setting, counts, k)
    return estimator.estimate(setting, counts, k)


def estimate_with(box: Box, estimator: BoxEstimator, setting: Setting, counts: Counts, k: int) -> Estimate[Box]:
    """`estimator.estimate_with(box, setting, counts, k)`."""
    return _around(box, estimator, setting, counts.pooled() if estimator.stationary else counts, k)


def region_of(estimator: BoxEstimator, setting: Setting, counts: Counts, k: int) -> Box:
    """`estimator.estimate(setting, counts, k).region`, without the tables around it."""
    return _box(estimator, setting, counts.pooled() if estimator.stationary else counts, k)


def shared_estimate(
    estimator: SharingEstimator,
    setting: Setting,
    counts: Counts,
    evidence: Evidence,
    prices: Prices,
    caution: Caution,
) -> tuple[Estimate[Kernel], SharedKernel]:
    """`estimator.estimate` of its own `beliefs`, and the kernel's error."""
    plan = caution.plan
    errors = 0.0 if plan is None else estimator.z * caution.share / setting.horizon
    shape, each = counts.visits.shape, counts.cost_sum.shape
    reward, own, common = np.empty(shape), np.empty(shape), np.empty(shape)
    lifted, cost, kernel = np.empty(each), np.empty(each), np.empty(counts.transitions.shape)
    standard_beliefs(
        counts.visits, counts.transitions, counts.reward_sum, counts.cost_sum,
        evidence.reward_squares, evidence.cost_squares,
        evidence.kernel_score, evidence.reward_score, evidence.cost_score,
        estimator.stationary, setting.feedback == "bandit",
        prices.each, prices.tables, counts.visits if plan is None else plan, estimator.exploration, errors,
        reward, lifted, cost, kernel, own, common,
    )  # fmt: skip
    return Estimate(reward, lifted, cost, np.zeros(shape), Kernel(kernel)), SharedKernel(kernel, own, common)


def kernel_with_error(estimator: SharingEstimator, counts: Counts, evidence: Evidence) -> SharedKernel:
    """The kernel of `estimator.beliefs` alone."""
    weight = POOLED if estimator.stationary else best_weight(evidence.kernel_score)
    return SharedKernel(*shared_kernel(counts.transitions, counts.visits, weight, TRUST))


def _empirical(estimator: EmpiricalEstimator, setting: Setting, counts: Counts, k: int) -> Estimate[Kernel]:
    shape, each = counts.visits.shape, counts.cost_sum.shape
    reward, cost, mean = np.empty(shape), np.empty(each), np.empty(each)
    margin, kernel = np.empty(shape), np.empty(counts.transitions.shape)
    empirical_tables(
        counts.visits, counts.transitions, counts.reward_sum, counts.cost_sum, log_term(setting, k, estimator.delta),
        estimator.kappa, estimator.reward_scale, estimator.one_over_n, estimator.pseudo_observations,
        reward, cost, mean, margin, kernel,
    )  # fmt: skip
    return Estimate(reward, cost, mean, margin, Kernel(kernel))


def _box(estimator: BoxEstimator, setting: Setting, counts: Counts, k: int) -> Box:
    lower, upper = np.empty(counts.transitions.shape), np.empty(counts.transitions.shape)
    Lp = log_term_transition(setting, k, estimator.delta)
    box_bounds(counts.transitions, estimator.transition_scale, Lp, lower, upper)
    return Box(lower, upper)


def _around(box: Box, estimator: BoxEstimator, setting: Setting, counts: Counts, k: int) -> Estimate[Box]:
    reward, cost = np.empty(counts.visits.shape), np.empty(counts.cost_sum.shape)
    optimistic_tables(
        counts.visits, counts.reward_sum, counts.cost_sum, log_term(setting, k, estimator.delta),
        estimator.reward_scale, estimator.cost_scale, estimator.clip, estimator.trusting, reward, cost,
    )  # fmt: skip
    return Estimate(reward, cost, cost, np.zeros(reward.shape), box)
