import os
import pty
import signal
import threading
import time

import pytest

from benchmarks.chaos import workers
from omdpd.report.stored import stored_runs
from omdpd.storage.run_folder import RunFolder
from tests.references.real_commands import PATIENCE, committed, omdpd, start, wait_until, write_experiment
from tests.references.work import processor_seconds

pytestmark = pytest.mark.whole

# Longer than a test: whoever is to be interrupted still plays.
LONG = 300_000


def episodes(out):
    return {run.id: run.episodes for run in stored_runs(out) if run.episodes}


def wait_until_busy(pid):
    """Until whoever plays has done so for some more of the processor's time, however long that takes here."""
    players = workers(pid) or [pid]
    since = {player: processor_seconds(player) for player in players}
    wait_until(lambda: all(processor_seconds(player) > before + 0.3 for player, before in since.items()))


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_commits_stops_cleanly_and_says_how_to_go_on(tmp_path, jobs):
    out = tmp_path / "out"
    file = write_experiment(tmp_path, LONG, seeds=2)
    process = start("run", file, "--out", out, "--jobs", jobs, commit_seconds=4.0)
    wait_until(lambda: len(list(out.glob("runs/*/commit.json"))) == jobs)
    before = episodes(out)
    wait_until_busy(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert f"kept in {out}" in said
    assert "same command resumes it" in said
    assert "Traceback" not in said
    after = episodes(out)
    assert len(after) == jobs
    # No commit was due so soon: what was played since the last one is kept because of the interrupt.
    assert all(after[name] > n for name, n in before.items())


@pytest.mark.parametrize(("jobs", "whole"), [(1, False), (2, False), (2, True)])
def test_sigterm_commits_stops_cleanly_and_says_how_to_go_on(tmp_path, jobs, whole):
    """To the parent alone, as `kill` sends it, or to all of its processes, as a service manager does."""
    out = tmp_path / "out"
    process = start("run", write_experiment(tmp_path, LONG), "--out", out, "--jobs", jobs, commit_seconds=4.0)
    wait_until(lambda: len(list(out.glob("runs/*/commit.json"))) == jobs)
    before = episodes(out)
    wait_until_busy(process.pid)
    os.killpg(process.pid, signal.SIGTERM) if whole else process.terminate()
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, said
    assert "same command resumes it" in said
    assert "Traceback" not in said
    after = episodes(out)
    assert all(after[name] > n for name, n in before.items())


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_command_in_the_background_of_a_script_is_deaf_to_ctrl_c_but_not_to_sigterm(tmp_path, jobs):
    out = tmp_path / "out"
    # Short runs, so that a signal often comes between two of them.
    file = write_experiment(tmp_path, episodes=20, seeds=2000, learner="Uniform")
    process = start("run", file, "--out", out, "--jobs", jobs, background=True)
    wait_until(lambda: committed(out))
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.terminate()
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, said
    assert "same command resumes it" in said
    assert "Traceback" not in said


def test_an_interrupt_of_the_parent_alone_reaches_its_workers(tmp_path):
    out = tmp_path / "out"
    process = start("run", write_experiment(tmp_path, LONG), "--out", out, "--jobs", 2, commit_seconds=0.05)
    wait_until(lambda: committed(out))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "Traceback" not in said


def test_ctrl_c_while_workers_start_leaves_no_traceback(tmp_path):
    out = tmp_path / "out"
    process = start("run", write_experiment(tmp_path, LONG), "--out", out, "--jobs", 2)
    wait_until(lambda: (out / "experiment.toml").exists())
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "Traceback" not in said


def test_a_terminal_shows_live_lines_and_takes_ctrl_c(tmp_path):
    out = tmp_path / "out"
    ours, theirs = pty.openpty()
    process = start(
        "run", write_experiment(tmp_path, LONG), "--out", out, "--jobs", 2, stdout=theirs, stderr=theirs,
        stdin=theirs, environment={"TERM": "xterm", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(theirs)
    said = []
    reader = threading.Thread(target=_drain, args=(ours, said))
    reader.start()
    wait_until(lambda: committed(out) and "seed 0" in "".join(said))
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == 130
    reader.join()
    os.close(ours)
    text = "".join(said)
    assert "0 of 2 runs done" in text
    assert "ProximalOMDPD.cautious, noisy, seed 0" in text
    assert "The same command resumes it" in text.replace("\r\n", " ")
    assert "Traceback" not in text


def test_without_a_terminal_there_are_plain_lines(tmp_path):
    file, out = write_experiment(tmp_path, episodes=30), tmp_path / "out"
    code, said = omdpd("run", file, "--out", out, "--jobs", 1)
    assert code == 0, said
    assert "\x1b[" not in said
    code, said = omdpd("run", file, "--out", out, "--jobs", 1)
    assert code == 0
    assert "2 of 2 runs are finished already" in said
    assert all(RunFolder(path).summary is not None for path in (out / "runs").iterdir())


def _drain(ours, said):
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # the other end is closed
            return
        if not block:
            return
        said.append(block.decode(errors="replace"))
