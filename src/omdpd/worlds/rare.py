"""Worlds where reward is rare: a long chain, and something to be fetched past an enemy.

`chain`

| what | law |
|---|---|
| state | a place on a line, 0 .. n_places - 1 (10); starts at 0 |
| action 0, give up | back to place 0 |
| action 1, walk | one place on with chance `walk` (0.6), else it stays |
| action 2, run | one place on with chance `run` (0.95), else it stays |
| reward | 1 in every step that begins at the last place, else 0 |
| cost | 1 for running |
| budget | `budget` (4) runs of `horizon` (20) steps |
| scenarios | when running tires: 1.3 times in one half of the episode, 0.7 times in the other |

`gathering`

| what | law |
|---|---|
| state | a cell of a 4x4 map, with or without the load; starts at home without it |
| action | left, down, right, up; the other way across with `slip` (0.1) |
| load | is taken up on the far cell, and is set down at home |
| enemies | the two cells of the short way; stepping onto one is an attack with `attack` (0.1): home, without a load |
| reward | the chance that a step brings the load home |
| cost | the chance that it is attacked |
| budget | `budget` (0.2) attacks in `horizon` (20) steps |
| scenarios | the near or the far enemy hurts: 1.4 times, the other 0.6 times |

Who tries actions evenly meets a reward in a few of a hundred episodes.  The chain is that of many papers on
exploration; gathering is a smaller world in the manner of the resource gathering of Barrett and Narayanan (2008).
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.laws import laws_of_entries
from omdpd.worlds.maps import ACTIONS, Map
from omdpd.worlds.tables import dear_by_windows, one_hot, probability

MORE, LESS = 1.3, 0.7
WORSE, MILDER = 1.4, 0.6
PLACES = ("SOOG", "....", "....", "....")


def make_chain(
    n_places: int = 10, horizon: int = 20, walk: float = 0.6, run: float = 0.95, budget: float = 4.0
) -> CMDP:
    """A line with a reward at its far end, and a way there that tires."""
    S, H = positive_integer("n_places", n_places), positive_integer("horizon", horizon)
    on = np.array([0.0, probability("walk", walk), probability("run", run)])
    places = np.arange(S)[:, None]
    following = np.stack(
        np.broadcast_arrays(np.minimum(places + 1, S - 1), np.where([True, False, False], 0, places)), 2
    )
    chances = np.broadcast_to(np.stack([on, 1.0 - on], 1), (S, 3, 2))
    laws = laws_of_entries(np.repeat(np.arange(3 * S), 2), following.ravel(), chances.ravel(), (H, S, 3))
    reward = np.repeat(one_hot(S, S - 1)[:, None], 3, axis=1)
    cost = np.tile([0.0, 0.0, 1.0], (S, 1))
    labels = Labels(tuple(f"place {s}" for s in range(S)), ("give up", "walk", "run"), ("runs",))
    cmdp = CMDP.from_arrays(laws, reward, cost, budget, one_hot(S, 0), H)
    return cmdp.labelled("chain", labels).with_scenarios(
        dear_by_windows(cost, H, ("tired early", "tired late"), MORE, LESS)
    )


def make_gathering(horizon: int = 20, slip: float = 0.1, attack: float = 0.1, budget: float = 0.2) -> CMDP:
    """A load to be fetched from afar and brought home, past enemies on the short way."""
    cells, H = Map(PLACES), positive_integer("horizon", horizon)
    caught, across = probability("attack", attack), probability("slip", slip) / 2.0
    n, home, far = cells.n_cells, int(np.flatnonzero(cells.where("S"))[0]), int(np.flatnonzero(cells.where("G"))[0])
    enemies, led = cells.where("O"), cells.neighbours
    moved = led[:, (np.arange(4)[:, None] + np.array([0, 1, 3])) % 4]  # meant, and the two across it
    rows, following, chances = [], [], []
    reward, cost = np.zeros((2 * n, 4)), np.zeros((2 * n, 4, n))
    for s in range(2 * n):
        for a in range(4):
            for to, chance in zip(moved[s % n, a].tolist(), (1.0 - 2.0 * across, across, across), strict=True):
                hit = caught * enemies[to]
                load = (s >= n or to == far) and to != home
                reward[s, a] += chance * (s >= n and to == home)
                cost[s, a, to] += chance * hit
                rows += [4 * s + a, 4 * s + a]
                following += [to + n * load, home]
                chances += [chance * (1.0 - hit), chance * hit]
    laws = laws_of_entries(np.array(rows), np.array(following), np.array(chances), (H, 2 * n, 4))
    names = tuple(name + load for load in ("", ", loaded") for name in cells.names)
    cmdp = CMDP.from_arrays(laws, reward, cost.sum(axis=2), budget, one_hot(2 * n, home), H)
    where = np.flatnonzero(enemies)
    hurts = {
        f"{which} enemy hurts": np.where(np.arange(n) == at, WORSE, MILDER)
        for which, at in zip(("near", "far"), where, strict=True)
    }
    return cmdp.labelled("gathering", Labels(names, ACTIONS, ("attacks",))).with_scenarios(
        {name: cost @ weight for name, weight in hurts.items()}
    )
