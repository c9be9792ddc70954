"""Compiled code is kept once per user and version, wherever the package lies, and what is compiled is said."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import omdpd
from omdpd.solvers.compiled import cache
from omdpd.solvers.compiled.announce import EVERY, Announcer
from omdpd.solvers.compiled.cache import UserLocator, fingerprint, forget_unused, kernel_folder
from omdpd.solvers.compiled.flow import greedy_policy

PACKAGE = Path(omdpd.__file__).parent
# Compiles one small function, and tells how many were found and how many were not.
SMALL = """
import gc
import numpy as np
from omdpd.solvers.compiled.flow import greedy_policy as f
f(np.full((2, 2, 2, 2), 0.5), np.full((2, 2, 2), 0.25))
print(sum(f.stats.cache_hits.values()), sum(f.stats.cache_misses.values()), gc.isenabled())
"""
RUN_UNIFORM = """
import numpy as np
from omdpd import Uniform, run
from omdpd.experiments.first_use import tiny_world
run(tiny_world(), Uniform(), n_episodes=3)
"""


def python(code, **environment):
    """Another process: what it printed, and what it said."""
    kept = {key: value for key, value in os.environ.items() if key != "OMDPD_QUIET"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept | environment, capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_a_fingerprint_is_of_contents_not_of_times_or_places(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "a.py").write_text("x = 1\n")
    os.utime(two / "a.py", (1, 1))
    assert fingerprint(one) == fingerprint(two)
    fingerprint.cache_clear()
    (two / "a.py").write_text("x = 2\n")
    assert fingerprint(one) != fingerprint(two)


def test_another_copy_of_the_package_compiles_nothing_again(tmp_path):
    shutil.copytree(
        PACKAGE, tmp_path / "omdpd", ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy
    )
    shared = {"OMDPD_CACHE_DIR": str(tmp_path / "cache")}
    first, said = python(SMALL, **shared)
    assert first.split() == ["0", "1", "True"]
    assert said.count("omdpd: compiling what this run needs, once per user and version") == 1
    assert str(tmp_path / "cache") in said
    again, silence = python(SMALL, **shared, PYTHONPATH=str(tmp_path))
    assert again.split() == ["1", "0", "True"]
    assert silence == ""


def test_compiling_can_be_kept_quiet(tmp_path):
    assert python(SMALL, OMDPD_CACHE_DIR=str(tmp_path), OMDPD_QUIET="1")[1] == ""


def test_nothing_is_compiled_that_the_learner_at_hand_does_not_need(tmp_path):
    python(RUN_UNIFORM, OMDPD_CACHE_DIR=str(tmp_path))
    compiled = {file.parent.name for file in tmp_path.rglob("*.nbc")}
    assert compiled
    assert not compiled & {"box_step", "kernel_step"}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OMDPD_CACHE_DIR", str(tmp_path / "cache"))
    kernel_folder.cache_clear()
    yield tmp_path / "cache"
    kernel_folder.cache_clear()


def test_a_folder_that_others_may_write_into_is_not_used(own_cache):
    folder = kernel_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    kernel_folder.cache_clear()
    folder.chmod(0o777)
    assert kernel_folder() is None


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path, own_cache):
    own_cache.write_text("in the way")
    assert kernel_folder() is None
    assert UserLocator.from_function(greedy_policy.py_func, greedy_policy.py_func.__code__.co_filename) is None


def test_a_strangers_function_keeps_its_place():
    def stranger():
        return 1

    assert UserLocator.from_function(stranger, __file__) is None


def test_what_nobody_used_for_long_is_removed(tmp_path):
    folders = [tmp_path / name for name in ("mine", "recent", "old")]
    for folder in folders:
        folder.mkdir()
    os.utime(folders[2], (1.0, 1.0))
    forget_unused(folders[0])
    assert [folder.exists() for folder in folders] == [True, True, False]


def test_the_place_can_be_named(monkeypatch):
    monkeypatch.setenv("OMDPD_CACHE_DIR", "/somewhere")
    assert cache.cache_folder() == Path("/somewhere")
    monkeypatch.delenv("OMDPD_CACHE_DIR")
    assert cache.cache_folder().name == "omdpd"


class Compiled:
    """Numba's event about a function of ours."""

    data: ClassVar = {"dispatcher": greedy_policy}


def test_a_terminal_is_told_how_many_also_where_a_command_says_so(monkeypatch, capsys):
    lines = []
    announcer = Announcer(lines.append)
    monkeypatch.delenv("OMDPD_QUIET", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    announcer.begin("compiling")
    announcer.counted -= 2 * EVERY
    announcer.on_start(Compiled)
    announcer.on_end(Compiled)
    announcer.end()
    assert lines == ["compiling"]
    assert capsys.readouterr().err == "\romdpd: 1 functions compiled in 0 s \n"
    assert announcer.say is None


# Compiles two functions where Numba finds no place that can be written.
NOWHERE = """
import numba.core.caching as numbas
def refuse(self): raise OSError("read-only")
numbas._CacheLocator.ensure_cache_path = refuse
"""


def test_where_nothing_can_be_written_nothing_is_kept_and_all_works(tmp_path):
    (tmp_path / "file").write_text("")
    out, words = python(NOWHERE + SMALL, OMDPD_CACHE_DIR=str(tmp_path / "file" / "below"), NUMBA_CACHE_DIR="")
    assert out == "0 1 True\n"
    assert "(not kept)" in words
    assert not cache.NOWHERE.exists()


# Asks for the lock whenever Numba writes.
ASKING = """
import fcntl
from pathlib import Path
import numba.core.caching as numbas
held, save = [], numbas.IndexDataCacheFile.save
def asking(self, key, data):
    with (Path(self._cache_path) / "lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.append(False)
        except BlockingIOError:
            held.append(True)
    save(self, key, data)
numbas.IndexDataCacheFile.save = asking
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked otherwise there")
def test_one_process_at_a_time_writes_into_the_index_of_a_function(tmp_path):
    out, _ = python(ASKING + SMALL + "print(held)", OMDPD_CACHE_DIR=str(tmp_path))
    assert out.splitlines() == ["0 1 True", "[True]"]
