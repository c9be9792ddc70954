"""OPDOP: optimistic primal-dual proximal policy optimisation.

With utilities g = (1 - d) / 2 in [0, 1] and the constraint V(g) >= b = H / 2:

    pi~_k   = (1 - 1/K) pi_{k-1} + (1/K) uniform
    pi_k    proportional to  pi~_k exp( alpha (Q_r + Y_{k-1} Q_g) )               alpha = sqrt(ln A / (H^2 K))
    Y_k     = clip( Y_{k-1} + eta (b - V_g(pi_{k-1})), 0, chi )                  eta = 1 / sqrt K,  chi = 2 H / gap
    Q_r, Q_g from estimates that divide by n + 1, with a bonus beta / sqrt(n + 1), each clipped to [0, H - h + 1]

Certain: all of this.  Ours: the bonus is `reward_scale` (or, for the utility, `cost_scale`) sqrt(L / n) plus
`transition_scale` H sqrt(S L / n); the paper's is the last part with an unspecified constant.  Dividing by n + 1 is a
prior of zero, which the paper's bonus outweighs: a pair that was never seen is worth H - h.  With a smaller bonus it
would be worth little and never be tried, so estimates divide by n v 1 here and an unseen pair is worth H - h; `ridge`
has the paper's n + 1.  The policy just played is evaluated with its own episode's data included.  `primal_scale` and
`dual_scale` multiply alpha and eta (1 is the paper; with it the policy hardly moves within thousands of episodes).
`restarted` is for worlds that move, after Ding and Lavaei (2022): the policy and the dual start again every
`restart_every` episodes (which stand for K in the steps) and only the last `window` episodes are counted.  Certain:
restarts and sliding counts, with lengths from the variation budget.  Ours: the lengths are settings, and no budget of
variation is added to the bonuses.
`room` is the Slater gap in our units, V(d) <= -room, so gap = room / 2.
Source: Ding, Wei, Yang, Wang, Jovanovic (AISTATS 2021), tabular case.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import log_term
from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import WIDTHS, step
from omdpd.learners.needs import Needs, check_needs, episodes_of, room_of
from omdpd.learners.policy_steps import policy_of_logits, tilted, truncated_values
from omdpd.learners.protocol import Card, Report
from omdpd.learners.settings import ONES, Preset, Scaled, nonnegative, positive
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats, Integers, positive_integer
from omdpd.problem.setting import BanditFeedback, Feedback, Setting

# How long a world that moves is taken for one that stays.
RESTART_EVERY = 500


@dataclass(frozen=True, eq=False)
class Window:
    """The last episodes: states, actions and rewards (n, H), costs (n, I, H), oldest first."""

    states: Integers
    actions: Integers
    rewards: Floats
    costs: Floats

    @staticmethod
    def empty(setting: Setting) -> Window:
        """No episode."""
        H, none = setting.horizon, np.zeros((0, setting.horizon), dtype=np.int64)
        return Window(none, none, np.zeros((0, H)), np.zeros((0, setting.n_constraints, H)))

    def after(self, met: BanditFeedback) -> Window:
        """With one more episode."""
        states, actions = met.trajectory.states, met.trajectory.actions
        return Window(
            np.concatenate([self.states, states[None]]), np.concatenate([self.actions, actions[None]]),
            np.concatenate([self.rewards, met.rewards[None]]), np.concatenate([self.costs, met.costs[None]]),
        )  # fmt: skip

    def without_oldest(self) -> Window:
        """Less the first episode."""
        return Window(self.states[1:], self.actions[1:], self.rewards[1:], self.costs[1:])


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the policy in play and the dual Y; with a window, the episodes that the counts are made of."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    dual: float
    recent: Window | None = None


@dataclass(frozen=True)
class OPDOP(Scaled):
    """Proximal policy optimisation; `room` is the Slater gap (None: as the run finds it)."""

    primal_scale: float = nonnegative(30.0)
    dual_scale: float = nonnegative(1.0)
    room: float | None = positive(None)
    _: KW_ONLY
    ridge: bool = False
    restart_every: int | None = None
    window: int | None = None

    card = Card(
        "proximal policy optimisation on optimistic action values, clipped dual",
        ("bandit",),
        "O~(sqrt K) weak regret and violation for stochastic costs",
        "Ding, Wei, Yang, Wang, Jovanovic (AISTATS 2021)",
        "Slater condition with a known gap; one constraint",
    )
    needs = Needs(episodes=True, room=True, single_constraint=True)
    factors = (*WIDTHS, step("primal_scale"))
    restarted = Preset(
        "OPDOP that restarts its policy and counts only the last episodes, for a world that moves.",
        "reward_scale cost_scale transition_scale primal_scale dual_scale restart_every window room",
        restart_every=RESTART_EVERY, window=RESTART_EVERY,
    )  # fmt: skip
    theory = Preset(
        "Bonuses and steps with scales of one, estimates that divide by n + 1.",
        "room", **ONES, primal_scale=1.0, ridge=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("restart_every", "window"):
            if getattr(self, name) is not None:
                positive_integer(name, getattr(self, name))

    def init(self, setting: Setting) -> State:
        """The uniform policy and a dual of zero."""
        check_needs(self, setting)
        recent = None if self.window is None else Window.empty(setting)
        return State(setting, 0, Counts.empty(setting), uniform_policy(setting), 0.0, recent)

    def policy(self, state: State) -> Floats:
        """pi_k."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Evaluate the policy just played, then move it and the dual."""
        setting, H, A = state.setting, state.setting.horizon, state.setting.n_actions
        K = self._stretch(setting)
        counts, recent = self._counted(state, feedback)
        Q_r, Q_g, V_g = self._evaluate(state, counts)
        alpha = self.primal_scale * float(np.sqrt(np.log(A) / (H**2 * K)))
        mixed = (1.0 - 1.0 / K) * state.policy + 1.0 / (K * A)
        policy = policy_of_logits(tilted(np.log(mixed), Q_r + state.dual * Q_g, alpha, 1.0))
        most = 2.0 * H / (room_of(self, self.room) / 2.0)
        dual = state.dual + self.dual_scale * (H / 2.0 - V_g) / float(np.sqrt(K))
        state = replace(state, k=state.k + 1, counts=counts, recent=recent)
        if self.restart_every is not None and state.k % self.restart_every == 0:
            return replace(state, policy=uniform_policy(setting), dual=0.0)
        return replace(state, policy=policy, dual=min(max(dual, 0.0), most))

    def report(self, state: State) -> Report:
        """The dual in our units: half of Y weighs a unit of d."""
        return Report(weight=state.dual / 2.0)

    def _stretch(self, setting: Setting) -> int:
        """K, or the number of episodes between two restarts."""
        K = episodes_of(self, setting)
        return K if self.restart_every is None else min(self.restart_every, K)

    def _counted(self, state: State, feedback: Feedback) -> tuple[Counts, Window | None]:
        """The counts with one more episode, less the one that leaves the window."""
        counts = state.counts.add(feedback)
        if self.window is None or state.recent is None:
            return counts, None
        assert isinstance(feedback, BanditFeedback)
        recent = state.recent.after(feedback)
        if len(recent.states) <= self.window:
            return counts, recent
        return _without_oldest(counts, recent), recent.without_oldest()

    def _evaluate(self, state: State, counts: Counts) -> tuple[Floats, Floats, float]:
        """Q_r, Q_g and the value of the utility of the policy in play."""
        setting = state.setting
        counts = self.pooled(counts)
        n = counts.visits + 1.0 if self.ridge else np.maximum(counts.visits, 1.0)
        p = counts.transitions / (counts.departures + 1.0)[..., None] if self.ridge else counts.transition_mean()
        L = log_term(setting, state.k, self.delta)
        for_kernel = self.transition_scale * setting.horizon * np.sqrt(setting.n_states * L / n)
        reward = counts.reward_sum / n + self.reward_scale * np.sqrt(L / n) + for_kernel
        utility = 0.5 * (counts.visits - counts.cost_sum[0]) / n + self.cost_scale * np.sqrt(L / n) + for_kernel
        if not self.ridge:
            unseen, left = counts.visits == 0.0, np.arange(setting.horizon, 0, -1.0)[:, None, None]
            reward, utility = np.where(unseen, left, reward), np.where(unseen, left, utility)
        Q_r, _ = truncated_values(state.policy, p, reward, 0.0, 0.0, 1.0)
        Q_g, V_g = truncated_values(state.policy, p, utility, 0.0, 0.0, 1.0)
        return Q_r, Q_g, float(setting.mu @ V_g[0])


def _without_oldest(counts: Counts, recent: Window) -> Counts:
    """The counts less the first episode of the window."""
    states, actions = recent.states[0], recent.actions[0]
    steps = np.arange(len(states))
    visits, moves = counts.visits.copy(), counts.transitions.copy()
    rewards, costs = counts.reward_sum.copy(), counts.cost_sum.copy()
    visits[steps, states, actions] -= 1.0
    moves[steps[:-1], states[:-1], actions[:-1], states[1:]] -= 1.0
    rewards[steps, states, actions] -= recent.rewards[0]
    costs[:, steps, states, actions] -= recent.costs[0]
    return Counts(visits, moves, rewards, costs)
