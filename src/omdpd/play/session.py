"""A learner for somebody's own loop: begin an episode, act, tell what came of it, end it; in memory, or on disk."""

from __future__ import annotations

import hashlib
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import local
from typing import Any, Self
from weakref import WeakSet, finalize

import numpy as np
import numpy.typing as npt

from omdpd.learners.masked import MaskedState, masked, name_of, pools_steps
from omdpd.learners.protocol import Learner, Report, check_storable
from omdpd.learners.safe_start import SafeStart
from omdpd.play.alarms import Alarm
from omdpd.play.books import Books, Ended, Open, checked_id, ended_by
from omdpd.play.carry import Carry
from omdpd.play.episodes import (
    Entry,
    Episode,
    checked_budget,
    opened,
    over_allowed,
    to_act,
    to_begin,
    to_end,
    to_tell,
    to_tell_whole,
    within_budget,
)
from omdpd.play.forecast import Forecast, forecast_of_state
from omdpd.play.guards import check_footprint
from omdpd.play.identity import in_learner_units, owner_of, whole_episodes
from omdpd.play.logs import Log, as_logged
from omdpd.play.policy import Policy, table_of
from omdpd.play.start import Before, Start, as_start, starting, with_next_start
from omdpd.play.taught import Taught
from omdpd.play.verdict import Verdict, verdict_from_logs
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.setting import BanditFeedback, Feedback, Setting, Trajectory, checked_feedback
from omdpd.storage.atomic import RecordError
from omdpd.storage.entries import Whole
from omdpd.storage.journal import Journal, SessionWarning
from omdpd.storage.locks import Turn
from omdpd.storage.owners import logs_of_session


class Session:
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
        self._fallback = "" if fallback is None else f"fallback {_digest(table_of(fallback, setting.shape))}"
        if fallback is not None:
            self.mind.kept[self._fallback] = table_of(fallback, setting.shape)
        if carry is not None:
            checked_budget(setting, self.base_budget())
            carry.budget(self.base_budget(), self.books)
        self.carry = carry

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
        (S, A) or (H, S, A); the policy is divided by what it gives to those.  `initial` is the law of the first state
        that plans are made for from now on.
        """
        name = secrets.token_hex(8) if id is None else checked_id(id)
        law = None if initial is None else as_start(initial, self.setting)
        if self.setting.feedback != "bandit":
            raise InvalidInputError("episodes whose cost tables are revealed are told whole: policy() and update()")
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
        return Episode(self, name)

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

    def set_budget(self, budget: npt.ArrayLike) -> None:
        """Give the episodes that begin from now on another budget.

        The learner has a plan for it when this returns: `SafeStart` from what it counted, others from all that was
        told, counted again.  A session in memory does not keep that: there others come to keep it as they learn.
        """
        limit = checked_budget(self.setting, budget)
        with self._learning.taken(), self._keeping.taken():
            with self._turn.taken():
                self._check_open()
                if limit == self.books.budget:
                    return
                if not self._lags:
                    self.mind.learn()
            planned = self._planned(limit)  # others act and tell meanwhile
            with self._turn.taken():
                self._check_open()
                self._enter({"do": "budget", "budget": limit, "learnt": self.mind.learnt})
                self.mind.become_within(planned)

    @property
    def learnt(self) -> int:
        """How many episodes the policy in force has learnt from."""
        return self.mind.learnt

    @property
    def _state(self) -> Any:
        return self.mind.state

    @property
    def open_episodes(self) -> tuple[str, ...]:
        """The ids of the episodes that have begun and not ended."""
        return tuple(self.books.open)

    def policy_of(self, id: str) -> Policy:
        """The policy that an open episode is played with, over its allowed actions."""
        return Policy(self._table_of(opened(self.books, id)).copy())

    # ------------------------------------------------------------------------------------------ operation

    def rollback(self, to: int | None) -> None:
        """Play a policy of before in the episodes that begin from now on: that of a snapshot after `to` episodes.

        The learner goes on learning; None plays its policy again.
        """
        name = None if to is None else f"kept {to}"
        if name is not None and to not in (known := self.kept_policies):
            raise InvalidInputError(f"no policy was kept after {to} episodes, but after {', '.join(map(str, known))}")
        with self._turn.taken():
            self._check_open()
            if name != self.books.playing:
                self._enter({"do": "play", "policy": name})

    @property
    def kept_policies(self) -> tuple[int, ...]:
        """After how many episodes policies were kept that `rollback` may go back to."""
        names = {name.split(" ")[1] for name in list(self.mind.kept) if name.startswith("kept ")}
        names |= set() if self._journal is None else set(self._journal.policies())
        return tuple(sorted(int(name) for name in names if name.isdecimal()))

    def keep_policy(self) -> int:
        """Keep the learner's policy to go back to; after how many episodes it is."""
        with self._turn.taken():
            self.mind.keep(f"kept {self.learnt}", self._player.policy(self.mind.state), self.books.playing)
        return self.learnt

    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms as they stand; `omdpd.play.alarms` says what each goes by."""
        return self.books.watch.alarms(self.setting.cost_names, sum(self.mind.capped))

    def fork(self, folder: str | Path, learner: Learner[Any] | None = None, setting: Setting | None = None) -> Session:
        """Another session that was told everything this one was, perhaps with another learner or setting.

        Episodes keep their ids, their policies and their budgets; those that are open here are not in it.
        """
        chosen = self.learner if learner is None else learner
        made = Session.open(folder, chosen, setting or self.setting, logged=self.before)
        self._catch_up(made)
        if setting is None and self.books.budget is not None:
            made.set_budget(self.books.budget)
        return made

    def follow(self, shadow: Session) -> None:
        """Tell another session all that this one is told, from the first episode on: a shadow, which plays nothing.

        Call it again after opening both: what the shadow missed is told to it then.
        """
        self._catch_up(shadow)
        self._followers.append(shadow)

    def judge(self, policy: Policy | npt.ArrayLike, resamples: int = 200) -> Verdict:
        """What a policy would have earned and cost in the last episodes, off-policy: a shadow's, say."""
        recent = [each for each in self.books.recent if each.how != "cut"]
        if not recent:
            raise InvalidInputError("no episode has ended yet, so nothing can be judged")
        log = Log.from_episodes((each.feedback for each in recent), self.setting.cost_names)
        chances = [each.chances for each in recent if each.chances is not None]
        if len(chances) == len(recent):
            log = replace(log, propensities=np.concatenate(chances))
        return verdict_from_logs(within_budget(self.setting, self.books.budget), log, policy, resamples=resamples)

    def _catch_up(self, other: Session) -> None:
        """Tell another session the episodes that it was not told yet."""
        if self._journal is None:
            raise InvalidInputError("a session in memory does not keep what it was told: open one in a folder")
        if other.episodes >= self.episodes:
            return
        with self._keeping.taken():  # no snapshot moves what is read
            for item in islice(self._told(self._journal), other.episodes, None):
                if isinstance(item, Whole):
                    other.update(_in_units(self.setting, item.feedback))
                else:
                    other.take_over(item)
                    other.learn_next()

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
        """Tell the shadows; one that fails is left behind, and holds nobody up."""
        for shadow in list(self._followers):
            try:
                shadow.take_over(ended)
                shadow.learn_next()
            except Exception as error:  # a learner is somebody's code
                self._followers.remove(shadow)
                warnings.warn(f"a shadow failed and follows no more: {error}", SessionWarning, stacklevel=2)

    def take_over(self, ended: Ended) -> None:
        """Be told an episode that another session played, with its id and its budget."""
        short = ended.how == "cut"
        self.tell(ended.id, ended.feedback, cut=short, budget=ended.budget)

    # ------------------------------------------------------------------------------------------ what is known

    def forecast(self) -> Forecast:
        """What the next episode will earn and cost, in the units of the setting: of sessions with `SafeStart`."""
        if not isinstance(self.learner, SafeStart):
            raise InvalidInputError(f"{type(self.learner).__name__} forecasts nothing: SafeStart does")
        own = self._state.inner if isinstance(self._state, MaskedState) else self._state
        found = forecast_of_state(self.setting, own, self.learner.confidence)
        ringing = ", ".join(alarm.name for alarm in self.alarms() if alarm.rings)
        doubt = f" Do not rely on it while an alarm rings ({ringing})." if ringing else ""
        return replace(found, what=f"{found.what}{doubt}")

    def report(self) -> Report:
        """The learner's numbers: step size, weight, certificates of its solves."""
        return self._player.report(self.mind.state)

    def close(self) -> None:
        """Let go of the folder, if the session has one; from then on nothing more can be told to it."""
        with self._keeping.taken(), self._turn.taken():
            self._closed = True
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    def __enter__(self) -> Self:
        self._within = True
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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

    @property
    def waiting(self) -> int:
        """How many episodes have ended and are not learnt from yet."""
        return self.episodes - self.mind.learnt

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

    # ------------------------------------------------------------------------------------------ entries and learning

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
        self._apply(entry)

    @property
    def playing(self) -> str:
        """The name of the policy that an episode which begins now is played with."""
        if self.books.playing is not None:
            return self.books.playing
        return self._fallback if self._fallback and self.mind.unsure else self.mind.name

    def _table_of(self, episode: Open) -> Floats:
        return over_allowed(self.mind.played[episode.policy], episode, self.setting)

    def base_budget(self) -> Floats:
        """The budget of an episode that is given none, (I,); zero where costs come with it taken off."""
        given = self.setting.budget if self.books.budget is None else self.books.budget
        return np.zeros(self.setting.n_constraints) if given is None else np.asarray(given, dtype=np.float64)

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


class _Opened(local):
    """The sessions on disk that each thread opened."""

    def __init__(self) -> None:
        self.sessions: WeakSet[Session] = WeakSet()


_OPEN = _Opened()


def _before(setting: Setting, logged: Sequence[Feedback] | Log | Before, start: Start) -> Before:
    """What was logged as a learner sees it; it does so already where another session had it."""
    if isinstance(logged, Before):
        seen = tuple(checked_feedback(setting.scaled(), feedback) for feedback in logged.logged)
        return replace(logged, logged=seen)
    seen = tuple(checked_feedback(setting, each) for each in whole_episodes(logged, setting))
    return Before(seen, start, logged.names if isinstance(logged, Log) else ())


def _close_forgotten(path: Path) -> None:
    """Close what this thread opened in a folder and left open outside ``with``."""
    for session in list(_OPEN.sessions):
        journal = None if session._within else session._journal
        if journal is not None and journal.path.resolve() == path.resolve():
            session.close()


def _digest(table: Floats) -> str:
    return hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()[:12]


def _in_units(setting: Setting, feedback: Feedback) -> Feedback:
    """What was told, as it was before it was scaled for the learner."""
    low, high = setting.reward_range or (0.0, 1.0)
    rewards = low + (high - low) * feedback.rewards
    if setting.budget is None or not isinstance(feedback, BanditFeedback):
        return replace(feedback, rewards=rewards)
    scale = np.ones(setting.n_constraints) if setting.cost_scale is None else np.asarray(setting.cost_scale)
    share = np.asarray(setting.budget)[:, None] / setting.horizon
    return BanditFeedback(feedback.trajectory, rewards, share + scale[:, None] * feedback.costs)
