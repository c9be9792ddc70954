"""Triple-Q: model-free; two optimistic Q-tables and a virtual queue that is settled once per frame.

With utilities g = (1 - d) / 2 in [0, 1] and the constraint V(g) >= rho = H / 2; chi = eta = K^0.2, frames of K^0.6:

    a  = argmax Q_h(s,.) + (Z / eta) C_h(s,.)
    Q_h(s,a) <- (1 - alpha_t) Q_h(s,a) + alpha_t ( r + Q_{h+1}(s',a') + b_t )          alpha_t = (chi + 1) / (chi + t)
    C_h(s,a) <- (1 - alpha_t) C_h(s,a) + alpha_t ( g + C_{h+1}(s',a') + b_t )          b_t = H sqrt(iota alpha_t) / 4
    at the end of a frame:  Z <- [ Z + rho + eps - mean of C_1(s_1,a_1) ]^+,  and Q = C = H, visits 0

Certain: all of this, with iota = 128 ln(sqrt(2SAH) K) and eps = 8 sqrt(S A H^6 iota^3) / K^0.2.  Ours: factors on b_t
for either table and on eps (1 is the paper, whose b_t is about 10 H and whose eps exceeds H at every practical K: hence
the small defaults), and that by default tables and visits are kept at the end of a frame, as runs in practice do
(`restart=True` is the paper; at a few thousand episodes its frames are too short to learn the constraint in).
`restarted` is the non-stationary form of Wei, Ghosh, Shroff (2023): everything starts again every `restart_every`
episodes, which stand for K in all constants.  Certain: restarts whose length follows from the variation budget.  Ours:
the length is a setting, and no budget of variation is added to the bonuses.
Source: Wei, Liu, Ying (AISTATS 2022), Algorithm 1.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.learners.factors import margin, reward_width
from omdpd.learners.needs import check_needs, episodes_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import Preset, Queued
from omdpd.problem.arrays import Floats, Integers, positive_integer
from omdpd.problem.setting import BanditFeedback, Feedback, Setting

# How long a world that moves is taken for one that stays.
RESTART_EVERY = 500


@dataclass(frozen=True, eq=False)
class State:
    """Both tables (H, S, A), visits of the frame, the queue, the frame's sum of C_1 and how many episodes it has."""

    setting: Setting
    k: int
    Q: Floats
    C: Floats
    visits: Floats
    queue: float
    earned: float
    in_frame: int


@dataclass(frozen=True)
class TripleQ(Queued):
    """Model-free; the scales multiply the published bonuses, which are about 10 H."""

    _: KW_ONLY
    restart_every: int | None = None

    card = Card(
        "model-free: two Q-tables and a virtual queue, frames of K^0.6",
        ("bandit",),
        "O~(K^0.8) regret, no weak violation for K large, for stochastic costs",
        "Wei, Liu, Ying (AISTATS 2022)",
        "Slater condition; one constraint",
    )
    factors = (reward_width(), margin("tightening_scale", 1e-9))  # the published tightening is about 1e8 here
    restarted = Preset(
        "Triple-Q that forgets everything every so many episodes, for a world that moves.",
        "reward_scale cost_scale tightening_scale restart_every", restart_every=RESTART_EVERY,
    )  # fmt: skip
    theory = Preset(
        "The published bonuses and tightening, and a fresh start in every frame.",
        "", reward_scale=1.0, cost_scale=1.0, tightening_scale=1.0, restart=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.restart_every is not None:
            positive_integer("restart_every", self.restart_every)

    def init(self, setting: Setting) -> State:
        """Both tables at H, an empty queue."""
        check_needs(self, setting)
        K = episodes_of(self, setting)
        if self.restart_every is not None:
            setting = replace(setting, n_episodes=min(self.restart_every, K))
        full = np.full(setting.shape, float(setting.horizon))
        return State(setting, 0, full, full, np.zeros(setting.shape), 0.0, 0.0, 0)

    def policy(self, state: State) -> Floats:
        """Greedy for Q + (Z / eta) C, the first of equals."""
        eta = episodes_of(self, state.setting) ** 0.2
        best = np.argmax(state.Q + (state.queue / eta) * state.C, axis=-1)
        return np.eye(state.setting.n_actions)[best]

    def update(self, state: State, feedback: Feedback) -> State:
        """One pass of both updates along the trajectory, then the end of the frame if it is one."""
        assert isinstance(feedback, BanditFeedback)
        H, K = state.setting.horizon, episodes_of(self, state.setting)
        visited = (np.arange(H, dtype=np.int64), feedback.trajectory.states, feedback.trajectory.actions)
        visits = state.visits.copy()
        visits[visited] += 1.0
        chi = K**0.2
        alpha = (chi + 1.0) / (chi + visits[visited])
        bonus = 0.25 * H * np.sqrt(self._iota(state.setting) * alpha)
        utilities = 0.5 * (1.0 - feedback.costs[0])
        Q = _learn(state.Q, visited, alpha, feedback.rewards + self.reward_scale * bonus)
        C = _learn(state.C, visited, alpha, utilities + self.cost_scale * bonus)
        earned = state.earned + float(state.C[0, visited[1][0], visited[2][0]])
        state = replace(state, k=state.k + 1, Q=Q, C=C, visits=visits, earned=earned, in_frame=state.in_frame + 1)
        if self.restart_every is not None and state.k % K == 0:
            return replace(self.init(state.setting), k=state.k)
        return self._settle(state) if state.in_frame >= K**0.6 else state

    def report(self, state: State) -> Report:
        """What a unit of d weighs against one of reward: half of Z / eta."""
        return Report(weight=0.5 * state.queue / episodes_of(self, state.setting) ** 0.2)

    def _settle(self, state: State) -> State:
        """The end of a frame: the queue moves, and with `restart` learning starts again."""
        H, S, A = state.setting.shape
        K = episodes_of(self, state.setting)
        eps = self.tightening_scale * 8.0 * float(np.sqrt(S * A * H**6 * self._iota(state.setting) ** 3)) / K**0.2
        queue = max(state.queue + H / 2.0 + eps - state.earned / state.in_frame, 0.0)
        state = replace(state, queue=queue, earned=0.0, in_frame=0)
        full = np.full((H, S, A), float(H))
        return replace(state, Q=full, C=full, visits=np.zeros((H, S, A))) if self.restart else state

    def _iota(self, setting: Setting) -> float:
        """128 ln(sqrt(2 S A H) K)."""
        H, S, A = setting.shape
        return 128.0 * float(np.log(np.sqrt(2.0 * S * A * H) * episodes_of(self, setting)))


def _learn(table: Floats, visited: tuple[Integers, Integers, Integers], alpha: Floats, gain: Floats) -> Floats:
    """One step of Q-learning at every pair of a trajectory, towards the gain plus the next pair's value before it."""
    learnt = table.copy()
    before = table[visited]
    learnt[visited] = (1.0 - alpha) * before + alpha * (gain + np.r_[before[1:], 0.0])
    return learnt
