"""Compiled code is kept once per user and version, wherever the package lies, and what is compiled is said."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import omdpd
from omdpd.jit import cache, own_folder
from omdpd.jit.announce import EVERY, Announcer
from omdpd.jit.cache import MARK, MARKED, fingerprint, forget_unused, kept, kernel_folder, where_kept
from omdpd.solvers.compiled.flow import greedy_policy

pytestmark = pytest.mark.whole

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
    assert fingerprint(one, ("",)) == fingerprint(two, ("",))
    fingerprint.cache_clear()
    (two / "a.py").write_text("x = 2\n")
    assert fingerprint(one, ("",)) != fingerprint(two, ("",))


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
    kept.cache_clear()
    yield tmp_path / "cache"
    kept.cache_clear()


def looked_at_again():
    """The folder that a new process would use."""
    kept.cache_clear()
    return kernel_folder()


def test_every_folder_is_made_for_the_user_alone_whatever_the_umask(own_cache):
    before = os.umask(0)
    try:
        folder = kernel_folder()
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (folder, folder.parent, own_cache)] == [0o700] * 3


def test_a_folder_that_others_may_write_into_is_not_used_wherever_it_is_on_the_way(own_cache):
    folder = kernel_folder()
    assert (folder.parent, folder.parent.parent) == (own_cache / "kernels", own_cache)
    for each in (folder, own_cache / "kernels", own_cache, own_cache.parent):
        mode = each.stat().st_mode & 0o7777
        each.chmod(0o777)
        assert looked_at_again() is None
        assert str(each) in where_kept()
        assert where_kept().startswith("kept nowhere")
        each.chmod(mode)
        assert looked_at_again() == folder


def test_in_a_sticky_folder_of_all_users_ours_is_used_and_a_strangers_is_not(own_cache, monkeypatch):
    own_cache.mkdir()
    own_cache.chmod(0o1777)
    assert looked_at_again() is not None
    user = os.getuid()
    real = os.lstat

    def lstat(path):
        known = list(real(path))
        known[4] = user + 1 if str(path) == str(own_cache / "kernels") else known[4]
        return os.stat_result(known)

    monkeypatch.setattr(own_folder.os, "lstat", lstat)
    assert looked_at_again() is None
    assert f"{own_cache / 'kernels'} belongs to another user" in where_kept()


def test_a_link_is_as_good_as_the_folder_it_leads_to(own_cache, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True)
    own_cache.symlink_to("elsewhere/../elsewhere/deep")
    assert looked_at_again().resolve().is_relative_to(elsewhere)
    elsewhere.parent.chmod(0o777)
    assert looked_at_again() is None
    assert str(elsewhere.parent) in where_kept()


@pytest.mark.parametrize("target", ["cache", "gone"])
def test_a_link_that_leads_nowhere_is_not_used(own_cache, target):
    own_cache.symlink_to(target)
    assert looked_at_again() is None


def test_a_folder_that_cannot_be_made_is_done_without(own_cache):
    own_cache.write_text("in the way")
    assert kernel_folder() is None
    assert str(own_cache) in where_kept()


def test_numba_keeps_nothing_of_ours_anywhere_else(tmp_path):
    others = {"NUMBA_CACHE_DIR": str(tmp_path / "numbas"), "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    out, words = python(SMALL, OMDPD_CACHE_DIR=str(tmp_path / "shared"), **others)
    assert out == "0 1 True\n"
    assert f"kept nowhere: others may write into {tmp_path / 'shared'}; OMDPD_CACHE_DIR names another folder" in words
    assert not [*tmp_path.rglob("*.nb*"), *PACKAGE.rglob("*.nb*")]


def files_with(pattern):
    return [file for file in sorted(PACKAGE.rglob("*.py")) if re.search(pattern, file.read_text(), re.M)]


def test_every_file_with_a_compiled_function_is_in_the_fingerprint():
    compiles = files_with(r"^from omdpd\.jit\.decorators import .*\b\w*(entry|inner|rule|inline|glue)\b")
    assert len(compiles) > 40
    places = [PACKAGE / place for place in cache.KERNELS]
    assert [file for file in compiles if not any(file.is_relative_to(place) for place in places)] == []


def test_only_our_decorators_ask_numba_to_compile():
    asking = files_with(r"\bn?jit\(|^\s*(from numba\b.*)?import .*\bn?jit\b|^\s*import omdpd\.jit$")
    assert [file.name for file in asking] == ["decorators.py"]


def test_a_strangers_function_keeps_its_place(tmp_path):
    (tmp_path / "own.py").write_text("import omdpd, numba\n@numba.njit(cache=True)\ndef f(x):\n    return x\nf(1)\n")
    python(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import own", NUMBA_CACHE_DIR=str(tmp_path / "numbas"))
    assert [file.name.split("-")[0] for file in tmp_path.glob("numbas/*/*.nbi")] == ["own.f"]


def test_nothing_but_our_own_folders_is_removed_when_nobody_used_it_for_long(tmp_path):
    name = "0123456789abcdef0123-numba0.61.2"
    mine, old, recent = (tmp_path / each for each in (f"{name}.1", f"{name}-svml", f"{name}.2"))
    strangers = [tmp_path / each for each in ("my_cuda_sources", f"{name}.copy of mine", f"{name}.3", f"{name}.4")]
    for folder in (mine, old, recent, *strangers):
        folder.mkdir()
        (folder / MARK).write_text(MARKED)
    (strangers[2] / MARK).unlink()
    (strangers[3] / MARK).write_text("Signature: 8a477f597d28d172789f06886806bc55\n# of another program\n")
    link = tmp_path / f"{name}.5"
    link.symlink_to(recent)
    for folder in (old, *strangers, link):
        os.utime(folder, (1.0, 1.0), follow_symlinks=False)
    forget_unused(mine)
    assert [folder.exists() for folder in (mine, old, recent, *strangers, link)] == [True, False] + [True] * 6


def test_a_folder_of_ours_says_that_it_is_ours(own_cache):
    assert cache.OURS.fullmatch(kernel_folder().name)
    assert (kernel_folder() / MARK).read_text() == MARKED


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


def test_where_nothing_can_be_written_nothing_is_kept_and_all_works(tmp_path):
    (tmp_path / "file").write_text("")
    out, words = python(SMALL, OMDPD_CACHE_DIR=str(tmp_path / "file" / "below"))
    assert out == "0 1 True\n"
    assert "kept nowhere" in words
    assert not [*PACKAGE.rglob("nowhere")]


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


def test_a_file_that_was_cut_off_is_compiled_and_kept_anew(tmp_path):
    shared = {"OMDPD_CACHE_DIR": str(tmp_path)}
    found = [python(SMALL, **shared)[0].split()[:2]]
    for suffix in ("nbi", "nbc"):
        [file] = tmp_path.rglob(f"flow.greedy*.{suffix}")
        file.write_bytes(file.read_bytes()[:20])
        found.append(python(SMALL, **shared)[0].split()[:2])
    assert found == [["0", "1"]] * 3
    assert python(SMALL, **shared)[0].split()[:2] == ["1", "0"]
