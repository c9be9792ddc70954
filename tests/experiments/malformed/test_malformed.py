"""Hundreds of malformed inputs: each ends in one sentence that names the file, in bounded memory, with nothing damaged.

The table of mutations is in `mutations.py`.  Most go through the library's own calls, to be fast; a sample goes through
the real command line, where each must end with exit code 2.
"""

import json
import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest

from omdpd import InvalidInputError, ProximalOMDPD, Session, Setting, load_runs
from omdpd.experiments.files import load_experiment
from omdpd.experiments.one_run import advance, run
from omdpd.problem.setting import BanditFeedback, Trajectory
from omdpd.report.stored import stored_runs
from omdpd.storage.columns import read_columns
from omdpd.storage.npz import npz_of_arrays
from omdpd.storage.run_folder import RunFolder
from tests.references.mutations import (
    GOOD,
    agree,
    digest,
    json_spoilers,
    manifest_spoilers,
    npz_spoilers,
    parquet_of,
    parquet_spoilers,
    sealed,
    spoilt_experiments,
)
from tests.references.real_commands import PATIENCE

# None of these inputs may make the process grow by more, in megabytes.
MAX_GROWTH = 400
EXPERIMENTS = spoilt_experiments()
# Through the real command line: one of every kind.
SAMPLE = EXPERIMENTS[:: len(EXPERIMENTS) // 6]


@pytest.fixture(scope="module", autouse=True)
def memory_stays_bounded():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MAX_GROWTH


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder of results with an unfinished run of several parts, and one with a finished run."""
    folder = tmp_path_factory.mktemp("good")
    file = folder / "good.toml"
    file.write_text(GOOD)
    spec = load_experiment(file).runs()[0]
    record = RunFolder(folder / "open" / "runs" / spec.id)
    record.path.mkdir(parents=True)
    for _ in range(3):
        assert advance(spec, record, None, 0.0, 0.0) is None
    shutil.copytree(folder / "open", folder / "done")
    run(spec, folder / "done" / "runs" / spec.id)
    return spec, folder


@pytest.fixture
def unfinished(good, tmp_path):
    """A copy to spoil: its spec, the folder of results, and the folder of the run."""
    spec, folder = good
    shutil.copytree(folder / "open", tmp_path / "open")
    return spec, tmp_path / "open", tmp_path / "open" / "runs" / spec.id


@pytest.fixture
def finished(good, tmp_path):
    spec, folder = good
    shutil.copytree(folder / "done", tmp_path / "done")
    return spec, tmp_path / "done", tmp_path / "done" / "runs" / spec.id


def refused(call, *words):
    """The call is refused with one sentence that holds the words."""
    with pytest.raises(InvalidInputError) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said.strip()
    assert len(said) < 2000
    for word in words:
        assert word in said
    return said


def spoil(file, change):
    file.write_bytes(change(file.read_bytes()))


def test_there_are_at_least_three_hundred():
    n_json = len(json_spoilers("x"))
    n_parts = 3 * len(npz_spoilers()) + len(parquet_spoilers())
    n = len(EXPERIMENTS) + 5 * n_json + len(manifest_spoilers()) + n_parts + len(npz_spoilers())
    assert n >= 300


@pytest.mark.parametrize("spoilt", EXPERIMENTS, ids=lambda spoilt: ascii(spoilt.name))
def test_a_malformed_experiment_is_refused(tmp_path, spoilt):
    file = tmp_path / "spoilt.toml"
    file.write_bytes(spoilt.content)
    refused(lambda: load_experiment(file), "spoilt.toml", spoilt.word)
    assert file.read_bytes() == spoilt.content


@pytest.mark.parametrize("spoilt", SAMPLE, ids=lambda spoilt: ascii(spoilt.name))
def test_the_command_line_ends_with_one_sentence_and_exit_code_2(tmp_path, spoilt):
    (tmp_path / "spoilt.toml").write_bytes(spoilt.content)
    said = command(tmp_path, "run", "spoilt.toml")
    assert "spoilt.toml" in said
    assert spoilt.word in said
    assert [path.name for path in tmp_path.iterdir()] == ["spoilt.toml"]  # nothing was begun


@pytest.mark.parametrize("name", manifest_spoilers())
def test_a_malformed_manifest_is_refused(unfinished, name):
    spec, out, folder = unfinished
    spoil(folder / "commit.json", manifest_spoilers()[name])
    before = digest(out)
    refused(lambda: run(spec, folder), str(folder))
    assert digest(out) == before


@pytest.mark.parametrize("name", json_spoilers("commit.json"))
def test_a_damaged_manifest_is_refused_by_every_reader(unfinished, name):
    spec, out, folder = unfinished
    spoil(folder / "commit.json", json_spoilers("commit.json")[name])
    before = digest(out)
    for call in (lambda: run(spec, folder), lambda: stored_runs(out), lambda: load_runs(out)):
        refused(call, str(folder / "commit.json"))
    assert digest(out) == before


@pytest.mark.parametrize("file", ["summary.json", "error.json"])
@pytest.mark.parametrize("name", json_spoilers("summary.json"))
def test_a_damaged_summary_or_error_is_refused(finished, file, name):
    _, out, folder = finished
    if file == "error.json":
        (folder / "summary.json").rename(folder / "error.json")
    spoil(folder / file, json_spoilers(file)[name])
    before = digest(out)
    refused(lambda: stored_runs(out), str(folder / file))
    assert digest(out) == before


@pytest.mark.parametrize("change", ["no run", "run is a path", "regret is text", "nothing"])
def test_a_summary_without_what_tables_need_is_refused(finished, change):
    _, out, folder = finished
    file = folder / "summary.json"
    content = json.loads(file.read_text())
    edits = {"no run": {"run": None}, "run is a path": {"run": "../../x"}, "regret is text": {"regret": "low"}}
    file.write_bytes(sealed(content | edits[change] if change in edits else {}))
    refused(lambda: stored_runs(out), str(file))


@pytest.mark.parametrize("name", npz_spoilers())
def test_a_malformed_state_is_refused(unfinished, name):
    """Its checksum is right, so that what is tested is how it is read."""
    spec, out, folder = unfinished
    state = next(iter(folder.glob("state-*.npz")))
    spoil(state, npz_spoilers()[name])
    agree(folder, "state")
    before = digest(out)
    refused(lambda: run(spec, folder), str(folder))
    assert digest(out) == before


@pytest.mark.parametrize("kind", ["rows", "values"])
@pytest.mark.parametrize("name", [*npz_spoilers(), "too many rows", "no rows", "a number alone"])
def test_a_malformed_table_is_refused(unfinished, kind, name):
    spec, out, folder = unfinished
    sizes = {"too many rows": (1_000_000,), "no rows": (0,), "a number alone": ()}
    spoilers = npz_spoilers() | {
        key: lambda c, s=size: npz_of_arrays({"value": np.zeros(s)}) for key, size in sizes.items()
    }
    spoil(next(iter(sorted(folder.glob(f"{kind}-*.npz")))), spoilers[name])
    agree(folder, kind)
    before = digest(out)
    refused(lambda: run(spec, folder), str(folder))
    assert digest(out) == before


@pytest.mark.parametrize("name", parquet_spoilers())
def test_a_malformed_table_of_an_earlier_version_is_refused(name):
    spoilt = parquet_spoilers()[name](parquet_of(rows=20))
    refused(lambda: read_columns(spoilt, "rows-000001.parquet", 100), "rows-000001.parquet")


@pytest.mark.parametrize("kind", ["rows-*.npz", "values-*.npz", "state-*.npz"])
@pytest.mark.parametrize("how", ["cut", "one bit", "gone", "link", "folder", "pipe"])
def test_a_part_that_is_not_what_was_committed_is_refused(unfinished, kind, how):
    spec, out, folder = unfinished
    part = next(iter(sorted(folder.glob(kind))))
    _replace(part, how)
    before = digest(out) if how != "pipe" else None
    refused(lambda: run(spec, folder), str(part))
    assert how == "pipe" or digest(out) == before


@pytest.mark.parametrize("file", ["commit.json", "spec.toml", "summary.json"])
@pytest.mark.parametrize("how", ["link", "folder", "pipe"])
def test_links_and_pipes_are_not_followed(finished, file, how):
    _, out, folder = finished
    _replace(folder / file, how)
    refused(lambda: load_runs(out), str(folder / file))


def test_a_link_in_place_of_a_run_is_not_followed(finished):
    _, out, folder = finished
    moved = out.parent / "elsewhere"
    folder.rename(moved)
    folder.symlink_to(moved)
    refused(lambda: stored_runs(out), str(folder), "link")


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"x = [", b"episodes = 1", b"episodes = nan", GOOD.encode(), b"#" * (2**20 + 1)]
)
def test_a_damaged_spec_is_refused(unfinished, content):
    spec, out, folder = unfinished
    (folder / "spec.toml").write_bytes(content)
    before = digest(out)
    refused(lambda: stored_runs(out), str(folder / "spec.toml"))
    refused(lambda: run(spec, folder), str(folder / "spec.toml"))
    assert digest(out) == before


@pytest.mark.parametrize("word", ["table", "plot"])
def test_reading_commands_end_with_one_sentence_and_exit_code_2(finished, word):
    _, out, folder = finished
    spoil(folder / "summary.json", lambda content: content[:50])
    before = digest(out)
    said = command(out.parent, word, str(out))
    assert "summary.json" in said
    assert digest(out) == before


SETTING = Setting(2, 2, 2)


@pytest.fixture
def session(tmp_path):
    """A session's folder with a snapshot of three episodes and a journal of two more."""
    with Session.open(tmp_path / "session", ProximalOMDPD.cautious(), SETTING, 3) as opened:
        for _ in range(5):
            met = Trajectory(np.array([0, 1]), np.array([1, 0]))
            opened.update(BanditFeedback(met, np.array([1.0, 0.0]), np.array([[0.2, -0.1]])))
    return tmp_path / "session"


def open_session(folder):
    Session.open(folder, ProximalOMDPD.cautious(), SETTING, 3).close()


@pytest.mark.parametrize("file", ["session.json", "snapshot.json"])
@pytest.mark.parametrize("name", json_spoilers("session.json"))
def test_a_session_with_damaged_json_is_refused(session, file, name):
    spoil(session / file, json_spoilers(file)[name])
    before = digest(session)
    refused(lambda: open_session(session), str(session / file))
    assert digest(session) == before


@pytest.mark.parametrize("name", npz_spoilers())
def test_a_session_with_a_malformed_snapshot_is_refused(session, name):
    import hashlib

    state = next(iter(session.glob("state-*.npz")))
    spoil(state, npz_spoilers()[name])
    kept = json.loads((session / "snapshot.json").read_text())
    kept["sha256"] = hashlib.sha256(state.read_bytes()).hexdigest()
    (session / "snapshot.json").write_text(json.dumps(kept))
    before = digest(session)
    refused(lambda: open_session(session), str(session))
    assert digest(session) == before


JOURNALS = {
    "garbage": lambda c: b"garbage " * 100,
    "garbage behind": lambda c: c + b"garbage " * 100,
    "first bit": lambda c: bytes([c[0] ^ 1]) + c[1:],
    "middle bit": lambda c: c[: len(c) // 4] + bytes([c[len(c) // 4] ^ 1]) + c[len(c) // 4 + 1 :],
    "twice": lambda c: c + c,
    "a huge length": lambda c: c[:8] + b"\xff" * 8 + c[16:],
    "zeros in front": lambda c: b"\0" * 100 + c,
}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_with_garbage_is_refused(session, name):
    log = next(iter(session.glob("journal-*.log")))
    spoil(log, JOURNALS[name])
    before = digest(session)
    refused(lambda: open_session(session), str(log))
    assert digest(session) == before


@pytest.mark.parametrize("kind", ["journal-*.log", "state-*.npz", "snapshot.json", "session.json"])
@pytest.mark.parametrize("how", ["link", "folder", "pipe"])
def test_a_session_does_not_follow_links(session, kind, how):
    file = next(iter(session.glob(kind)))
    _replace(file, how)
    refused(lambda: open_session(session), str(file))


def command(folder, *words):
    """What the real command line says, which must end with exit code 2 and one sentence."""
    done = subprocess.run(
        [sys.executable, "-m", "omdpd", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("omdpd: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def _replace(file, how):
    """Put something else where a file was."""
    content = file.read_bytes()
    if how == "cut":
        file.write_bytes(content[:-5])
    elif how == "one bit":
        file.write_bytes(content[:30] + bytes([content[30] ^ 1]) + content[31:])
    else:
        elsewhere = file.with_name("elsewhere")
        file.rename(elsewhere)
        if how == "link":
            file.symlink_to(elsewhere)
        elif how == "folder":
            file.mkdir()
        elif how == "pipe":
            os.mkfifo(file)
