"""What an episode of thousands of states costs: ``python -m benchmarks.large_episodes [--json FILE] [--only TEXT]``.

Every line is played in a process of its own, whose memory is then known: costs met on the way, noisy rewards, with the
processor time of `policy` and `update` alone, the median of the last twenty episodes.  Planning is timed too, as the
best of three, and a world of the paper's size is the first line.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.kept import keep
from omdpd.gym import from_gymnasium
from omdpd.learners import ProximalOMDPD
from omdpd.natures import NATURES
from omdpd.play.loop import play, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.graph import Graph
from omdpd.solvers.planning import best_plan
from omdpd.worlds import WORLDS
from omdpd.worlds.facts import LARGE

SEED, LAST = 7500, 20


@dataclass(frozen=True)
class Line:
    """Who plays where: a preset of `ProximalOMDPD`, whether steps share their counts, and how many episodes."""

    world: str
    preset: str
    pooled: bool
    episodes: int

    @property
    def name(self) -> str:
        return f"{self.world}, `{self.preset}`" + (" pooled" if self.pooled else "")


@dataclass(frozen=True)
class Found:
    """What was measured: rows of the graph at the end (None of a table), milliseconds, and megabytes of the process."""

    name: str
    shape: tuple[int, int, int]
    episodes: int
    rows: int | None
    planned: float
    each: float
    memory: float


LINES = (
    Line("paper's size", "cautious", False, 400),
    Line("paper's size", "standard", False, 400),
    Line("Taxi", "cautious", False, 100),
    Line("Taxi", "cautious", True, 200),
    Line("Taxi", "standard", False, 150),
    Line("queue", "cautious", False, 200),
    Line("grid", "cautious", False, 300),
    Line("grid", "cautious", True, 300),
)


def world_of(name: str) -> CMDP:
    """Taxi of Gymnasium with an end, nine units of fuel; a random world; or a large one of ours."""
    if name == "Taxi":
        import gymnasium

        taxi = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"
        return from_gymnasium(taxi, 15, lambda s, a, t: float(a < 4), 9.0)
    if name in LARGE:
        return WORLDS[name](**LARGE[name][0])
    return WORLDS["random_dirichlet"](np.random.default_rng(SEED))


class Timed:
    """A learner, and the processor time of its verbs, episode by episode."""

    def __init__(self, learner: ProximalOMDPD) -> None:
        self.learner, self.policies, self.updates = learner, [], []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def policy(self, state: Any) -> Any:
        """The learner's, timed."""
        return _timed(lambda: self.learner.policy(state), self.policies)

    def update(self, state: Any, feedback: Any) -> Any:
        """The learner's, timed."""
        return _timed(lambda: self.learner.update(state, feedback), self.updates)


def _timed(call: Callable[[], Any], spent: list[float]) -> Any:
    began = process_time()
    found = call()
    spent.append(process_time() - began)
    return found


def measure(line: Line, episodes: int) -> Found:
    """Play one line, in this process."""
    cmdp = world_of(line.world)
    spent: list[float] = []
    for _ in range(4):  # the first one may compile
        _timed(lambda: best_plan(cmdp.laws, cmdp.initial, cmdp.reward, cmdp.excess), spent)
    timed = Timed(getattr(ProximalOMDPD, line.preset)(stationary=line.pooled))
    scene = Scene(cmdp, NATURES["noisy"](cmdp, SEED), timed, episodes, {})
    start = start_of_run(scene)
    for _, _, end in play(scene, start, np.random.default_rng(SEED), lambda k: False):
        start = end
    each = np.median([sum(pair) for pair in zip(timed.policies[-LAST:], timed.updates[-LAST:], strict=True)])
    region = timed.learner.report(start.learner_state).believed.region
    rows = region.n_rows if isinstance(region, Graph) else None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    H, S, A = cmdp.shape
    return Found(line.name, (S, A, H), episodes, rows, 1e3 * min(spent[1:]), 1e3 * float(each), memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the lines with this in their name")
    parser.add_argument("--episodes", type=int, help="so many for every line")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--line", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.line is not None:
        line = LINES[given.line]
        print(json.dumps(asdict(measure(line, given.episodes or line.episodes))))
        return
    found = []
    for i, line in enumerate(LINES):
        if given.only in line.name:
            words = [sys.executable, "-m", "benchmarks.large_episodes", "--line", str(i)]
            words += [] if given.episodes is None else ["--episodes", str(given.episodes)]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
            found.append(json.loads(done.stdout))
            print(done.stdout.strip(), flush=True)
    keep(given.json, found)


if __name__ == "__main__":
    main()
