"""A learner in a session: its state, the episodes that it has not learnt from yet, and the policies still in play."""

from __future__ import annotations

import warnings
from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omdpd.learners.protocol import Learner, restored, stored_classes
from omdpd.play.alarms import UPDATES
from omdpd.play.books import Books, Ended
from omdpd.play.episodes import first_steps, over_allowed, within_budget
from omdpd.play.start import learnt_in_part, updated, with_next_start
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting, checked_feedback
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import Journal, Kept, SessionWarning, Whole
from omdpd.storage.packing import pack, unpack

# What is waiting to be learnt: an episode that was told whole, one that was played here, or a law of first states.
Waiting = Whole | Ended | Floats


class Taught:
    """A learner's state after `learnt` episodes, with `waiting` ones, and the tables of policies in play by name.

    A policy's name is "learnt n" (after n episodes), "kept n" (of a snapshot after n), or "fallback x".  `unlearnt`
    episodes were parts that the learner cannot count, and `failures` are updates that raised; `unsure` says why the
    last one did.
    """

    def __init__(self, learner: Learner[Any], setting: Setting, state: Any) -> None:
        self.learner, self.setting, self.state = learner, setting, state
        self.waiting: deque[Waiting] = deque()
        self.played: dict[str, Floats] = {}
        self.kept: dict[str, Floats] = {}
        self.journal: Journal | None = None
        self.learnt = self.unlearnt = self.failures = 0
        self.unsure, self._saturations = "", 0
        self.capped: deque[bool] = deque(maxlen=UPDATES)

    def after(self, item: Waiting) -> Any:
        """The state after one more episode, or with the law that the next ones start from."""
        learner, state = self.learner, self.state
        if isinstance(item, np.ndarray):
            return with_next_start(learner, state, item)
        if isinstance(item, Whole):
            ready = state if item.initial is None else with_next_start(learner, state, item.initial)
            return learner.update(ready, item.feedback)
        own = within_budget(self.setting, item.budget)
        if item.how == "cut":
            part = learnt_in_part(learner, state, first_steps(own, len(item.states)), item.feedback)
            self.unlearnt += part is None
            return state if part is None else part
        table = None if item.policy is None else self.played.get(item.policy)
        shown = None if table is None else over_allowed(table, item, self.setting)
        return updated(learner, state, checked_feedback(own, item.feedback), shown)

    def tried(self, item: Waiting) -> tuple[Any, str]:
        """The state after one more, and why it is not if the learner raised: then it is the state from before."""
        try:
            return self.after(item), ""
        except Exception as error:  # a learner is somebody's code, and the session outlives it
            return self.state, f"{type(error).__name__}: {error}"

    def become(self, state: Any, item: Waiting, unsure: str = "") -> None:
        """Take a state that came of an item."""
        if not isinstance(item, np.ndarray):
            self.learnt, self.unsure = self.learnt + 1, unsure
            self.failures += bool(unsure)
        if isinstance(item, Ended):
            times = self.learner.report(state).saturations
            self.capped.append(times > self._saturations)
            self._saturations = times
        self.state = state

    def learn_next(self) -> None:
        """Learn from what has waited longest; an update that raises is left out, and this is said."""
        item = self.waiting[0]
        state, unsure = self.tried(item)
        self.waiting.popleft()
        self.become(state, item, unsure)
        if unsure:
            warnings.warn(f"an update failed and is left out: {unsure}", SessionWarning, stacklevel=3)

    def learn(self, up_to: int | None = None) -> None:
        """Learn from everything that waits, or until as many episodes are learnt."""
        while self.waiting and (up_to is None or self.learnt < up_to):
            self.learn_next()

    def policy(self, name: str) -> Floats:
        """The table of a policy by its name; "learnt n" is the one in force."""
        if name in self.played:
            return self.played[name]
        kind, which = name.split(" ", 1)
        if kind == "learnt":
            return self.learner.policy(self.state)
        if name in self.kept or self.journal is None:
            return self.kept[name]
        return self.journal.policy(which)

    def forget(self, books: Books) -> None:
        """Let go of policies that neither an open episode nor a waiting one was played with."""
        used: set[str | None] = {each.policy for each in books.open.values()}
        used |= {each.policy for each in self.waiting if isinstance(each, Ended)}
        self.played = {name: table for name, table in self.played.items() if name in used}

    def keep(self, name: str, table: Floats) -> None:
        """Keep a policy to go back to it."""
        self.kept[name] = table
        if self.journal is not None:
            self.journal.keep_policy(name.split(" ", 1)[1], table)

    def shelved(self, books: Books) -> tuple[Any, dict[str, Any], dict[str, Floats]]:
        """What a snapshot keeps: the state's tree, the books, and arrays; policies in play among them."""
        tree, arrays = pack(self.state)
        waiting = [
            {"initial": each.tolist()} if isinstance(each, np.ndarray) else msgspec.to_builtins(each)
            for each in self.waiting
            if not isinstance(each, Whole)
        ]
        kept = {
            "books": msgspec.json.encode(books).decode(), "waiting": waiting, "played": list(self.played),
            "learnt": self.learnt, "unlearnt": self.unlearnt, "failures": self.failures, "unsure": self.unsure,
        }  # fmt: skip
        return tree, kept, arrays | {f"played {i}": table for i, table in enumerate(self.played.values())}

    def restore(self, file: Path, kept: Kept) -> Books:
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
            self.learnt, self.unlearnt = shelf["learnt"], shelf["unlearnt"]
            self.failures, self.unsure = shelf["failures"], shelf["unsure"]
            return msgspec.json.decode(shelf["books"], type=Books)
        except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise RecordError(f"{file} is damaged: its books cannot be used ({error})") from None

    def _restored(self, file: Path, kept: Kept) -> Any:
        """The state of a snapshot, which must be of the learner's own kind."""
        own = {name: array for name, array in kept.arrays.items() if not name.startswith("played ")}
        try:
            state = restored(self.learner, unpack(kept.tree, own, stored_classes(self.learner)))
            if type(state) is not type(self.state):
                raise TypeError(f"it is a {type(state).__name__}, not a {type(self.state).__name__}")
            return state
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{file} is damaged: the state in it cannot be used ({error})") from None
