"""A learner in a session: its state, the episodes that it has not learnt from yet, and the policies still in play."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from omdpd.learners.protocol import Learner, restored, stored_classes
from omdpd.play.alarms import UPDATES
from omdpd.play.books import Books, Ended
from omdpd.play.episodes import less_budget, less_room, over_allowed, room_per_step
from omdpd.play.start import (
    learnt_in_part,
    replanned,
    start_of,
    started,
    takes_budget,
    updated,
    with_budget,
    with_next_start,
)
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting
from omdpd.storage.atomic import RecordError
from omdpd.storage.entries import Whole
from omdpd.storage.journal import Journal, SessionWarning, StoredSnapshot
from omdpd.storage.packing import pack, unpack

# What is waiting to be learnt: an episode that was told whole, one that was played here, or a law of first states.
Waiting = Whole | Ended | Floats


class Made(NamedTuple):
    """What came of an episode: the state, and why it is that of before; how often the weight was at its cap."""

    state: Any
    unsure: str
    saturations: int
    policy: Floats | None = None


class Taught:
    """A learner's state after `learnt` episodes, with `waiting` ones, and the tables of policies in play by name.

    A policy's name is "learnt n" (after n episodes; "learnt n+m" after m other budgets or laws since), "kept n" (of a
    snapshot after n), or "fallback x".  `unlearnt` episodes were parts that the learner cannot count, and `failures`
    are updates that raised; `unsure` says why the last one did.
    """

    def __init__(self, learner: Learner[Any], setting: Setting, logged: Sequence[Feedback] = ()) -> None:
        self.learner, self.setting, self._logged = learner, setting, logged
        self.state = started(learner, setting.scaled(), logged)
        self.waiting: deque[Waiting] = deque()
        self.played: dict[str, Floats] = {}
        self.kept: dict[str, Floats] = {}
        self.journal: Journal | None = None
        self.learnt = self.unlearnt = self.failures = self.budgets = 0
        self.unsure, self._saturations = "", 0
        self.capped: deque[bool] = deque(maxlen=UPDATES)
        self._table: Floats | None = None
        self._room = 0

    @property
    def name(self) -> str:
        """The name of the learner's own policy."""
        return f"learnt {self.learnt}" + (f"+{self.budgets}" if self.budgets else "")

    def within(self, budget: list[float], past: Iterable[Whole | Ended] | None) -> Any:
        """The state with another budget in force: with a new plan, of learners that make one for it.

        Others are taught all of the past again, as if the budget had been this one from the start; if nobody kept the
        past, they come to keep the budget as they learn.
        """
        if takes_budget(self.learner):
            return with_budget(self.learner, self.state, self.setting.horizon * room_per_step(self.setting, budget))
        if past is None:
            return self.state
        law = start_of(self.state)
        setting = self.setting if law is None else replace(self.setting, initial=law)
        again = Taught(self.learner, setting, [less_room(self.setting, each, budget) for each in self._logged])
        for item in past:
            if isinstance(item, Whole):
                again.state = again.tried(item._replace(feedback=less_room(self.setting, item.feedback, budget))).state
            else:
                again.state = again.tried(msgspec.structs.replace(item, budget=budget)).state
        return again.state

    def starting(self, law: Floats) -> Any:
        """The state with another law of the first state, and a plan for it; the same one where that is its law."""
        return replanned(self.learner, with_next_start(self.learner, self.state, law))

    def become_within(self, state: Any) -> None:
        """Take the state that has another budget or law in force."""
        if state is not self.state:
            self.state, self._table, self.budgets = state, None, self.budgets + 1

    @property
    def episodes_wait(self) -> bool:
        """Whether an episode waits; laws of first states wait for the next one."""
        return any(not isinstance(each, np.ndarray) for each in list(self.waiting))

    def after(self, item: Whole | Ended) -> Any:
        """The state after one more episode, with the laws of first states that wait before it."""
        learner, state = self.learner, self.state
        for law in list(self.waiting):
            if not isinstance(law, np.ndarray):
                break
            state = with_next_start(learner, state, law)
        if isinstance(item, Whole):
            ready = state if item.initial is None else with_next_start(learner, state, item.initial)
            return learner.update(ready, item.feedback)
        good = less_budget(self.setting, item, takes_budget(learner))
        if item.how == "cut":
            part = learnt_in_part(learner, state, good)
            self.unlearnt += part is None
            return state if part is None else part
        table = None if item.policy is None else self.played.get(item.policy)
        shown = None if table is None else over_allowed(table, item, self.setting)
        return updated(learner, state, good, shown)

    def made(self, state: Any, unsure: str = "") -> Made:
        """A state, with what is asked of it."""
        return Made(state, unsure, self.learner.report(state).saturations)

    def tried(self, item: Whole | Ended) -> Made:
        """The state after one more; if the learner raised, the one from before and why."""
        try:
            return self.made(self.after(item))
        except Exception as error:  # a learner is somebody's code, and the session outlives it
            return Made(self.state, f"{type(error).__name__}: {error}", self._saturations)

    def tried_next(self) -> tuple[Made, Whole | Ended]:
        """What comes of the episode that has waited longest, with its policy; and that episode."""
        item = next(each for each in list(self.waiting) if not isinstance(each, np.ndarray))
        made = self.tried(item)
        return made._replace(policy=self.learner.policy(made.state)), item

    def become(self, made: Made) -> None:
        """Take the state that came of the episode that has waited longest."""
        while self.waiting and isinstance(self.waiting[0], np.ndarray):
            self.waiting.popleft()
        if self.waiting:
            self.waiting.popleft()
        self.learnt, self.unsure, self.failures = self.learnt + 1, made.unsure, self.failures + bool(made.unsure)
        self.budgets = 0
        self.capped.append(made.saturations > self._saturations)
        self.state, self._table, self._saturations = made.state, made.policy, made.saturations

    def learn(self, up_to: int | None = None) -> None:
        """Learn from every episode that waits, or until as many are learnt."""
        while self.episodes_wait and (up_to is None or self.learnt < up_to):
            made = self.tried_next()[0]
            self.become(made)
            if made.unsure:
                warnings.warn(f"an update failed and is left out: {made.unsure}", SessionWarning, stacklevel=3)

    def policy(self, name: str) -> Floats:
        """The table of a policy by its name; "learnt n" is the one in force."""
        if name in self.played:
            return self.played[name]
        kind, which = name.split(" ", 1)
        if kind == "learnt":
            self._table = self.learner.policy(self.state) if self._table is None else self._table
            return self._table
        if name not in self.kept and self.journal is not None:
            self.kept[name] = self.journal.policy(which)
        return self.kept[name]

    def forget(self, books: Books, now: bool = False) -> None:
        """Let go of policies that neither an open episode nor a waiting one was played with, once there are enough.

        To look through all episodes takes its time, so it is not done every time.
        """
        if len(self.played) <= self._room and not now:
            return
        used: set[str | None] = {each.policy for each in books.open.values()}
        used |= {each.policy for each in self.waiting if isinstance(each, Ended)}
        self.played = {name: table for name, table in self.played.items() if name in used}
        self._room = 2 * len(self.played) + len(books.open) // 64

    def keep(self, name: str, table: Floats, playing: str | None = None) -> None:
        """Keep a policy to go back to it; on disk, old ones that are not in play any more are let go of."""
        if self.journal is None:
            self.kept[name] = table
        else:
            used = [each.split(" ", 1)[1] for each in (*self.played, playing or name)]
            self.journal.keep_policy(name.split(" ", 1)[1], table, used)

    def shelved(self, books: Books) -> tuple[Any, dict[str, Any], dict[str, Floats]]:
        """What a snapshot keeps: the state's tree, the books, and arrays; policies in play among them."""
        self.forget(books, now=True)
        tree, arrays = pack(self.state)
        waiting = [
            {"initial": each.tolist()} if isinstance(each, np.ndarray) else msgspec.to_builtins(each)
            for each in self.waiting
            if not isinstance(each, Whole)
        ]
        kept = {
            "books": msgspec.json.encode(books).decode(), "waiting": waiting, "played": list(self.played),
            "learnt": self.learnt, "budgets": self.budgets, "unlearnt": self.unlearnt, "failures": self.failures,
            "unsure": self.unsure,
            "capped": list(self.capped), "saturations": self._saturations,
        }  # fmt: skip
        return tree, kept, arrays | {f"played {i}": table for i, table in enumerate(self.played.values())}

    def restore(self, file: Path, kept: StoredSnapshot) -> Books:
        """Go on from a snapshot; its books."""
        self.state, self.learnt = self._restored(file, kept), kept.episodes
        if not (shelf := kept.books):
            return Books()
        try:
            self.waiting.extend(
                np.array(each["initial"]) if "initial" in each else msgspec.convert(each, Ended)
                for each in shelf["waiting"]
            )
            self.played = {name: kept.arrays[f"played {i}"] for i, name in enumerate(shelf["played"])}
            self.learnt, self.unlearnt, self.budgets = shelf["learnt"], shelf["unlearnt"], shelf.get("budgets", 0)
            self.failures, self.unsure = shelf["failures"], shelf["unsure"]
            self.capped.extend(shelf.get("capped", ()))
            self._saturations = shelf.get("saturations", 0)
            return msgspec.json.decode(shelf["books"], type=Books)
        except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise RecordError(f"{file} is damaged: its books cannot be used ({error})") from None

    def _restored(self, file: Path, kept: StoredSnapshot) -> Any:
        """The state of a snapshot, which must be of the learner's own kind."""
        own = {name: array for name, array in kept.arrays.items() if not name.startswith("played ")}
        try:
            state = restored(self.learner, unpack(kept.tree, own, stored_classes(self.learner)))
            if type(state) is not type(self.state):
                raise TypeError(f"it is a {type(state).__name__}, not a {type(self.state).__name__}")
            return state
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{file} is damaged: the state in it cannot be used ({error})") from None
