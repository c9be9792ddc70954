"""What `omdpd watch` costs a study that is running, and how it serves many viewers.

    python -m benchmarks.watching [SECONDS] [VIEWERS] [--turn SECONDS] [--settle SECONDS]

A worker plays runs one after another in a folder of its own.  In turns of a few seconds the server with its viewers is
stopped and let go on (SIGSTOP, SIGCONT), so that both halves meet the same machine.  Three numbers come out: the
server's processor time as a share of the worker's in the same turns, which is what it can take away where both share a
core (they are pinned to one); the worker's episodes per second of its own processor time, with and without the server,
which sees shared caches; and its episodes per second by the clock, which on a busy machine is mostly noise.  What it
prints is the table of docs/report.md; with short turns the numbers mean nothing, but viewers are served.
"""

from __future__ import annotations

import argparse
import http.client
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

# How long viewers may wait for their first event, in seconds: a busy machine starts a server slowly.
PATIENCE = 30.0
EXPERIMENT = """\
episodes = 1000000
seeds = 1
worlds = [{ name = "random_dirichlet" }]
natures = [{ name = "noisy" }]
learners = [{ name = "ProximalOMDPD.cautious" }]
"""


def measure(seconds: float, n_viewers: int, turn: float, settle: float) -> None:
    """Measure and print."""
    core = {min(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "study.toml").write_text(EXPERIMENT)
        out = folder / "out"
        worker = _started(["run", folder / "study.toml", "--out", out, "--jobs", "1"], core)
        while not list(out.glob("runs/*/commit.json")):
            time.sleep(0.2)
        server = _started(["watch", out, "--port", "0"], core)
        port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
        received, asked = [0] * n_viewers, time.monotonic()
        for i in range(n_viewers):
            threading.Thread(target=_view, args=(port, received, i), daemon=True).start()
        while not all(received) and time.monotonic() - asked < PATIENCE:
            time.sleep(0.1)
        time.sleep(settle)  # the first drawing of everything is over
        (run,) = out.glob("runs/*")
        totals = {True: [0.0, 0, 0.0], False: [0.0, 0, 0.0]}
        spent = _cpu(server.pid)
        began = time.monotonic()
        on = True
        while time.monotonic() - began < seconds:
            os.kill(server.pid, signal.SIGCONT if on else signal.SIGSTOP)
            k, cpu, t = _episodes(run), _cpu(worker.pid), time.monotonic()
            while time.monotonic() - t < turn:
                time.sleep(0.05)
            # Whole commits are counted: from the last one before to the last one in this turn.
            (k0, t0), (k1, t1) = k, _episodes(run)
            totals[on][0] += t1 - t0
            totals[on][1] += k1 - k0
            totals[on][2] += _cpu(worker.pid) - cpu
            on = not on
        os.kill(server.pid, signal.SIGCONT)
        spent = _cpu(server.pid) - spent
        for process in (server, worker):
            process.terminate()
            process.wait()
    # A turn so short that no commit fell into it says nothing.
    wall, per_cpu = ({on: row[1] / row[i] if row[i] else math.nan for on, row in totals.items()} for i in (0, 2))
    share = f"{100.0 * spent / max(totals[True][2], 0.01):.1f} % of the worker's"
    lines = {
        f"the server's processor time with {n_viewers} viewers": share,
        "the worker's episodes per second of its processor time": _change(per_cpu),
        "its episodes per second by the clock": _change(wall),
        "viewers that received events": f"{sum(n > 0 for n in received)} of {n_viewers}",
        "what they received together": f"{sum(received) / 1e6:.1f} MB",
    }
    print("| what | measured |\n|---|---|")
    for what, measured in lines.items():
        print(f"| {what} | {measured} |")


def _change(rates: dict[bool, float]) -> str:
    cost = 100.0 * (1.0 - rates[True] / rates[False]) if rates[False] else math.nan
    return f"{rates[True]:.0f} with the server, {rates[False]:.0f} without, cost {cost:+.1f} %"


def _started(words: list[object], core: set[int]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "omdpd", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | {"OMDPD_COMMIT_SECONDS": "0.5", "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: os.sched_setaffinity(0, core), start_new_session=True,
    )  # fmt: skip


def _episodes(run: Path) -> tuple[int, float]:
    """Episodes of the last commit, and when it was made."""
    file = run / "commit.json"
    while True:
        before = file.stat().st_mtime
        found = re.search(r'"episodes": (\d+)', file.read_text())
        if found is not None and file.stat().st_mtime == before:
            return int(found[1]), before


def _view(port: int, received: list[int], i: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    while line := answer.readline():
        received[i] += len(line)


def _cpu(pid: int) -> float:
    """Seconds of processor time of a process and of those that it started."""
    total = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            if int(fields[3]) == pid:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=120.0)
    parser.add_argument("viewers", type=int, nargs="?", default=20)
    parser.add_argument("--turn", type=float, default=5.0, help="how long the server goes on, or is stopped")
    parser.add_argument("--settle", type=float, default=8.0, help="how long it may draw before anything is measured")
    given = parser.parse_args()
    measure(given.seconds, given.viewers, given.turn, given.settle)


if __name__ == "__main__":
    main()
