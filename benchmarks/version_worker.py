"""A process of `versions.py` that plays episodes of one version of the package, also an older one.

A line in is a request, a line out its answer, both JSON.
"""

from __future__ import annotations

import gc
import json
import sys
from time import process_time
from typing import Any

import numpy as np

from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import NATURES
from omdpd.natures.protocol import world_of
from omdpd.play import loop
from omdpd.play.scene import Scene
from omdpd.play.simulate import play_episode
from omdpd.solvers.sweeps import occupancy_under
from omdpd.worlds import random_dirichlet

# What version 0.2 called otherwise.
BEGIN = getattr(loop, "start_of_run", None) or loop.first  # type: ignore[attr-defined]
BATCHES = getattr(loop, "batches", None) or loop.stretches  # type: ignore[attr-defined]
WAYS = {"verbs": "by_verbs", "batches": "in_batches", "loop": "in_loop"}


class Played:
    """A run of a request by the verbs: true values, and everything that the learner was shown."""

    def __init__(self, asked: dict[str, Any]) -> None:
        sizes = (asked[name] for name in ("S", "A", "H"))
        self.cmdp = random_dirichlet.make(np.random.default_rng(asked["seed"]), *sizes, n_constraints=asked["I"])
        self.nature, self.learner = NATURES[asked["nature"]](self.cmdp, 3), learner_of(asked)
        self.episodes: int = asked["episodes"]
        self.setting = self.cmdp.setting(self.episodes if asked["known"] else None, self.nature.feedback)
        self.values: list[float] = []
        self.shown: list[Any] = []
        rng, state = np.random.default_rng(23), self.learner.init(self.setting)
        for k in range(self.episodes):
            policy, here = self.learner.policy(state), world_of(self.nature, self.cmdp, k)
            occupancy = occupancy_under(here.laws, policy, here.initial)
            round_ = self.nature.draw(k, occupancy)
            self.values.append(float(np.vdot(round_.reward, occupancy)))
            self.shown.append(play_episode(here, round_, policy, self.nature.feedback, rng))
            state = self.learner.update(state, self.shown[-1])

    def by_verbs(self) -> None:
        """The same again, without the world."""
        state = self.learner.init(self.setting)
        for feedback in self.shown:
            self.learner.policy(state)
            state = self.learner.update(state, feedback)

    def in_batches(self) -> list[float]:
        """The same again, as a run is played; its true values."""
        played = BATCHES(self._scene, BEGIN(self._scene), np.random.default_rng(23), lambda k: True)
        return [value for part in played for value in part.values]

    def in_loop(self) -> list[float]:
        """The same again, as the loop plays it one by one; its true values, summed as those of batches are."""
        played = loop.play(self._scene, BEGIN(self._scene), np.random.default_rng(23), lambda k: True)
        return [value for value, _, _ in played]

    @property
    def _scene(self) -> Scene:
        return Scene(self.cmdp, self.nature, self.learner, self.episodes, {})


def learner_of(asked: dict[str, Any]) -> Any:
    """The preset of a request; version 0.2 called `settling` the standard."""
    made = getattr(ProximalOMDPD, asked["preset"], None) or ProximalOMDPD.standard
    return made(**asked["settings"])


def main() -> None:
    """Answer requests: values of a run, or seconds of its episodes; None where the nature needs another world."""
    kept: dict[str, Played] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        way, key = asked.pop("way"), json.dumps(asked)
        try:
            if key not in kept:
                kept = {key: Played(asked)}
        except ValueError:
            print("null", flush=True)
            continue
        run = kept[key]
        gc.collect()
        began = process_time()
        found = run.values if way == "values" else getattr(run, WAYS[way])()
        spent = (process_time() - began) / run.episodes
        print(json.dumps({"seconds": spent, "values": found}), flush=True)


if __name__ == "__main__":
    main()
