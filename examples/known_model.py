"""A pump whose model is known: the best plan, what more energy earns, where it draws, and a problem without an end."""

import numpy as np

from omdpd import CMDP

LEVELS = 6  # of a tank; actions: rest, pump at night's price, pump hard
fall = np.array([0.5, 0.3, 0.2])  # the tank loses 0, 1 or 2 levels in a step
transition = np.zeros((LEVELS, 3, LEVELS))
for level in range(LEVELS):
    for action in range(3):
        for lost, chance in enumerate(fall):
            transition[level, action, min(max(level + action - lost, 0), LEVELS - 1)] += chance
served = np.repeat(np.minimum(np.arange(LEVELS) / 2.0, 1.0)[:, None], 3, axis=1)
energy = np.tile([0.0, 1.0, 2.5], (LEVELS, 1))
allowed = np.ones((LEVELS, 3), bool)
allowed[-1, 1:] = False  # a full tank is not pumped

day = CMDP.from_arrays(transition, served, energy, 14.0, np.eye(1, LEVELS, 3)[0], 24, True, allowed=allowed)
best = day.solve()
print(best)
print("\n".join(day.curve().lines(8)))
for draw in best.randomises():
    print(draw)
print("without drawing:", best.deterministic())

always = CMDP.from_arrays(transition, served, energy, 12.0, discount=0.95, allowed=allowed)
print(always.solve())
