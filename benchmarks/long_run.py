"""Runs that last, as `omdpd run` plays them: ``python -m benchmarks.long_run [K ...]`` (1e4, 1e5 and 1e6 episodes).

The default learner in a random world of the paper's size with noisy costs, instance 6000; processor time, memory (the
largest of the command's processes) and the size of its folder of results, with what the run recorded.  What it prints
is the table of docs/performance.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from omdpd.report.results import summaries

EXPERIMENT = """\
episodes = {episodes}
seeds = 1
first_seed = 6000
policies = "none"
worlds = [{{ name = "random_dirichlet" }}]
natures = [{{ name = "noisy" }}]
learners = [{{ name = "ProximalOMDPD.standard" }}]
"""
HEAD = "| K | processor time, s | memory, MB | on disk, MB | regret | strong violation | failed solves | largest gap |"


def line(episodes: int) -> str:
    """Play one run with the command, and read what it left."""
    with tempfile.TemporaryDirectory() as scratch:
        file, out = Path(scratch) / "long.toml", Path(scratch) / "out"
        file.write_text(EXPERIMENT.format(episodes=episodes))
        words = [sys.executable, "-m", "omdpd", "run", str(file), "--jobs", "1", "--out", str(out)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)  # with its worker's, which it has waited for
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"`{' '.join(words[2:])}` ended with {process.returncode}")
        (run,) = summaries(out)
        disk = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    cells = (
        f"{episodes}", f"{used.ru_utime + used.ru_stime:.1f}", f"{used.ru_maxrss / 1024.0:.0f}", f"{disk / 1e6:.1f}",
        f"{run['regret']:.0f}", f"{run['violation']:.1f}", f"{run['failures']}", f"{run['max_gap']:.0e}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    print(HEAD + "\n|---|" + 7 * "---:|")
    for word in sys.argv[1:] or ("10000", "100000", "1000000"):
        print(line(int(word)), flush=True)


if __name__ == "__main__":
    main()
