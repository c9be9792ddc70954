"""Trouble that is not a run's own stops the study with one sentence; the same command goes on; no run is blamed."""

import errno
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

import omdpd
import omdpd.experiments.one_run as one_run
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import forget
from omdpd.experiments.local_processes import WorkersError
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.one_run import RunFailedError, advance, run
from omdpd.experiments.registry import check_sources, from_wire, sources, to_wire
from omdpd.experiments.spec import RunSpec
from omdpd.experiments.trouble import StudyStoppedError, retry_budget
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.locks import Lock
from omdpd.storage.run_folder import RunFolder
from tests.references.named import LEARNERS, NATURES, WORLDS

SPECS = [RunSpec(WORLDS["cyclic"](), NATURES["noisy"](), LEARNERS["Uniform"](), 4, seed) for seed in range(3)]


class Failing(Executor):
    """Plays runs here, except that the first `times` submissions of the second run meet trouble."""

    def __init__(self, error, times):
        self.error, self.left, self.inner = error, times, InProcess()

    def submit(self, fn, plain, *rest):
        if plain["seed"] == 1 and self.left:
            self.left -= 1
            future = Future()
            future.set_exception(self.error)
            return future
        return self.inner.submit(fn, plain, *rest)


def play(folder, workers):
    return run_all(SPECS, folder, workers, lambda done: None)


def no_run_is_blamed(folder):
    return not list(folder.glob("*/error.json"))


LASTING = [
    OSError(errno.ENOSPC, "No space left on device", "/results/rows"),
    OSError(errno.EROFS, "Read-only file system", "/results/rows"),
    MemoryError("4 GiB"), BrokenProcessPool("a worker was terminated abruptly"),
]  # fmt: skip


@pytest.mark.parametrize("error", LASTING, ids=lambda error: type(error).__name__)
def test_what_trying_again_would_not_mend_stops_the_study_and_the_same_command_goes_on(tmp_path, error):
    with pytest.raises(
        StudyStoppedError, match=rf"stopped at run {SPECS[1].id}: .* the same command goes on"
    ) as caught:
        play(tmp_path, Failing(error, 1))
    assert "\n" not in str(caught.value)
    assert no_run_is_blamed(tmp_path)
    assert len(play(tmp_path, InProcess())) == 3


@pytest.mark.parametrize("error", [CancelledError(), ConnectionError("gone"), RuntimeError("KilledWorker")])
def test_a_run_whose_worker_failed_is_sent_again_within_its_budget(tmp_path, error, monkeypatch):
    assert len(play(tmp_path / "a", Failing(error, 3))) == 3
    with pytest.raises(StudyStoppedError, match=rf"stopped at run {SPECS[1].id} \(sent again 3 times\)"):
        play(tmp_path / "b", Failing(error, 4))
    monkeypatch.setenv("OMDPD_RETRIES", "0")
    with pytest.raises(StudyStoppedError, match=f"stopped at run {SPECS[1].id}: "):
        play(tmp_path / "c", Failing(error, 1))
    assert no_run_is_blamed(tmp_path)


def test_a_cluster_that_takes_no_more_runs_stops_the_study(tmp_path):
    class Gone(Failing):
        def submit(self, fn, plain, *rest):
            if plain["seed"] == 1 and not self.left:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return super().submit(fn, plain, *rest)

    with pytest.raises(StudyStoppedError, match="ConnectionError: gone"):
        play(tmp_path, Gone(ConnectionError("gone"), 1))


def test_workers_that_cannot_be_started_are_said_so_at_once(tmp_path):
    with pytest.raises(StudyStoppedError, match="no worker can be started"):
        play(tmp_path, Failing(WorkersError("no worker can be started here"), 1))


def test_what_a_run_itself_raises_is_kept_and_the_others_go_on(tmp_path, monkeypatch):
    real = one_run.advance

    def fail(spec, *rest, **named):
        if spec.seed == 1:
            raise ZeroDivisionError("a bad day")
        return real(spec, *rest, **named)

    monkeypatch.setattr(one_run, "advance", fail)
    with pytest.raises(RunFailedError, match=r"1 of 3 runs failed; .*a bad day"):
        play(tmp_path, InProcess())
    assert "a bad day" in RunFolder(tmp_path / SPECS[1].id).error["error"]


def test_lack_of_memory_in_a_run_is_not_kept_as_its_failure(tmp_path, monkeypatch):
    def fail(*_, **named):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(one_run, "advance", fail)
        with pytest.raises(StudyStoppedError, match="this machine has not enough memory"):
            play(tmp_path, InProcess())
    assert no_run_is_blamed(tmp_path)
    assert len(play(tmp_path, InProcess())) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into any folder")
def test_a_folder_that_cannot_be_written_stops_the_study(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InvalidInputError, match="Permission denied"):
        play(tmp_path, InProcess())


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "", "99999"])
def test_a_budget_is_a_whole_number(monkeypatch, text):
    monkeypatch.setenv("OMDPD_RETRIES", text)
    with pytest.raises(InvalidInputError, match="OMDPD_RETRIES is"):
        retry_budget()


@pytest.mark.parametrize("name", ["omdpd", "the format of run folders", "Python"])
def test_a_worker_of_another_version_is_refused_with_one_sentence(name):
    plain = to_wire(SPECS[0])
    assert from_wire(plain) == SPECS[0]
    plain["versions"] = plain["versions"] | {name: "0.0"}
    with pytest.raises(InvalidInputError, match=f"a worker on .* has {name} .*, but the runs were sent with 0.0"):
        from_wire(plain)


def test_a_worker_with_changed_sources_is_refused_whatever_was_installed(tmp_path):
    """A copy of the package with another `__version__`, beside the same installed distribution."""
    package = Path(omdpd.__file__).parent
    shutil.copytree(package, tmp_path / "omdpd", ignore=shutil.ignore_patterns("__pycache__"))
    plain = json.dumps(to_wire(SPECS[0]))
    script = "import json, sys; from omdpd.experiments.registry import from_wire; from_wire(json.load(sys.stdin))"

    def worker():
        ask = {"input": plain, "text": True, "capture_output": True, "check": False}
        return subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(tmp_path)}, **ask)

    assert worker().returncode == 0  # the same sources elsewhere are the same
    changed = (tmp_path / "omdpd" / "__init__.py").read_text().replace(omdpd.__version__, "9.9.9")
    (tmp_path / "omdpd" / "__init__.py").write_text(changed)
    said = worker().stderr
    assert "has omdpd 9.9.9 with the sources" in said
    assert f"but the runs were sent with {omdpd.__version__} with the sources {sources()}" in said


def test_provenance_says_the_version_that_ran_and_a_hash_of_its_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(omdpd, "__version__", "9.9.9")
    run(SPECS[0], tmp_path)
    origin = RunFolder(tmp_path, SPECS[0].id).provenance()
    assert origin["packages"]["omdpd"] == "9.9.9"
    assert origin["sources"] == sources()


def test_a_shard_with_other_sources_than_the_runs_of_others_is_refused(tmp_path, monkeypatch):
    records = [RunFolder(tmp_path / spec.id, spec.id) for spec in SPECS]
    run(SPECS[0], records[0].path)
    check_sources(records)
    monkeypatch.setattr("omdpd.experiments.registry.sources", lambda: "changed")
    with pytest.raises(InvalidInputError, match=r"was begun by omdpd .* with the sources \w+, but here are .* changed"):
        check_sources(records)


@pytest.mark.parametrize("failed_only", [True, False])
def test_nothing_is_removed_while_somebody_plays_one_of_the_runs(tmp_path, failed_only):
    for spec in SPECS[:2]:
        run(spec, tmp_path / "runs" / spec.id)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    lock = Lock(tmp_path / "runs" / SPECS[1].id / "lock")
    assert lock.acquire()
    with pytest.raises(InvalidInputError, match=f"{SPECS[1].id} is being played by another process"):
        forget(SPECS, tmp_path, failed_only)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    lock.release()
    forget(SPECS, tmp_path, failed_only=False)
    assert {path.name for path in tmp_path.glob("runs/*/*")} == {"lock"}


def test_a_removal_that_was_interrupted_leaves_a_run_that_can_begin_anew(tmp_path, monkeypatch):
    spec = SPECS[0]
    record = RunFolder(tmp_path, spec.id)
    first = run(spec, tmp_path)
    real, calls = type(tmp_path).unlink, []

    def unlink(self, **more):
        calls.append(self.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(self, **more)

    with monkeypatch.context() as patch, record.owned_now():
        patch.setattr(type(tmp_path), "unlink", unlink)
        with pytest.raises(KeyboardInterrupt):
            record.remove()
    again = advance(spec, record, None, 1.0)
    assert {**again, "seconds": 0} == {**first, "seconds": 0}
