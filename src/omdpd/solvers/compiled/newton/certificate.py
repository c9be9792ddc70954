"""The terms of a mirror step's duality gap, each nonnegative and without cancellation.

With slack y of a row, occupancy q and argument u = d.q of a hinge with multiplier xi in [0, W],

    gap = sum_r ( (q_r - [y_r]^+)^2 / 2 + q_r ([y_r]^+ - y_r) ) + sum_j ( W_j [u_j]^+ - xi_j u_j ).
"""

from __future__ import annotations

from omdpd.jit.decorators import glue, short_rule
from omdpd.problem.arrays import Floats

# Spacing of the doubles near one: u_j is only known to this times |d_j|.q.
EPSILON = 2.0**-52
# Weight of the hinges in the scale of the objective: at W = 1e6 a gap is not asked below 1e-11 W.
HINGE_SCALE = 1e-5
# How a solve ended.
SOLVED, ALMOST, FAILED = 0, 1, 2


@glue
def gap_of_row(mass: float, slack: float) -> float:
    """(q - [y]^+)^2 / 2 + q ([y]^+ - y)."""
    return 0.5 * (mass - slack) ** 2 if slack > 0.0 else 0.5 * mass**2 - mass * slack


@short_rule
def gap_of_hinge(u: float, xi: float, W: float) -> float:
    """W [u]^+ - xi u, which would cancel if it were written so."""
    return (W - xi) * u if u > 0.0 else -xi * u


@glue
def noise_of_hinge(u: float, error: float, xi: float, W: float) -> float:
    """How far a hinge's gap may be off where u is: it changes with u at W - xi above zero and at -xi below."""
    below = abs((W if u - error > 0.0 else 0.0) - xi)
    return error * max(below, abs((W if u + error > 0.0 else 0.0) - xi))


@short_rule
def add_solve(log: Floats, gap: float, scale: float, steps: int, status: int, residual: float) -> None:
    """Add a solve to a log: solves, failures, Newton steps, and the worst relative gap and residual of all."""
    log[0] += 1.0
    log[1] += 1.0 if status == FAILED else 0.0
    log[2] += steps
    log[3], log[4] = max(log[3], gap / scale), max(log[4], residual)
