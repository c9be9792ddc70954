"""Compile the kernels before the work begins, and say so if it takes a while.

Numba keeps what it compiled on disk, so this happens once per machine and version.  Where there are two cores a second
process helps: it compiles what the solver over a box needs last, then everything that is not that solver.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import types

from omdpd.solvers.compiled.box_step.certificate import backward, forward, hinge_gaps, row_gap
from omdpd.solvers.compiled.box_step.newton import solve
from omdpd.solvers.compiled.box_step.solve import solve_in
from omdpd.solvers.compiled.flow import greedy_policy, occupancy_of_policy, policy_of_occupancy
from omdpd.solvers.compiled.options import COMPILED
from omdpd.solvers.compiled.rollout import trajectory
from omdpd.solvers.mirror import Hinges, mirror_step
from omdpd.solvers.programs import vertex_plan
from omdpd.solvers.regions import Box, Kernel, Region

H, S, A = 2, 2, 2
ELSEWHERE = "from omdpd.solvers.warmup import help_out; help_out()"

_1, _2, _3, _4, _5 = (types.Array(types.float64, ndim, "C") for ndim in range(1, 6))
_n, _yes, _order = types.int64, types.boolean, types.Array(types.int64, 1, "C")
# The solver over a box compiles what it calls as it meets it; these come late, and whoever is first compiles them.
LATE: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (solve, (_3, _3, _2, _1)),
    (hinge_gaps, (_3, _3, _2, _1)),
    (row_gap, (_4, _n, _n, _yes)),
    (forward, (_5, _4, _n, _1, _2)),
    (backward, (_5, _4, _n, _2, _yes, _2, _order, _2)),
)


def warm_up(say: Callable[[str], None]) -> None:
    """Call every kernel once on a tiny problem, or let a second process do so."""
    if not COMPILED:
        return
    helper = None
    collecting = gc.isenabled()
    # The compiler makes millions of objects that live as long as it does: looking for garbage is a tenth of its time.
    gc.disable()
    try:
        if not compiled():
            say("compiling the kernels: once per machine and version, about half a minute on two cores")
            if (os.cpu_count() or 1) > 1:
                helper = subprocess.Popen([sys.executable, "-c", ELSEWHERE], stdout=subprocess.DEVNULL)
        call_box()
        if helper is None or helper.wait() != 0:
            call_single()
    finally:
        if collecting:
            gc.enable()


def help_out() -> None:
    """The part of the second process."""
    gc.disable()
    for function, signature in LATE:
        function.compile(signature)
    call_single()


def compiled() -> bool:
    """Whether Numba's cache holds the largest kernel (for this machine and version, as far as names tell)."""
    folder = Path(solve_in.stats.cache_path)
    return any(folder.glob("solve.solve_in-*.nbi"))


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
