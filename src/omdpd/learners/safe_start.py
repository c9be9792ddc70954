"""SafeStart: from logs, or a safe policy, to better ones, every episode within its budget.

    the plan that all episodes so far certify (`learners/safe/`), renewed as they grow; the baseline where there is none

A plan in force stays while it is certified and no new one is better.  Episodes that were played after a plan was chosen
are not flattered by the choice: they correct what halves of the logs showed of flattery, t, whose variance s^2 is known
(`learners/safe/first_plan.py`), as observations do; and the margin is (t + z') standard errors with what s^2 then is,

    s^2 <- 1 / (1 / s^2 + sum 1 / v),    t <- s^2 (t / s_0^2 + sum x / v),    z' = z sqrt(1 + s^2)
    x = (met - forecast) / se,    v = (sd of an episode / se)^2

Costs are counted less the budget of the setting, whatever budget is in force: `room` is what the one in force has more.
With another one, or another law of the first state, a plan is made at once, from all that was counted.

Without a declared baseline it is what the logs show (without logs, what the episodes before the first plan do): own
episodes after that are plans and deviations, and change it no more.  Actions that the setting forbids are never played;
episodes in which they were are counted like others.

With `explore`, that share of certified slack (budget less the upper bound of the plan's cost; where the baseline is
played, its declared room) pays for one-step deviations to actions seldom tried (`learners/safe/deviations.py`).

Ours; kin: SPIBB (Laroche et al. 2019), Seldonian tests (Thomas et al. 2019).  Nothing is proved of these margins: they
are calibrated (docs/first-week.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from omdpd.learners.needs import SafeChoice, SafePolicy, require_feedback, safe_policy_of
from omdpd.learners.protocol import Card, Report
from omdpd.learners.safe.certified import UNPLANNED, Margin, judged
from omdpd.learners.safe.deviations import with_deviations
from omdpd.learners.safe.first_plan import (
    FEWEST,
    Rules,
    allowed_rows,
    check_confidence,
    cloned,
    first_plan,
    measured_margin,
)
from omdpd.learners.safe.supported import Flags
from omdpd.learners.safe.tally import Tally, Walks
from omdpd.problem.arrays import Floats, InvalidInputError, check_number, positive_integer
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.mirror import SolveLog

# Plans are renewed when episodes have grown by this factor, and flattery is measured anew by that one.
REPLAN, REMEASURE = 1.05, 1.25
# A plan in force is given up at this share of the quantile with which it was certified (90 % for 95 %).
KEEP = 0.78
# Deviations are at most this share of the steps.
MOST_DEVIATIONS = 0.1


@dataclass(frozen=True, eq=False)
class Forecasted:
    """What is forecast of the policy in play: value and costs less budgets (1 + I,), standard errors, and corrections.

    `flattery` and `z` are the margin in standard errors; `extra` (I,) is what deviations may cost.
    """

    totals: Floats
    errors: Floats
    flattery: Floats
    z: float
    extra: Floats
    certified: bool


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the plan in force and its forecast, the policy in play (with deviations), and when each was made.

    `room` (I,) is the budget in force less that of the setting; None for none.  `baseline` was declared; `shown` is
    what the logs show, kept from them on.
    """

    setting: Setting
    tally: Tally
    baseline: Floats | None
    plan: Floats
    policy: Floats
    forecast: Forecasted | None
    flattery: Floats
    z: float
    corrections: Floats
    measured_at: int
    planned_at: int
    solves: int
    uncertified: int
    room: Floats | None = None
    shown: Floats | None = None

    @property
    def fallback(self) -> Floats:
        """The baseline: declared, shown by the logs, or by what was played so far."""
        known = self.shown if self.baseline is None else self.baseline
        return cloned(self.tally, self.allowed) if known is None else known

    @property
    def allowed(self) -> Flags | None:
        """Allowed actions, as counts are kept; None where all are."""
        return allowed_rows(self.setting, self.tally)

    @property
    def limit(self) -> Floats:
        """What an episode may cost more than the budget of the setting, (I,)."""
        return np.zeros(self.setting.n_constraints) if self.room is None else self.room


@dataclass(frozen=True)
class SafeStart:
    """Plans that logs and own episodes certify to be within every budget; else the baseline.

    Parameters
    ----------
    safe
        The baseline and its cost; None where logs are to show it (or, without logs, the uniform policy).  What it is
        is settled with the first plan.
    confidence
        With which each budget is to hold, above 0.5.
    least
        Tries from which on a state-action pair may be planned with.
    stationary
        Whether the world is the same at every step.
    explore
        The share of certified slack that deviations may use, at most 1; 0 for none.
    """

    safe: SafePolicy | SafeChoice | None = None
    confidence: float = 0.95
    least: int = 5
    stationary: bool = True
    explore: float = 0.5

    keeps_to_mask = True

    def __post_init__(self) -> None:
        check_number("SafeStart's explore", self.explore, "at least 0")
        check_confidence("SafeStart's confidence", self.confidence)
        if self.explore > 1.0:
            raise InvalidInputError(f"SafeStart's explore is {self.explore}, but must be at most 1: it is a share")
        positive_integer("SafeStart's least", self.least)

    @staticmethod
    def practical(
        confidence: float = confidence,
        least: int = least,
        stationary: bool = stationary,
        explore: float = explore,
        safe_policy: SafeChoice = "least-cost",
    ) -> SafeStart:
        """Certified plans from what was played so far, around a known baseline, with deviations."""
        return SafeStart(safe_policy, confidence, least, stationary, explore)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "plans certified from logs and own episodes, corrected for the optimiser's curse",
            ("bandit",),
            "none proved: each plan is within its budgets with a calibrated confidence",
            "ours",
            "a baseline that is safe, or logs of one",
        )

    def init(self, setting: Setting) -> State:
        """The baseline."""
        require_feedback(self, setting, "bandit")
        if isinstance(self.safe, str):
            raise InvalidInputError("SafeStart must be given a safe policy: set safe=SafePolicy(policy, cost), or None")
        baseline = None if self.safe is None else safe_policy_of(self, self.safe, setting).policy
        tally, flattery = Tally.empty(setting, self.stationary), np.full(1 + setting.n_constraints, UNPLANNED)
        first = cloned(tally, allowed_rows(setting, tally)) if baseline is None else baseline
        return State(
            setting, tally, baseline, first, first, None, flattery,
            NormalDist().inv_cdf(self.confidence), np.zeros((2, 1 + setting.n_constraints)), 0, 0, 0, 0,
        )  # fmt: skip

    def policy(self, state: State) -> Floats:
        """The plan in force, with deviations; or the baseline."""
        return state.policy.copy()

    def counted(self, state: State, logged: Sequence[BanditFeedback]) -> State:
        """A state that has counted logged episodes; the next update plans with them."""
        return replace(state, tally=state.tally.add(Walks.of(*logged))) if logged else state

    def like_logs(self, state: State) -> State:
        """A state whose baseline is what logs show, if none was declared; it is played where there is no plan."""
        if state.baseline is not None:
            return state
        shown = cloned(state.tally, state.allowed)
        return (
            replace(state, shown=shown) if state.planned_at else replace(state, shown=shown, plan=shown, policy=shown)
        )

    def update(self, state: State, feedback: Feedback) -> State:
        """Count; correct what is believed of flattery; plan anew if the episodes have grown enough."""
        assert isinstance(feedback, BanditFeedback)
        walk = Walks.of(feedback)
        state = replace(state, corrections=_corrected(state, walk), tally=state.tally.add(walk))
        n = state.tally.episodes
        if n < FEWEST or n < REPLAN * state.planned_at:
            return state
        return self._planned(state)

    def with_budget(self, state: State, room: Floats) -> State:
        """The state with another budget in force, which is `room` more than the setting's; with a plan for it."""
        return self.replanned(replace(state, room=room, measured_at=0, planned_at=0))

    def with_start(self, state: State, initial: Floats) -> State:
        """The state with another law of the first state, which the next plan is for; the same one if it is its law."""
        if np.array_equal(initial, state.setting.mu):
            return state
        return replace(state, setting=replace(state.setting, initial=initial), measured_at=0, planned_at=0)

    def replanned(self, state: State) -> State:
        """The state with a plan, where none was made yet for its budget and its law."""
        return state if state.planned_at or state.tally.episodes < FEWEST else self._planned(state)

    def report(self, state: State) -> Report:
        """Plans made, and how many of them were not certified."""
        return Report(SolveLog(solves=state.solves), infeasible=state.uncertified)

    def _planned(self, state: State) -> State:
        """The next plan: a new one, the one in force, or the baseline; with deviations where there is slack.

        The one in force is given up at a share `KEEP` of the quantile; with another budget or law at all of it.
        """
        keep = KEEP if state.planned_at else 1.0
        tally, mu, baseline = state.tally, state.setting.mu, state.fallback
        rules = Rules(state.limit, self.confidence, self.least, state.allowed)
        state = self._measured(state, baseline, rules)
        margin = _believed(state, rules.z)
        found = first_plan(tally, mu, baseline, rules, margin)
        plan, certified, used = found.judged, found.certified, found.margin
        if state.forecast is not None and state.forecast.certified:
            lower = margin if certified else Margin(margin.flattery, keep * margin.z)
            kept = judged(found.model, state.plan, rules.budget, lower)
            if kept.ok and not (certified and plan.low >= kept.low):
                plan, certified, used = kept, True, margin
        most = self.safe.cost if isinstance(self.safe, SafePolicy) and not certified else plan.upper
        policy, extra = with_deviations(
            found.model, plan, self.explore * (state.limit - most), MOST_DEVIATIONS, rules.allowed
        )
        forecast = Forecasted(plan.totals, plan.errors, used.flattery, used.z, extra, certified)
        return replace(
            state, plan=plan.policy, policy=policy, forecast=forecast, planned_at=tally.episodes,
            solves=state.solves + 1, uncertified=state.uncertified + (not certified), shown=baseline,
        )  # fmt: skip

    def _measured(self, state: State, baseline: Floats, rules: Rules) -> State:
        """The state with flattery measured anew, if it is time; halfway between the last measure and this one."""
        n = state.tally.episodes
        if n < REMEASURE * state.measured_at:
            return state
        fresh = measured_margin(state.tally, state.setting.mu, baseline, rules)
        old = fresh.flattery if not state.measured_at else state.flattery
        return replace(state, flattery=0.5 * (old + fresh.flattery), z=fresh.z, measured_at=n)


def kept(confidence: float) -> float:
    """The confidence below which a plan in force is given up."""
    normal = NormalDist()
    return normal.cdf(KEEP * normal.inv_cdf(confidence))


def _believed(state: State, z: float) -> Margin:
    """The margin that halves showed, for the quantile z, corrected by what own episodes showed."""
    (observed, precision), variance = state.corrections, max((state.z / z) ** 2 - 1.0, 0.0)
    left = variance / (1.0 + variance * precision)
    flattery = np.maximum(state.flattery / (1.0 + variance * precision) + left * observed, 0.0)
    return Margin(flattery, z * float(np.sqrt(1.0 + left[1:].max())))


def _corrected(state: State, walk: Walks) -> Floats:
    """What own episodes say of flattery: sums of x / v and of 1 / v."""
    forecast = state.forecast
    if forecast is None or not forecast.certified:
        return state.corrections
    met = np.r_[walk.rewards.sum(), walk.costs.sum(axis=1)]
    sign = np.r_[-1.0, np.ones(len(met) - 1)]
    x = sign * (met - forecast.totals) / forecast.errors
    v = np.maximum((state.tally.means_of_episodes()[1] / forecast.errors) ** 2, 1e-6)
    return state.corrections + np.array([x / v, 1.0 / v])
