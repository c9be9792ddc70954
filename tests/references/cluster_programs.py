"""A real Dask cluster on the loopback address, started from its own command line; `end_all` ends it."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

from benchmarks.chaos import compare
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.files import load_experiment
from tests.references.real_commands import (
    PATIENCE,
    committed,
    omdpd,
    start,
    start_program,
    wait_until,
    write_experiment,
)

BIN = Path(sys.executable).parent
COMMIT = {"OMDPD_COMMIT_SECONDS": "0.1"}


class Cluster(NamedTuple):
    """Where a cluster answers, the process that leads it (the scheduler), and those of its other parts."""

    address: str
    leader: Popen
    others: list[Popen]


@contextmanager
def dask_cluster(folder):
    """A scheduler with two workers."""
    where = folder / "scheduler.json"
    quiet = ("--no-dashboard", "--host", "127.0.0.1")
    log = open(folder / "dask.log", "w")  # noqa: SIM115  (the programs write into it as long as they live)
    leader = start_program([BIN / "dask", "scheduler", "--port", "0", "--scheduler-file", where, *quiet], stdout=log)
    wait_until(lambda: where.exists() and where.stat().st_size > 0)
    words = [BIN / "dask", "worker", "--scheduler-file", where, "--no-nanny", "--nthreads", "1", *quiet]
    workers = [start_program([*words, "--local-directory", folder / f"worker-{i}"], COMMIT, stdout=log) for i in "ab"]
    try:
        yield Cluster(json.loads(where.read_text())["address"], leader, workers)
    finally:
        log.close()


def sweep_with_a_loss(folder, place, address, lose, *options):
    """Run a sweep on a cluster, lose a part of it after the first commits, and compare with runs in this process."""
    file, out = write_experiment(folder, episodes=1200, seeds=4), folder / "out"
    words = ("run", file, "--out", out, "--on", place, "--address", address, *options)
    process = start(*words, commit_seconds=0.1)
    wait_until(lambda: committed(out) or process.poll() is not None)
    lose()
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    run_experiment(load_experiment(file), folder / "calm", InProcess())
    assert compare(folder / "calm", out) == 4
    return said


def sweep_without_a_leader(folder, place, cluster):
    """Run a sweep on a cluster, kill what leads it after the first commits; the same command goes on elsewhere."""
    file, out = write_experiment(folder, episodes=1200, seeds=4), folder / "out"
    words = ("run", file, "--out", out)
    process = start(*words, "--on", place, "--address", cluster.address, commit_seconds=0.1)
    wait_until(lambda: committed(out) or process.poll() is not None)
    os.killpg(cluster.leader.pid, signal.SIGKILL)
    said, _ = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in said
    assert not list(out.glob("runs/*/error.json"))
    code, more = omdpd(*words, "--jobs", 1)
    assert code == 0, more
    run_experiment(load_experiment(file), folder / "calm", InProcess())
    assert compare(folder / "calm", out) == 4
    return process.returncode, said
