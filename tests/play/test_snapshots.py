"""Snapshots of a session in service: entries go on while one is written, and none is lost whenever it stops."""

import shutil
from functools import partial

import numpy as np
import pytest

from omdpd import Session
from omdpd.storage import journal as journaling
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import MOST_POLICIES, SessionWarning
from tests.play.test_episodes import SETTING, learner, play

STEPS = ("write_atomically", "rename", "sync_folder")


def opened(folder, snapshot_every=4):
    return Session.open(folder, learner(), SETTING, snapshot_every)


def lagging(folder):
    """A session as a server has it, where the next update is followed by a snapshot."""
    session = opened(folder)
    session.lag()
    for k in range(4):
        play(session.begin(f"before {k}"), k)
        session.end(f"before {k}")
        if k < 3:
            session.learn_next()
    assert not list(folder.glob("snapshot.json"))
    return session


@pytest.fixture
def between(monkeypatch):
    """Call something before and after each step that a snapshot takes on the disk."""

    def watch(moment):
        def stepped(known, *words):
            moment()
            try:
                return known(*words)
            finally:
                moment()

        for name in STEPS:
            monkeypatch.setattr(journaling, name, partial(stepped, getattr(journaling, name)))

    return watch


def test_what_is_told_while_a_snapshot_is_written_is_there_whenever_the_process_dies(tmp_path, between):
    session, copies = lagging(tmp_path / "served"), []

    def moment():
        k = len(copies)
        play(session.begin(f"meanwhile {k}"), k, steps=2)
        if not session._journal._disk.locked():
            session.sync()
        copies.append(tmp_path / f"copy {k}")
        shutil.copytree(tmp_path / "served", copies[-1])

    between(moment)
    with session:
        session.learn_next()
        assert (tmp_path / "served" / "snapshot.json").exists()
        assert len(copies) > 8
        policy, books = np.asarray(session.policy()), session.books
        moment()
        for k, copy in enumerate(copies):
            with opened(copy) as again:
                assert np.array_equal(again.policy(), policy)
                assert list(again.books.open) == [f"meanwhile {j}" for j in range(k + 1)]
                assert all(again.books.open[id] == books.open[id] for id in again.books.open)
                assert [entry["do"] for entry in again._journal.past()].count("tell") == 16 + 2 * (k + 1)
    with opened(tmp_path / "served") as again:
        assert list(again.books.open) == list(books.open)


def test_a_snapshot_that_fails_leaves_the_log_of_before_with_all_that_was_told(tmp_path, monkeypatch):
    known = journaling.write_atomically
    for place in ("state-", "snapshot"):
        session = lagging(tmp_path / place)

        def full(file, content, session=session, place=place):
            session.begin("meanwhile")
            if file.name.startswith(place):
                raise OSError(28, "No space left on device", str(file))
            session.drop("meanwhile")
            session.books.digests.clear()
            return known(file, content)

        monkeypatch.setattr(journaling, "write_atomically", full)
        with session, pytest.warns(SessionWarning, match="no snapshot was kept after 4 episodes"):
            session.learn_next()
        monkeypatch.setattr(journaling, "write_atomically", known)
        with opened(tmp_path / place) as again:
            assert (again.learnt, list(again.books.open)) == (4, ["meanwhile"])
            again.keep()
            again.begin("later")
            assert sum(1 for _ in again._journal.past()) == again._entries  # the logs fit together


def test_a_later_log_that_counts_what_the_older_one_has_not_is_refused(tmp_path, between):
    session, before = lagging(tmp_path / "served"), tmp_path / "before"
    between(lambda: before.exists() or shutil.copytree(tmp_path / "served", before))
    with session:
        session.learn_next()
        session.begin("after")
        session.sync()
    (newer,) = (tmp_path / "served").glob("journal-*.log")
    shutil.copy(newer, before)
    with pytest.raises(RecordError, match="is there, but the snapshot that it goes on from is missing"):
        opened(before)


def test_after_a_sync_that_failed_nothing_is_acknowledged(tmp_path, monkeypatch):
    session = lagging(tmp_path / "served")

    def failing(handle):
        raise OSError(5, "Input/output error")

    with session:
        session.begin("a")
        with monkeypatch.context() as patch:
            patch.setattr("os.fdatasync", failing)
            with pytest.raises(OSError, match="Input/output"):
                session.sync()
        with pytest.raises(RecordError, match="open the session again"):
            session.sync()
        with pytest.raises(RecordError, match="open the session again"):
            session.begin("b")


def test_the_policy_that_is_played_is_not_let_go_of(tmp_path):
    with opened(tmp_path, 1) as session:
        for k in range(MOST_POLICIES + 5):
            play(session.begin(), k)
            session.end(session.open_episodes[0])
            if k == 2:
                session.rollback(2)
                policy = np.asarray(session.policy())
        kept = session.kept_policies
    assert kept[0] == 2
    assert len(kept) == MOST_POLICIES + 1
    with opened(tmp_path, 1) as session:
        assert np.array_equal(session.policy(), policy)
        assert len(session.mind.kept) <= 2
