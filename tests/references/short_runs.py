"""Twelve episodes of the standard learner, by its verbs and many at a time, with or without a compiler."""

from __future__ import annotations

import numpy as np

from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import NATURES
from omdpd.play.loop import batches, play, start_of_run
from omdpd.play.scene import Scene
from tests.references.instances import random_cmdp

EPISODES = 12
# Nature, layout, S, A and the number of constraints; H = 4, so that all sizes differ.
RUNS = {
    "noisy": ("noisy", "dense", 3, 2, 1),
    "pool": ("pool", "dense", 3, 5, 2),
    "graph": ("noisy", "graph", 5, 3, 2),
    "pool on a graph": ("pool", "graph", 3, 2, 1),
}


def scene_of(name):
    """A world, a nature and the learner, which is told all but the kernel."""
    nature, layout, S, A, n_constraints = RUNS[name]
    cmdp = random_cmdp(np.random.default_rng(21), 4, S, A, n_constraints, budget=0.1)
    return Scene(cmdp, NATURES[nature](cmdp, 22), ProximalOMDPD.standard(memory=2, layout=layout), EPISODES, {})


def by_verbs(name):
    """The true values of the episodes, and the last policy."""
    scene = scene_of(name)
    played = list(play(scene, start_of_run(scene), np.random.default_rng(23), lambda k: True))
    return [value for value, _, _ in played], rows_of(row for _, row, _ in played), last_policy(scene, played[-1][-1])


def many_at_a_time(name):
    """The same, in batches where there are any."""
    scene = scene_of(name)
    played = list(batches(scene, start_of_run(scene), np.random.default_rng(23), lambda k: True))
    values = [value for each in played for value in each.values]
    return values, rows_of(row for each in played for row in each.rows), last_policy(scene, played[-1].now)


def rows_of(rows):
    """Numbers of every row: sums, step, weight, and what was planned."""
    return [
        (row.value_sum, row.violation_sum, row.step_size, row.weight, row.planned_value_sum, row.planned_violation_sum)
        for row in rows
    ]


def last_policy(scene, now):
    """What is played next."""
    return scene.learner.policy(now.learner_state)


def every_run():
    """What every run comes to, by its name and the way it is played."""
    return {(name, way.__name__): way(name) for name in RUNS for way in (by_verbs, many_at_a_time)}
