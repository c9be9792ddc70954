"""Compile the kernels before the work begins, and say so if it takes a while.

Numba keeps what it compiled on disk, so this happens once per machine and version.  The two largest families compile
at the same time, in two processes, where there are two cores.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from omdpd.confidence import Box, Kernel, Region
from omdpd.kernels.flow import greedy_policy, occupancy_of_policy, policy_of_occupancy
from omdpd.kernels.interior import solve_in
from omdpd.kernels.rollout import trajectory
from omdpd.mirror import Hinges, mirror_step
from omdpd.programs import vertex_plan

H, S, A = 2, 2, 2
ELSEWHERE = "from omdpd.warmup import call_single; call_single()"


def warm_up(say: Callable[[str], None]) -> None:
    """Call every kernel once on a tiny problem."""
    helper = None
    gc.disable()
    if not compiled():
        say("compiling the kernels: once per machine and version, about a minute")
        if (os.cpu_count() or 1) > 1:
            helper = subprocess.Popen([sys.executable, "-c", ELSEWHERE], stdout=subprocess.DEVNULL)
    call_box()
    if helper is not None:
        helper.wait()
    call_single()


def compiled() -> bool:
    """Whether Numba's cache holds the largest kernel (for this machine and version, as far as names tell)."""
    folder = Path(solve_in.stats.cache_path)
    return any(folder.glob("interior.solve_in-*.nbi"))


def call_box() -> None:
    """The solver over a confidence box."""
    p = np.full((H, S, A, S), 0.5)
    _step(Box(np.zeros_like(p), np.ones_like(p)))


def call_single() -> None:
    """The solver over one kernel, planning, and the small kernels."""
    initial, p, uniform = np.full(S, 0.5), np.full((H, S, A, S), 0.5), np.full((H, S, A), 0.5)
    q = occupancy_of_policy(uniform, p, initial)
    policy_of_occupancy(q)
    greedy_policy(p, q)
    trajectory(uniform, p, initial, np.full((H, 2), 0.5))
    vertex_plan(np.zeros_like(p), np.ones_like(p), initial, q, np.full((1, H, S, A), -0.1))
    _step(Kernel(p))


def _step(region: Region) -> None:
    q = np.full((H, S, A), 0.25)
    mirror_step(region, np.full(S, 0.5), q, -q, 1.0, Hinges(np.full((1, H, S, A), 0.1), np.ones(1)))
