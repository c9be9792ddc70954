"""The real command line as a subprocess in a session of its own, for tests that kill and interrupt it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from omdpd.experiments.writer import COMMIT_VARIABLE

# Seconds after which something is taken to wait for ever.  The first command after an installation compiles kernels,
# which is minutes of work, and others may have most of the machine: nothing that comes to an end may fail by this.
PATIENCE = 1200.0

TEXT = """\
episodes = {episodes}
seeds = {seeds}
worlds = [{{ name = "random_dirichlet", n_states = 3, n_actions = 2, horizon = 3, binding = false }}]
natures = [{{ name = "{nature}" }}]
learners = [{{ name = "{learner}" }}]
"""

STARTED: list[subprocess.Popen] = []


def write_experiment(folder, episodes=200, seeds=2, nature="noisy", learner="ProximalOMDPD.cautious"):
    file = folder / "sweep.toml"
    file.write_text(TEXT.format(episodes=episodes, seeds=seeds, nature=nature, learner=learner))
    return file


def start_program(words, environment=None, **more):
    """A program in a group of its own, with its output kept; `end_all` ends it, whatever became of the test.

    `background`: deaf to Ctrl-C, as a shell starts what stands before an "&".
    """
    process = subprocess.Popen(
        [str(word) for word in words], start_new_session=True, env=os.environ | (environment or {}), text=True,
        stdout=more.pop("stdout", subprocess.PIPE), stderr=more.pop("stderr", subprocess.STDOUT),
        preexec_fn=_ignore_interrupts if more.pop("background", False) else _hear_interrupts, **more,
    )  # fmt: skip
    STARTED.append(process)
    return process


def _hear_interrupts():
    """Whatever the tests themselves inherited from their shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def start(*words, commit_seconds=0.05, environment=None, **more):
    """`omdpd words...`."""
    settings = {COMMIT_VARIABLE: str(commit_seconds)} | (environment or {})
    return start_program([sys.executable, "-m", "omdpd", *words], settings, **more)


def omdpd(*words, seconds=PATIENCE, **more):
    """Run `omdpd words...` to its end: its exit code and what it said."""
    process = start(*words, **more)
    said, _ = process.communicate(timeout=seconds)
    return process.returncode, said


def end_all():
    """End every group of processes that was started here."""
    while STARTED:
        process = STARTED.pop()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def wait_until(happened, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def committed(out):
    """Whether some run has committed."""
    return any(out.glob("runs/*/commit.json"))
