"""A learner for somebody's own loop: ask for a policy, tell what happened; in memory, or durable on disk."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from threading import local
from typing import Any, Self
from weakref import WeakSet, finalize

import numpy as np
import numpy.typing as npt

from omdpd.learners.needs import with_scaled_safe_policy
from omdpd.learners.protocol import Learner, Report, check_storable, restored, stored_classes
from omdpd.play.guards import as_learner, check_footprint
from omdpd.play.policy import Policy
from omdpd.play.start import as_start, started, with_next_start
from omdpd.problem.arrays import Floats, InvalidInputError, positive_integer
from omdpd.problem.setting import Feedback, Setting, checked_feedback
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import Facts, Journal, SessionWarning
from omdpd.storage.locks import Turn
from omdpd.storage.npz import Arrays
from omdpd.storage.packing import Tree, in_words, pack, unpack


class Session:
    """Ask and tell: `policy()` before an episode, `update(feedback)` after it.

    Threads may share one: updates take turns, and `policy` is always that after some whole update.

    With a budget in the setting, feedback holds costs and rewards as they are met, in one's own units.  `logged` are
    episodes from before, whoever played them: the first policy is planned with what they tell.

    >>> import numpy as np
    >>> from omdpd import BanditFeedback, ProximalOMDPD, Session, Setting, Trajectory
    >>> session = Session(ProximalOMDPD.cautious(), Setting(horizon=2, n_states=2, n_actions=2))
    >>> session.policy().shape
    (2, 2, 2)
    >>> met = Trajectory(states=np.array([0, 1]), actions=np.array([1, 0]))
    >>> session.update(BanditFeedback(met, rewards=np.array([1.0, 0.0]), costs=np.array([[0.2, -0.1]])))
    >>> session.episodes
    1
    """

    def __init__(self, learner: Learner[Any], setting: Setting, *, logged: Sequence[Feedback] = ()) -> None:
        self.learner = _in_learner_units(as_learner(learner), setting)
        self.setting = setting
        self.episodes = 0
        self._closed = False
        check_footprint(self.learner, setting.scaled())
        checked = tuple(checked_feedback(setting, feedback) for feedback in logged)
        self._state = started(self.learner, setting.scaled(), checked)
        self._journal: Journal | None = None
        self._snapshot_every = self._kept = 0
        self._turn, self._within = Turn(), False

    @classmethod
    def open(
        cls,
        path: str | Path,
        learner: Learner[Any],
        setting: Setting,
        snapshot_every: int = 200,
        *,
        logged: Sequence[Feedback] = (),
    ) -> Session:
        """A session kept in a folder: every update is on disk before it returns.

        Opening it again, after a crash too, goes on with the same policy.  One process at a time may have it open, and
        only that one writes: a child forked from it is refused.  A process that died, or a session that was dropped
        (``del``), does not hold it; nor does one outside ``with`` that the same thread opened before, as a notebook's
        cell that is run again does: that one is closed.  Use it with ``with``, or call `close`.
        """
        positive_integer("snapshot_every", snapshot_every)
        if Path(path).exists() and not Path(path).is_dir():
            raise InvalidInputError(f"path is {str(path)!r}, which is a file, but a session is kept in a folder")
        session = cls(learner, setting, logged=logged)
        # What could not be opened again is refused here, before anything is written or learnt.
        check_storable(learner, session._state)
        fingerprint, facts = _fingerprint(session.learner, setting, logged)
        _close_forgotten(Path(path))
        journal = Journal(Path(path))
        try:
            journal.claim(fingerprint, facts)
            kept = journal.snapshot()
            if kept is not None:
                session.episodes, tree, arrays = kept
                session._kept = session.episodes
                session._state = _restored(Path(path), tree, arrays, learner, type(session._state))
            for feedback, initial in journal.replay(session.episodes):
                good = checked_feedback(setting.scaled(), feedback)  # scaled before it was written
                session._state = session._after(good, initial)
                session.episodes += 1
        except BaseException:
            journal.close()
            raise
        session._journal, session._snapshot_every = journal, snapshot_every
        finalize(session, journal.close)
        _OPEN.sessions.add(session)
        return session

    def __repr__(self) -> str:
        where = "in memory" if self._journal is None else f"in {self._journal.path}"
        where = "closed" if self._closed else where
        return f"Session({type(self.learner).__name__}, {self.episodes} episodes, {where})"

    def policy(self) -> Policy:
        """The policy to play in the next episode: probabilities of actions by step and state."""
        return Policy(self.learner.policy(self._state).copy())

    def update(self, feedback: Feedback, initial: npt.ArrayLike | None = None) -> None:
        """Learn from one episode; wrong feedback is refused with a sentence and changes nothing.

        `initial` is the law of the next episode's first state, if it is not what it was: it stays until it is given
        anew.
        """
        good = checked_feedback(self.setting, feedback)
        law = None if initial is None else as_start(initial, self.setting)
        with self._turn.taken():
            if self._closed:
                raise InvalidInputError("the session is closed, so nothing more can be told to it: open it again")
            self._snapshot()
            state, following = self._after(good, law), self.episodes + 1
            if self._journal is not None:
                self._journal.append(self.episodes, good, law)
            # Nothing that can fail comes after the journal has it.
            self._state, self.episodes = state, following

    def report(self) -> Report:
        """The learner's numbers: step size, weight, certificates of its solves."""
        return self.learner.report(self._state)

    def close(self) -> None:
        """Let go of the folder, if the session has one; from then on nothing more can be told to it."""
        with self._turn.taken():
            self._closed = True
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    def __enter__(self) -> Self:
        self._within = True
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _snapshot(self) -> None:
        """Keep the state if it is time: before the next update, so that no update raises that is there already."""
        if self._journal is None or self.episodes % self._snapshot_every or self.episodes == self._kept:
            return
        try:
            self._journal.take_snapshot(self.episodes, *pack(self._state))
            self._kept = self.episodes
        except RecordError:
            raise
        except (OSError, TypeError, ValueError) as error:
            warnings.warn(
                f"{self._journal.path}: no snapshot was kept after {self.episodes} episodes ({error}); nothing is "
                "lost, but opening the session will take longer",
                SessionWarning, stacklevel=3,
            )  # fmt: skip

    def _after(self, feedback: Feedback, initial: Floats | None) -> Any:
        """The state after one more episode, with the law that the next one starts from."""
        state = self._state if initial is None else with_next_start(self.learner, self._state, initial)
        return self.learner.update(state, feedback)


def _in_learner_units(learner: Learner[Any], setting: Setting) -> Learner[Any]:
    """The learner with a safe policy in its own units, where one was given in those of the setting."""
    budget, scale = (
        np.full(setting.n_constraints, absent) if given is None else np.asarray(given)
        for given, absent in ((setting.budget, 0.0), (setting.cost_scale, 1.0))
    )
    scaled: Learner[Any] = with_scaled_safe_policy(learner, budget, scale)
    return scaled


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


def _restored(path: Path, tree: Tree, arrays: Arrays, learner: Learner[Any], kind: type) -> Any:
    """The state of a snapshot, which must be of the learner's own kind."""
    try:
        state = restored(learner, unpack(tree, arrays, stored_classes(learner)))
        if type(state) is not kind:
            raise TypeError(f"it is a {type(state).__name__}, not a {kind.__name__}")
        return state
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path / 'snapshot.json'} is damaged: the state in it cannot be used ({error})") from None


def _fingerprint(learner: Learner[Any], setting: Setting, logged: Sequence[Feedback] = ()) -> tuple[str, Facts]:
    """A hash of everything that learner, setting and what was logged before hold, and the same in words."""
    try:
        tree, arrays = pack((learner, setting, *logged))
        facts = in_words(tree[0], arrays, "learner") | in_words(tree[1], arrays, "setting")
        # Sessions whose settings have no units and no seed keep the fingerprint they had before there were any.
        fields = tree[1]["fields"]
        for name in [name for name in ("budget", "cost_scale", "reward_range", "seed") if fields[name] is None]:
            del fields[name]
    except TypeError as error:
        raise InvalidInputError(
            f"a session on disk must be able to tell whose it is, so {type(learner).__name__} has to be a dataclass of "
            f"plain settings: {error}"
        ) from None
    # Numbers that JSON does not have are spelt in a fingerprint as they were before trees could hold them.
    text = re.sub(r'\{"number": "(NaN|-?Infinity)"\}', r"\1", json.dumps(tree, sort_keys=True))
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(arrays[name].tobytes())
    told = hashlib.sha256(b"".join(entry.encode() for entry in in_words(tree[2:], arrays, "logged").values()))
    facts["logged"] = f"{len(logged)} episodes ({told.hexdigest()[:10]})" if logged else "nothing"
    return digest.hexdigest(), facts
