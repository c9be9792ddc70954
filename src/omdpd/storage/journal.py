"""What a session keeps on disk: a log of feedback, and snapshots of the state.

    session.json          whose session this is: its name, a fingerprint of learner and setting, and both in words
    snapshot.json         the last snapshot: episodes, the state's tree, its arrays' file and checksum
    state-<k>.npz         the snapshot's arrays
    journal-<k>.log       every feedback since episode k (see `storage.log`)
    lock                  held by the process that has the session open

Every file names the session and is checksummed.  An entry is on disk before `append` returns.  A tail that was cut off
by a crash was never acknowledged: it is dropped, and this is said.  Damage anywhere else means that something
acknowledged is lost: it is refused, never skipped.  Only the process that opened the journal writes to it.
"""

from __future__ import annotations

import hashlib
import io
import re
import secrets
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import BanditFeedback, Feedback, FullFeedback, Trajectory
from omdpd.storage import log as logs
from omdpd.storage.atomic import (
    RecordError,
    is_half_written,
    make_folder,
    read_bounded,
    read_json,
    sweep,
    write_atomically,
)
from omdpd.storage.locks import Lock
from omdpd.storage.npz import Arrays, arrays_of_npz, npz_of_arrays
from omdpd.storage.packing import Tree
from omdpd.storage.sealed import FORMAT, read_sealed, sealed_json

MADE = re.compile(r"(state-\d{9,}\.npz|journal-\d{9,}\.log)")


# What one update was told: the feedback, and the law of the next episode's first state if it was given.
Entry = tuple[Feedback, Floats | None]


# A learner and a setting in words: every entry by its name.
Facts = Mapping[str, str]


class SessionLockedError(RecordError):
    """Somebody else has the session open."""


class SessionWarning(UserWarning):
    """What the owner of a session on disk should know, though nothing acknowledged is lost."""


class _Claim(msgspec.Struct, forbid_unknown_fields=True):
    run: str
    fingerprint: str
    facts: dict[str, str] = {}  # sessions up to 0.2 have none

    def __post_init__(self) -> None:
        if not re.fullmatch("[0-9a-f]{32}", self.run):
            raise ValueError("it does not name its session")


class _Snapshot(msgspec.Struct, forbid_unknown_fields=True):
    run: str
    episodes: int
    file: str
    state_sha256: str
    tree: Any

    def __post_init__(self) -> None:
        if self.file != f"state-{self.episodes:09d}.npz":
            raise ValueError(f"it names {self.file!r}, which is not its own state")


class Journal:
    """The files of one session; open from construction until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path = path.absolute()  # wherever the process goes from here
        make_folder(path)
        self._lock = Lock(path / "lock")
        if not self._lock.acquire():
            raise SessionLockedError(
                f"{path} is open already, in another process or elsewhere in this one: close it there first; one "
                "session has one owner"
            )
        self._session = ""
        self._log: logs.Log | None = None

    def __reduce__(self) -> NoReturn:
        raise InvalidInputError(f"the session in {self.path} has one owner, so it cannot be copied or sent elsewhere")

    def close(self) -> None:
        """Let go of the files and the lock; what is not, or no longer, one's own is left as it is."""
        if self._log is not None:
            self._log.close(tidy=self._lock.is_held)
            self._log = None
        self._lock.release()

    def claim(self, fingerprint: str, facts: Facts) -> None:
        """Make the folder this learner's and setting's, or refuse one that is somebody else's."""
        found = self.identify()
        if found is None:
            self._refuse_what_is_not_new()
            self._session = secrets.token_hex(16)
            logs.begin(self.path / _log_name(0), self._session, 0)
            content = sealed_json(self._session, {"fingerprint": fingerprint, "facts": facts})
            write_atomically(self.path / "session.json", content)
        elif found.fingerprint != fingerprint:
            raise RecordError(
                f"{self.path} holds a session of another learner or setting: {_difference(found.facts, facts)}"
            )

    def identify(self) -> _Claim | None:
        """Whose session the folder holds; None if it holds none."""
        file = self.path / "session.json"
        content = read_sealed(file)
        if content is None:
            return None
        if content.get("format") != FORMAT:
            raise RecordError(
                f"{file} has format {content.get('format')!r}, but this version reads format {FORMAT}: go on with the "
                "version that wrote it, or begin a session in a new folder"
            )
        claim: _Claim = _converted({key: value for key, value in content.items() if key != "format"}, _Claim, file)
        self._session = claim.run
        return claim

    def snapshot(self) -> tuple[int, Tree, Arrays] | None:
        """The last snapshot: episodes, tree and arrays; None if there is none."""
        file = self.path / "snapshot.json"
        content = read_sealed(file, self._session)
        if content is None:
            return None
        if content.pop("format", None) != FORMAT:
            raise RecordError(f"{file} is damaged: its checksum is missing")
        kept = _converted(content, _Snapshot, file)
        state = self.path / kept.file
        arrays = read_bounded(state)
        if hashlib.sha256(arrays).hexdigest() != kept.state_sha256:
            raise RecordError(f"{state} is damaged: its checksum is not the one that was written")
        return kept.episodes, kept.tree, arrays_of_npz(arrays, str(state))

    def entries(self, episodes: int) -> Iterator[tuple[Entry, int]]:
        """What was told since a snapshot of `episodes`, and where each entry ends in the log."""
        file = self.path / _log_name(episodes)
        self._refuse_later_logs(episodes)
        for k, (entry, end) in enumerate(logs.read(file, episodes, self._session), episodes):
            yield _decoded(entry, f"{file}, episode {k}"), end

    def replay(self, episodes: int) -> Iterator[Entry]:
        """What was told since a snapshot of `episodes`; then the journal is ready for more."""
        n, end = episodes, None
        for entry, after in self.entries(episodes):
            yield entry
            n, end = n + 1, after
        self._log = logs.reopened(self.path / _log_name(episodes), self._session, n, end)
        self._sweep(episodes)
        if self._log.cut_off:
            warnings.warn(
                f"{self._log.file} ended in an entry that was not written to its end when its process or the machine "
                f"stopped; it was never acknowledged and is dropped: the session goes on after {n} episodes",
                SessionWarning, stacklevel=3,
            )  # fmt: skip

    def append(self, episode: int, feedback: Feedback, initial: Floats | None = None) -> None:
        """Write the feedback of an episode; it is durable when this returns, and not there if this raises.

        `initial` is the law of the next episode's first state, if it was given.
        """
        self._lock.check()
        assert self._log is not None, "a journal is replayed before it is written"
        self._log.append(episode, _encoded(feedback, initial))

    def take_snapshot(self, episodes: int, tree: Tree, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Keep the state, begin a new log, and drop what is no longer needed."""
        self._lock.check()
        name = f"state-{episodes:09d}.npz"
        checksum = write_atomically(self.path / name, npz_of_arrays(arrays))
        # The new log is there before the snapshot that needs it: one that is missing then means damage.
        logs.begin(self.path / _log_name(episodes), self._session, episodes)
        kept = {"episodes": episodes, "file": name, "state_sha256": checksum, "tree": tree}
        following = logs.Log(self.path / _log_name(episodes), episodes, logs.HEAD_SIZE)
        try:
            write_atomically(self.path / "snapshot.json", sealed_json(self._session, kept))
        except BaseException:
            following.close(tidy=False)
            self._stop_if_replaced(name)
            raise
        if self._log is not None:
            self._log.close(tidy=False)
        self._log = following
        self._sweep(episodes)

    def _stop_if_replaced(self, name: str) -> None:
        """A snapshot that is there but not known to last leaves it open which log counts: then none is written."""
        try:
            replaced = (read_json(self.path / "snapshot.json") or {}).get("file") == name
        except (RecordError, OSError):
            replaced = True
        if replaced and self._log is not None:
            self._log.broken = True

    def _sweep(self, episodes: int) -> None:
        known = {_log_name(episodes), f"state-{episodes:09d}.npz"}
        sweep(self.path, known, lambda name: bool(MADE.fullmatch(name)))

    def _refuse_what_is_not_new(self) -> None:
        """Refuse a folder that holds anything but what a crash before the first update can have left."""
        for other in self.path.iterdir():
            nothing = other.name == _log_name(0) and logs.is_empty(other)
            if not (nothing or other.name == "lock" or is_half_written(other.name)):
                raise RecordError(
                    f"{self.path / 'session.json'} is missing, but the folder holds {other.name}: a new session "
                    "needs an empty folder, and an old one its session.json"
                )

    def _refuse_later_logs(self, episodes: int) -> None:
        """A later log with entries in it means that the snapshot before it is lost; an empty one means nothing."""
        for later in self.path.glob("journal-*.log"):
            if MADE.fullmatch(later.name) and later.name > _log_name(episodes) and not logs.is_empty(later):
                raise RecordError(f"{later} is there, but the snapshot that it goes on from is missing")


def verify_session(path: Path) -> int:
    """Refuse a session whose files are not what was written, without opening it; the number of its episodes."""
    journal = Journal(path)
    try:
        if journal.identify() is None:
            raise RecordError(f"{path / 'session.json'} is missing")
        kept = journal.snapshot()
        episodes = 0 if kept is None else kept[0]
        return episodes + sum(1 for _ in journal.entries(episodes))
    finally:
        journal.close()


def _difference(there: Facts, here: Facts) -> str:
    """What two sessions do not have in common, in words."""
    names = [name for name in [*there, *(here.keys() - there.keys())] if there.get(name) != here.get(name)]
    if not there or not names:
        return "the version that began it kept no words of what differs; compare learner, setting and what was `logged`"
    told = [f"{name} is {there.get(name, 'not there')}, not {here.get(name, 'there')}" for name in sorted(names)]
    return "; ".join(told[:3]) + (f"; and {len(told) - 3} more" if len(told) > 3 else "")


def _log_name(episodes: int) -> str:
    return f"journal-{episodes:09d}.log"


def _converted(content: dict[str, Any], kind: type[Any], file: Path) -> Any:
    try:
        return msgspec.convert(content, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise RecordError(f"{file} is damaged: {error}") from None


def _encoded(feedback: Feedback, initial: Floats | None) -> bytes:
    trajectory = feedback.trajectory
    arrays = {"states": trajectory.states, "actions": trajectory.actions, "rewards": feedback.rewards}
    costs = {"costs": feedback.costs} if isinstance(feedback, BanditFeedback) else {"cost": feedback.cost}
    buffer = io.BytesIO()
    start = {} if initial is None else {"initial": initial}
    np.savez(buffer, allow_pickle=False, **arrays, **costs, **start)
    return buffer.getvalue()


def _decoded(entry: bytes, name: str) -> Entry:
    stored = arrays_of_npz(entry, name)
    try:
        trajectory = Trajectory(stored["states"], stored["actions"])
        initial = stored.get("initial")
        if "cost" in stored:
            return FullFeedback(trajectory, stored["rewards"], stored["cost"]), initial
        return BanditFeedback(trajectory, stored["rewards"], stored["costs"]), initial
    except KeyError as error:
        raise RecordError(f"{name} holds no {error.args[0]}, so it is no feedback") from None
