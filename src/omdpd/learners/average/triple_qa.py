"""Triple-QA: Triple-Q for averages per step, by tables of discounted totals that are learnt step by step.

With utilities g = (1 - d) / 2 in [0, 1], of which a step needs rho = 1 / 2; T steps in all, chi = eta = T^(1/6),
gamma = 1 - T^(-1/6), frames of T^(2/3) steps:

    a  = argmax Q(s,.) + (Z / eta) C(s,.)
    Q(s,a) <- (1 - alpha_t) Q(s,a) + alpha_t ( r + gamma Q(s',a') + b_t )              alpha_t = (chi + 1) / (chi + t)
    C(s,a) <- (1 - alpha_t) C(s,a) + alpha_t ( g + gamma C(s',a') + b_t )
    at the end of a frame:  Z <- [ Z + rho + eps - (1 - gamma) (mean of C(s,a)) ]^+,  and Q = C = 1 / (1 - gamma)

Certain: discounted tables of reward and utility in the place of averages, updates by the next pair that is played, a
queue that moves once per frame, regret of T^(5/6).  From memory: all powers of T, and b_t = sqrt(iota alpha_t) /
(4 (1 - gamma)), iota = 128 ln(sqrt(2 S A) T), by analogy with Triple-Q.  Ours: the policy stays for a window, at whose
end its steps are learnt from one after the other (the last has no next pair, and is left out); a frame ends with a
window; factors on b_t for either table and on eps, which is 0 by default; by default tables and visits are kept at the
end of a frame (`restart=True` is the paper).
Source: Wei, Liu, Ying (AAAI 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from omdpd.learners.factors import reward_width
from omdpd.learners.needs import check_needs, episodes_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import Queued
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import BanditFeedback, Feedback, Setting


@dataclass(frozen=True, eq=False)
class State:
    """Both tables (2, S, A), visits (S, A), the queue; of the frame, the sum of C where it played, and its steps."""

    setting: Setting
    tables: Floats
    visits: Floats
    queue: float
    earned: float
    in_frame: int


@dataclass(frozen=True)
class TripleQA(Queued):
    """Model-free, for averages; the scales multiply the published bonuses, and `tightening_scale` is eps."""

    card = Card(
        "model-free: two discounted Q-tables and a virtual queue, frames of T^(2/3) steps",
        ("bandit",),
        "O~(T^(5/6)) regret, no weak violation for T large, of T steps without resets",
        "Wei, Liu, Ying (AAAI 2022)",
        "every policy has one closed class; Slater condition; one constraint; its powers of T are from memory",
    )
    needs = replace(Queued.needs, windows=True)
    stationary: ClassVar[bool] = True
    factors = (reward_width(),)

    def init(self, setting: Setting) -> State:
        """Both tables at 1 / (1 - gamma), an empty queue."""
        check_needs(self, setting)
        _, S, A = setting.shape
        return State(setting, np.full((2, S, A), self._root(setting)), np.zeros((S, A)), 0.0, 0.0, 0)

    def policy(self, state: State) -> Floats:
        """Greedy for Q + (Z / eta) C, the first of equals, at every step of the window."""
        H, _, A = state.setting.shape
        Q, C = state.tables
        best = np.argmax(Q + (state.queue / self._root(state.setting)) * C, axis=1)
        return np.repeat(np.eye(A)[best][None], H, axis=0)

    def update(self, state: State, feedback: Feedback) -> State:
        """Learn from the steps of a window one after the other, then end the frame if it has its steps."""
        assert isinstance(feedback, BanditFeedback)
        H, S, A = state.setting.shape
        root, pairs = self._root(state.setting), (feedback.trajectory.states, feedback.trajectory.actions)
        gained = np.array([feedback.rewards, 0.5 * (1.0 - feedback.costs[0])])
        scales = np.array([self.reward_scale, self.cost_scale])
        iota = 128.0 * float(np.log(np.sqrt(2.0 * S * A) * self._steps(state.setting)))
        tables, visits, earned = state.tables.copy(), state.visits.copy(), state.earned
        for h in range(H - 1):
            here, following = (pairs[0][h], pairs[1][h]), (pairs[0][h + 1], pairs[1][h + 1])
            earned += float(tables[(1, *here)])
            visits[here] += 1.0
            alpha = (root + 1.0) / (root + visits[here])
            bonus = scales * 0.25 * root * np.sqrt(iota * alpha)
            target = gained[:, h] + (1.0 - 1.0 / root) * tables[:, following[0], following[1]] + bonus
            tables[:, here[0], here[1]] = (1.0 - alpha) * tables[:, here[0], here[1]] + alpha * target
        state = replace(state, tables=tables, visits=visits, earned=earned, in_frame=state.in_frame + H - 1)
        return self._settled(state) if state.in_frame >= self._steps(state.setting) ** (2.0 / 3.0) else state

    def report(self, state: State) -> Report:
        """What a unit of d weighs against one of reward: half of Z / eta."""
        return Report(weight=0.5 * state.queue / self._root(state.setting))

    def _settled(self, state: State) -> State:
        """The end of a frame: the queue moves, and with `restart` learning starts again."""
        root = self._root(state.setting)
        queue = max(state.queue + 0.5 + self.tightening_scale - state.earned / state.in_frame / root, 0.0)
        first = self.init(state.setting) if self.restart else state
        return replace(first, queue=queue, earned=0.0, in_frame=0)

    def _steps(self, setting: Setting) -> float:
        """T."""
        return float(episodes_of(self, setting) * setting.horizon)

    def _root(self, setting: Setting) -> float:
        """T^(1/6): chi, eta, and 1 / (1 - gamma)."""
        return self._steps(setting) ** (1.0 / 6.0)
