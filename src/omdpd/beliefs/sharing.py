"""Estimates that share between steps as much as the past says is wise.

How much the rows of one (s, a) have in common over the steps is a number m per table (the kernel, the reward, each
cost), and nobody has to say it: every m of a grid predicts every observation before it is made, and the one with the
best total log score is taken (the prequential rule).  Where two are as good, the larger, since it knows more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import Floats
from omdpd.problem.records import quick
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.compiled.scores import kernel_scores, table_scores
from omdpd.solvers.compiled.sharing import (
    COST_TRUSTS,
    HOPE,
    MIN_VARIANCE,
    POOLED,
    REWARD_TRUSTS,
    TRUST,
    WEIGHTS,
    best_pair,
    best_weight,
    noise_share,
    overall_mean,
    rows_met,
    shared_kernel,
    shared_table,
)


@quick
@dataclass(frozen=True, eq=False)
class Evidence:
    """What is kept besides the counts: sums of squares, and the scores of every weight.

    `reward_squares` (H,S,A); `cost_squares` (I,H,S,A) of u = (d+1)/2; `kernel_score` (m,), `reward_score` (m, 1) and
    `cost_score` (I, m, trust).
    """

    reward_squares: Floats
    cost_squares: Floats
    kernel_score: Floats
    reward_score: Floats
    cost_score: Floats

    @staticmethod
    def empty(setting: Setting) -> Evidence:
        """Nothing seen: every weight is as good as any other."""
        n, I = WEIGHTS.size, setting.n_constraints  # noqa: E741
        return Evidence(
            np.zeros(setting.shape), np.zeros((I, *setting.shape)),
            np.zeros(n), np.zeros((n, REWARD_TRUSTS.size)), np.zeros((I, n, COST_TRUSTS.size)),
        )  # fmt: skip

    def after(self, counts: Counts, feedback: Feedback) -> Evidence:
        """The evidence with one more episode; `counts` are those before it, which made the predictions."""
        states, actions = feedback.trajectory.states, feedback.trajectory.actions
        at = (np.arange(states.size), states, actions)
        r, n = counts.reward_sum, counts.visits
        squares = self.reward_squares.copy()
        squares[at] += feedback.rewards**2
        kernel = self.kernel_score + kernel_scores(states, actions, counts.transitions, n, WEIGHTS, TRUST)
        gain = table_scores(states, actions, feedback.rewards, r, n, WEIGHTS, REWARD_TRUSTS)
        reward = self.reward_score + gain
        if not isinstance(feedback, BanditFeedback):
            return Evidence(squares, self.cost_squares, kernel, reward, self.cost_score)
        observed = (feedback.costs + 1.0) / 2.0
        cost_squares = self.cost_squares.copy()
        cost_squares[(slice(None), *at)] += observed**2
        gained = [
            table_scores(states, actions, u, x, n, WEIGHTS, COST_TRUSTS)
            for u, x in zip(observed, unit_cost_sums(counts), strict=True)
        ]
        return Evidence(squares, cost_squares, kernel, reward, self.cost_score + np.array(gained))


@dataclass(frozen=True, eq=False)
class SharedTable:
    """A table of means (H, S, A) in its own units; `noise` is the variance of one observation.

    `own` and `common` are the two parts of its error per unit of noise (see `solvers.compiled.sharing`).
    """

    mean: Floats
    own: Floats
    common: Floats
    noise: Floats

    @property
    def size(self) -> Floats:
        """How many observations of a row alone would tell as much."""
        return 1.0 / (self.own + self.common)


class SharedKernel(NamedTuple):
    """A kernel (H,S,A,S) with the two parts of its error, `own` and `common` (H,S,A), per unit of noise."""

    kernel: Floats
    own: Floats
    common: Floats


@dataclass(frozen=True, eq=False)
class SharedBeliefs:
    """Everything that is believed before an episode; costs only under bandit feedback.

    `kernel` (H,S,A,S) with `own` and `common` (H,S,A); `hope` is the largest reward that is thought likely and
    `floor` the variance of a reward of which little was seen; `reward_weight` is the m of the rewards.
    """

    kernel: Floats
    own: Floats
    common: Floats
    reward: SharedTable
    costs: tuple[SharedTable, ...]
    reward_weight: float
    hope: float
    floor: float

    @property
    def size(self) -> Floats:
        """How many departures from a row alone would tell as much about it."""
        return 1.0 / (self.own + self.common)


def shared_beliefs(setting: Setting, counts: Counts, evidence: Evidence, stationary: bool = False) -> SharedBeliefs:
    """The estimates with the weights that have predicted best (or the steps pooled, in a stationary world)."""
    n = counts.visits
    sharing = POOLED if stationary else best_weight(evidence.kernel_score)
    p, p_own, p_common = shared_kernel(counts.transitions, n, sharing, TRUST)
    weight = POOLED if stationary else best_weight(evidence.reward_score[:, 0])
    mean, spread = rows_met(counts.reward_sum, n)
    hope = min(mean + HOPE * spread, 1.0)
    share = noise_share(counts.reward_sum, evidence.reward_squares, n)
    r, own, common = shared_table(counts.reward_sum, n, weight, hope, TRUST)
    reward = SharedTable(r, own, common, share * r * (1.0 - r))
    floor = share * max(mean * (1.0 - mean) if mean < 0.5 else 0.25, MIN_VARIANCE)
    costs: tuple[SharedTable, ...] = ()
    if setting.feedback == "bandit":
        costs = tuple(
            _shared_cost(x, squares, n, score, stationary)
            for x, squares, score in zip(
                unit_cost_sums(counts), evidence.cost_squares, evidence.cost_score, strict=True
            )
        )
    return SharedBeliefs(p, p_own, p_common, reward, costs, weight, hope, floor)


def _shared_cost(sums: Floats, squares: Floats, visits: Floats, score: Floats, stationary: bool) -> SharedTable:
    """A cost table from sums of u = (d+1)/2; its mean and noise in units of d."""
    weight, trust = best_pair(score)
    weight = POOLED if stationary else weight
    u, own, common = shared_table(sums, visits, weight, overall_mean(sums, visits), trust)
    noise = 4.0 * noise_share(sums, squares, visits) * u * (1.0 - u)
    return SharedTable(2.0 * u - 1.0, own, common, noise)


def unit_cost_sums(counts: Counts) -> Floats:
    """Sums of u = (d+1)/2 in [0, 1], (I, H, S, A)."""
    return (counts.cost_sum + counts.visits) / 2.0
