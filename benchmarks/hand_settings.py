"""How near the tuner comes to settings that were found by hand: `python -m benchmarks.hand_settings [LEARNER ...]`.

The setting by hand, what training chose for docs/comparison.md, and the learner with its defaults play the same
instances, which none has seen (random worlds of the paper's size, `noisy`, K = 3000).  Printed are regret and strong
violation, what the learner is tuned for, and how much more that is than by hand, with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.comparison_check import BY_HAND, EPISODES, chosen, played
from omdpd.experiments.tuning import criterion
from omdpd.problem.arrays import Floats

SETTINGS = BY_HAND | {"CVOPS": "CVOPS(step_scale=2.0, cost_scale=0.02)"}
FIRST, SEEDS = 18_600, 24


def without_each(name: str, found: Sequence[Mapping[str, Any]]) -> Floats:
    """What a learner is tuned for, with each of the runs left out in turn."""
    return np.array([criterion(name, [*found[:i], *found[i + 1 :]]) for i in range(len(found))])


def error(apart: Floats) -> float:
    """The jackknife's standard error of a number, from what it is without each of the runs.

    >>> round(error(np.array([1.0, 2.0, 3.0])), 3)
    1.155
    """
    return float(np.sqrt((len(apart) - 1) / len(apart) * np.square(apart - apart.mean()).sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(SETTINGS))
    parser.add_argument("--first", type=int, default=FIRST, help="the number of the first instance")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many instances")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    for name in options.names or SETTINGS:
        hand: list[Mapping[str, Any]] = []
        for word, label in (("hand", SETTINGS[name]), ("tuned", chosen("noisy")[name]), ("default", name)):
            found = [played("random_dirichlet", "noisy", label, seed, EPISODES) for seed in seeds]
            hand = hand or found
            regret, violation = (np.mean([each[key] for each in found]) for key in ("regret", "violation"))
            more = criterion(name, found) - criterion(name, hand)
            chance = error(without_each(name, found) - without_each(name, hand))
            print(f"{word:8}{regret:8.0f} /{violation:6.0f}   more {more:+8.0f} ± {chance:4.0f}   {label}", flush=True)


if __name__ == "__main__":
    main()
