"""Play the same runs with caches of every kind, and see that their bits do not depend on who compiled what.

    python -m benchmarks.cold_cache [--trials 20] [--episodes 1000] [--seed 0]

Some runs are played by a process that finds everything in the user's cache; then again as each trial says: with an
empty cache, with a random half of its files, with one for another processor than the process is told to compile for,
with -O and -OO, with no place to keep code, killed while it plays in the process that compiled and gone on with by one
that has another cache.  What they left (rows, values, states, policies, summaries) must be the same to the last bit.
Learners take turns, since each trial compiles what one of them needs: over a kernel, over a box, over a graph.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.chaos import compare
from omdpd.experiments.writer import COMMIT_VARIABLE
from omdpd.jit.cache import cache_folder, kernel_folder

SWEEP = """\
episodes = {episodes}
worlds = [{{ name = "random_dirichlet" }}]
natures = [{{ name = "noisy" }}, {{ name = "pool" }}]
learners = [{{ {learner} }}]
"""
LEARNERS = {
    "kernel": 'name = "ProximalOMDPD.standard"',
    "box": 'name = "OMDPD.tuned"',
    "graph": 'name = "ProximalOMDPD.standard", layout = "graph"',
}
FOREIGN = {"NUMBA_CPU_NAME": "x86-64-v3" if platform.machine() == "x86_64" else "generic", "NUMBA_CPU_FEATURES": ""}
# The least that a processor of its kind can do: no wide vectors, no fused products.
LEAST = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


class Way(NamedTuple):
    """What a process finds in its cache, and how it is called."""

    cache: str
    flags: tuple[str, ...] = ()
    processor: dict[str, str] | None = None
    jobs: int = 1


# A trial is one process, or two: the first is killed while it plays, the second goes on.
TRIALS: dict[str, tuple[Way, ...]] = {
    "empty": (Way("empty"),),
    "half": (Way("half"),),
    "killed, then warm": (Way("empty"), Way("warm")),
    "empty, -OO": (Way("empty", ("-OO",)),),
    "half, -O": (Way("half", ("-O",)),),
    "killed, then half": (Way("half"), Way("half")),
    "foreign": (Way("warm", processor=FOREIGN),),
    "indices without code": (Way("no code"),),
    "warm, -OO": (Way("warm", ("-OO",)),),
    "half, two workers": (Way("half", jobs=2),),
    "killed, then -OO": (Way("half", ("-OO",)), Way("empty")),
    "nowhere": (Way("nowhere"),),
    "the least processor": (Way("warm", processor=LEAST),),
}


class Bench(NamedTuple):
    """Where trials take place, and the chance that picks what is missing."""

    folder: Path
    rng: random.Random

    def prepared(self, kind: str, place: Path) -> Path:
        """A cache of a kind in a place of its own."""
        if kind == "nowhere":
            place.write_text("a file where the folder would be")
        elif kind != "empty":
            warm = kernel_folder()
            assert warm is not None, "the user's own cache is needed"
            place.mkdir(mode=0o700)
            shutil.copytree(warm, place / "kernels" / warm.name)
            files = sorted(place.rglob("*.nbc" if kind == "no code" else "*.nb[ic]"))
            gone = {"warm": [], "no code": files, "half": self.rng.sample(files, len(files) // 2)}[kind]
            for file in gone:
                file.unlink()
        return place

    def start(self, learner: str, way: Way, cache: Path, out: Path) -> subprocess.Popen[str]:
        """The runs of a learner, as a person starts them."""
        sweep = self.folder / f"{learner}.toml"
        command = [sys.executable, *way.flags, "-m", "omdpd", "run", str(sweep), "--out", str(out)]
        return subprocess.Popen(
            [*command, "--jobs", str(way.jobs)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
            env=os.environ | {"OMDPD_CACHE_DIR": str(cache), COMMIT_VARIABLE: "0.02"} | (way.processor or {}),
        )  # fmt: skip

    def play(self, learner: str, way: Way, cache: Path, out: Path) -> None:
        """The runs, to their end."""
        process = self.start(learner, way, cache, out)
        said, _ = process.communicate()
        assert process.returncode == 0, f"runs ended with {process.returncode}: {said}"

    def kill(self, learner: str, way: Way, cache: Path, out: Path) -> None:
        """The runs, killed while one is half done."""
        process = self.start(learner, way, cache, out)
        while process.poll() is None and not (half_done := _half_done(out)):
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert half_done, "all runs were finished before they were killed: ask for more episodes"

    def trial(self, name: str, learner: str, k: int) -> int:
        """Play as a trial says; how many runs were the same, all of them, or AssertionError."""
        *killed, last = TRIALS[name]
        out = self.folder / f"out-{k}"
        for n, way in enumerate(killed):
            self.kill(learner, way, self.prepared(way.cache, self.folder / f"cache-{k}-{n}"), out)
        self.play(learner, last, self.prepared(last.cache, self.folder / f"cache-{k}"), out)
        return compare(self.folder / f"calm-{learner}", out)


def _half_done(out: Path) -> bool:
    begun, ended = (len([*out.glob(f"runs/*/{name}.json")]) for name in ("commit", "summary"))
    return begun > ended


def trials(n: int, episodes: int, seed: int, folder: Path, say: Callable[[str], None]) -> int:
    """Play `n` trials, in turn; the number of runs that were compared."""
    bench, compared = Bench(folder, random.Random(seed)), 0
    for learner, words in LEARNERS.items():
        (folder / f"{learner}.toml").write_text(SWEEP.format(episodes=episodes, learner=words))
        for out in ("first", "calm"):  # the first compiles what the user's cache does not have
            bench.play(learner, Way("warm"), cache_folder(), folder / f"{out}-{learner}")
        compared += compare(folder / f"calm-{learner}", folder / f"first-{learner}")
    names, learners = list(TRIALS), list(LEARNERS)
    for k in range(n):
        name, learner, began = names[k % len(names)], learners[k % len(learners)], time.monotonic()
        compared += bench.trial(name, learner, k)
        say(f"{k + 1:3d} {name} ({learner}): bit-identical, {time.monotonic() - began:.0f} s")
    return compared


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--trials", type=int, default=20)
    words.add_argument("--episodes", type=int, default=1000)
    words.add_argument("--seed", type=int, default=0, help="of which files are missing")
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="omdpd-cold-", ignore_cleanup_errors=True) as folder:
        runs = trials(given.trials, given.episodes, given.seed, Path(folder), lambda line: print(line, flush=True))
    print(f"{given.trials} trials and {runs} runs bit-identical with those of a process that compiled nothing")


if __name__ == "__main__":
    main()
