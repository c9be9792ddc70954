"""How near the tuner comes to settings that were found by hand: `python -m benchmarks.hand_settings [LEARNER ...]`.

Each learner is tuned on the training instances of a comparison (random worlds of the paper's size, `noisy`, K = 3000).
What was chosen, the setting by hand and the learner as it comes then play the same instances, which neither has seen.
One process; about ten minutes for all five.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.comparison_check import BY_HAND, EPISODES
from omdpd import run
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import LearnerSpec, RunSpec
from omdpd.experiments.tuning import N_TRIES, criterion, tuned

SETTINGS = BY_HAND | {"CVOPS": "CVOPS(step_scale=2.0, cost_scale=0.02)"}
FIRST, SEEDS = 16_100, 24


def played(each: RunSpec) -> dict[str, Any]:
    """The scores of a run, with its name and length."""
    rng = np.random.default_rng(np.random.SeedSequence(each.seed, spawn_key=(0,)))
    history = run(each.world.build(rng), each.learner.build(), each.nature.name, each.episodes, each.seed)
    return {"run": each.id, "episodes": each.episodes, **asdict(history.scores)}


def play(wanted: Iterable[RunSpec]) -> Iterator[Mapping[str, Any]]:
    """The runs one after the other."""
    return map(played, wanted)


def as_spec(registry: Registry, label: str) -> LearnerSpec:
    """A learner from its label with settings."""
    name, _, inside = label.removesuffix(")").partition("(")
    settings = {key: float(value) for key, _, value in (part.partition("=") for part in inside.split(", ") if part)}
    spec: LearnerSpec = registry.spec("learners", name, settings)
    return spec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(SETTINGS))
    parser.add_argument("--tries", type=int, default=N_TRIES)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    registry = Registry.installed()
    world, nature = registry.spec("worlds", "random_dirichlet"), registry.spec("natures", "noisy")
    for name in options.names or SETTINGS:
        first = RunSpec(world, nature, registry.spec("learners", name), options.episodes, 0)
        best = tuned([first], options.tries, lambda wanted: list(play(wanted))).runs[0].learner
        for word, learner in (("tuned", best), ("hand", as_spec(registry, SETTINGS[name])), ("default", first.learner)):
            seeds = range(FIRST, FIRST + options.seeds)
            found = [played(RunSpec(world, nature, learner, options.episodes, seed)) for seed in seeds]
            regret, violation = (np.mean([each[key] for each in found]) for key in ("regret", "violation"))
            loss = criterion(name, found)
            print(f"{word:8}{regret:8.0f} /{violation:6.0f}   criterion {loss:8.0f}   {learner.label}", flush=True)


if __name__ == "__main__":
    main()
