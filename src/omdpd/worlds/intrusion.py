"""A defender of a network against an intruder who is after one of several things.

| what | law |
|---|---|
| state | the intruder's stage: 0 outside, 1 foothold, 2 spreading, 3 privileged, 4 extracting; starts outside |
| action 0, serve | full service; the intruder advances one stage with probability `advance` (0.4) |
| action 1, scan | found with probability `detect` (0.6) and thrown out; else advances with probability advance / 2 |
| action 2, isolate | thrown out with certainty |
| reward | service delivered: 1 serving, 0.7 scanning, 0.2 isolated |
| cost | the damage of an undetected step in the stage: 0, .25, .5, .75, 1 (isolating stops it: 0) |
| budget | `budget` (0.8) of damage per episode of `horizon` (8) steps |
| scenarios | the intruder's target, which says what a step in each stage costs: the desk (harm is done early), the servers (while spreading), the vault (late) |

In the last stage the intruder stays there until thrown out.  Source: ours, after the intrusion-response problems of the
security literature; the cost of an undetected step changes with the target, so the scenarios are a natural adversary.
"""  # noqa: E501

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.worlds.tables import one_hot, probability

STAGES = ("outside", "foothold", "spreading", "privileged", "extracting")
ACTIONS = ("serve", "scan", "isolate")
SERVICE = (1.0, 0.7, 0.2)
DAMAGE = (0.0, 0.25, 0.5, 0.75, 1.0)
TARGETS = {
    "the desk": (0.0, 0.5, 0.5, 0.5, 0.5),
    "the servers": (0.0, 0.2, 0.9, 0.9, 0.5),
    "the vault": (0.0, 0.1, 0.3, 1.0, 1.0),
}


def make(horizon: int = 8, advance: float = 0.4, detect: float = 0.6, budget: float = 0.8) -> CMDP:
    """A defender of a network against an intruder whose target changes."""
    H, S = positive_integer("horizon", horizon), len(STAGES)
    onward, found = probability("advance", advance), probability("detect", detect)
    transition = np.zeros((S, 3, S))
    for s in range(S):
        deeper = min(s + 1, S - 1)
        transition[s, 0, deeper] += onward
        transition[s, 0, s] += 1.0 - onward
        transition[s, 1, 0] += found
        transition[s, 1, deeper] += (1.0 - found) * onward / 2.0
        transition[s, 1, s] += (1.0 - found) * (1.0 - onward / 2.0)
        transition[s, 2, 0] += 1.0
    reward = np.tile(SERVICE, (S, 1))
    labels = Labels(STAGES, ACTIONS, ("damage",))
    cmdp = CMDP.from_arrays(transition, reward, _damage(DAMAGE), budget, one_hot(S, 0), H)
    return cmdp.labelled("intrusion", labels).with_scenarios({name: _damage(harm) for name, harm in TARGETS.items()})


def _damage(by_stage: tuple[float, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Serving and scanning suffer the stage's damage; isolating suffers none."""
    return np.array(by_stage)[:, None] * np.array([1.0, 1.0, 0.0])
