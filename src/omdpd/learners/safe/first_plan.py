"""From counts of logged episodes to what is played next: a certified plan, or the baseline.

The margin of a plan is (t + z') standard errors: t is what choosing flatters (`learners/safe/certified.py`), and
z' = z sqrt(1 + s^2 / R) is wider than the quantile z of the confidence by what R splits leave unknown of t.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from omdpd.learners.safe.certified import SPLITS, Judged, Margin, certified_plan, flattery, judged
from omdpd.learners.safe.supported import Flags, Supported, supported
from omdpd.learners.safe.tally import Tally
from omdpd.problem.arrays import Floats, InvalidInputError, check_number
from omdpd.problem.setting import Setting

# Episodes below which no plan is made: their halves say too little of it.
FEWEST = 20
# A plan with a larger share of its steps on rows that were tried too seldom is not certified: halves of so few tries
# show less flattery than there is.  Too seldom is fewer times than `least`, or than `least` episodes of the plan would
# try a row.  Where this makes a plan fail, one without those rows is looked for, so many times.
MOST_RARE, AGAIN = 0.1, 3


@dataclass(frozen=True, eq=False)
class Rules:
    """What a plan is asked for: budgets (I,), confidence for each, tries from which on a row is known, allowed rows."""

    budget: Floats
    confidence: float
    least: int
    allowed: Flags | None = None

    @property
    def z(self) -> float:
        """How many standard errors the confidence asks for."""
        return NormalDist().inv_cdf(self.confidence)


@dataclass(frozen=True, eq=False)
class FirstPlan:
    """What is played next, judged by all episodes; `certified` is False where it is the baseline, for want of a plan.

    `baseline` is that of the baseline; `nearest` the plan that came nearest where none was certified, and `rare` the
    share of its steps, or of the plan's, on rows that were tried too seldom.
    """

    model: Supported
    judged: Judged
    margin: Margin
    certified: bool
    baseline: Judged
    nearest: Judged | None
    rare: float


def check_confidence(name: str, confidence: float) -> None:
    """Refuse a confidence that asks for no margin (a half or less), or for certainty."""
    check_number(name, confidence, "a share")
    if confidence <= 0.5:
        raise InvalidInputError(f"{name} is {confidence}, but must be above 0.5 and below 1: 0.95 is usual")


def allowed_rows(setting: Setting, tally: Tally) -> Flags | None:
    """Allowed actions (n, S, A), with n as of the counts; None where all are."""
    if setting.allowed is None:
        return None
    given = np.asarray(setting.allowed, dtype=np.bool_)
    if len(given) > tally.n_steps:
        raise InvalidInputError("allowed differs by step, but steps are pooled: give (S, A), or say stationary=False")
    return np.broadcast_to(given, (tally.n_steps, *given.shape[1:]))


def cloned(tally: Tally, allowed: Flags | None = None) -> Floats:
    """The policy that played (H, S, A), as shares of the allowed actions.

    Of a state that was not met at a step those at all steps; of one that was never met uniform.
    """
    H, S, A, n = tally.horizon, tally.n_states, tally.n_actions, tally.n_steps
    may = np.ones((n, S, A)) if allowed is None else allowed.astype(np.float64)
    visits, policy = tally.visits * may, may / may.sum(axis=2, keepdims=True)
    for counts in (visits.sum(axis=0) * may, visits):
        total = counts.sum(axis=2, keepdims=True)
        policy = np.where(total > 0.0, counts / np.maximum(total, 1.0), policy)
    return np.repeat(policy, H // n, axis=0)


def measured_margin(tally: Tally, initial: Floats, baseline: Floats, rules: Rules) -> Margin:
    """The margin that plans from these episodes need."""
    t, spread = flattery(tally, initial, baseline, rules.budget, rules.z, rules.least, rules.allowed)
    return Margin(t, rules.z * float(np.sqrt(1.0 + spread**2 / len(SPLITS))))


def first_plan(tally: Tally, initial: Floats, baseline: Floats, rules: Rules, margin: Margin) -> FirstPlan:
    """The best certified plan; or the baseline, where there is none or it promises more, within its budgets."""
    sample, needed, rare = tally.sample(), np.full((1, 1, 1), float(rules.least)), 0.0
    for _ in range(1 + AGAIN):
        model = supported(tally, sample, initial, needed, rules.allowed)
        plan = certified_plan(model, baseline, rules.budget, margin)
        if plan is not None:
            tries = rules.least * np.maximum(model.flow(plan.occupancy), 1.0)
            rare, needed = model.share(plan.occupancy, model.visits < tries), np.maximum(needed, tries[:, :-1])
        if rare <= MOST_RARE or tally.n_steps > 1:
            break
    # The baseline was not chosen for what these episodes say of it, so that nothing flatters it.
    fixed = Margin(np.zeros_like(margin.flattery), rules.z)
    known = judged(model, baseline, rules.budget, fixed)
    promises = known.low > plan.low and bool((known.totals[1:] <= rules.budget).all()) if plan is not None else True
    if plan is not None and plan.ok and not promises and rare <= MOST_RARE:
        return FirstPlan(model, plan, margin, True, known, None, rare)
    return FirstPlan(model, known, fixed, False, known, plan, rare)
