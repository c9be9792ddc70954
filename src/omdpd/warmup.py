"""Compile the kernels before the work begins, and say so if it takes a while.

Numba keeps what it compiled on disk, so this happens once per machine and version.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from omdpd.confidence import Box, Kernel
from omdpd.kernels.flow import greedy_policy, occupancy_of_policy, policy_of_occupancy
from omdpd.kernels.rollout import trajectory
from omdpd.mirror import Hinges, mirror_step
from omdpd.programs import vertex_plan

# From the cache everything is ready well within this; what takes longer is compiling.
PATIENCE = 3.0


def warm_up(say: Callable[[str], None]) -> None:
    """Call every kernel once on a tiny problem."""
    timer = threading.Timer(PATIENCE, say, ["compiling the kernels: once per machine and version, under a minute"])
    timer.daemon = True
    timer.start()
    try:
        _call_all()
    finally:
        timer.cancel()


def _call_all() -> None:
    H, S, A = 2, 2, 2
    initial = np.full(S, 0.5)
    p = np.full((H, S, A, S), 0.5)
    uniform = np.full((H, S, A), 0.5)
    q = occupancy_of_policy(uniform, p, initial)
    policy_of_occupancy(q)
    greedy_policy(p, q)
    trajectory(uniform, p, initial, np.full((H, 2), 0.5))
    vertex_plan(np.zeros_like(p), np.ones_like(p), initial, q, np.full((1, H, S, A), -0.1))
    for region in (Kernel(p), Box(np.zeros_like(p), np.ones_like(p))):
        mirror_step(region, initial, q, -q, 1.0, Hinges(np.full((1, H, S, A), 0.1), np.ones(1)))
