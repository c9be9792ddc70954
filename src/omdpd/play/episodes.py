"""An episode of a session, from its begin to its end; and what each verb writes into the journal.

A function here checks what was said against the books and gives the entry that says it, or None where nothing is new:
saying a thing twice is harmless, and saying something else under the same id is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omdpd.play.books import Books, Ended, How, Open, checked_allowed, checked_state, drawn, ended_by, masked
from omdpd.play.policy import Policy
from omdpd.problem.arrays import Floats, InvalidInputError, as_budget, numbers, whole_number
from omdpd.problem.setting import BanditFeedback, Feedback, Setting, checked_feedback, checked_steps

if TYPE_CHECKING:
    from omdpd.play.session import Session

Entry = dict[str, Any]


class UnknownEpisodeError(InvalidInputError):
    """There is no episode of this id."""


class EpisodeConflictError(InvalidInputError):
    """What was said of an episode does not go with what was said before."""


class Episode:
    """One episode of a session: `act` in every state, `tell` what came of it, `end`.

    Several may be open at once, and each is played with the policy that was in force when it began.
    """

    def __init__(self, session: Session, id: str) -> None:
        self.session, self.id = session, id

    def __repr__(self) -> str:
        known, H = self.session.books.open.get(self.id), self.session.setting.horizon
        if known is None:
            return f"Episode({self.id!r}, not open)"
        n, told = len(known.states), known.told
        left = f", told {told} of {n}" if told < n else ""
        return f"Episode({self.id!r}, {f'next step {n} of {H}' if n < H else 'all steps played'}{left})"

    @property
    def policy(self) -> Policy:
        """What it is played with: the whole policy, over the allowed actions."""
        return self.session.policy_of(self.id)

    def act(self, state: int, step: int | None = None) -> int:
        """The action in a state, drawn from the episode's policy over the allowed actions.

        Asking again for the same step and state gives the same action, after a crash, too.
        """
        return self.session.act(self.id, state, step)

    def tell(self, reward: npt.ArrayLike, cost: npt.ArrayLike = 0.0, step: int | None = None) -> None:
        """What a step earned and cost; without `step`, the first one that was not told yet.

        Lists, with an entry for every step in its order, tell several at once: from that step on.
        """
        if np.ndim(reward) == 0:
            self.session.tell_steps(self.id, [(step, reward, cost)])
            return
        rewards = list(np.asarray(reward))
        costs = list(np.asarray(cost)) if np.ndim(cost) else [cost] * len(rewards)
        if len(costs) != len(rewards):
            raise InvalidInputError(f"{len(rewards)} rewards are told with {len(costs)} costs: every step has both")
        places = [None] * len(rewards) if step is None else range(step, step + len(rewards))
        self.session.tell_steps(self.id, list(zip(places, rewards, costs, strict=True)))

    def end(self, absorbed: int | None = None, cut: bool = False) -> None:
        """The episode is over, and is learnt from.

        A short one says what it is.  `absorbed` is the state in which it stays, earning and costing nothing whatever is
        done.  `cut` says that its end was not seen: only what was told counts, for learners that can count a part.
        """
        self.session.end(self.id, absorbed, cut)


def opened(books: Books, id: str) -> Open:
    """The open episode of an id."""
    if id in books.open:
        return books.open[id]
    if id in books.digests:
        what = "was dropped" if books.digests[id] == "dropped" else "has ended"
        raise EpisodeConflictError(f"episode {id!r} {what}")
    raise UnknownEpisodeError(f"there is no episode {id!r}: begin it first")


def to_begin(
    books: Books, setting: Setting, id: str, budget: npt.ArrayLike | None, allowed: npt.ArrayLike | None,
    policy: str, at: float,
) -> Entry | None:  # fmt: skip
    """An episode begins."""
    limit = books.budget if budget is None else checked_budget(setting, budget)
    mask = None
    if (own := checked_allowed(allowed, setting.shape)) is not None:
        mask = np.asarray(allowed).tolist()
        if setting.allowed is not None and not (own & np.asarray(setting.allowed)).any(axis=-1).all():
            raise InvalidInputError("allowed leaves a state without any action that the setting allows")
    if (known := books.open.get(id)) is not None:
        same = known.allowed == mask and (budget is None or known.budget == limit)
        if not same:
            raise EpisodeConflictError(f"episode {id!r} began with another budget or other allowed actions")
        return None
    if id in books.digests:
        opened(books, id)
    return {"do": "begin", "id": id, "policy": policy, "began": at, "budget": limit, "allowed": mask}


def to_act(books: Books, setting: Setting, name: str, id: str, state: Any, step: Any, table: Floats) -> Entry | None:
    """A step: None if it was asked for already."""
    episode, s = opened(books, id), checked_state(setting, state)
    h = len(episode.states) if step is None else whole_number("step", step, 0)
    if h < len(episode.states):
        if episode.states[h] != s:
            raise EpisodeConflictError(f"step {h} of episode {id!r} was in state {episode.states[h]}, not in {s}")
        return None
    if h >= setting.horizon:
        raise EpisodeConflictError(f"episode {id!r} has had all its {setting.horizon} steps: end it")
    if h > len(episode.states):
        raise EpisodeConflictError(
            f"step {h} of episode {id!r} comes too early: ask for step {len(episode.states)} first"
        )
    action, chance = drawn(name, id, h, table[h, s])
    return {"do": "act", "id": id, "state": s, "action": action, "chance": chance}


def to_tell(books: Books, setting: Setting, id: str, steps: Sequence[tuple[Any, Any, Any]]) -> Entry | None:
    """Rewards and costs of steps, as (step, reward, cost); None if all were told already."""
    if id not in books.open and id in books.digests:
        if books.digests[id] != "dropped" and _is_known(books, id, steps):
            return None
        opened(books, id)
    episode, places = opened(books, id), list[int]()
    for step, _, _ in steps:
        free = (h for h, reward in enumerate(episode.rewards) if reward is None and h not in places)
        places.append(next(free, len(episode.states)) if step is None else whole_number("step", step, 0))
        if places[-1] >= len(episode.states):
            raise EpisodeConflictError(
                f"step {places[-1]} of episode {id!r} was not acted in, so nothing can have come of it"
            )
    new: dict[int, tuple[float | None, list[float] | None]] = {}
    for h, *met in zip(places, *_met(setting, episode, places, steps), strict=True):
        before = new.get(h, (episode.rewards[h], episode.costs[h]))
        if before[0] is None:
            new[h] = (met[0], met[1])
        elif before != (met[0], met[1]):
            raise EpisodeConflictError(f"step {h} of episode {id!r} was told otherwise before")
    return {"do": "tell", "id": id, "steps": [[h, *each] for h, each in new.items()]} if new else None


def _met(setting: Setting, episode: Open, places: list[int], steps: Sequence[tuple[Any, Any, Any]]) -> tuple[Any, Any]:
    """Rewards and costs of steps as plain numbers, checked at once; a refusal names the first step that is wrong."""
    rewards, costs = [reward for _, reward, _ in steps], [np.ravel(numbers("cost", cost)) for _, _, cost in steps]
    try:
        met, paid = checked_steps(setting, rewards, np.array(costs).T) if steps else (np.zeros(0), np.zeros((0, 0)))
    except (InvalidInputError, ValueError):
        for h, reward, cost in zip(places, rewards, costs, strict=True):
            checked_steps(setting, reward, cost, f"step {h} of episode {episode.id!r}: ")
        raise
    return met.tolist(), paid.T.tolist()


def to_end(
    books: Books, setting: Setting, name: str, id: str, absorbed: Any, cut: bool, table: Floats | None, at: float
) -> Entry | None:
    """An episode ends: as a whole, absorbed in a state, or cut."""
    if id not in books.open and books.digests.get(id, "dropped") != "dropped":
        _check_end(books, id, absorbed, cut)
        return None
    episode = opened(books, id)
    n, H = episode.told, setting.horizon
    if absorbed is not None and cut:
        raise InvalidInputError("an episode is absorbed or cut, not both")
    if not cut and n < len(episode.states):
        raise EpisodeConflictError(f"step {n} of episode {id!r} was not told yet: tell it, or end with cut")
    if not cut and absorbed is None and n < H:
        raise EpisodeConflictError(
            f"episode {id!r} has {n} of {H} steps: say in which state it is absorbed, or that it was cut"
        )
    if n == 0:
        raise EpisodeConflictError(f"episode {id!r} has no step that was told: drop it")
    entry: Entry = {"do": "end", "id": id, "how": "whole" if n == H else "cut" if cut else "absorbed", "at": at}
    if entry["how"] == "absorbed":
        s = checked_state(setting, absorbed, "absorbed")
        assert table is not None
        entry["rest"] = [[s, drawn(name, id, h, table[h, s])[0]] for h in range(n, H)]
        nothing = np.zeros((setting.n_constraints, 1))
        checked_steps(setting, [0.0], nothing, "after its end an episode earns and costs 0: ")
    return entry


def to_tell_whole(
    books: Books,
    setting: Setting,
    id: str,
    feedback: BanditFeedback,
    cut: bool,
    budget: npt.ArrayLike | None,
    at: float,
) -> Entry | None:
    """A whole trajectory at once, of an episode that was begun or of one that was played without being begun."""
    known = books.open.get(id)
    limit = known.budget if known else books.budget if budget is None else checked_budget(setting, budget)
    n = len(np.atleast_1d(feedback.trajectory.states))
    if n != setting.horizon and not (cut and 0 < n < setting.horizon):
        raise InvalidInputError(f"the episode has {n} of {setting.horizon} steps: say that it was cut, or pad it")
    if not isinstance(feedback, BanditFeedback):
        raise InvalidInputError(f"the episode came as {type(feedback).__name__}: with an id it is a BanditFeedback")
    cost = np.atleast_2d(np.asarray(feedback.costs, dtype=np.float64))
    good = checked_feedback(first_steps(setting, n), feedback)
    met = [good.trajectory.states, good.trajectory.actions, np.asarray(feedback.rewards, dtype=np.float64), cost.T]
    kind: How = "cut" if n < setting.horizon else "whole"
    entry: Entry = {
        "do": "end", "id": id, "how": kind, "at": at, "budget": limit, "met": [each.tolist() for each in met],
    }  # fmt: skip
    if known is not None:
        _check_steps(known, *entry["met"])
    if id in books.digests:
        if ended_by(entry, known).digest() == books.digests[id]:
            return None
        raise EpisodeConflictError(f"episode {id!r} was told otherwise before")
    return entry


def checked_budget(setting: Setting, budget: npt.ArrayLike) -> list[float]:
    """A budget in force: one number per constraint."""
    if setting.budget is None:
        raise InvalidInputError("the setting has no budget, so costs come with it taken off: another cannot be given")
    return as_budget(budget, setting.cost_names).tolist()


def within_budget(setting: Setting, budget: list[float] | None) -> Setting:
    """The setting with the budget in force."""
    return setting if budget is None else replace(setting, budget=budget)


def less_budget(setting: Setting, ended: Ended, planned: bool) -> Feedback:
    """What an episode tells a learner: costs less the budget in force, or the setting's for one that plans with both.

    What may be told is a matter of the setting's range, whatever budget is in force.
    """
    good = checked_feedback(first_steps(setting, len(ended.states)), ended.feedback)
    return good if planned else less_room(setting, good, ended.budget)


def less_room(setting: Setting, good: Feedback, budget: list[float] | None) -> Feedback:
    """What was counted less the setting's budget, counted less another one; a learner's own range ends at 1."""
    if budget is None or not isinstance(good, BanditFeedback):
        return good
    return replace(good, costs=np.clip(good.costs - room_per_step(setting, budget)[:, None], -1.0, 1.0))


def room_per_step(setting: Setting, budget: list[float]) -> Floats:
    """What a budget in force has more than the setting's, (I,): by step, and in the units of a learner."""
    return np.asarray((np.asarray(budget) - setting.limits) / (setting.horizon * setting.scales), dtype=np.float64)


def first_steps(setting: Setting, n: int) -> Setting:
    """The setting of the first n steps, with the same budget per step."""
    if n == setting.horizon:
        return setting
    share = None if setting.budget is None else np.asarray(setting.budget) * n / setting.horizon
    return replace(setting, horizon=n, budget=share, allowed=None)


def _is_known(books: Books, id: str, steps: Sequence[tuple[Any, Any, Any]]) -> bool:
    """Whether an ended episode was told just that; one whose steps are no longer kept is not asked."""
    for ended in books.recent:
        if ended.id == id:
            return all(
                step is not None
                and 0 <= step < ended.steps
                and ended.rewards[step] == reward
                and ended.costs[step] == np.atleast_1d(np.asarray(cost, dtype=np.float64)).tolist()
                for step, reward, cost in steps
            )
    return False


def _check_end(books: Books, id: str, absorbed: Any, cut: bool) -> None:
    """Refuse another end of an episode than it had; one whose steps are no longer kept is not asked."""
    said = "cut" if cut else "whole" if absorbed is None else "absorbed"
    for ended in books.recent:
        same = ended.how in (said, "whole") and (ended.how != "absorbed" or ended.states[ended.steps] == absorbed)
        if ended.id == id and not same:
            raise EpisodeConflictError(f"episode {id!r} ended otherwise before")


def _check_steps(episode: Open, states: list[int], actions: list[int], rewards: list[float], costs: Any) -> None:
    """Refuse a whole trajectory that is not what an open episode did and was told so far."""
    told = zip(episode.states, episode.actions, episode.rewards, episode.costs, strict=True)
    if len(episode.states) > len(states):
        raise EpisodeConflictError(f"episode {episode.id!r} has had {len(episode.states)} steps, not {len(states)}")
    for h, (s, a, reward, cost) in enumerate(told):
        if (s, a) != (states[h], actions[h]) or (reward is not None and (reward, cost) != (rewards[h], costs[h])):
            raise EpisodeConflictError(f"step {h} of episode {episode.id!r} was otherwise before")


def over_allowed(table: Floats, episode: Open | Ended, setting: Setting) -> Floats:
    """A policy over what an episode is allowed, besides what the setting is."""
    own = checked_allowed(episode.allowed, setting.shape)
    return (
        table if own is None else masked(table, own if setting.allowed is None else own & np.asarray(setting.allowed))
    )
