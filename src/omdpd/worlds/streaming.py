"""A media buffer: pay for the fast link, or risk that playback stops.

| what | law |
|---|---|
| state | packets in the buffer, 0 .. n_levels - 1; starts empty |
| action 0, fast | a packet arrives with probability `fast` (0.9) |
| action 1, slow | a packet arrives with probability `slow` (0.1) |
| transition | a packet is played with probability `playback` (0.8): up by one with arrival * (1 - playback), down by one with (1 - arrival) * playback, else unchanged; cut off at both ends |
| reward | 1 while the buffer is not empty, else 0 |
| cost | 1 for every fast step |
| budget | `budget` (5) fast steps per episode |
| scenarios | the link's price: 1.4 in its peak (early, midway or late in the episode) and 0.8 outside |

Source: the media-control example of the safe-exploration literature (DOPE, 2022); dynamics re-derived from its numbers.
"""  # noqa: E501

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.worlds.tables import dear_by_windows, one_hot, probability, walk_laws

PEAK_PRICE, QUIET_PRICE = 1.4, 0.8
PEAKS = ("early peak", "midday peak", "late peak")


def make(
    n_levels: int = 10,
    horizon: int = 10,
    fast: float = 0.9,
    slow: float = 0.1,
    playback: float = 0.8,
    budget: float = 5.0,
) -> CMDP:
    """A media buffer: pay for the fast link, or risk that playback stops."""
    S, H = positive_integer("n_levels", n_levels), positive_integer("horizon", horizon)
    leave = probability("playback", playback)
    arrivals = (probability("fast", fast), probability("slow", slow))
    laws = walk_laws(S, H, [x * (1.0 - leave) for x in arrivals], [(1.0 - x) * leave for x in arrivals])
    reward = np.repeat((np.arange(S) > 0).astype(np.float64)[:, None], 2, axis=1)
    cost = np.tile([1.0, 0.0], (S, 1))
    labels = Labels(tuple(f"{s} in buffer" for s in range(S)), ("fast", "slow"), ("fast steps",))
    cmdp = CMDP.from_arrays(laws, reward, cost, budget, one_hot(S, 0), H)
    prices = dear_by_windows(cost, H, PEAKS, PEAK_PRICE, QUIET_PRICE)
    return cmdp.labelled("streaming", labels).with_scenarios(prices)
