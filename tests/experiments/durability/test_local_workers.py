"""Local processes: one that dies costs what it had not committed, and none outlives its parent."""

import os
import signal
import time
from contextlib import suppress

import pytest

from benchmarks.chaos import fingerprint, workers
from omdpd.experiments.executors import InProcess, executor
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.files import load_experiment
from omdpd.experiments.interrupts import noting_interrupts
from omdpd.experiments.local_processes import MAX_DEATHS
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.run_folder import RunFolder
from tests.references.real_commands import PATIENCE, committed, start, wait_until, write_experiment

pytestmark = pytest.mark.whole


def die_once(file):
    """Die at the first call, answer at the second: for a pool that must start again."""
    if not os.path.exists(file):
        with open(file, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def double(x):
    return 2 * x


def pid_after(seconds):
    time.sleep(seconds)
    return os.getpid()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_that_dies_is_replaced_and_no_work_is_lost(tmp_path):
    with executor("local", 2) as pool:
        others = [pool.submit(double, i) for i in range(10)]
        again = pool.submit(die_once, str(tmp_path / "died"))
        assert [future.result(timeout=PATIENCE) for future in others] == [2 * i for i in range(10)]
        assert again.result(timeout=PATIENCE) == "alive"


def test_work_that_kills_its_worker_every_time_is_given_up(monkeypatch):
    assert MAX_DEATHS >= 3
    monkeypatch.setattr("omdpd.experiments.local_processes.MAX_DEATHS", 1)
    with executor("local", 2) as pool, pytest.raises(Exception, match="terminated abruptly"):
        pool.submit(die, None).result(timeout=PATIENCE)


def test_what_cannot_be_sent_to_a_worker_is_refused_with_a_sentence():
    with executor("local", 2) as pool, pytest.raises(InvalidInputError, match="what they can import"):
        pool.submit(lambda: None)


def test_a_sweep_whose_worker_is_killed_goes_on_by_itself(tmp_path):
    file, out = write_experiment(tmp_path, episodes=1500), tmp_path / "out"
    process = start("run", file, "--out", out, "--jobs", 2)
    wait_until(lambda: committed(out))
    victims = workers(process.pid)
    os.kill(victims[0], signal.SIGKILL)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    run_experiment(load_experiment(file), tmp_path / "calm", InProcess())
    for folder in (out / "runs").iterdir():
        assert fingerprint(RunFolder(folder)) == fingerprint(RunFolder(tmp_path / "calm" / "runs" / folder.name))


def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    out = tmp_path / "out"
    process = start("run", write_experiment(tmp_path, 300_000), "--out", out, "--jobs", 2)
    wait_until(lambda: committed(out))
    orphans = workers(process.pid)
    assert len(orphans) == 2
    process.kill()
    process.wait()
    wait_until(lambda: not any(alive(pid) for pid in orphans))


def lose_an_interrupt(file):
    """Ctrl-C comes at a moment when what it raises is dropped, as in a destructor; then a run begins."""
    with open(file, "w"):
        pass
    with suppress(KeyboardInterrupt):
        time.sleep(60.0)
    with noting_interrupts() as stop:
        return stop.asked


def test_an_interrupt_that_is_lost_before_a_run_begins_still_stops_it(tmp_path):
    with executor("local", 2) as pool:
        future = pool.submit(lose_an_interrupt, str(tmp_path / "begun"))
        wait_until((tmp_path / "begun").exists)
        pool.shutdown(wait=True, cancel_futures=True)
    assert future.result() is True
