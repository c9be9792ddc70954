"""The books of a session: which episodes are open, what each was told, what the ended ones came to.

Everything here follows from the entries of the journal, in their order: the same entries make the same books.

    begin   an episode is played with a policy (by its name), a budget and allowed actions
    act     a step: the state that was met, the action that was drawn, and how likely it was
    tell    rewards and costs of steps, in the user's units; in any order, each once
    end     the episode is whole, absorbed (over: nothing is earned or paid any more) or cut (its end was not seen)
    drop    nothing more is awaited of an episode; nothing is learnt from it
    budget  another budget for the episodes that begin from now on
    start   another law of the first state, for which a learner planned at once
    play    another policy for the episodes that begin from now on; None: the learner's
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from omdpd.play.alarms import Watch
from omdpd.problem.arrays import Floats, InvalidInputError, whole_number
from omdpd.problem.setting import BanditFeedback, Setting, Trajectory

How = Literal["whole", "absorbed", "cut"]
# Ended episodes whose steps are kept, and those whose ids are: one told again after that many is taken for new.
RECENT, REMEMBERED = 200, 20_000
MAX_ID = 64


class Open(msgspec.Struct):
    """An episode that was begun and not ended: its policy's name, and its steps so far."""

    id: str
    policy: str
    began: float
    budget: list[float] | None = None
    allowed: Any = None
    states: list[int] = []
    actions: list[int] = []
    chances: list[float] = []
    rewards: list[float | None] = []
    costs: list[list[float] | None] = []

    @property
    def told(self) -> int:
        """How many steps from the first on have a reward and costs."""
        return next((h for h, each in enumerate(self.rewards) if each is None), len(self.rewards))


class Ended(msgspec.Struct):
    """An episode that has ended, in the user's units; one that was absorbed has all its steps."""

    id: str
    policy: str | None
    budget: list[float] | None
    how: How
    began: float
    at: float
    states: list[int]
    actions: list[int]
    rewards: list[float]
    costs: list[list[float]]  # by step
    chances: list[float] | None = None
    allowed: Any = None
    steps: int = 0  # that were played

    @property
    def feedback(self) -> BanditFeedback:
        """What it tells a learner."""
        costs = np.array(self.costs, dtype=np.float64).reshape(len(self.states), -1).T
        met = Trajectory(np.array(self.states, dtype=np.int64), np.array(self.actions, dtype=np.int64))
        return BanditFeedback(met, np.array(self.rewards, dtype=np.float64), costs)

    def digest(self) -> str:
        """What tells it from another episode under the same id."""
        told = (self.states[: self.steps], self.actions[: self.steps], self.rewards[: self.steps])
        content = msgspec.json.encode((self.how, *told, self.costs[: self.steps]))
        return hashlib.sha256(content).hexdigest()[:16]


class SessionTotals(msgspec.Struct):
    """What all episodes came to, in the user's units.

    `spent` and `allowed` (I,) are sums of costs and of the budgets in force; `violation` is
    sum_k max_i [cost_ki - budget_ki]^+ of the costs that were met, noise and all.
    """

    begun: int = 0
    ended: int = 0
    whole: int = 0
    absorbed: int = 0
    cut: int = 0
    dropped: int = 0
    reward: float = 0.0
    spent: list[float] = []
    allowed: list[float] = []
    violation: float = 0.0


class Books(msgspec.Struct):
    """Open episodes by id, digests of ended ones, the last of these, sums, and what is in force."""

    open: dict[str, Open] = {}
    digests: dict[str, str] = {}
    recent: list[Ended] = []
    totals: SessionTotals = msgspec.field(default_factory=SessionTotals)
    budget: list[float] | None = None
    playing: str | None = None
    watch: Watch = msgspec.field(default_factory=Watch)

    def apply(self, entry: Mapping[str, Any], setting: Setting) -> Ended | None:
        """Enter what the journal says; an episode that ended by it."""
        do, episode = entry["do"], self.open.get(entry.get("id", ""))
        if do == "begin":
            fields = {name: entry.get(name) for name in ("id", "policy", "began", "budget", "allowed")}
            self.open[entry["id"]] = msgspec.convert(fields, Open)
            self.totals.begun += 1
        elif do == "act" and episode is not None:
            for name in ("state", "action", "chance", "reward", "cost"):
                getattr(episode, f"{name}s").append(entry.get(name))
        elif do == "tell" and episode is not None:
            for h, reward, costs in entry["steps"]:
                episode.rewards[h], episode.costs[h] = reward, costs
        elif do == "drop":
            del self.open[entry["id"]]
            self.digests[entry["id"]] = "dropped"
            self.totals.dropped += 1
        elif do == "budget":
            self.budget = entry["budget"]
        elif do == "play":
            self.playing = entry["policy"]
        elif do == "end":
            return self._close(ended_by(entry, episode), setting)
        return None

    def _close(self, ended: Ended, setting: Setting) -> Ended:
        self.open.pop(ended.id, None)
        self.digests[ended.id] = ended.digest()
        while len(self.digests) > REMEMBERED:
            del self.digests[next(iter(self.digests))]
        self.recent = [*self.recent[1 - RECENT :], ended]
        paid = np.array(ended.costs)
        t, spent = self.totals, paid.sum(axis=0)
        limit = setting.limits if ended.budget is None else np.asarray(ended.budget)
        t.ended, t.reward = t.ended + 1, t.reward + float(sum(ended.rewards))
        setattr(t, ended.how, getattr(t, ended.how) + 1)
        t.spent = (np.array(t.spent or 0.0 * spent) + spent).tolist()
        t.allowed = (np.array(t.allowed or 0.0 * spent) + limit).tolist()
        t.violation += max(float((spent - limit).max()), 0.0)
        self.watch.below |= bool(paid.min() < 0.0)
        if ended.how != "cut":
            self.watch.spent(spent - limit, self._room(limit, setting))
        self.watch.moved(ended.states[: ended.steps], ended.actions[: ended.steps])
        return ended

    def _room(self, limit: Floats, setting: Setting) -> Floats:
        """How much less than a budget an episode can cost, (I,): all of it, or what the declared scale says."""
        declared = setting.horizon * setting.scales
        known = setting.budget is not None and not self.watch.below
        return np.where(known & (limit > 0.0), limit, declared)


def ended_by(entry: Mapping[str, Any], episode: Open | None) -> Ended:
    """The episode that an entry ends: with the steps it was told, or with those that the entry brings."""
    met: Any = entry.get("met")
    if met is None:
        assert episode is not None, "only an open episode ends without its steps"
        n = episode.told
        rest = entry.get("rest") or []
        states, actions = [*episode.states[:n], *(s for s, _ in rest)], [*episode.actions[:n], *(a for _, a in rest)]
        some = [0.0] * len(episode.costs[0] or []) if n else []
        rewards: Any = [*episode.rewards[:n], *([0.0] * len(rest))]
        costs: Any = [*episode.costs[:n], *([some] * len(rest))]
        chances: list[float] | None = [*episode.chances[:n], *([1.0] * len(rest))]
    else:
        states, actions, rewards, costs = met
        n, chances = entry.get("steps", len(states)), None
    known = episode or Open(entry["id"], "", entry["at"], entry.get("budget"))
    return Ended(
        entry["id"], known.policy or None, known.budget, entry["how"], known.began, entry["at"], states, actions,
        rewards, costs, chances, known.allowed, n,
    )  # fmt: skip


def checked_id(given: Any) -> str:
    """An id as it may be used: short, and of printable characters without a slash."""
    if not isinstance(given, str) or not 0 < len(given) <= MAX_ID or not given.isprintable() or "/" in given:
        raise InvalidInputError(f"id must be 1 to {MAX_ID} printable characters without a slash")
    return given


def checked_allowed(given: npt.ArrayLike | None, shape: tuple[int, int, int]) -> npt.NDArray[np.bool_] | None:
    """Which actions are allowed, (A,), (S, A) or (H, S, A), as the last; every state must have one."""
    if given is None:
        return None
    try:
        table = np.asarray(given)
        if table.dtype != np.bool_ or table.ndim < 1 or table.shape != shape[3 - table.ndim :]:
            raise ValueError
    except ValueError:
        raise InvalidInputError(
            "allowed must be true or false by action, by state and action, or by step, state and action"
        ) from None
    if not table.any(axis=-1).all():
        raise InvalidInputError("allowed leaves a state without any action")
    return np.broadcast_to(table, shape)


def masked(law: Floats, allowed: npt.NDArray[np.bool_] | None) -> Floats:
    """Probabilities (..., A) over the allowed actions alone; alike where the policy gives them nothing."""
    if allowed is None:
        return law
    kept = np.where(allowed, law, 0.0)
    total = kept.sum(axis=-1, keepdims=True)
    alike = allowed / allowed.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0.0, kept / np.where(total > 0.0, total, 1.0), alike), dtype=np.float64)


def drawn(session: str, episode: str, step: int, law: Floats) -> tuple[int, float]:
    """Draw the action of a step, with its chance: asked again, even after a crash, it is the same one."""
    digest = hashlib.sha256(f"{session}/{episode}/{step}".encode()).digest()
    u = (int.from_bytes(digest[:8]) >> 11) * 2.0**-53
    place = int(np.searchsorted(np.cumsum(law), u, side="right"))
    action = place if place < len(law) and law[place] > 0.0 else int(np.flatnonzero(law)[-1])
    return action, float(law[action])


def checked_state(setting: Setting, state: Any, name: str = "state") -> int:
    """The number of a state."""
    number = whole_number(name, state, 0)
    if number >= setting.n_states:
        raise InvalidInputError(f"{name} is {number}, but must be between 0 and {setting.n_states - 1}")
    return number
