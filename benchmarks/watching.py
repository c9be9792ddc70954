"""What `omdpd watch` costs a study that is running, and how it serves many viewers.

    python benchmarks/watching.py [SECONDS] [VIEWERS]

A worker plays runs one after another in a folder of its own.  In turns of a few seconds the server with its viewers is
stopped and let go on (SIGSTOP, SIGCONT), so that both halves meet the same machine.  Three numbers come out: the
server's processor time as a share of the worker's in the same turns, which is what it can take away where both share a
core (they are pinned to one); the worker's episodes per second of its own processor time, with and without the server,
which sees shared caches; and its episodes per second by the clock, which on a busy machine is mostly noise.  What it
prints is the table of docs/report.md.
"""

from __future__ import annotations

import http.client
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

TURN = 5.0
EXPERIMENT = """\
episodes = 1000000
seeds = 1
worlds = [{ name = "random_dirichlet" }]
natures = [{ name = "noisy" }]
learners = [{ name = "ProximalOMDPD.cautious" }]
"""


def main(seconds: float, n_viewers: int) -> None:
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
        received = [0] * n_viewers
        for i in range(n_viewers):
            threading.Thread(target=_view, args=(port, received, i), daemon=True).start()
        time.sleep(8.0)  # the first drawing of everything is over
        (run,) = out.glob("runs/*")
        totals = {True: [0.0, 0, 0.0], False: [0.0, 0, 0.0]}
        spent = _cpu(server.pid)
        began = time.monotonic()
        on = True
        while time.monotonic() - began < seconds:
            os.kill(server.pid, signal.SIGCONT if on else signal.SIGSTOP)
            k, cpu, t = _episodes(run), _cpu(worker.pid), time.monotonic()
            while time.monotonic() - t < TURN:
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
    wall, per_cpu = ({on: row[1] / row[i] for on, row in totals.items()} for i in (0, 2))
    share = f"{100.0 * spent / totals[True][2]:.1f} % of the worker's"
    served = f"{sum(n > 0 for n in received)} of {n_viewers}, {sum(received) / 1e6:.1f} MB"
    lines = {
        f"the server's processor time with {n_viewers} viewers": share,
        "the worker's episodes per second of its processor time": _change(per_cpu),
        "its episodes per second by the clock": _change(wall),
        "viewers that received events": served,
    }
    print("| what | measured |\n|---|---|")
    for what, measured in lines.items():
        print(f"| {what} | {measured} |")


def _change(rates: dict[bool, float]) -> str:
    cost = 100.0 * (1.0 - rates[True] / rates[False])
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


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 120.0, int(sys.argv[2]) if len(sys.argv) > 2 else 20)
