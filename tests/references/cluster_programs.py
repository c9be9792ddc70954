"""Real clusters on the loopback address, started from their own command lines; `end_all` ends them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

from real_commands import committed, omdpd, start, start_program, wait_until, write_experiment

from chaos import compare
from omdpd.experiments.executors import InProcess
from omdpd.experiments.experiment import run_experiment
from omdpd.experiments.files import load_experiment

BIN = Path(sys.executable).parent
# Ray's own token is for clusters that others can reach; this one listens on the loopback address only.
RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
COMMIT = {"OMDPD_COMMIT_SECONDS": "0.1"}


class Cluster(NamedTuple):
    """Where a cluster answers, the process that leads it (scheduler, head), and those of its other parts."""

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


@contextmanager
def ray_cluster(folder):
    """A head with one processor, and a second node with another."""
    port = free_port()
    # Sockets live in there, whose paths must be short.
    scratch = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    log = open(folder / "ray.log", "w")  # noqa: SIM115
    words = [BIN / "ray", "start", "--node-ip-address", "127.0.0.1", "--num-cpus", "1", "--block"]
    small = ["--object-store-memory", "100000000"]
    head = ["--head", "--port", port, "--include-dashboard", "false", "--temp-dir", scratch]
    leader = start_program([*words, *small, *head], RAY | COMMIT, stdout=log)
    try:
        wait_until(lambda: listens(port))
        second = start_program([*words, *small, "--address", f"127.0.0.1:{port}"], RAY | COMMIT, stdout=log)
        yield Cluster(f"127.0.0.1:{port}", leader, [second])
    finally:
        log.close()
        shutil.rmtree(scratch, ignore_errors=True)


def sweep_with_a_loss(folder, place, address, lose, *options):
    """Run a sweep on a cluster, lose a part of it after the first commits, and compare with runs in this process."""
    file, out = write_experiment(folder, episodes=1200, seeds=4), folder / "out"
    words = ("run", file, "--out", out, "--on", place, "--address", address, *options)
    process = start(*words, commit_seconds=0.1, environment=RAY)
    wait_until(lambda: committed(out) or process.poll() is not None)
    lose()
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    run_experiment(load_experiment(file), folder / "calm", InProcess())
    assert compare(folder / "calm", out) == 4
    return said


def sweep_without_a_leader(folder, place, cluster):
    """Run a sweep on a cluster, kill what leads it after the first commits; the same command goes on elsewhere."""
    file, out = write_experiment(folder, episodes=1200, seeds=4), folder / "out"
    words = ("run", file, "--out", out)
    process = start(*words, "--on", place, "--address", cluster.address, commit_seconds=0.1, environment=RAY)
    wait_until(lambda: committed(out) or process.poll() is not None)
    os.killpg(cluster.leader.pid, signal.SIGKILL)
    said, _ = process.communicate(timeout=240)
    assert "Traceback" not in said
    assert not list(out.glob("runs/*/error.json"))
    code, more = omdpd(*words, "--jobs", 1)
    assert code == 0, more
    run_experiment(load_experiment(file), folder / "calm", InProcess())
    assert compare(folder / "calm", out) == 4
    return process.returncode, said


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port):
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0
