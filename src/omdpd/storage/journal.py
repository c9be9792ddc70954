"""A journal keeps a session on disk: a log of what it was told, and snapshots of the state.

    session.json          whose session this is: its name, a fingerprint of learner and setting, and both in words
    logged.npz            the episodes that it started from, if there were any: it is opened again without them
    snapshot.json         the last snapshot: entries, episodes, the state's tree, books, its arrays' file and checksum
    state-<n>.npz         the snapshot's arrays
    journal-<n>.log       every entry since entry n (see `storage.log`)
    history-<n>.log       logs from before the snapshot: nothing needs them but a fork of the session
    policy-<name>.npz     policies that may be gone back to
    lock                  held by the process that has the session open

An entry is one episode's feedback (arrays in NPZ), or since journal 2 an event of an episode (JSON).  Journals of 1,
where entries are episodes, are read and go on as 2.

Every file names the session and is checksummed.  An entry is on disk before `append` returns.  A tail that was cut off
by a crash was never acknowledged: it is dropped, and this is said.  Damage anywhere else means that something
acknowledged is lost: it is refused, never skipped.  Only the process that opened the journal writes to it.

A snapshot is written while entries go on.  From the moment that it is of, they are written to two logs, and are durable
when both are synced, the old one first.  The old one counts until the snapshot is there to stay, and the new one from
then on: so either has all that was acknowledged whenever the process or the machine stops.  A new log without its
snapshot means nothing, as long as it counts nothing that the old one does not have.
"""

from __future__ import annotations

import re
import secrets
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.storage import log as logs
from omdpd.storage.atomic import (
    RecordError,
    is_half_written,
    make_folder,
    read_bounded,
    read_json,
    read_noted,
    rename,
    sweep,
    sync_folder,
    write_atomically,
)
from omdpd.storage.entries import Entry, decoded, encoded, stacked, tells_an_episode
from omdpd.storage.locks import Lock
from omdpd.storage.npz import Arrays, arrays_of_npz, npz_of_arrays
from omdpd.storage.owners import JOURNAL, LOGGED, NOTHING, OWNER, Claim, Owner, claim_of, difference, logs_of_session
from omdpd.storage.packing import Tree
from omdpd.storage.sealed import SEALED, converted, read_sealed, sealed_json

MADE = re.compile(r"(state-\d{9,}\.npz|journal-\d{9,}\.log)")
LOGS = re.compile(r"(history|journal)-\d{9,}\.log")
# Policies that are kept to go back to.
MOST_POLICIES = 50


class StoredSnapshot(NamedTuple):
    """A snapshot: how many entries and episodes it is after, the state's tree, the books, and the arrays of both."""

    entries: int
    episodes: int
    tree: Tree
    books: dict[str, Any]
    arrays: Arrays


# What a snapshot is of: episodes, the state's tree, the books, and the arrays of both.
Shelved = tuple[int, Tree, Mapping[str, Any], Mapping[str, Any]]
Turn = Callable[[], AbstractContextManager[None]]

# Where a session's owner may say its learner and setting (`omdpd serve`), and what only a session makes.
DESCRIBED, OURS = "session.toml", re.compile(r"snapshot\.json$|(state|journal|history|policy)-\d{9,}\.")


class SessionLockedError(RecordError):
    """Another process, or another object in this one, has the session open."""


class SessionWarning(UserWarning):
    """What the owner of a session on disk should know, though nothing acknowledged is lost."""


class _Snapshot(msgspec.Struct, forbid_unknown_fields=True):
    run: str
    episodes: int
    file: str
    state_sha256: str
    tree: Any
    entries: int = -1  # as many as episodes, in a journal of those alone
    books: dict[str, Any] = {}

    def __post_init__(self) -> None:
        self.entries = self.episodes if self.entries < 0 else self.entries
        if self.file != f"state-{self.entries:09d}.npz":
            raise ValueError(f"it names {self.file!r}, which is not its own state")


class Journal:
    """The files of one session; open from construction until `close`."""

    def __init__(self, path: Path, keeps_past: bool = True) -> None:
        self.keeps_past = keeps_past
        self.path = path = path.absolute()  # wherever the process goes from here
        make_folder(path)
        self._lock = Lock(path / "lock")
        if not self._lock.acquire():
            raise SessionLockedError(
                f"{path} is open already, in another process or elsewhere in this one: close it there first; one "
                "session has one owner"
            )
        self._session = ""
        self._logs: tuple[logs.EntryLog, ...] = ()  # the log that counts, and the one that will after a snapshot
        self._disk = threading.Lock()  # a log is not closed while it is synced

    def __reduce__(self) -> NoReturn:
        raise InvalidInputError(f"the session in {self.path} has one owner, so it cannot be copied or sent elsewhere")

    def close(self) -> None:
        """Let go of the files and the lock; files of another owner stay unchanged."""
        for log in self._logs:
            log.close(tidy=self._lock.is_held)
        self._logs = ()
        self._lock.release()

    def claim(self, owner: Owner) -> None:
        """Claim the folder for this learner and setting, or refuse one that another owner has."""
        found = self.identify()
        if found is None:
            self._refuse_what_is_not_new()
            self._session = secrets.token_hex(16)
            logs.begin(self.path / _log_name(0), self._session, 0)
            self._write_claim(owner)
        elif owner.fingerprint in (found.fingerprint, found.without_logs):
            if found.journal < JOURNAL:
                self._write_claim(owner)
        elif not has_entries(self.path) and (not found.logged_sha256 or owner.facts["logged"] != NOTHING):
            self._write_claim(owner)  # nothing was begun with what it said before
        else:
            # Logs that were not given again are those of the folder.
            kept = {"logged": found.facts["logged"]} if found.logged_sha256 and owner.facts["logged"] == NOTHING else {}
            differs = difference(found.facts, {**owner.facts, **kept})
            raise RecordError(
                f"{self.path} holds a session of another learner or setting: {differs}; it has begun with those: begin "
                "another in a new folder, or session.fork(folder, learner, setting) with all that was told"
            )

    def _write_claim(self, owner: Owner) -> None:
        content: dict[str, Any] = {"fingerprint": owner.fingerprint, "facts": owner.facts, "journal": JOURNAL}
        tree, arrays = owner.packed
        checksum = write_atomically(self.path / OWNER, npz_of_arrays(arrays))
        content |= {"packed": tree, "packed_sha256": checksum}
        if owner.logged:
            checksum = write_atomically(self.path / LOGGED, npz_of_arrays(stacked(owner.logged)))
            content |= {"without_logs": owner.without_logs, "logged_sha256": checksum, "start": owner.start}
            content |= {"names": owner.names} if owner.names else {}
        write_atomically(self.path / "session.json", sealed_json(self._session, content))

    @property
    def session(self) -> str:
        """The name of the session that the folder holds."""
        return self._session

    def identify(self) -> Claim | None:
        """Whose session the folder holds; None if it holds none."""
        claim = claim_of(self.path)
        self._session = self._session if claim is None else claim.run
        return claim

    def snapshot(self) -> StoredSnapshot | None:
        """The last snapshot; None if there is none."""
        file = self.path / "snapshot.json"
        content = read_sealed(file, self._session)
        if content is None:
            return None
        if content.pop("format", None) != SEALED:
            raise RecordError(f"{file} is damaged: its checksum is missing")
        kept = converted(content, _Snapshot, file)
        state = self.path / kept.file
        arrays = arrays_of_npz(read_noted(state, kept.state_sha256), str(state))
        return StoredSnapshot(kept.entries, kept.episodes, kept.tree, kept.books, arrays)

    def entries(self, first: int) -> Iterator[tuple[Entry, int]]:
        """What was told since a snapshot of `first` entries, and where each entry ends in the log."""
        file, n = self.path / _log_name(first), first
        for entry, end in logs.read(file, first, self._session):
            yield decoded(entry, f"{file}, entry {n}"), end
            n += 1
        self._refuse_later_logs(first, n)

    def past(self) -> Iterator[Entry]:
        """Everything that was ever told, from the logs before the snapshot on; refused where they are not kept."""
        files = {int(file.stem.split("-")[1]): file for file in self.path.glob("*-*.log") if LOGS.fullmatch(file.name)}
        n, ends = 0, [*sorted(files)[1:], None]
        for first, end in zip(sorted(files) or [-1], ends, strict=True):
            if first != n:
                raise RecordError(
                    f"{self.path} does not keep what it was told from entry {n} on, so it cannot be forked"
                )
            # Where a snapshot was taken, two logs have the same entries.
            for entry, _ in logs.read(files[first], first, self._session):
                if n == end:
                    break
                yield decoded(entry, f"{files[first]}, entry {n}")
                n += 1

    def replay(self, first: int) -> Iterator[Entry]:
        """What was told since a snapshot of `first` entries; then the journal is ready for more."""
        n, end = first, None
        for entry, after in self.entries(first):
            yield entry
            n, end = n + 1, after
        log = logs.reopened(self.path / _log_name(first), self._session, n, end)
        self._logs = (log,)
        self._sweep(first)
        if log.cut_off:
            warnings.warn(
                f"{log.file} ended in an entry that was not written to its end when its process or the machine "
                f"stopped; it was never acknowledged and is dropped: the session goes on after {n} entries",
                SessionWarning, stacklevel=3,
            )  # fmt: skip

    def append(self, number: int, entry: Entry, sync: bool = True) -> None:
        """Write an entry; it is durable when this returns, and not there if this raises.

        Without `sync` it outlives the process at once, and the machine with the next entry that is synced.
        """
        if sync:
            self._lock.check()
        content = encoded(entry)
        self._counting.append(number, content, sync)
        for following in self._logs[1:]:
            try:
                following.append(number, content, sync)
            except BaseException:  # one has it and one has not, and nobody knows which will count
                self._counting.broken = True
                raise

    @property
    def _counting(self) -> logs.EntryLog:
        assert self._logs, "a journal is replayed before it is written"
        return self._logs[0]

    def sync(self) -> None:
        """Make durable what was written."""
        with self._disk:
            self._lock.check()
            for log in self._logs:
                log.sync()

    def take_snapshot(self, captured: Callable[[], Shelved], turn: Turn = nullcontext) -> int:
        """Keep the state and the books, begin a new log, and put the last one aside; how many episodes are kept.

        What is captured is of one moment; entries may be appended all the while, except in a `turn`.
        """
        self._lock.check()
        old, beside = self._counting, self.path / f".journal.{secrets.token_hex(8)}.tmp"
        logs.begin(beside, self._session, 0)
        following, name = logs.EntryLog(beside, 0, logs.HEAD_SIZE), ""
        try:
            with turn():
                episodes, tree, books, arrays = captured()
                n = old.entries
                following.begin_at(n)
                self._logs = (old, following)
            name = f"state-{n:09d}.npz"
            kept = {"episodes": episodes, "file": name, "tree": tree, "entries": n, "books": books}
            kept["state_sha256"] = write_atomically(self.path / name, npz_of_arrays(dict(arrays)))
            with self._disk:
                following.sync()
                rename(beside, _log_name(n))
                following.file = self.path / _log_name(n)
            sync_folder(self.path)
            # The new log is there before the snapshot that needs it: one that is missing then means damage.
            write_atomically(self.path / "snapshot.json", sealed_json(self._session, kept))
        except BaseException:
            with turn():
                self._logs = (old,)
            following.close(tidy=False)
            self._stop_if_replaced(name)
            if not old.broken:
                with suppress(OSError):
                    following.file.unlink()
            raise
        with turn():
            self._logs = (following,)
        with self._disk:
            old.close(tidy=True)
        self._sweep(n)
        return episodes

    def keep_policy(self, name: str, table: Floats, used: Collection[str] = ()) -> None:
        """Keep a policy under a name, to go back to it; of numbered ones the newest and the `used` stay."""
        self._lock.check()
        write_atomically(self.path / f"policy-{name}.npz", npz_of_arrays({"policy": table}))
        numbered = sorted(int(known) for known in self.policies() if known.isdecimal() and known not in used)
        for old in numbered[:-MOST_POLICIES]:
            with suppress(OSError):
                (self.path / f"policy-{old}.npz").unlink()

    def policy(self, name: str) -> Floats:
        """A policy that was kept."""
        file = self.path / f"policy-{name}.npz"
        stored = arrays_of_npz(read_bounded(file), str(file))
        if "policy" not in stored:
            raise RecordError(f"{file} holds no policy")
        return stored["policy"]

    def policies(self) -> list[str]:
        """The names of the policies that are kept."""
        return sorted(file.stem.removeprefix("policy-") for file in self.path.glob("policy-*.npz"))

    def _stop_if_replaced(self, name: str) -> None:
        """A snapshot that is there but not known to last leaves it open which log counts: then none is written."""
        try:
            replaced = (read_json(self.path / "snapshot.json") or {}).get("file") == name
        except (RecordError, OSError):
            replaced = True
        if replaced:
            self._counting.broken = True

    def _sweep(self, first: int) -> None:
        """Put older logs aside, and remove what nothing names."""
        known = {_log_name(first), f"state-{first:09d}.npz"}
        for file in self.path.glob("journal-*.log") if self.keeps_past else ():
            if MADE.fullmatch(file.name) and file.name < _log_name(first) and not file.is_symlink():
                with suppress(OSError):
                    rename(file, file.name.replace("journal", "history"))
        sweep(self.path, known, lambda name: bool(MADE.fullmatch(name)))

    def _refuse_what_is_not_new(self) -> None:
        """Refuse a folder that holds anything but what a crash before the first update can have left."""
        described = (self.path / DESCRIBED).exists()  # by an owner who may keep other files beside it
        for other in self.path.iterdir():
            if described and not OURS.match(other.name):
                continue
            nothing = other.name == _log_name(0) and logs.is_empty(other)
            if not (nothing or other.name in ("lock", LOGGED, OWNER) or is_half_written(other.name)):
                raise RecordError(
                    f"{self.path / 'session.json'} is missing, but the folder holds {other.name}: a new session "
                    "needs an empty folder, and an old one its session.json"
                )

    def _refuse_later_logs(self, first: int, entries: int) -> None:
        """A later log that counts more than the entries that are there means that the snapshot before it is lost."""
        for later in self.path.glob("journal-*.log"):
            if not MADE.fullmatch(later.name) or later.name <= _log_name(first) or logs.is_empty(later):
                continue
            if (counted := logs.acknowledged(later, self._session)) is None or counted > entries:
                raise RecordError(f"{later} is there, but the snapshot that it goes on from is missing")


def has_entries(path: Path) -> bool:
    """Whether anything was begun or told in the session of a folder."""
    kept = any(not logs.is_empty(file) for file in path.glob("journal-*.log") if MADE.fullmatch(file.name))
    return kept or (path / "snapshot.json").exists()


def verify_session(path: Path) -> int:
    """Refuse a session whose files are not what was written, without opening it; the number of its episodes."""
    journal = Journal(path)
    try:
        if journal.identify() is None:
            raise RecordError(f"{path / 'session.json'} is missing")
        logs_of_session(path)
        kept = journal.snapshot()
        episodes, first = (0, 0) if kept is None else (kept.episodes, kept.entries)
        return episodes + sum(tells_an_episode(entry) for entry, _ in journal.entries(first))
    finally:
        journal.close()


def _log_name(first: int) -> str:
    return f"journal-{first:09d}.log"
