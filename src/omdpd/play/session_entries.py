"""A session writes entries in its journal and books, learns from them, and keeps snapshots; a server has its verbs."""

from __future__ import annotations

import hashlib
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omdpd.learners.masked import masked, pools_steps
from omdpd.learners.protocol import Learner
from omdpd.play.books import Books, Ended, Open, ended_by
from omdpd.play.carry import Carry
from omdpd.play.episodes import Entry, checked_budget, over_allowed
from omdpd.play.guards import check_footprint
from omdpd.play.logs import Log, as_logged
from omdpd.play.policy import Policy, table_of
from omdpd.play.start import Before, Start, in_learner_units, starting, whole_episodes
from omdpd.play.taught import Taught
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import BanditFeedback, Feedback, Setting, Trajectory, checked_feedback
from omdpd.storage.atomic import RecordError
from omdpd.storage.entries import Whole
from omdpd.storage.journal import Journal, SessionWarning
from omdpd.storage.locks import Turn

if TYPE_CHECKING:
    from omdpd.play.session import Session


class Entries:
    """A session's books, its learner's mind, and the journal that both follow from."""

    def __init__(
        self,
        learner: Learner[Any] | None,
        setting: Setting,
        *,
        logged: Sequence[Feedback] | Log | Before = (),
        start: Start = "safe",
        fallback: Policy | npt.ArrayLike | None = None,
        carry: Carry | None = None,
    ) -> None:
        self.before = _before(setting, logged, start)
        setting = as_logged(setting, self.before.logged, self.before.names)
        self.learner = in_learner_units(starting(learner, setting.scaled(), self.before), setting)
        self._player = masked(self.learner, setting)
        self.setting = setting
        self.episodes = 0
        self._closed = False
        check_footprint(self._player, setting.scaled(), judged=False)
        self.mind = Taught(self._player, setting, self.before.logged)
        self._journal: Journal | None = None
        self._snapshot_every = self._kept = 0
        self._turn, self._learning, self._keeping, self._within = Turn(), Turn(), Turn(), False
        self._name = secrets.token_hex(16) if setting.seed is None else f"seed {setting.seed}"
        self.books, self._entries, self._lags = Books(), 0, False
        self.books.watch.by_step = not pools_steps(self.learner)
        for each in self.before.logged:
            self.books.watch.moved(each.trajectory.states.tolist(), each.trajectory.actions.tolist(), bet=False)
        self._followers: list[Session] = []
        self._doubted = False
        self._fallback = "" if fallback is None else f"fallback {_digest(table_of(fallback, setting.shape))}"
        if fallback is not None:
            self.mind.kept[self._fallback] = table_of(fallback, setting.shape)
        if carry is not None:
            checked_budget(setting, self.base_budget())
            carry.budget(self.base_budget(), self.books)
        self.carry = carry

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError("the session is closed, so nothing more can be told to it: open it again")

    def _enter(self, entry: Entry | None, sync: bool = True) -> None:
        """Write an entry and do what it says; nothing where nothing is new."""
        if entry is None:
            return
        made = None
        if entry["do"] == "end" and not self._lags:
            self._snapshot()
            self.mind.learn()
            item = ended_by(entry, self.books.open.get(entry["id"]))
            made = self.mind.tried(item) if self._fallback else self.mind.made(self.mind.after(item))
        if self._journal is not None:
            self._journal.append(self._entries, entry, sync and not self._lags)
        # Nothing that can fail comes after the journal has it.
        self._entries += 1
        ended = self._apply(entry)
        if made is not None and ended is not None:
            self.mind.become(made)
            self._pass_on(ended)

    def _apply(self, entry: Entry) -> Ended | None:
        """Enter it into the books; what is to be learnt waits."""
        ended = self.books.apply(entry, self.setting)
        if entry.get("initial") is not None:
            self.mind.waiting.append(np.array(entry["initial"]))
        if ended is not None:
            self.episodes += 1
            self.mind.waiting.append(ended)
        if entry["do"] in ("end", "drop"):
            self.mind.forget(self.books)
        return ended

    def _replay(self, entry: Whole | Entry) -> None:
        """Do again what an entry of the journal says: a policy is that of as many updates as it was then."""
        if isinstance(entry, Whole):
            good = checked_feedback(self.setting.scaled(), entry.feedback)  # scaled before it was written
            self.mind.waiting.append(Whole(good, entry.initial))
            self.episodes += 1
            return
        if entry["do"] == "begin":
            kind, number = entry["policy"].split(" ", 1)
            if kind == "learnt":
                self.mind.learn(up_to=int(number.partition("+")[0]))
            self.mind.played.setdefault(entry["policy"], self.mind.policy(entry["policy"]))
        if entry["do"] == "budget":
            self.mind.learn(up_to=entry.get("learnt", 0))
            if "learnt" in entry:  # older entries changed no plan
                self.mind.become_within(self._planned(entry["budget"]))
        if entry["do"] == "start":
            self.mind.learn(up_to=entry["learnt"])
            self.mind.become_within(self.mind.starting(np.array(entry["law"])))
        self._apply(entry)

    def _told(self, journal: Journal) -> Iterator[Whole | Ended]:
        """Every episode that has ended, in the order of the journal."""
        books = Books()
        for entry in journal.past():
            if isinstance(entry, Whole):
                yield entry
            elif (ended := books.apply(entry, self.setting)) is not None:
                yield ended

    def _planned(self, budget: list[float]) -> Any:
        """The state with another budget in force, from the episodes that were learnt, if the session keeps them."""
        journal = self.mind.journal
        kept = None if journal is None or not journal.keeps_past else islice(self._told(journal), self.mind.learnt)
        try:
            return self.mind.within(budget, kept)
        except RecordError as error:
            text = f"the learner comes to keep its new budget as it learns, since what was told cannot be read: {error}"
            warnings.warn(text, SessionWarning, stacklevel=3)
            return self.mind.state

    def _pass_on(self, ended: Ended) -> None:
        """Tell the shadows; a shadow that fails is dropped, and the session goes on."""
        for shadow in list(self._followers):
            try:
                shadow.take_over(ended)
                shadow.learn_next()
            except Exception as error:  # a learner is somebody's code
                self._followers.remove(shadow)
                warnings.warn(f"a shadow failed and follows no more: {error}", SessionWarning, stacklevel=2)

    @property
    def playing(self) -> str:
        """The name of the policy that an episode which begins now is played with."""
        if self.books.playing is not None:
            return self.books.playing
        return self._fallback if self._fallback and self.mind.unsure else self.mind.name

    @property
    def learnt(self) -> int:
        """How many episodes the policy in force has learnt from."""
        return self.mind.learnt

    @property
    def _state(self) -> Any:
        return self.mind.state

    @property
    def waiting(self) -> int:
        """How many episodes have ended and are not learnt from yet."""
        return self.episodes - self.mind.learnt

    def _table_of(self, episode: Open) -> Floats:
        return over_allowed(self.mind.played[episode.policy], episode, self.setting)

    def base_budget(self) -> Floats:
        """The budget of an episode that is given none, (I,); zero where costs come with it taken off."""
        return self.setting.limits if self.books.budget is None else np.asarray(self.books.budget, dtype=np.float64)

    def _overdue(self, new: int) -> bool:
        """Whether it is late for a snapshot, where several episodes may end between two updates."""
        return self._lags and new > self._snapshot_every

    def _snapshot(self, now: bool = False, turn: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Keep the state if it is time: before the next update, so that no update raises that is there already.

        Who has not taken the turn gives it: others act and tell while the disk is waited for.
        """
        new = self.episodes - self._kept
        if self._journal is None or not new or not (now or new % self._snapshot_every == 0 or self._overdue(new)):
            return
        try:
            self._kept = self._journal.take_snapshot(lambda: (self.episodes, *self.mind.shelved(self.books)), turn)
            self.mind.keep(f"kept {self.mind.learnt}", self._player.policy(self.mind.state), self.books.playing)
        except RecordError:
            raise
        except (OSError, TypeError, ValueError) as error:
            warnings.warn(
                f"{self._journal.path}: no snapshot was kept after {self.episodes} episodes ({error}); nothing is "
                "lost, but opening the session will take longer",
                SessionWarning, stacklevel=3,
            )  # fmt: skip

    # ------------------------------------------------------------------------------------------ for a server

    def lag(self) -> None:
        """From now on write without waiting for the disk (`sync` does), and learn when `learn_next` is called."""
        self._lags = True

    def sync(self) -> None:
        """Make durable what was told."""
        if self._journal is not None:
            self._journal.sync()

    def keep(self) -> None:
        """Keep a snapshot now, so that the session is opened again quickly."""
        with self._turn.taken():
            self._snapshot(now=True)

    def warm_up(self) -> None:
        """Compile what updates need, on a state that is thrown away."""
        told, H = self.setting.scaled(), self.setting.horizon
        first = np.zeros(H, dtype=np.int64) if told.allowed is None else np.asarray(told.allowed)[..., 0, :].argmax(-1)
        walk = Trajectory(np.zeros(H, dtype=np.int64), np.broadcast_to(first, (H,)).astype(np.int64))
        blank = BanditFeedback(walk, np.zeros(H), np.zeros((told.n_constraints, H)))
        self._player.report(self._player.update(self._player.init(told), blank))

    def in_force(self) -> tuple[str, Policy]:
        """The name of the policy that the next episode is played with, and the policy."""
        with self._turn.taken():
            name = self.playing
            return name, Policy(self.mind.policy(name).copy())

    def learn_next(self) -> bool:
        """Learn from the episode that has waited longest, while others act and tell; whether there was one."""
        if not self.mind.episodes_wait:
            return False
        with self._learning.taken():
            made, item = self.mind.tried_next()
            with self._turn.taken():
                self.mind.become(made)
                self.mind.forget(self.books)
        with self._keeping.taken():
            self._snapshot(turn=self._turn.taken)
        if isinstance(item, Ended):
            self._pass_on(item)
        return True

    def close(self) -> None:
        """Let go of the folder, if the session has one; from then on nothing more can be told to it."""
        with self._keeping.taken(), self._turn.taken():
            self._closed = True
            if self._journal is not None:
                self._journal.close()
                self._journal = None


def _before(setting: Setting, logged: Sequence[Feedback] | Log | Before, start: Start) -> Before:
    """What was logged as a learner sees it; it does so already where another session had it."""
    if isinstance(logged, Before):
        seen = tuple(checked_feedback(setting.scaled(), feedback) for feedback in logged.logged)
        return replace(logged, logged=seen)
    seen = tuple(checked_feedback(setting, each) for each in whole_episodes(logged, setting))
    return Before(seen, start, logged.names if isinstance(logged, Log) else ())


def _digest(table: Floats) -> str:
    return hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()[:12]
