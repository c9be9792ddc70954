"""How near the tuner comes to settings that were found by hand: `python -m benchmarks.hand_settings [LEARNER ...]`.

The setting by hand and what training chose for docs/comparison.md play the instances of that page, which chose neither
(random worlds of the paper's size, `noisy`).  Printed are regret / strong violation, and how much more the tuned
learner has than the one by hand of what it is tuned for, with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.comparison_check import BY_HAND, EPISODES, chosen, played
from omdpd.experiments.tuning import STRICT, criterion
from omdpd.problem.arrays import Floats

SETTINGS = BY_HAND | {"CVOPS": "CVOPS(step_scale=2.0, cost_scale=0.02)"}
FIRST, SEEDS = 0, 24
HEADS = ("learner", "tuned for", "by hand", "tuned", "tuned - by hand")


def without_each(name: str, found: Sequence[Mapping[str, Any]]) -> Floats:
    """What a learner is tuned for, with each of the runs left out in turn."""
    return np.array([criterion(name, [*found[:i], *found[i + 1 :]]) for i in range(len(found))])


def error(apart: Floats) -> float:
    """The jackknife's standard error of a number, from what it is without each of the runs.

    >>> round(error(np.array([1.0, 2.0, 3.0])), 3)
    1.155
    """
    return float(np.sqrt((len(apart) - 1) / len(apart) * np.square(apart - apart.mean()).sum()))


def line(name: str, seeds: Sequence[int], episodes: int) -> str:
    """A learner by hand and tuned, and how far the two are apart: a row of the table."""
    labels = SETTINGS[name], chosen("noisy")[name]
    hand, tuned = ([played("random_dirichlet", "noisy", label, seed, episodes) for seed in seeds] for label in labels)
    cells = [
        " / ".join(f"{np.mean([each[key] for each in found]):.0f}" for key in ("regret", "violation"))
        for found in (hand, tuned)
    ]
    more = criterion(name, tuned) - criterion(name, hand)
    chance = error(without_each(name, tuned) - without_each(name, hand))
    aim = "regret at little violation" if name in STRICT else "Lagrangian regret"
    return f"| {' | '.join([f'`{name}`', aim, *cells, f'{more:+.0f} ± {chance:.0f}'])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(SETTINGS))
    parser.add_argument("--first", type=int, default=FIRST, help="the number of the first instance")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many instances")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    options = parser.parse_args()
    print(f"| {' | '.join(HEADS)} |\n|---|---|{'---:|' * (len(HEADS) - 2)}")
    for name in options.names or SETTINGS:
        print(line(name, range(options.first, options.first + options.seeds), options.episodes), flush=True)


if __name__ == "__main__":
    main()
