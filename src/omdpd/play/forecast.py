"""A forecast says, before an episode is played, what it will earn and cost in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from omdpd.learners.safe.certified import Judged, Margin
from omdpd.learners.safe.deviations import LEAST_MET
from omdpd.learners.safe.first_plan import FEWEST, MOST_RARE, FirstPlan, Rules
from omdpd.learners.safe.supported import Flags, Supported
from omdpd.learners.safe.tally import Tally
from omdpd.learners.safe_start import State, kept
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import Setting

# The share of the flattery that halves showed which is certain to be there: they may show more than the whole has.
LEAST_FLATTERY = 0.5
# A budget of which less than so many standard errors is left, after the margin, is used up.
USED_UP = 0.3


@dataclass(frozen=True)
class Amount:
    """One quantity of an episode: expected, its interval, its budget and the chance of it, and the mean of the logs.

    All but the chance is about the plan; `extra` is what trying other actions may add to it, which the chance counts.
    """

    name: str
    expected: float
    low: float
    high: float
    budget: float | None = None
    chance: float | None = None
    logged: float | None = None
    extra: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What a policy is expected to earn and cost, from logs.

    Attributes
    ----------
    what
        What was forecast, in words: a plan, or the baseline and why.
    amounts
        The value, then every cost.  Expected amounts are means over many episodes; intervals are theirs, too.
    confidence
        That a cost is at most the high end of its interval; both ends hold with twice the error.
    never, rarely
        Shares of the steps on pairs that were never tried, and on pairs tried too seldom to be planned with.
    notes
        What was left out, and why.
    allowance
        What trying other actions may add to the costs, beyond the intervals; empty if nothing.
    """

    what: str
    amounts: tuple[Amount, ...]
    confidence: float
    never: float
    rarely: float
    notes: tuple[str, ...] = ()
    allowance: str = ""

    @property
    def value(self) -> Amount:
        """What an episode is expected to earn."""
        return self.amounts[0]

    @property
    def costs(self) -> tuple[Amount, ...]:
        """What an episode is expected to cost."""
        return self.amounts[1:]

    @property
    def warning(self) -> str:
        """Which budgets are not certified to hold, in words; empty if all are."""
        open_ = [each for each in self.costs if each.chance is not None and each.chance < self.confidence]
        if not open_:
            return ""
        likely = "is likely to go" if min(each.chance or 0.0 for each in open_) < 0.5 else "may go"
        held = ", ".join(f"{each.name} holds with {_percent(each.chance)}" for each in open_)
        return f"WARNING: this policy {likely} over its budget ({held})."

    def lines(self) -> list[str]:
        """The forecast for a person."""
        share = f"{100 * self.confidence:.3g} % at each end"
        head = f"{'expected':>10} {share:>21} {'budget':>10} {'holds with':>10}"
        column = "" if self.value.logged is None else f"{'in logs':>10} "
        text = [self.what, *([self.warning] if self.warning else []), f"{'':<20} {column}{head}"]
        for each in self.amounts:
            shown = "" if each.logged is None else f"{each.logged:>10.5g} "
            bound = "" if each.budget is None else f" {each.budget:>10.6g} {_percent(each.chance):>10}"
            text.append(f"{each.name:<20} {shown}{each.expected:>10.5g} {each.low:>10.5g} {each.high:>10.5g}{bound}")
        return [*text, *([self.allowance] if self.allowance else []), *self.notes]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Forecast({', '.join(f'{each.name} {each.expected:.5g}' for each in self.amounts)})"


def forecast_of(found: FirstPlan, tally: Tally, rules: Rules, names: Sequence[str], declared: bool) -> Forecast:
    """Forecast what is played next; `declared` says whether the user gave the baseline."""
    plan, model = found.judged, found.model
    amounts = amounts_of(plan.totals, plan.errors, found.margin, rules, names)
    means, spread = tally.means_of_episodes()
    amounts = tuple(replace(each, logged=float(x)) for each, x in zip(amounts, means, strict=True))
    share = [model.share(plan.occupancy, rows) for rows in (model.visits == 0.0, model.visits < rules.least)]
    notes = (
        *(_held_back(plan, model, rules, names) if found.certified else ()),
        *_unseen(tally, declared, rules.allowed),
        f"steps on pairs never tried: {100 * share[0]:.1f} %, tried fewer than {rules.least} times: "
        f"{100 * share[1]:.1f} %", *_left_out(model, rules, spread), *_margins(found.margin, rules),
    )  # fmt: skip
    return Forecast(_what(found, tally, rules, names), amounts, rules.confidence, share[0], share[1], notes)


def forecast_of_state(setting: Setting, state: State, confidence: float, in_force: Floats) -> Forecast:
    """The forecast of the policy that `SafeStart` plays next, in the units of a setting, for the budget in force."""
    told, n = state.forecast, state.tally.episodes
    if told is None:
        raise InvalidInputError(
            f"{n} episodes are too few for a forecast: it comes with the first plan, after {FEWEST} of them"
        )
    (low, high), budget, scale = setting.reward_range or (0.0, 1.0), setting.limits, setting.scales
    unit = np.r_[high - low, scale]
    totals = np.r_[setting.horizon * low, budget] + unit * told.totals
    rules, margin = Rules(in_force, confidence, 1), Margin(told.flattery, told.z)
    amounts = amounts_of(totals, unit * told.errors, margin, rules, setting.cost_names, scale * told.extra)
    what = "A certified plan" if told.certified else "The baseline, since nothing better is certified"
    if told.certified and any(each.high > (each.budget or 0.0) for each in amounts[1:]):
        what = f"A plan that was certified, and is kept while its budgets hold with {100 * kept(confidence):.3g} %"
    notes = (*_unseen(state.tally, state.baseline is not None, state.allowed), *_margins(margin, rules))
    since = f"; {n - state.planned_at} more since are not in it yet" if n > state.planned_at else ""
    return Forecast(
        f"{what}, from {state.planned_at} episodes{since}.", amounts, confidence, 0.0, 0.0, notes, _allowance(amounts)
    )


def amounts_of(
    totals: Floats, errors: Floats, margin: Margin, rules: Rules, names: Sequence[str], extra: Floats | float = 0.0
) -> tuple[Amount, ...]:
    """Value and costs with intervals, and the chances that budgets hold."""
    sign = np.r_[-1.0, np.ones(len(rules.budget))]
    bias = sign * margin.flattery * errors
    expected = totals + bias
    # Halves may flatter more than the whole does, so that the far end is taken at half of what they showed.
    far, near = totals + LEAST_FLATTERY * bias - sign * margin.z * errors, expected + sign * margin.z * errors
    low, high = np.minimum(far, near), np.maximum(far, near)
    room = rules.budget - expected[1:] - extra
    chances = [NormalDist().cdf(float(x)) for x in room / (errors[1:] * margin.z / rules.z)]
    more = np.broadcast_to(extra, room.shape).tolist()
    ends = zip(expected.tolist(), low.tolist(), high.tolist(), strict=True)
    held = zip([None, *rules.budget.tolist()], [None, *chances], [0.0, *more], strict=True)
    each = zip(("reward", *names), ends, held, strict=True)
    return tuple(Amount(name, *end, budget=b, chance=p, extra=x) for name, end, (b, p, x) in each)


def _what(found: FirstPlan, tally: Tally, rules: Rules, names: Sequence[str]) -> str:
    if found.certified:
        return f"A plan from {tally.episodes} logged episodes, certified to be within each budget."
    if found.nearest is None:
        why = "they show no plan at all that meets the budgets"
    elif found.nearest.ok and found.rare > MOST_RARE:
        share, few = f"{100 * found.rare:.3g} % of the best plan's steps", f"fewer than {rules.least} times"
        why = f"{share} are on pairs tried {few}, or {few} as often as in an episode of it"
    elif found.nearest.ok:
        why = f"the best plan they certify promises {found.nearest.low:.5g}"
    else:
        over = int(np.argmax((found.nearest.upper - rules.budget) / found.nearest.errors[1:]))
        most, limit = found.nearest.upper[over], rules.budget[over]
        why = f"of the plans they support, the nearest may cost {most:.5g} where {limit:.5g} is allowed: {names[over]}"
    return f"The baseline: {tally.episodes} logged episodes certify nothing better ({why})."


def _percent(chance: float | None) -> str:
    """A chance for a person: no digits that no forecast has."""
    return "< 0.1 %" if not chance or chance < 1e-3 else f"{100 * chance:.1f} %"


def _allowance(amounts: Sequence[Amount]) -> str:
    each = ", ".join(f"{a.extra:.3g} ({a.name})" for a in amounts if a.extra > 0.0)
    return f"Trying other actions may add up to {each}, beyond the intervals and within the budgets." if each else ""


def _held_back(plan: Judged, model: Supported, rules: Rules, names: Sequence[str]) -> tuple[str, ...]:
    """Why a certified plan earns no more: budgets that are used up, or actions that the logs do not know."""
    room = (rules.budget - plan.upper) / plan.errors[1:]
    if tight := [name for name, left in zip(names, room, strict=True) if left < USED_UP]:
        return (f"the plan is held back by its budget and margin: {', '.join(tight)}",)
    may = True if rules.allowed is None else rules.allowed
    seldom = ((model.visits[:, :-1] < rules.least) & may).any(axis=2)
    often = (model.flow(plan.occupancy)[:, :-1].sum(axis=2) >= LEAST_MET) & seldom
    used = ", ".join(f"{x:.3g} of {b:.6g} {name}" for x, b, name in zip(plan.upper, rules.budget, names, strict=True))
    n = int(np.count_nonzero(often.any(axis=0)))
    why = f", but actions that were tried fewer than {rules.least} times, in {n} of its states" if n else ""
    return (f"no budget holds the plan back (it may use {used}){why}",)


def _unseen(tally: Tally, declared: bool, allowed: Flags | None) -> tuple[str, ...]:
    """What is played in states that no episode met, where there is a choice."""
    choices = tally.n_actions if allowed is None else allowed.sum(axis=2).max(axis=0)
    n = int(np.count_nonzero((tally.visits.max(axis=(0, 2)) == 0.0) & (np.asarray(choices) > 1)))
    if declared:
        return (f"states never seen: {n}; the baseline is played there",) if n else ()
    note = f"NOTE: states never seen: {n}; every action there is equally likely: give a baseline, or allowed="
    return (note,) if n else ()


def _left_out(model: Supported, rules: Rules, spread: Floats) -> tuple[str, ...]:
    """What no plan could use, and why; and how single episodes vary."""
    visits, used = model.visits[:, :-1], model.allowed[:, :-1]
    may = np.ones_like(used) if rules.allowed is None else np.broadcast_to(rules.allowed, used.shape)
    never, seldom = may & (visits == 0.0), may & (visits > 0.0) & (visits < rules.least)
    out, kept, banned = (int(np.count_nonzero(x)) for x in (may & (visits > 0.0) & ~used, seldom & used, ~may))
    each, few = ", ".join(f"{x:.3g}" for x in spread), f"tried fewer than {rules.least} times"
    return (
        f"left out: {int(np.count_nonzero(never))} pairs never tried, {out} {few}"
        f"{f', {banned} not allowed' if banned else ''}",
        *((f"not left out: {kept} pairs {few}, in states where no action was more often",) if kept else ()),
        f"budgets hold on average: single episodes had standard deviations {each}",
    )


def _margins(margin: Margin, rules: Rules) -> tuple[str, ...]:
    """Where the numbers of a plan come from, a sentence each."""
    each, worst = f"{100 * rules.confidence:.3g} %", ", ".join(f"{t:.1f}" for t in margin.flattery)
    if not margin.flattery.any():
        return (f"ends of intervals are {margin.z:.2f} standard errors from expected, for {each}",)
    return (
        f"expected is what a model of the episodes says, corrected to the worse by {worst}\n"
        "    standard errors (reward, costs): by so much the best of many plans looks too good,\n"
        "    as halves of the episodes show",
        f"the worse end of an interval is {margin.z:.2f} standard errors beyond expected: {rules.z:.2f} for\n"
        f"    {each}, and more since the correction is uncertain; the better end takes half of the\n"
        "    correction, so expected is not the middle",
    )
