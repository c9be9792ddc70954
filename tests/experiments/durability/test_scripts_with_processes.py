"""Scripts that start processes: one that is written wrongly ends with a sentence, and nothing waits for ever."""

import multiprocessing.queues
import sys
import threading
from concurrent.futures import wait
from concurrent.futures.process import BrokenProcessPool

import pytest

from omdpd.experiments.executors import executor
from omdpd.problem.arrays import InvalidInputError
from tests.experiments.durability.test_local_workers import die, double, pid_after
from tests.references.real_commands import PATIENCE, start_program, write_experiment

pytestmark = pytest.mark.whole

EXPERIMENT = """\
from pathlib import Path
from omdpd.experiments import executor, load_experiment, run_experiment

def main():
    with executor("{place}", 2) as pool:
        run_experiment(load_experiment(Path("sweep.toml")), Path("out"), pool)
"""
TASKS = """\
from omdpd.experiments import executor

def double(x):
    return 2 * x

def main():
    with executor("local", 2) as pool:
        print([pool.submit(double, i).result() for i in range(4)])
"""
GUARD = 'if __name__ == "__main__":'


def ended(folder, text, seconds=PATIENCE):
    """Run a script to its end: its exit code and what it printed; it fails if it takes longer than `seconds`."""
    (folder / "script.py").write_text(text)
    process = start_program([sys.executable, "script.py"], cwd=folder)
    printed, _ = process.communicate(timeout=seconds)
    return process.returncode, printed


@pytest.mark.parametrize("text", [EXPERIMENT.format(place="local"), TASKS], ids=["an experiment", "tasks"])
def test_a_script_without_a_main_guard_ends_with_a_sentence_that_says_what_to_write(tmp_path, text):
    write_experiment(tmp_path, episodes=20)
    code, printed = ended(tmp_path, text + "\n\nmain()\n")
    assert code == 1
    assert f"put it under `{GUARD}`" in printed.splitlines()[-1]
    # One traceback, the script's own: workers end without a word.
    assert printed.count("Traceback") == 1
    assert not list(tmp_path.glob("out/runs/*/error.json")), "the runs did nothing wrong"


def test_a_script_with_a_main_guard_ends_well(tmp_path):
    code, printed = ended(tmp_path, f"{TASKS}\n\n{GUARD}\n    main()\n")
    assert code == 0, printed
    assert "[0, 2, 4, 6]" in printed


def test_a_script_that_fails_in_every_worker_ends_with_a_sentence(tmp_path):
    once = "import os, sys\nif os.path.exists('begun'):\n    sys.exit('only once')\nopen('begun', 'w').close()\n"
    code, printed = ended(tmp_path, f"{once}{TASKS}\n\n{GUARD}\n    main()\n")
    assert code == 1
    assert printed.count("only once") <= 2, "a worker that cannot begin is not tried again and again"
    assert "ended with exit code 1 before it could begin" in printed.splitlines()[-1]


def test_a_script_without_a_main_guard_ends_with_a_sentence_on_a_dask_cluster_of_its_own(tmp_path):
    pytest.importorskip("distributed")
    write_experiment(tmp_path, episodes=20)
    code, printed = ended(tmp_path, EXPERIMENT.format(place="dask") + "\n\nmain()\n")
    assert code == 1
    assert f"put it under `{GUARD}`" in printed.splitlines()[-1]


def test_a_machine_without_threads_to_spare_is_one_sentence(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with executor("local", 2) as pool, monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(InvalidInputError, match=r"no worker can be started here .*can't start new thread"):
            pool.submit(double, 1)


def test_work_that_is_cancelled_counts_as_done():
    with executor("local", 2) as pool:
        futures = [pool.submit(pid_after, 1.0) for _ in range(8)]
        pool.shutdown(wait=True, cancel_futures=True)
        done, pending = wait(futures, timeout=PATIENCE)
    assert not pending
    assert any(future.cancelled() for future in done)


def test_work_after_the_end_is_refused():
    with executor("local", 2) as pool:
        pool.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(double, 1)


def test_work_that_cannot_be_sent_again_does_not_wait_for_ever(monkeypatch):
    """A worker dies, and the machine has no room for another one."""

    def refuse(*given, **more):
        raise OSError("too many open files")

    with executor("local", 2) as pool:
        assert pool.submit(double, 1).result(timeout=PATIENCE) == 2
        monkeypatch.setattr("omdpd.experiments.local_processes.ProcessPoolExecutor", refuse)
        with pytest.raises(InvalidInputError, match=r"no worker can be started here .*too many open files"):
            pool.submit(die, None).result(timeout=PATIENCE)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_whose_pool_loses_its_own_thread_does_not_wait_for_ever(monkeypatch):
    """Some versions of Python leave every future of a pool pending when its thread cannot start another one."""

    def refuse(queue):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("omdpd.experiments.local_processes.MAX_DEATHS", 1)
    with executor("local", 2) as pool:
        monkeypatch.setattr(multiprocessing.queues.Queue, "_start_thread", refuse)
        with pytest.raises(BrokenProcessPool, match="2 in a row"):
            pool.submit(double, 1).result(timeout=PATIENCE)
