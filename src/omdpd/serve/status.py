"""A status holds all of a session as plain data: for `omdpd session`, the server's answers, and the page."""

from __future__ import annotations

import msgspec
import numpy as np

from omdpd.play.policy import Policy
from omdpd.play.session import Session
from omdpd.problem.arrays import InvalidInputError

# Episodes that are shown one by one, and those from which a policy is judged (`play.books.RECENT` at most).
SHOWN = 100
# A policy with more states or actions is not shown as a table.
MOST_STATES, MOST_ACTIONS = 40, 10


class Amount(msgspec.Struct):
    """One quantity of an episode: expected, the ends of its interval, and its budget if it has one."""

    name: str
    expected: float
    low: float
    high: float
    budget: float | None = None


class Belief(msgspec.Struct):
    """What is believed of the policy in force; `untried` is its share of steps on pairs never tried, if known.

    `warning` says which budgets are not certified to hold, and `notes` where the numbers come from.
    """

    words: str
    amounts: list[Amount] = []
    untried: float | None = None
    warning: str = ""
    notes: list[str] = []


class Played(msgspec.Struct):
    """An episode that ended: when (seconds since 1970), how, what it earned, cost, and might have cost."""

    id: str
    at: float
    how: str
    reward: float
    costs: list[float]
    budget: list[float]


class AlarmState(msgspec.Struct):
    """An alarm: whether it rings, and the sentence with its threshold."""

    name: str
    rings: bool
    words: str


class Status(msgspec.Struct):
    """A session as it stands, in the user's units; sums are over all ended episodes.

    `policy` is the name of the policy in force, `plays` the same in words; `first_step` has its chances of actions by
    state in the first step, if that is a small table.
    `spent` and `allowed` are sums over the ended episodes: what they cost, and their budgets.
    `loss` is what an episode of the learner's policy can lose at most, as the data see it.
    """

    learner: str
    names: list[str]
    policy: str
    plays: str
    begun: int
    ended: int
    open: int
    dropped: int
    cut: int
    waiting: int
    reward: float
    spent: list[float]
    allowed: list[float]
    violation: float
    budget: list[float]
    weight: float | None
    loss: float | None
    failures: int
    unsure: str
    kept: list[int]
    alarms: list[AlarmState]
    recent: list[Played]
    belief: Belief
    first_step: list[list[float]]
    shadow: Belief | None = None


def status_of(session: Session, belief: Belief | None = None, shadow: Belief | None = None) -> Status:
    """The status of a session, with what was believed lately or is now, and what a shadow would do."""
    books, mind = session.books, session.mind
    totals, base, told = books.totals, session.base_budget().tolist(), session.report()
    low, high = session.setting.reward_range or (0.0, 1.0)
    recent = [
        Played(each.id, each.at, each.how, float(sum(each.rewards)), np.sum(each.costs, axis=0).tolist(),
               base if each.budget is None else each.budget)
        for each in books.recent[-SHOWN:]
    ]  # fmt: skip
    return Status(
        type(session.learner).__name__, list(session.setting.cost_names), session.playing, plays(session.playing),
        totals.begun, session.episodes, len(books.open), totals.dropped, totals.cut, session.waiting, totals.reward,
        totals.spent, totals.allowed, totals.violation, base, told.weight,
        None if told.loss is None else (high - low) * told.loss, mind.failures, mind.unsure,
        list(session.kept_policies), [AlarmState(each.name, each.rings, each.words) for each in session.alarms()],
        recent, belief or believed(session), _first_step(session), shadow,
    )  # fmt: skip


def plays(name: str) -> str:
    """What the name of a policy says, for a person.

    >>> plays("learnt 3+1")
    "the learner's own policy after 3 episodes, for the budget in force"
    """
    kind, number = name.split(" ", 1)
    if kind == "fallback":
        return "the fallback, since the last update failed"
    if kind == "kept":
        return f"the policy that was kept after {number} episodes: it was gone back to"
    n, _, budgets = number.partition("+")
    return f"the learner's own policy after {n} episodes{', for the budget in force' if budgets else ''}"


def _first_step(session: Session) -> list[list[float]]:
    """Chances of actions by state in the first step, where that is a small table."""
    table = np.asarray(session.in_force()[1])[0]
    return np.round(table, 3).tolist() if table.shape[0] <= MOST_STATES and table.shape[1] <= MOST_ACTIONS else []


def believed(session: Session) -> Belief:
    """What the learner forecasts, before the first episode, too; or else what the last episodes say of its policy."""
    found = judged(session, session.policy())
    try:
        told = session.forecast()
    except InvalidInputError:
        return found
    amounts = [Amount(each.name, each.expected, each.low, each.high, each.budget) for each in told.amounts]
    words = f"{told.what} {told.allowance}".strip()
    words += "" if found.untried is None else f" {_untried(session, found.untried)}."
    return Belief(words, amounts, found.untried, told.warning, list(told.notes))


def judged(session: Session, policy: Policy) -> Belief:
    """Judge any policy by the last episodes of a session."""
    try:
        verdict = session.judge(policy, resamples=0)
    except InvalidInputError as error:
        return Belief(f"Nothing yet: {error}.")
    n, found, untried = len(session.books.recent), verdict.by_model, _untried(session, verdict.untried)
    if found is None:
        return Belief(f"The last {n} episodes cannot tell: {untried}.", [], verdict.untried)
    budgets = [None, *verdict.budget.tolist()]
    rows = zip(("reward", *verdict.names), found.expected, found.low, found.high, budgets, strict=True)
    amounts = [Amount(name, float(x), float(low), float(high), b) for name, x, low, high, b in rows]
    words = f"By a model of the last {n} episodes, each end with {100 * verdict.confidence:g} %; {untried}."
    return Belief(words, amounts, verdict.untried)


def _untried(session: Session, share: float) -> str:
    n = len(session.books.recent)
    return f"{100.0 * share:.3g} % of the policy's steps are on pairs that the last {n} episodes never tried"


def belief_lines(belief: Belief, title: str = "belief") -> list[str]:
    """What is believed, for a person."""
    text = [f"{title:<25}{belief.words}", *([belief.warning] if belief.warning else [])]
    for each in belief.amounts:
        bound = "" if each.budget is None else f", budget {each.budget:.6g}"
        text.append(f"  {each.name:<23}{each.expected:.5g} ({each.low:.5g} to {each.high:.6g}){bound}")
    return text


def lines_of(status: Status, name: str) -> list[str]:
    """The status for a person."""
    s = status
    text = [
        f"session                  {name}: {s.learner}, plays {s.plays}",
        f"episodes                 {s.ended} ended ({s.cut} cut), {s.open} open, {s.dropped} dropped, "
        f"{s.waiting} to be learnt from",
        f"reward                   {_mean(s.reward, s.ended)} an episode",
    ]
    for i, (spent, allowed) in enumerate(zip(s.spent, s.allowed, strict=True)):
        text.append(
            f"{s.names[i]:<25}{_mean(spent, s.ended)} an episode, of {_mean(allowed, s.ended)}; "
            f"{s.budget[i]:.5g} from now on"
        )
    text.append(f"violation                {s.violation:.5g} in all, of single episodes as they were met")
    text += [] if s.weight is None else [f"weight                   {s.weight:.4g}"]
    text += [] if s.loss is None else [f"can lose at most         {s.loss:.4g} an episode, as the data see it"]
    text += belief_lines(s.belief)
    text += [] if s.shadow is None else belief_lines(s.shadow, "shadow")
    text += [f"{'ALARM' if each.rings else 'alarm off':<25}{each.words}" for each in s.alarms]
    text += [f"UNSURE                   the last update failed: {s.unsure}"] if s.unsure else []
    return [*text, f"policies to go back to   after {', '.join(map(str, s.kept[-10:])) or 'none yet'}"]


def _mean(total: float, n: int) -> str:
    return f"{total / n:.5g}" if n else "-"
