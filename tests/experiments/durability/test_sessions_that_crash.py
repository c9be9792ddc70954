"""Sessions on disk, killed with SIGKILL between and within updates, damaged, and opened twice."""

import os
import shutil
import signal
import struct
import sys
from contextlib import nullcontext
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from omdpd import InvalidInputError, ProximalOMDPD, Session
from omdpd.storage.atomic import RecordError
from omdpd.storage.journal import SessionLockedError, SessionWarning, verify_session
from omdpd.storage.log import HEAD_SIZE, HEADER_SIZE, SECTOR
from tests.references.instances import bandit, random_cmdp
from tests.references.real_commands import start_program, wait_until

pytestmark = pytest.mark.whole

H, S, A = 4, 3, 2

# Opens a session and updates it for ever; says how many updates have returned.
LOOP = """
import sys
import numpy as np
from tests.references.instances import bandit, random_cmdp
from omdpd import ProximalOMDPD, Session

cmdp = random_cmdp(np.random.default_rng(0), 4, 3, 2)
with Session.open(sys.argv[1], ProximalOMDPD.cautious(), cmdp.setting(1000, "bandit"), snapshot_every=7) as session:
    print("open", session.episodes, flush=True)
    while True:
        rng = np.random.default_rng((1, session.episodes))
        session.update(bandit(rng, cmdp, session.policy()))
        print(session.episodes, flush=True)
"""


def world():
    return random_cmdp(np.random.default_rng(0), H, S, A)


def opened(folder, snapshot_every=7):
    return Session.open(folder, ProximalOMDPD.cautious(), world().setting(1000, "bandit"), snapshot_every)


def teach(session, n):
    """Feedback that depends on the episode alone, so that a crash does not change what comes next."""
    for _ in range(n):
        rng = np.random.default_rng((1, session.episodes))
        session.update(bandit(rng, world(), session.policy()))


def policy_after(n):
    session = Session(ProximalOMDPD.cautious(), world().setting(1000, "bandit"))
    teach(session, n)
    return session.policy()


def loop(folder):
    return start_program([sys.executable, "-c", LOOP, folder], {"PYTHONPATH": os.pathsep.join(sys.path)})


def journal(folder):
    return next(iter(folder.glob("journal-*.log")))


def test_killed_again_and_again_no_acknowledged_update_is_lost(tmp_path):
    acknowledged = 0
    for kill_after in (3, 9, 5):
        process = loop(tmp_path)
        first = process.stdout.readline().split()
        assert first[0] == "open"
        assert int(first[1]) >= acknowledged
        for _ in range(kill_after):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[0].split()
        acknowledged = int(said[-1]) if said else acknowledged
    with opened(tmp_path) as session:
        assert acknowledged <= session.episodes <= acknowledged + 1  # one may be durable and not yet said
        assert np.array_equal(session.policy(), policy_after(session.episodes))


def test_two_processes_are_refused_and_a_dead_owner_is_not_waited_for(tmp_path):
    process = loop(tmp_path)
    process.stdout.readline()
    with pytest.raises(SessionLockedError, match="one session has one owner"):
        opened(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    opened(tmp_path).close()


def test_a_forked_child_does_not_keep_the_lock_of_its_parent(tmp_path):
    session = opened(tmp_path)
    child = os.fork()
    if child == 0:  # sleeps on with whatever it inherited
        signal.pause()
    try:
        session.close()
        wait_until(lambda: _free(tmp_path), 10.0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _free(folder):
    try:
        opened(folder).close()
    except SessionLockedError:
        return False
    return True


def torn_logs(folder):
    """What may lie on the disk if the machine stops in a third update: every choice of the sectors of its entry."""
    session = opened(folder, 100)
    teach(session, 2)
    before = journal(folder).read_bytes()
    teach(session, 1)
    after = journal(folder).read_bytes()
    session.close()
    changed = [i for i in range(1, len(before) // SECTOR) if _sector(before, i) != _sector(after, i)]
    for written in product([False, True], repeat=len(changed)):
        torn = bytearray(before)
        for i in (i for i, there in zip(changed, written, strict=True) if there):
            torn[i * SECTOR : (i + 1) * SECTOR] = _sector(after, i)
        yield bytes(torn), any(written), all(written)


def _sector(content, i):
    return content[i * SECTOR : (i + 1) * SECTOR]


def test_a_torn_entry_is_cut_off_and_said_whichever_of_its_sectors_are_missing(tmp_path):
    tried = 0
    for torn, any_written, all_written in torn_logs(tmp_path):
        journal(tmp_path).write_bytes(torn)
        said = pytest.warns(SessionWarning, match="never acknowledged and is dropped: the session goes on after 2")
        with said if any_written and not all_written else nullcontext(), opened(tmp_path, 100) as session:
            assert session.episodes == 2 + all_written
            assert np.array_equal(session.policy(), policy_after(session.episodes))
        assert verify_session(tmp_path) == 2 + all_written
        tried += 1
    assert tried >= 8
    with opened(tmp_path, 100) as session:
        teach(session, 2)
        assert np.array_equal(session.policy(), policy_after(session.episodes))


@pytest.mark.parametrize("ended", ["closed", "killed"])
def test_a_journal_that_was_copied_in_part_is_refused_and_kept(tmp_path, ended):
    session = opened(tmp_path, 100)
    teach(session, 3)
    log = journal(tmp_path)
    killed = log.read_bytes()
    session.close()
    closed = log.read_bytes()
    whole = killed if ended == "killed" else closed
    for size in (*range(HEAD_SIZE, len(closed) - 1, 97), len(closed) - 1):
        log.write_bytes(whole[:size])
        with pytest.raises(RecordError, match=r"holds [012] entries, but 3 were acknowledged: .* not finished"):
            opened(tmp_path, 100)
        assert log.read_bytes() == whole[:size]
    log.write_bytes(whole)
    with opened(tmp_path, 100) as session:
        assert session.episodes == 3


@pytest.mark.parametrize("zeros", [5, 4096])
def test_a_tail_that_was_never_filled_is_dropped(tmp_path, zeros):
    with opened(tmp_path, 100) as session:
        teach(session, 2)
    log = journal(tmp_path)
    log.write_bytes(log.read_bytes() + b"\0" * zeros)
    with opened(tmp_path, 100) as session:
        assert session.episodes == 2


@pytest.mark.parametrize("place", ["length", "checksum", "content", "episode", "last content"])
def test_damage_before_the_tail_is_refused_and_nothing_is_dropped(tmp_path, place):
    with opened(tmp_path, 100) as session:
        teach(session, 3)
    log = journal(tmp_path)
    content = bytearray(log.read_bytes())
    at = {
        "episode": HEAD_SIZE,
        "length": HEAD_SIZE + 8,
        "checksum": HEAD_SIZE + 20,
        "content": HEAD_SIZE + HEADER_SIZE + 60,
        "last content": len(content) - 60,
    }
    content[at[place]] ^= 0x40
    log.write_bytes(content)
    with pytest.raises(RecordError, match=r"journal-000000000\.log is damaged at entry [02] \(byte \d+\)"):
        opened(tmp_path, 100)
    assert log.read_bytes() == content


def test_an_entry_that_is_missing_from_the_middle_is_noticed(tmp_path):
    with opened(tmp_path, 100) as session:
        teach(session, 3)
    log = journal(tmp_path)
    content = log.read_bytes()
    first = HEADER_SIZE + struct.unpack_from("<Q", content, HEAD_SIZE + 8)[0] + 1
    log.write_bytes(content[:HEAD_SIZE] + content[HEAD_SIZE + first :])
    with pytest.raises(RecordError, match="entry 1 stands in its place"):
        opened(tmp_path, 100)


def test_a_journal_that_is_gone_is_noticed(tmp_path):
    with opened(tmp_path) as session:
        teach(session, 9)
    journal(tmp_path).unlink()
    with pytest.raises(RecordError, match=r"journal-000000007\.log is missing"):
        opened(tmp_path)


def test_a_journal_without_its_session_file_is_refused_and_kept(tmp_path):
    """Twelve updates were acknowledged; a lost session.json must not make the folder look new."""
    with opened(tmp_path, 100) as session:
        teach(session, 12)
    (tmp_path / "session.json").unlink()
    before = journal(tmp_path).read_bytes()
    with pytest.raises(RecordError, match=r"session\.json is missing, but the folder holds journal-000000000\.log"):
        opened(tmp_path, 100)
    assert journal(tmp_path).read_bytes() == before


def test_a_new_session_needs_an_empty_folder(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RecordError, match=r"the folder holds thesis\.txt"):
        opened(tmp_path)


def test_what_a_crash_before_the_first_update_leaves_is_a_new_session(tmp_path):
    (tmp_path / "journal-000000000.log").touch()
    (tmp_path / ".session.json.4711.tmp").write_text("{")
    with opened(tmp_path) as session:
        assert session.episodes == 0


def test_a_lost_snapshot_does_not_bring_back_an_older_state(tmp_path):
    """A crash left the journal before the snapshot, then the snapshot was lost: later updates must not be swept."""
    with opened(tmp_path, 100) as session:
        teach(session, 7)
    old = journal(tmp_path).read_bytes()
    with opened(tmp_path, 8) as session:
        teach(session, 2)
    (tmp_path / "journal-000000000.log").write_bytes(old)
    (tmp_path / "snapshot.json").unlink()
    with pytest.raises(RecordError, match=r"journal-000000008\.log is there, but the snapshot .* is missing"):
        opened(tmp_path)


def test_an_update_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    with opened(tmp_path, 100) as session:
        teach(session, 2)
        before = session.policy()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", _full)
            with pytest.raises(OSError, match="no space"):
                teach(session, 1)
        assert session.episodes == 2
        assert np.array_equal(session.policy(), before)
        teach(session, 1)
    with opened(tmp_path, 100) as session:
        assert np.array_equal(session.policy(), policy_after(3))


@pytest.mark.parametrize(("call", "times"), [("pwrite", 1), ("pwrite", 2), ("pwrite", 3), ("fdatasync", 1)])
def test_an_update_that_is_interrupted_is_not_there(tmp_path, monkeypatch, call, times):
    """Ctrl-C right after room was made, the entry was written, it was counted, or it was synced."""
    real, left = getattr(os, call), [times]

    def interrupted(*args):
        done = real(*args)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return done

    session = opened(tmp_path / "mine", 100)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            teach(session, 1)
    shutil.copytree(tmp_path / "mine", tmp_path / "killed")  # as it would be found if its process died now
    assert verify_session(tmp_path / "killed") == session.episodes == 0
    teach(session, 2)
    session.close()
    assert verify_session(tmp_path / "mine") == 2


def test_after_a_write_that_could_not_be_undone_no_update_is_acknowledged(tmp_path, monkeypatch):
    def half(handle, content, place):
        real(handle, content[: len(content) // 2], place)
        raise OSError(5, "input/output error")

    def stuck(handle, size):
        raise OSError(5, "input/output error")

    session = opened(tmp_path, 100)
    teach(session, 2)
    real = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        patch.setattr(os, "ftruncate", stuck)
        with pytest.raises(OSError, match="input/output"):
            teach(session, 1)
    # The disk is well again, but half an entry is on it.
    for _ in range(2):
        with pytest.raises(RecordError, match="takes no more updates"):
            teach(session, 1)
    assert session.episodes == 2
    session.close()
    with pytest.warns(SessionWarning, match="is dropped"):
        again = opened(tmp_path, 100)
    with again:
        assert again.episodes == 2
        teach(again, 1)
        assert np.array_equal(again.policy(), policy_after(3))


def test_a_snapshot_that_cannot_be_written_costs_nothing(tmp_path, monkeypatch):
    with opened(tmp_path, 3) as session:
        with monkeypatch.context() as patch:
            patch.setattr("omdpd.storage.journal.write_atomically", _full)
            teach(session, 3)
            with pytest.warns(
                SessionWarning, match="no snapshot was kept after 3 episodes .*no space left.* nothing is"
            ):
                teach(session, 1)
        teach(session, 1)
    with opened(tmp_path, 3) as session:
        assert session.episodes == 5
        assert np.array_equal(session.policy(), policy_after(5))


@pytest.mark.parametrize("step", ["state", "begin", "snapshot.json"])
def test_a_crash_at_any_step_of_a_snapshot_loses_nothing(tmp_path, monkeypatch, step):
    """Whatever the snapshot had written when the process died, opening again gives every update."""
    import omdpd.storage.journal as journals

    class Killed(BaseException):
        pass

    real = journals.write_atomically

    def write(file, content):
        if file.name.startswith(step):
            raise Killed
        return real(file, content)

    def begin(file, session, episodes):
        raise Killed

    session = opened(tmp_path, 3)
    teach(session, 3)
    with monkeypatch.context() as patch:
        patch.setattr(journals, "write_atomically", write)
        if step == "begin":
            patch.setattr(journals.logs, "begin", begin)
        with pytest.raises(Killed):
            teach(session, 1)
    session.close()
    with opened(tmp_path, 3) as again:
        assert again.episodes == 3
        assert np.array_equal(again.policy(), policy_after(3))


def test_no_update_is_taken_while_a_snapshot_is_not_known_to_last(tmp_path, monkeypatch):
    """It has taken its place, but its folder could not be synced: a crash may bring back the one before."""
    import omdpd.storage.atomic as atomic

    real = atomic.sync_folder

    def sync_folder(folder):
        if (folder / "snapshot.json").exists():
            raise OSError(5, "input/output error")
        real(folder)

    session = opened(tmp_path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "sync_folder", sync_folder)
        teach(session, 3)
        with (
            pytest.warns(SessionWarning, match="no snapshot"),
            pytest.raises(RecordError, match="takes no more updates"),
        ):
            teach(session, 1)
    assert session.episodes == 3
    teach(session, 1)  # the disk is well again: now the snapshot lasts
    session.close()
    with opened(tmp_path, 3) as again:
        assert again.episodes == 4
        assert np.array_equal(again.policy(), policy_after(4))


@pytest.mark.parametrize("name", ["session.json", "snapshot.json", "state-000000003.npz", "journal-000000003.log"])
def test_no_flipped_bit_of_a_session_goes_unnoticed(tmp_path, name):
    with opened(tmp_path, 3) as session:
        teach(session, 5)
    file = tmp_path / name
    good = file.read_bytes()
    unnoticed = []
    for place in range(0, len(good), max(1, len(good) // 400)):
        file.write_bytes(good[:place] + bytes([good[place] ^ (1 << (place % 8))]) + good[place + 1 :])
        try:
            verify_session(tmp_path)
            unnoticed.append(place)
        except RecordError:
            pass
    file.write_bytes(good)
    assert verify_session(tmp_path) == 5
    assert unnoticed == []


@pytest.mark.parametrize("kind", ["session.json", "snapshot.json", "journal-*.log"])
def test_a_file_of_another_session_of_the_same_learner_is_refused(tmp_path, kind):
    for name in ("one", "two"):
        with opened(tmp_path / name, 3) as session:
            teach(session, 5)
    file = next(iter((tmp_path / "one").glob(kind)))
    file.write_bytes((tmp_path / "two" / file.name).read_bytes())
    with pytest.raises(RecordError, match="belongs to"):
        opened(tmp_path / "one", 3)


def test_a_session_of_version_0_1_is_refused_with_a_sentence_that_says_what_to_do(tmp_path):
    stored = Path(__file__).parents[2] / "recorded" / "stored" / "session"
    shutil.copytree(stored, tmp_path / "session")
    with pytest.raises(RecordError, match=r"has format 2, .* go on with the version that wrote it, or begin a session"):
        verify_session(tmp_path / "session")


def test_a_session_of_another_version_is_refused(tmp_path):
    opened(tmp_path).close()
    (tmp_path / "session.json").write_text('{"fingerprint": "x"}')
    with pytest.raises(InvalidInputError, match=r"session\.json has format None, but this version reads format 3"):
        opened(tmp_path)


def _full(*_):
    raise OSError(28, "no space left on device")
