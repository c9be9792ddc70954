"""A learner for the user's own loop: begin an episode, act, tell what came of it, end it; in memory or on disk."""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from threading import local
from typing import Any, Self
from weakref import WeakSet, finalize

import numpy as np
import numpy.typing as npt

from omdpd.learners.masked import name_of
from omdpd.learners.protocol import Learner, check_storable
from omdpd.learners.safe_start import SafeStart
from omdpd.play.books import Ended, checked_id
from omdpd.play.carry import Carry
from omdpd.play.episodes import Episode, opened, to_act, to_begin, to_end, to_tell, to_tell_whole
from omdpd.play.logs import Log
from omdpd.play.policy import Policy
from omdpd.play.session_operation import Operation
from omdpd.play.start import (
    Before,
    Start,
    as_start,
    given_again,
    in_learner_units,
    owner_of,
    start_of,
    with_next_start,
)
from omdpd.problem.arrays import InvalidInputError, positive_integer
from omdpd.problem.setting import BanditFeedback, Feedback, Setting, checked_feedback
from omdpd.storage.entries import Whole
from omdpd.storage.journal import Journal, SessionWarning
from omdpd.storage.owners import logs_of_session


class Session(Operation):
    """A learner that plays and learns episode by episode: `begin`, `act`, `tell`, `end`.

    Several episodes may be open at once; they may be told late, out of order, and twice, and end short.  Threads may
    share a session: calls take turns, and a policy is always that after some whole update.

    With a budget in the setting, costs and rewards are told as they are met, in one's own units.  `logged` are
    whole episodes from before, whoever played them: the first policy is planned with what they tell, and is within
    every budget as far as they certify it.  Without a learner (None) it is `SafeStart`; one that explores is refused
    unless ``start="explore"``.  `fallback` is played while the
    last update failed; without it, an update that fails is refused.  `carry` gives episodes their budgets.

    >>> from omdpd import ProximalOMDPD, Session, Setting
    >>> session = Session(ProximalOMDPD.cautious(), Setting(horizon=2, n_states=2, n_actions=2))
    >>> episode = session.begin()
    >>> for state in (0, 1):
    ...     action = episode.act(state)
    ...     episode.tell(reward=1.0, cost=0.2 * action)
    >>> episode.end()
    >>> session.episodes
    1
    """

    @classmethod
    def open(
        cls,
        path: str | Path,
        learner: Learner[Any] | None,
        setting: Setting,
        snapshot_every: int = 200,
        *,
        logged: Sequence[Feedback] | Log | Before = (),
        start: Start = "safe",
        fallback: Policy | npt.ArrayLike | None = None,
        carry: Carry | None = None,
    ) -> Session:
        """A session kept in a folder: what was told is on disk before the call returns.

        Opening it again, after a crash too, goes on with the same policy and the same open episodes; logs and `start`
        need not be given again.  One process at a
        time may have it open, and only that one writes: a child forked from it is refused.  A process that died, or a
        session that was dropped (``del``), does not hold it; nor does one outside ``with`` that the same thread opened
        before, as a notebook's cell that is run again does: that one is closed.  Use it with ``with``, or call `close`.
        """
        positive_integer("snapshot_every", snapshot_every)
        if Path(path).exists() and not Path(path).is_dir():
            raise InvalidInputError(f"path is {str(path)!r}, which is a file, but a session is kept in a folder")
        earlier = logs_of_session(Path(path))
        given = logged if isinstance(logged, Before) or len(logged) or earlier is None else Before(*earlier)
        session = cls(learner, setting, logged=given, start=start, fallback=fallback, carry=carry)
        # What could not be opened again is refused here, before anything is written or learnt.
        check_storable(session._player, session.mind.state)
        # One that took its safe policy from the logs is known by the learner that was given.
        known = session.learner if learner is None else in_learner_units(learner, setting)
        owner = owner_of(known, setting, logged, session.before)
        _close_forgotten(Path(path))
        journal = Journal(Path(path), keeps_past=setting.feedback == "bandit")
        try:
            journal.claim(owner)
            session._name = journal.session
            session.mind.journal = journal
            if (kept := journal.snapshot()) is not None:
                session.books = session.mind.restore(Path(path) / "snapshot.json", kept)
                session._entries, session.episodes, session._kept = kept.entries, kept.episodes, kept.episodes
            for entry in journal.replay(session._entries):
                session._replay(entry)
                session._entries += 1
            session.mind.learn()
        except BaseException:
            journal.close()
            raise
        session._journal, session._snapshot_every = journal, snapshot_every
        if session._fallback:
            session.mind.keep(session._fallback, session.mind.kept[session._fallback])
        finalize(session, journal.close)
        _OPEN.sessions.add(session)
        return session

    def __repr__(self) -> str:
        where = "in memory" if self._journal is None else f"in {self._journal.path}"
        where = "closed" if self._closed else where
        return f"Session({name_of(self.learner)}, {self.episodes} episodes, {where})"

    # ------------------------------------------------------------------------------------------ whole policies

    def policy(self) -> Policy:
        """The policy that the next episode is played with: probabilities of actions by step and state."""
        return Policy(self.mind.policy(self.playing).copy())

    def ask(self, id: str | None = None) -> Episode:
        """An episode to be played elsewhere: its `policy` is all one needs; `tell` has what came of it."""
        return self.begin(id)

    def update(self, feedback: Feedback, initial: npt.ArrayLike | None = None) -> None:
        """Learn from one whole episode; wrong feedback is refused with a sentence and changes nothing.

        `initial` is the law of the next episode's first state, if it is not what it was: it stays until it is given
        anew.
        """
        good = checked_feedback(self.setting, feedback)
        law = None if initial is None else as_start(initial, self.setting)
        with self._turn.taken():
            self._check_open()
            self.mind.learn()
            self._snapshot()
            entry = Whole(good, law)
            made = self.mind.made(self.mind.after(entry))
            if self._journal is not None:
                self._journal.append(self._entries, entry)
            # Nothing that can fail comes after the journal has it.
            self.mind.become(made)
            self.episodes, self._entries = self.episodes + 1, self._entries + 1

    def tell(
        self, id: str, feedback: BanditFeedback, *, cut: bool = False, budget: npt.ArrayLike | None = None
    ) -> None:
        """Learn from a trajectory under an id, begun here or not: told twice it counts once, told otherwise is refused.

        `cut` says that it may have fewer steps than the horizon, because its end was not seen.
        """
        checked_id(id)
        with self._turn.taken():
            self._check_open()
            self._enter(to_tell_whole(self.books, self.setting, id, feedback, cut, budget, time.time()))

    def take_over(self, ended: Ended) -> None:
        """Be told an episode that another session played, with its id and its budget."""
        short = ended.how == "cut"
        self.tell(ended.id, ended.feedback, cut=short, budget=ended.budget)

    # ------------------------------------------------------------------------------------------ episode by episode

    def begin(
        self,
        id: str | None = None,
        budget: npt.ArrayLike | None = None,
        allowed: npt.ArrayLike | None = None,
        initial: npt.ArrayLike | None = None,
    ) -> Episode:
        """Begin an episode, or go on with the open one of this id.

        `budget` is this episode's, in the units of the setting.  `allowed` says which actions may be drawn: (A,),
        (S, A) or (H, S, A); the policy is divided by what it gives to those.  Where it gives them nothing they are
        equally likely, whatever they cost: the first such mask is warned of.  `initial` is the law of the first state
        that plans are made for from now on: `SafeStart` plans for it before this episode begins, others in their next
        update.
        """
        name = secrets.token_hex(8) if id is None else checked_id(id)
        law = None if initial is None else as_start(initial, self.setting)
        if self.setting.feedback != "bandit":
            raise InvalidInputError("episodes whose cost tables are revealed are told whole: policy() and update()")
        if law is not None and isinstance(self.learner, SafeStart):
            with self._turn.taken():
                self._check_open()
                fresh = to_begin(self.books, self.setting, name, budget, allowed, "", 0.0) is not None
            if fresh:
                self._start_at(law)
            law = None
        with self._turn.taken():
            self._check_open()
            if law is not None:  # refused here by a learner that cannot plan for it
                with_next_start(self._player, self.mind.state, law)
            policy = self.playing
            entry = to_begin(self.books, self.setting, name, budget, allowed, policy, time.time())
            if entry is not None:
                if self.carry is not None and budget is None:
                    entry["budget"] = self.carry.budget(self.base_budget(), self.books).tolist()
                self.mind.played.setdefault(policy, self.mind.policy(policy))
                self._enter(entry if law is None else entry | {"initial": law.tolist()}, sync=False)
                if entry["allowed"] is not None:
                    self._doubt(name)
        return Episode(self, name)

    def _doubt(self, id: str) -> None:
        """Warn once of a mask that leaves nothing of the policy somewhere."""
        episode = self.books.open[id]
        left = np.where(np.asarray(episode.allowed), self.mind.played[episode.policy], 0.0).sum(axis=2) == 0.0
        if left.any() and not self._doubted:
            self._doubted = True
            h, s = (int(i) for i in np.argwhere(left)[0])
            warnings.warn(
                f"allowed of episode {id!r} forbids all that the policy plays in state {s} at step {h}"
                f"{f' and in {left.sum() - 1} more places' if left.sum() > 1 else ''}: the allowed actions are equally "
                "likely there, whatever they cost (said once)",
                SessionWarning, stacklevel=3,
            )  # fmt: skip

    def episode(self, id: str) -> Episode:
        """The open episode of an id."""
        return Episode(self, opened(self.books, id).id)

    def act(self, id: str, state: int, step: int | None = None) -> int:
        """The action of an open episode in a state; see `Episode.act`."""
        with self._turn.taken():
            self._check_open()
            episode = opened(self.books, id)
            entry = to_act(self.books, self.setting, self._name, id, state, step, self._table_of(episode))
            if entry is not None:
                self._enter(entry, sync=False)
                return int(entry["action"])
            return episode.actions[-1 if step is None else step]

    def tell_steps(self, id: str, steps: Sequence[tuple[int | None, npt.ArrayLike, npt.ArrayLike]]) -> None:
        """What steps of an open episode earned and cost, each as (step, reward, cost); see `Episode.tell`."""
        with self._turn.taken():
            self._check_open()
            self._enter(to_tell(self.books, self.setting, id, steps))

    def end(self, id: str, absorbed: int | None = None, cut: bool = False) -> None:
        """End an open episode and learn from it; see `Episode.end`."""
        with self._turn.taken():
            self._check_open()
            table = self._table_of(self.books.open[id]) if id in self.books.open else None
            self._enter(to_end(self.books, self.setting, self._name, id, absorbed, cut, table, time.time()))

    def drop(self, id: str) -> None:
        """Wait no longer for an open episode: it is counted, and nothing is learnt from it."""
        with self._turn.taken():
            self._check_open()
            if self.books.digests.get(id) != "dropped":
                self._enter({"do": "drop", "id": opened(self.books, id).id})

    def drop_older(self, seconds: float, most: int | None = None) -> list[str]:
        """Drop the open episodes that began longer ago than this, `most` of them at a time; their ids."""
        before = time.time() - seconds
        old = [each.id for each in list(self.books.open.values()) if each.began < before][:most]
        for id in old:
            self.drop(id)
        return old

    @property
    def open_episodes(self) -> tuple[str, ...]:
        """The ids of the episodes that have begun and not ended."""
        return tuple(self.books.open)

    def policy_of(self, id: str) -> Policy:
        """The policy that an open episode is played with, over its allowed actions."""
        return Policy(self._table_of(opened(self.books, id)).copy())

    # ------------------------------------------------------------------------------------------ forks, and the end

    def fork(self, folder: str | Path, learner: Learner[Any] | None = None, setting: Setting | None = None) -> Session:
        """Another session that was told everything this one was, perhaps with another learner or setting.

        Episodes keep their ids, their policies and their budgets; those that are open here are not in it.
        """
        chosen = given_again(self.learner, self.setting, setting or self.setting) if learner is None else learner
        made = Session.open(folder, chosen, setting or self.setting, logged=self.before)
        self._catch_up(made)
        if setting is None and self.books.budget is not None:
            made.set_budget(self.books.budget)
        if setting is None and isinstance(made.learner, SafeStart) and (law := start_of(self.mind.state)) is not None:
            made._start_at(law)
        return made

    def __enter__(self) -> Self:
        self._within = True
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Opened(local):
    """The sessions on disk that each thread opened."""

    def __init__(self) -> None:
        self.sessions: WeakSet[Session] = WeakSet()


_OPEN = _Opened()


def _close_forgotten(path: Path) -> None:
    """Close what this thread opened in a folder and left open outside ``with``."""
    for session in list(_OPEN.sessions):
        journal = None if session._within else session._journal
        if journal is not None and journal.path.resolve() == path.resolve():
            session.close()
