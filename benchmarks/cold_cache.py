"""Play the same runs with caches of every kind, and see that their bits do not depend on who compiled what.

    python benchmarks/cold_cache.py [--trials 20] [--episodes 1000] [--seed 0]

A sweep is played by a process that finds everything in the cache; then again as each trial says: with an empty cache,
with a random half of its files, with code for another processor in it, with -O and -OO, with no place to keep code, for
another processor, killed while it plays in the process that compiled and gone on with by one that has another cache.
Everything that the runs left (rows, values, states, policies, summaries) must be the same to the last bit.
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

from build_wheel import PROCESSORS
from chaos import compare
from omdpd.experiments.writer import COMMIT_VARIABLE

SWEEP = """\
episodes = {episodes}
worlds = [{{ name = "random_dirichlet" }}]
natures = [{{ name = "noisy" }}, {{ name = "pool" }}]
learners = [
  {{ name = "ProximalOMDPD.standard" }},
  {{ name = "ProximalOMDPD.standard", layout = "graph" }},
  {{ name = "OMDPD.tuned" }},
]
"""
NAME, FEATURES = PROCESSORS.get(platform.machine(), ("generic", ""))
FOREIGN = {"NUMBA_CPU_NAME": NAME, "NUMBA_CPU_FEATURES": FEATURES}
# The least that a processor of the kind can do: no wide vectors, no fused products.
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
    "foreign": (Way("foreign"),),
    "indices without code": (Way("no code"),),
    "warm, -OO": (Way("warm", ("-OO",)),),
    "half, two workers": (Way("half", jobs=2),),
    "killed, then -OO": (Way("half", ("-OO",)), Way("empty")),
    "nowhere": (Way("nowhere"),),
    "the least processor": (Way("empty", processor=LEAST),),
}


class Bench(NamedTuple):
    """Where trials take place: the sweep, the full cache, and what it left."""

    folder: Path
    sweep: Path
    rng: random.Random

    def prepared(self, kind: str, place: Path) -> Path:
        """A cache of a kind in a place of its own."""
        warm = self.folder / "warm"
        if kind == "nowhere":
            place.write_text("a file where the folder would be")
        elif kind == "foreign":
            shutil.copytree(self.folder / "foreign", place)
        elif kind != "empty":
            shutil.copytree(warm, place)
            files = sorted(place.rglob("*.nbc" if kind == "no code" else "*.nb[ic]"))
            gone = {"warm": [], "no code": files, "half": self.rng.sample(files, len(files) // 2)}[kind]
            for file in gone:
                file.unlink()
        return place

    def start(self, way: Way, cache: Path, out: Path) -> subprocess.Popen[str]:
        """The sweep, as a person starts it."""
        command = [sys.executable, *way.flags, "-m", "omdpd", "run", str(self.sweep), "--out", str(out)]
        return subprocess.Popen(
            [*command, "--jobs", str(way.jobs)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
            env=os.environ | {"OMDPD_CACHE_DIR": str(cache), COMMIT_VARIABLE: "0.02"} | (way.processor or {}),
        )  # fmt: skip

    def play(self, way: Way, cache: Path, out: Path) -> None:
        """The sweep to its end."""
        process = self.start(way, cache, out)
        said, _ = process.communicate()
        assert process.returncode == 0, f"a sweep ended with {process.returncode}: {said}"

    def kill(self, way: Way, cache: Path, out: Path) -> None:
        """The sweep, killed while a run is half done."""
        process = self.start(way, cache, out)
        while process.poll() is None and not (half_done := _half_done(out)):
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert half_done, "the sweep was finished before it was killed: ask for more episodes"

    def trial(self, name: str, k: int) -> int:
        """Play as a trial says; how many runs were the same, all of them, or AssertionError."""
        *killed, last = TRIALS[name]
        out = self.folder / f"out-{k}"
        for n, way in enumerate(killed):
            self.kill(way, self.prepared(way.cache, self.folder / f"cache-{k}-{n}"), out)
        self.play(last, self.prepared(last.cache, self.folder / f"cache-{k}"), out)
        return compare(self.folder / "calm", out)


def _half_done(out: Path) -> bool:
    begun, ended = (len([*out.glob(f"runs/*/{name}.json")]) for name in ("commit", "summary"))
    return begun > ended


def trials(n: int, episodes: int, seed: int, folder: Path, say: Callable[[str], None]) -> int:
    """Play `n` trials, in turn; the number of runs that were compared."""
    bench = Bench(folder, folder / "sweep.toml", random.Random(seed))
    bench.sweep.write_text(SWEEP.format(episodes=episodes))
    for name, processor in (("warm", None), ("foreign", FOREIGN)):
        bench.play(Way("empty", processor=processor), folder / name, folder / f"first-{name}")
    bench.play(Way("warm"), folder / "warm", folder / "calm")
    compared = sum(compare(folder / "calm", folder / f"first-{name}") for name in ("warm", "foreign"))
    say(f"compiled here and for another processor: {compared} runs bit-identical with warm ones")
    names = list(TRIALS)
    for k in range(n):
        name, began = names[k % len(names)], time.monotonic()
        compared += bench.trial(name, k)
        say(f"{k + 1:3d} {name}: bit-identical, {time.monotonic() - began:.0f} s")
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
