"""Learners that know nothing start from the uniform policy, under the kernel whose laws are all uniform."""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.flow import occupancy_of_policy


def uniform_policy(setting: Setting) -> Floats:
    """Every action with the same probability."""
    return np.full(setting.shape, 1.0 / setting.n_actions)


def uniform_logits(setting: Setting) -> Floats:
    """The logarithm of the uniform policy."""
    return np.full(setting.shape, -np.log(setting.n_actions))


def uniform_occupancy(setting: Setting, transition: Floats | None = None) -> Floats:
    """The occupancy of the uniform policy under the uniform kernel, or under one that is known.

    >>> uniform_occupancy(Setting(horizon=1, n_states=2, n_actions=2, initial=[0.5, 0.5]))
    array([[[0.25, 0.25],
            [0.25, 0.25]]])
    """
    H, S, A = setting.shape
    p = np.full((H, S, A, S), 1.0 / S) if transition is None else transition
    return occupancy_of_policy(uniform_policy(setting), p, setting.mu)
