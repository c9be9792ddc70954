"""Counts and empirical means, from feedback alone.

n_h(s,a) and n_h(s,a,s') count visits through the last finished episode; p_hat, r_hat and d_hat are the empirical
means with max(n, 1) below (Eqs. 12-14 of the paper).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.counting import add_counts
from omdpd.problem.arrays import Floats
from omdpd.problem.records import fast_init
from omdpd.problem.setting import BanditFeedback, Feedback, Setting

# Costs that are not summed.
NO_COSTS = np.zeros((0, 1))


@fast_init
@dataclass(frozen=True, eq=False)
class Counts:
    """Everything a learner keeps of the past: sums only; means are derived when needed.

    `visits` (H,S,A), `transitions` (H,S,A,S) whose last step stays zero, `reward_sum` (H,S,A), `cost_sum` (I,H,S,A).
    """

    visits: Floats
    transitions: Floats
    reward_sum: Floats
    cost_sum: Floats

    @staticmethod
    def empty(setting: Setting) -> Counts:
        """No visit yet."""
        H, S, A = setting.shape
        return Counts(
            np.zeros((H, S, A)), np.zeros((H, S, A, S)), np.zeros((H, S, A)), np.zeros((setting.n_constraints, H, S, A))
        )

    def add(self, feedback: Feedback) -> Counts:
        """The counts with one more episode; costs are summed under bandit feedback only."""
        walk, (_, S, A) = feedback.trajectory, self.visits.shape
        costs = feedback.costs if isinstance(feedback, BanditFeedback) else NO_COSTS
        new = Counts(self.visits.copy(), self.transitions.copy(), self.reward_sum.copy(), self.cost_sum.copy())
        add_counts(
            new.visits.reshape(-1), new.transitions.reshape(-1, S), new.reward_sum.reshape(-1),
            new.cost_sum.reshape(len(new.cost_sum), -1), S, A, walk.states, walk.actions, feedback.rewards, costs,
        )  # fmt: skip
        return new

    def pooled(self) -> Counts:
        """The counts of a world whose dynamics and tables do not depend on the step: every step sees all of them."""
        H = self.visits.shape[0]
        return Counts(
            np.repeat(self.visits.sum(0, keepdims=True), H, axis=0),
            np.repeat(self.transitions.sum(0, keepdims=True), H, axis=0),
            np.repeat(self.reward_sum.sum(0, keepdims=True), H, axis=0),
            np.repeat(self.cost_sum.sum(1, keepdims=True), H, axis=1),
        )

    @property
    def departures(self) -> Floats:
        """How often a next state was seen from (h, s, a); equals `visits` before the last step."""
        return self.transitions.sum(axis=-1)

    def transition_mean(self) -> Floats:
        """p_hat, uniform where nothing was seen."""
        n = self.departures
        return np.where(n[..., None] > 0.0, self.transitions / np.maximum(n, 1.0)[..., None], 1.0 / n.shape[1])

    def reward_mean(self) -> Floats:
        """r_hat, zero where nothing was seen."""
        return self.reward_sum / np.maximum(self.visits, 1.0)

    def cost_mean(self) -> Floats:
        """d_hat, zero where nothing was seen."""
        return self.cost_sum / np.maximum(self.visits, 1.0)
