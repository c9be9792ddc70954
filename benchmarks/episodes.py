"""What a whole episode costs, and how much of it the mirror steps are: ``python -m benchmarks.episodes``.

With ``--against PATH`` (a checkout of an older version) both versions play the same runs, taking turns in one command,
so that the machine's other work falls on both; trust the ratios more than the times.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.episode_worker import learner_of
from benchmarks.kept import keep
from benchmarks.solvers.problems import steps_of_run
from omdpd.natures import NATURES
from omdpd.play.scene import Scene
from omdpd.worlds import random_dirichlet

HERE = Path(__file__).parent
# Ours, the paper's, and three rivals: penalised mirror descent without a dual step, with one, and a linear program.
LEARNERS = (
    "proximal:ProximalOMDPD.standard",
    "proximal:ProximalOMDPD.cautious",
    "omdpd:OMDPD.tuned",
    "sinha_vaze:SinhaVaze",
    "optprimaldual:OptPrimalDual",
    "greedy_lp:GreedyLP",
)
NATURE_NAMES = ("fixed", "noisy", "pool")
# The paper's sizes, on an instance that nothing was tuned on.
S, A, H, SEED = 5, 3, 5, 7500


@dataclass(frozen=True)
class Episode:
    """One learner and nature: microseconds per episode, those of its mirror steps, and how many times older ones.

    `steps_each` is how many mirror steps an episode takes, where they can be read off the learner's states.
    """

    learner: str
    nature: str
    microseconds: float
    steps_each: float | None
    steps: float | None
    times_steps: float | None
    before: float | None
    ratio: float | None


class Version:
    """A process of a worker, a file beside this one, with the package in a folder."""

    def __init__(self, source: Path, worker: str = "episode_worker.py") -> None:
        environment = os.environ | {"PYTHONPATH": str(source)}
        command = [sys.executable, str(HERE / worker)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )

    def ask(self, request: dict[str, Any]) -> Any:
        """What the worker answers: of the usual one seconds per episode, or None."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measured(versions: list[Version], learner: str, nature: str, episodes: int, repeats: int) -> list[float | None]:
    """Median microseconds per episode of every version, taking turns."""
    cmdp = random_dirichlet.make(np.random.default_rng(SEED), S, A, H)
    problem = {name: getattr(cmdp, name).tolist() for name in ("transition", "reward", "cost", "budget", "initial")}
    request = {"learner": learner, "nature": nature, "problem": problem, "seed": 0, "short": 50, "long": 60}
    if versions[0].ask(request) is None:  # compiled by now, and not timed
        return [None] * len(versions)
    request |= {"short": episodes // 10, "long": episodes + episodes // 10}
    found = [[version.ask(request) for version in versions] for _ in range(repeats)]
    return [None if None in spent else 1e6 * float(np.median(spent)) for spent in zip(*found, strict=True)]


def time_steps(learner: str, nature: str, episodes: int) -> tuple[float, float] | tuple[None, None]:
    """How many mirror steps an episode takes, and their microseconds, taken again one after another; None if unknown.

    Of `ProximalOMDPD` it is the step of every episode; the second one, after a surprise, is left out.
    """
    if not learner.startswith(("proximal:", "omdpd:")):
        return None, None
    cmdp = random_dirichlet.make(np.random.default_rng(SEED), S, A, H)
    steps = steps_of_run(Scene(cmdp, NATURES[nature](cmdp, 0), learner_of(learner), episodes, {}), 0)
    spent = []
    for _ in range(3):
        began = process_time()
        for step in steps:
            step.solve()
        spent.append(process_time() - began)
    return len(steps) / episodes, 1e6 * float(np.median(spent)) / episodes


def rows(against: Path | None, learners: list[str], episodes: int, repeats: int) -> list[Episode]:
    """Every learner and nature that takes it."""
    here = HERE.parent / "src"
    versions = [Version(here)] + ([] if against is None else [Version(against / "src")])
    found = []
    for learner in learners:
        for nature in NATURE_NAMES:
            now, *before = measured(versions, learner, nature, episodes, repeats)
            if now is None:
                continue
            (each, steps), then = time_steps(learner, nature, episodes), before[0] if before else None
            times, ratio = now / steps if steps else None, now / then if then else None
            found.append(Episode(learner.partition(":")[2], nature, now, each, steps, times, then, ratio))
    for version in versions:
        version.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="a checkout of an older version, to play the same runs")
    parser.add_argument("--learners", default=",".join(LEARNERS), help="module:Class.preset, separated by commas")
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    found = rows(options.against, options.learners.split(","), options.episodes, options.repeats)
    shown = Table(title=f"one episode, S{S} A{A} H{H}, CPU time of one core", box=box.SIMPLE_HEAD)
    for name in ("learner", "nature", "us", "mirror steps, us", "x steps", "before, us", "x before"):
        shown.add_column(name, justify="left" if name in ("learner", "nature") else "right")
    for row in found:
        times = (row.microseconds, row.steps, row.times_steps, row.before, row.ratio)
        digits = (0, 0, 2, 0, 3)
        cells = ["" if each is None else f"{each:.{n}f}" for each, n in zip(times, digits, strict=True)]
        shown.add_row(row.learner, row.nature, *cells)
    Console(width=120).print(shown)
    keep(options.json, [asdict(row) for row in found])


if __name__ == "__main__":
    main()
