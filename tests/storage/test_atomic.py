"""Files that last, in folders where somebody else may write, and on machines with little memory."""

import os
import re
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import omdpd
import omdpd.storage.atomic as atomic
from omdpd.storage.atomic import RecordError, make_folder, read_bounded, write_atomically
from omdpd.storage.locks import Lock
from omdpd.worlds import cyclic
from omdpd.worlds.files import save_problem
from tests.references.real_commands import PATIENCE


def test_a_new_folder_and_its_parents_are_synced_from_the_top_down(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    make_folder(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    make_folder(tmp_path / "a" / "b" / "c")
    assert len(synced) == 3


def test_a_temporary_name_cannot_be_guessed_and_a_link_in_its_place_is_not_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    names = []
    real = os.open

    def planted(path, flags, *mode, **more):
        if str(path).endswith(".tmp"):
            names.append(Path(path).name)
            os.symlink(victim, path)
        return real(path, flags, *mode, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", planted)
        for _ in range(2):
            with pytest.raises(FileExistsError):
                write_atomically(tmp_path / "x.json", b"{}")
    assert victim.read_text() == "untouched"
    assert names[0] != names[1]
    assert str(os.getpid()) not in names[0].split(".")


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o027, 0o640)])
def test_files_respect_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "x", b"")
        save_problem(cyclic.make(), tmp_path / "world.npz")
        assert Lock(tmp_path / "lock").acquire()
    finally:
        os.umask(before)
    for name in ("x", "world.npz", "lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode, name


def test_a_lock_does_not_follow_a_link(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordError, match=r"lock cannot be locked: it is a link"):
        Lock(tmp_path / "lock").acquire()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_lock_is_a_plain_file_and_a_pipe_is_not_waited_for(tmp_path, kind):
    os.mkfifo(tmp_path / "lock") if kind == "pipe" else (tmp_path / "lock").mkdir()
    with pytest.raises(RecordError, match="lock cannot be locked"):
        Lock(tmp_path / "lock").acquire()


def test_a_lock_whose_file_was_removed_meanwhile_is_not_held_beside_another(tmp_path):
    """Whoever holds a removed file would not keep out whoever locks the new one."""
    import fcntl

    first = Lock(tmp_path / "lock")
    real = fcntl.flock

    def flock(handle, how):
        (tmp_path / "lock").unlink()
        real(handle, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", flock)
        assert not first.acquire()
    assert first.acquire()
    first.release()


def test_reading_asks_for_no_more_memory_than_the_file_holds(tmp_path):
    (tmp_path / "small").write_bytes(b"x" * 1000)
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 2**28, before[1]))
    try:
        assert len(read_bounded(tmp_path / "small")) == 1000
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_size_that_was_committed_is_compared_before_anything_is_read(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(2**30)  # a hole: it takes no room on disk, but reading it would take memory
    with pytest.raises(RecordError, match="holds 1073741824 bytes, but 1000 were committed"):
        read_bounded(tmp_path / "large", size=1000)


RUN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3_000_000 * 1024, 3_000_000 * 1024))
from pathlib import Path
from omdpd.experiments.one_run import run
from omdpd.experiments.registry import Registry, run_of
parts = {"world": {"name": "cyclic"}, "nature": {"name": "noisy"}, "learner": {"name": "Uniform"}}
spec = run_of(parts | {"episodes": 3, "seed": 0}, Registry.installed())
print(run(spec, Path(sys.argv[1]))["episodes"])
"""


def test_a_short_run_fits_into_three_gigabytes_of_address_space(tmp_path):
    words = [sys.executable, "-c", RUN, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "3\n", done.stderr


def test_files_are_replaced_in_one_place():
    """Everything that is written for good goes through the one writer that syncs and moves."""
    package = Path(omdpd.__file__).parent
    writers = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if re.search(r"os\.(replace|rename)\(|\.(write_text|write_bytes)\(", file.read_text())
    }
    assert writers == {"storage/atomic.py"}
