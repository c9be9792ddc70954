"""Compile every kernel ahead, and say so if it takes a while (a run compiles only what it needs: `first_use`).

What was compiled is kept, so this happens once per user and version.  Where there are two cores a second
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

from omdpd.problem.arrays import Floats
from omdpd.problem.laws import DenseLaws, Laws
from omdpd.solvers.compiled.announce import ANNOUNCER
from omdpd.solvers.compiled.box_step.certificate import backward, forward, hinge_gaps, row_gap
from omdpd.solvers.compiled.box_step.newton import solve
from omdpd.solvers.compiled.box_step.solve import solve_in
from omdpd.solvers.compiled.counting import add_episode
from omdpd.solvers.compiled.episode import at_least, play_judge
from omdpd.solvers.compiled.flow import greedy_policy, occupancy_of_policy, policy_of_occupancy
from omdpd.solvers.compiled.options import COMPILED
from omdpd.solvers.compiled.products import add_violation, dot, largest_dot
from omdpd.solvers.compiled.sharing import COST_TRUSTS, WEIGHTS, kernel_drift
from omdpd.solvers.compiled.shipped import brings
from omdpd.solvers.compiled.standard import add_evidence, standard_beliefs
from omdpd.solvers.compiled.streams import first_below
from omdpd.solvers.mirror import Hinges, mirror_step
from omdpd.solvers.planning import plan_by_columns
from omdpd.solvers.programs import vertex_plan
from omdpd.solvers.regions import Box, Kernel, Region
from omdpd.solvers.sweeps import greedy_under, occupancy_under, residual_under, trajectory_under, value_under

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
    (backward, (_5, _4, _n, _2, _yes, _yes, _2, _order, _2)),
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
            ANNOUNCER.say = say
            ANNOUNCER.begin("compiling all kernels: once per user and version, a minute or two on two cores")
            if (os.cpu_count() or 1) > 1:
                quiet = os.environ | {"OMDPD_QUIET": "1"}
                helper = subprocess.Popen([sys.executable, "-c", ELSEWHERE], stdout=subprocess.DEVNULL, env=quiet)
        call_box()
        if helper is None or helper.wait() != 0:
            call_single()
    finally:
        ANNOUNCER.end()
        if collecting:
            gc.enable()


def help_out() -> None:
    """The part of the second process."""
    gc.disable()
    for function, signature in LATE:
        function.compile(signature)
    call_single()


def compiled() -> bool:
    """Whether the largest kernel came along, or Numba's cache holds it (for this machine, as far as names tell)."""
    if not COMPILED:
        return True
    folder = Path(solve_in.stats.cache_path)
    return brings("box_step/solve.solve_in-") or any(folder.glob("solve.solve_in-*.nbi"))


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
    _call_episode(uniform, p, initial, q)
    vertex_plan(np.zeros_like(p), np.ones_like(p), initial, q, np.full((1, H, S, A), -0.1))
    _step(Kernel(p))
    for laws in (DenseLaws(H, p), DenseLaws(H, p).listed()):
        _call_sweeps(laws, uniform, initial, q)


def _call_sweeps(laws: Laws, policy: Floats, initial: Floats, table: Floats) -> None:
    """Episodes under laws of either form, and planning by columns, which takes them as lists."""
    q = occupancy_under(laws, policy, initial)
    residual_under(laws, q, initial)
    value_under(laws, policy, initial, table)
    greedy_under(laws, table)
    trajectory_under(laws, policy, initial, np.full((H, 2), 0.5))
    plan_by_columns(laws, initial, table, np.full((1, H, S, A), -0.1))


def _call_episode(policy: Floats, p: Floats, initial: Floats, q: Floats) -> None:
    """What every episode of the default learner calls besides its solves."""
    d, walk, seen, paid = np.zeros((1, H, S, A)), np.zeros(H, np.int64), np.zeros(H), np.zeros((1, H))
    play_judge(policy, q, p, initial, q, d, np.full(4 * H, 0.5), True, True, walk, walk.copy(), seen, paid, np.zeros(1))
    n, moves, score = np.zeros((H, S, A)), np.zeros((H, S, A, S)), np.zeros((1, WEIGHTS.size, COST_TRUSTS.size))
    squares, kernel_score, reward_score = n.copy(), score[0, :, 0].copy(), score[0, :, :1].copy()
    add_evidence(squares, d.copy(), kernel_score, reward_score, score, n, moves, n, d, walk, walk, seen, paid)
    add_episode(n, moves, n.copy(), d.copy(), walk, walk, seen, paid)
    standard_beliefs(
        n, moves, n, d, squares, d, kernel_score, reward_score, score, False, True, np.zeros(1), d, q, 1.0, 0.1,
        n.copy(), d.copy(), d.copy(), moves.copy(), n.copy(), n.copy(),
    )  # fmt: skip
    add_violation(np.zeros(1), d, q, 0.0, H)
    at_least(q, q)
    first_below(0, 0, 2)
    dot(q, q)
    largest_dot(d, q)
    kernel_drift(p, p)


def _step(region: Region) -> None:
    q = np.full((H, S, A), 0.25)
    mirror_step(region, np.full(S, 0.5), q, -q, 1.0, Hinges(np.full((1, H, S, A), 0.1), np.ones(1)))
