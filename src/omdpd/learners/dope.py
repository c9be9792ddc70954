"""DOPE: doubly optimistic and pessimistic exploration around a known baseline policy.

    bbar(h,s,a) = sum_s' radius(h,s,a,s')
    the baseline for K0 = S^2 A H^4 / room^2 episodes, then
    max (r + (H^2 / room) bbar).q   subject to   (d + H bbar).q <= 0,   q in Q(box);     the baseline if infeasible

Certain: all of this, with room = -V(d, baseline) (K0 up to logarithms).  Ours: rewards and costs, known in the paper,
are estimated, with bonuses `reward_scale` and `cost_scale` times sqrt(L/n) that make the reward optimistic and the
cost pessimistic (no violation rests on the latter, so it is not zero); the library's radius with `transition_scale`
(K0 falls with its square, since K0 is when the box is small enough); bbar is at most 2, the distance of two laws, and 0
at the last step, which leads nowhere.  With `narrow` the radius is that of the authors' released experiment,
min(sqrt(p(1-p) L/n) + L/n, L / sqrt n, 1), with our L.
Source: Bura, HasanzadeZonuzy, Kalathil, Shakkottai, Chamberland (NeurIPS 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import (
    DELTA,
    REWARD_SCALE,
    SAFE_COST_SCALE,
    SCALES,
    TRANSITION_SCALE,
    log_term,
    log_term_transition,
    radius,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import SafeChoice, SafePolicy, require_feedback, safe_policy_of
from omdpd.learners.protocol import Card, Report
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import vertex_plan
from omdpd.solvers.regions import Box


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the policy in play, programs solved, and how many had no solution."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    solves: int
    infeasible: int


@dataclass(frozen=True)
class DOPE:
    """The extended program with bonuses for the kernel on both sides; `safe` is the baseline."""

    safe: SafePolicy | SafeChoice = "least-cost"
    reward_scale: float = REWARD_SCALE
    cost_scale: float = SAFE_COST_SCALE
    transition_scale: float = TRANSITION_SCALE
    stationary: bool = False
    delta: float = DELTA
    narrow: bool = False

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=SCALES, shares=("delta",))

    @staticmethod
    def practical(
        reward_scale: float = reward_scale,
        cost_scale: float = cost_scale,
        transition_scale: float = transition_scale,
        stationary: bool = stationary,
        safe_policy: SafeChoice = "least-cost",
        *,
        delta: float = delta,
        narrow: bool = narrow,
    ) -> DOPE:
        """The extended program with kernel bonuses on both sides, around a known baseline."""
        return DOPE(safe_policy, reward_scale, cost_scale, transition_scale, stationary, delta, narrow)

    @staticmethod
    def theory(safe: SafePolicy) -> DOPE:
        """The published bonuses: at usual numbers of episodes nothing but the safe policy is played."""
        return DOPE(safe, 1.0, 1.0, 1.0)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "extended linear program, kernel bonuses on reward and cost, baseline policy",
            ("bandit",),
            "O~(sqrt K) regret, no violation",
            "Bura, HasanzadeZonuzy, Kalathil, Shakkottai, Chamberland (NeurIPS 2022)",
            "a strictly safe policy and its cost are known; rewards and costs too, which are estimated here",
        )

    def init(self, setting: Setting) -> State:
        """The baseline."""
        require_feedback(self, setting, "bandit")
        safe = safe_policy_of(self, self.safe, setting)
        return State(setting, 0, Counts.empty(setting), safe.policy, 0, 0)

    def policy(self, state: State) -> Floats:
        """The plan's policy, or the baseline."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count; after the first episodes replan."""
        safe = safe_policy_of(self, self.safe, state.setting)
        state = replace(state, k=state.k + 1, counts=state.counts.add(feedback))
        if state.k < self.warm_up(state.setting, safe.room):
            return state
        counts = state.counts.pooled() if self.stationary else state.counts
        mu, reach = state.setting.mu, self._reach(state.setting, counts, state.k)
        reward, cost = self._tables(state.setting, counts, state.k, safe.room, reach)
        box = _box(counts, reach)
        plan = vertex_plan(box.lower, box.upper, mu, reward, cost)
        return replace(
            state, policy=plan.policy if plan.feasible else safe.policy, solves=state.solves + 1,
            infeasible=state.infeasible + (not plan.feasible),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.solves), infeasible=state.infeasible)

    def warm_up(self, setting: Setting, room: float) -> float:
        """K0 = S^2 A H^4 / room^2, times the square of the scale of the radius."""
        H, S, A = setting.shape
        return self.transition_scale**2 * S**2 * A * H**4 / room**2

    def _reach(self, setting: Setting, counts: Counts, k: int) -> Floats:
        """The half-width of every entry of the kernel."""
        n, Lp = counts.departures[..., None], log_term_transition(setting, k, self.delta)
        return (narrow_radius if self.narrow else radius)(counts.transition_mean(), n, self.transition_scale, Lp)

    def _tables(self, setting: Setting, counts: Counts, k: int, room: float, reach: Floats) -> tuple[Floats, Floats]:
        """The optimistic reward and the pessimistic costs."""
        H = setting.horizon
        bbar = np.minimum(reach.sum(axis=-1), 2.0)
        bbar[-1] = 0.0
        width = np.sqrt(log_term(setting, k, self.delta) / np.maximum(counts.visits, 1.0))
        reward = counts.reward_mean() + self.reward_scale * width + (H**2 / room) * bbar
        return reward, counts.cost_mean() + self.cost_scale * width + H * bbar


def narrow_radius(p_hat: Floats, n: Floats, scale: float, Lp: float) -> Floats:
    """The half-width of the authors' released code, times `scale`."""
    visits = np.maximum(n, 1.0)
    share = Lp / visits
    reach = np.sqrt(p_hat * (1.0 - p_hat) * share) + share
    return scale * np.minimum(np.minimum(reach, Lp / np.sqrt(visits)), 1.0)


def _box(counts: Counts, reach: Floats) -> Box:
    """The box of half-width `reach` around p_hat; the whole simplex where nothing was seen."""
    p_hat, seen = counts.transition_mean(), counts.departures[..., None] > 0.0
    lower = np.where(seen, np.maximum(p_hat - reach, 0.0), 0.0)
    return Box(*tighten(lower, np.where(seen, np.minimum(p_hat + reach, 1.0), 1.0)))
