"""Sessions on disk that threads, forked children, notebooks and removers of folders lay hands on."""

import copy
import multiprocessing
import os
import pickle
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from omdpd import BanditFeedback, InvalidInputError, ProximalOMDPD, Session, Setting, Trajectory
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_policy
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import SessionLockedError, SessionWarning, verify_session

# The children are forked on purpose, also where threads run.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

H, S, A = 4, 3, 2
SETTING = Setting(H, S, A)
STORED = Path(__file__).parents[2] / "recorded" / "stored"
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Met:
    setting: Setting
    episodes: int
    reward: float
    lowest: float
    last: float


@dataclass(frozen=True)
class Tally:
    """A learner that adds up what it is told, and knows no lowest and no last reward before that."""

    bound: float = 1.0
    card = Card("adds up", ("bandit",), "none", "a test")

    def init(self, setting: Setting) -> Met:
        return Met(setting, 0, 0.0, np.inf, np.nan)

    def policy(self, state):
        return uniform_policy(state.setting)

    def update(self, state, feedback):
        time.sleep(0.0)  # other threads may have their turn here
        low, last = min(state.lowest, float(feedback.rewards[0])), float(feedback.rewards[-1])
        return Met(state.setting, state.episodes + 1, state.reward + float(feedback.rewards.sum()), low, last)

    def report(self, state):
        return Report()


def feedback(k):
    rng = np.random.default_rng(k)
    met = Trajectory(rng.integers(0, S, H), rng.integers(0, A, H))
    return BanditFeedback(met, rng.random(H), rng.uniform(-1.0, 1.0, (1, H)))


def opened(folder, learner=None, snapshot_every=7):
    return Session.open(folder, learner or Tally(), SETTING, snapshot_every)


def in_child(work):
    """What `work` says in a forked child, or the sentence that it raised."""
    ours, theirs = FORK.Pipe(duplex=False)

    def run():
        try:
            said = work()
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        theirs.send(said)

    child = FORK.Process(target=run)
    child.start()
    said = ours.recv()
    child.join()
    return said


@pytest.mark.parametrize("on_disk", [True, False])
def test_eight_threads_lose_none_of_their_updates(tmp_path, on_disk):
    session = opened(tmp_path) if on_disk else Session(Tally(), SETTING)
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(lambda: [session.update(feedback(k)) for k in range(50)]) for _ in range(8)]:
            done.result()
    total = 8 * sum(feedback(k).rewards.sum() for k in range(50))
    for again in [session] if not on_disk else [session, session.close() or opened(tmp_path)]:
        assert again.episodes == again._state.episodes == 400
        assert again._state.reward == pytest.approx(total, rel=1e-12)


def test_a_policy_asked_for_meanwhile_is_that_after_some_whole_update():
    calm = Session(ProximalOMDPD.cautious(), SETTING)
    known = {np.asarray(calm.policy()).tobytes()}
    for k in range(40):
        calm.update(feedback(k))
        known.add(np.asarray(calm.policy()).tobytes())
    session, over, met = Session(ProximalOMDPD.cautious(), SETTING), threading.Event(), []

    def ask():
        while not over.is_set():
            met.append(np.asarray(session.policy()).tobytes())

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    try:
        for k in range(40):
            session.update(feedback(k))
    finally:
        over.set()
        for asker in askers:
            asker.join()
    assert met
    assert set(met) <= known


def test_a_forked_child_may_ask_but_not_tell_and_its_end_harms_nobody(tmp_path):
    with opened(tmp_path) as session:
        session.update(feedback(0))

        def child():
            assert session.policy().shape == (H, S, A)
            try:
                session.update(feedback(99))
            finally:
                session.close()

        said = in_child(child)
        assert said.startswith("RecordError")
        assert f"was opened by process {os.getpid()}, and this one was forked from it: only that one may write" in said
        session.update(feedback(1))
    with opened(tmp_path) as again:
        assert again.episodes == 2


def test_a_child_forked_while_a_thread_updates_is_refused_and_does_not_wait_for_it(tmp_path):
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Tally):
        def update(self, state, feedback):
            if (
                threading.current_thread() is not threading.main_thread()
            ):  # the child touches nothing that is waited for
                inside.set()
                go_on.wait()
            return super().update(state, feedback)

    for session in (opened(tmp_path, Slow()), Session(Slow(), SETTING)):
        inside.clear(), go_on.clear()
        thread = threading.Thread(target=session.update, args=(feedback(0),))
        thread.start()
        inside.wait()

        def child(session=session):
            session.update(feedback(1))
            return session.episodes

        said = in_child(child)
        assert said == 1 if session._journal is None else "forked" in said  # in memory the child has a copy of its own
        go_on.set()
        thread.join()
        assert session.episodes == 1
        session.close()


def test_workers_of_a_server_that_loaded_the_session_before_it_forked(tmp_path):
    """As with gunicorn --preload: none of four workers can write while the parent has it; then one after the other."""
    session = _LOADED["session"] = opened(tmp_path)
    session.update(feedback(0))
    with FORK.Pool(4) as pool:
        assert all("forked from it" in said for said in pool.map(_tell, range(8), chunksize=1))
        session.close()
        told = [pool.apply(_open_and_tell, (tmp_path,)) for _ in range(5)]
    assert told == [2, 3, 4, 5, 6]
    assert verify_session(tmp_path) == 6


# What a worker finds in its memory, as it was when it was forked.
_LOADED = {}


def _tell(k):
    try:
        _LOADED["session"].update(feedback(k))
    except RecordError as error:
        return str(error)
    return "told"


def _open_and_tell(folder):
    with opened(folder) as session:
        session.update(feedback(session.episodes))
        return session.episodes


def test_a_child_forked_before_it_was_closed_and_one_after_open_it_anew(tmp_path):
    session = opened(tmp_path)
    session.update(feedback(0))
    assert "one session has one owner" in in_child(lambda: _open_and_tell(tmp_path))
    session.close()
    assert in_child(lambda: _open_and_tell(tmp_path)) == 2
    assert "closed" in in_child(lambda: session.update(feedback(1)))
    with opened(tmp_path) as again:
        assert again.episodes == 2


def test_a_killed_child_takes_nothing_with_it(tmp_path):
    with opened(tmp_path) as session:
        for k in range(3):
            session.update(feedback(k))
            child = FORK.Process(target=lambda: os.kill(os.getpid(), signal.SIGKILL))
            child.start()
            child.join()
    assert verify_session(tmp_path) == 3


def test_a_session_that_is_dropped_lets_go_of_its_folder(tmp_path):
    session = opened(tmp_path)
    session.update(feedback(0))
    del session
    with ThreadPoolExecutor(1) as elsewhere:  # not the thread whose forgotten sessions are closed
        assert elsewhere.submit(_open_and_tell, tmp_path).result() == 2


def test_a_cell_of_a_notebook_can_be_run_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = "session = opened('mine')\nsession.update(feedback(session.episodes))\nout.append(session)"
    names = {"opened": opened, "feedback": feedback, "out": []}
    for _ in range(3):
        exec(cell, names)
    first, second, third = names["out"]
    assert third.episodes == 3
    with pytest.raises(InvalidInputError, match="the session is closed"):
        first.update(feedback(0))
    with ThreadPoolExecutor(1) as elsewhere, pytest.raises(SessionLockedError, match="in another process or elsewhere"):
        elsewhere.submit(_open_and_tell, tmp_path / "mine").result()
    third.update(feedback(3))
    third.close()
    with opened("mine") as again, pytest.raises(SessionLockedError, match="one session has one owner"):
        opened("mine")
    assert again.episodes == second.episodes + 2


def test_an_update_within_an_update_is_refused_not_waited_for(tmp_path):
    class Meddling(Tally):
        def update(self, state, feedback):
            session.close()

    session = opened(tmp_path, Meddling())
    with pytest.raises(InvalidInputError, match="in the middle of an update"):
        session.update(feedback(0))
    assert session.episodes == 0
    session.close()
    assert verify_session(tmp_path) == 0


@pytest.mark.parametrize("gone", ["folder", "lock", "journal-000000000.log"])
def test_nothing_is_acknowledged_or_left_behind_once_the_folder_was_removed(tmp_path, gone):
    """Not even by a snapshot, which is due at every update."""
    folder = tmp_path / "mine"
    session = opened(folder, snapshot_every=1)
    for k in range(0 if gone.startswith("journal") else 2):
        session.update(feedback(k))
    shutil.rmtree(folder) if gone == "folder" else (folder / gone).unlink()
    before = sorted(folder.iterdir()) if folder.exists() else None
    for _ in range(2):
        with pytest.raises(RecordError, match="was removed or replaced while"):
            session.update(feedback(2))
    session.close()
    assert (sorted(folder.iterdir()) if folder.exists() else None) == before
    if gone == "folder":
        with opened(folder) as anew:
            anew.update(feedback(0))


def test_a_session_in_memory_can_be_copied_and_one_on_disk_cannot(tmp_path):
    session = Session(Tally(), SETTING)
    session.update(feedback(0))
    twin = copy.deepcopy(session)
    twin.update(feedback(1))
    assert (twin.episodes, session.episodes) == (2, 1)
    with opened(tmp_path) as kept:
        for copied in (copy.deepcopy, pickle.dumps):
            with pytest.raises(InvalidInputError, match="one owner, so it cannot be copied or sent"):
                copied(kept)
        twin = copy.copy(kept)
        kept.update(feedback(0))
        with pytest.raises(RecordError, match="somebody else wrote"):
            twin.update(feedback(0))
    assert verify_session(tmp_path) == 1


def test_a_state_with_infinities_and_nan_is_kept_to_the_last_bit(tmp_path):
    """Learners begin with the lowest reward at infinity; a snapshot of it is due after every update."""

    class Still(Tally):
        def update(self, state, feedback):
            return Met(state.setting, state.episodes + 1, -np.inf, state.lowest, state.last)

    with opened(tmp_path, Still(bound=np.inf), 1) as session:
        for k in range(3):
            session.update(feedback(k))
    assert (tmp_path / "state-000000002.npz").exists()
    with opened(tmp_path, Still(bound=np.inf), 1) as again:
        found = again._state
        assert (found.episodes, found.reward, found.lowest, str(found.last)) == (3, -np.inf, np.inf, "nan")


def test_a_state_that_can_no_longer_be_kept_is_said_and_no_update_is_lost(tmp_path):
    class Hoarder(Tally):
        def update(self, state, feedback):
            return Met(state.setting, state.episodes + 1, {1, 2}, state.lowest, state.last)

    with opened(tmp_path, Hoarder(), 2) as session:
        session.update(feedback(0))
        session.update(feedback(1))
        with pytest.warns(SessionWarning, match="no snapshot was kept after 2 episodes .a state cannot hold a set."):
            session.update(feedback(2))
    with opened(tmp_path, Hoarder(), 2) as again:
        assert again.episodes == 3


def test_a_state_whose_arrays_no_file_holds_is_refused_before_anything_is_written(tmp_path):
    class Odd(Tally):
        def init(self, setting: Setting) -> Met:
            return Met(setting, 0, np.array([None]), 0.0, 0.0)

    with pytest.raises(InvalidInputError, match="Odd cannot be kept on disk: a state cannot hold an array of object"):
        opened(tmp_path / "new", Odd())
    assert not (tmp_path / "new").exists()


def test_what_differs_from_the_session_that_is_there_is_named(tmp_path):
    logged = [feedback(k) for k in range(3)]
    Session.open(tmp_path, Tally(), SETTING, logged=logged, start="explore").close()
    with Session.open(tmp_path, Tally(), SETTING, logged=logged, start="explore") as session:
        session.update(feedback(5))  # until something is told it may begin as another
    for sentence, open_again in {
        r"logged is 3 episodes \(\w{10}\), not 3 episodes \(": lambda: Session.open(
            tmp_path, Tally(), SETTING, logged=logged[::-1], start="explore"
        ),
        r"setting: learner.bound is 1.0, not Infinity; it has begun": lambda: Session.open(
            tmp_path, Tally(np.inf), SETTING, logged=logged, start="explore"
        ),
        r"learner is Tally, not ProximalOMDPD; .* and \d+ more; it has begun": lambda: opened(
            tmp_path, ProximalOMDPD.cautious()
        ),
        r"setting.n_states is 3, not 4; setting.seed is None, not 5; it has begun": lambda: Session.open(
            tmp_path, Tally(), Setting(H, 4, A, seed=5), logged=logged, start="explore"
        ),
    }.items():
        with pytest.raises(RecordError, match=sentence):
            open_again()


@pytest.mark.parametrize("killed", [False, True])
def test_a_session_of_version_0_2_is_gone_on_with(tmp_path, killed):
    shutil.copytree(STORED / "session-0.2", tmp_path / "old")
    log = tmp_path / "old" / "journal-000000003.log"
    log.write_bytes(log.read_bytes() + bytes(1000 * killed))  # the room that a killed process had made
    memory = Session(ProximalOMDPD.cautious(), SETTING)
    for k in range(7):
        memory.update(feedback(k), initial=[0.5, 0.25, 0.25] if k == 4 else None)
    assert verify_session(tmp_path / "old") == 5
    for k in (5, 6):
        with opened(tmp_path / "old", ProximalOMDPD.cautious(), 3) as session:
            assert session.episodes == k
            session.update(feedback(k))
    with opened(tmp_path / "old", ProximalOMDPD.cautious(), 3) as session:
        assert np.array_equal(session.policy(), memory.policy())


def test_a_damaged_session_of_version_0_2_is_refused_as_it_was(tmp_path):
    shutil.copytree(STORED / "session-0.2", tmp_path / "old")
    log = tmp_path / "old" / "journal-000000003.log"
    good = log.read_bytes()
    unnoticed = []
    for place in range(0, len(good), 29):
        log.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        with suppress(RecordError):
            unnoticed.append((place, verify_session(tmp_path / "old")))
    assert unnoticed == []
