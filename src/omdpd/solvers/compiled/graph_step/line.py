"""The dual of the mirror step on a layered graph along a Newton direction.

    theta(step) = sum_r copies_r / 2 ([y_r + step dy_r]^+)^2 + mu.(V + step dV)

Only rows that are positive somewhere on the way count, a quarter of them and less: they are gathered once, scaled by
the root of their copies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays
from omdpd.solvers.compiled.kernel_step.certificate import EPSILON
from omdpd.solvers.compiled.options import INNER

# A whole step may leave the slope this part of its size at 0, a searched one that.  The trials of a search at least
# halve its interval every third time; this many of them reach 1e-4, and only rounding asks for a shorter step.
WHOLE_SLOPE, SEARCHED_SLOPE, MAX_SEARCH = 0.3, 0.2, 40


class Line(NamedTuple):
    """Slacks and their changes of the rows that count, mu.dV and sum |mu dV|."""

    y: Floats
    dy: Floats
    initial: float
    size: float


@njit(**INNER)
def line_of(g: Arrays, y: Floats, dy: Floats, dV: Floats, one: Floats, two: Floats) -> Line:
    """The line from y along (dy, dV); `one` and `two` are scratch over rows."""
    n = 0
    for r in range(y.size):
        if max(y[r], y[r] + dy[r]) > 0.0:
            root = np.sqrt(g.copies[r])
            one[n], two[n] = root * y[r], root * dy[r]
            n += 1
    initial, size = 0.0, 0.0
    for i in range(g.mu.size):
        initial += g.mu[i] * dV[i]
        size += abs(g.mu[i] * dV[i])
    return Line(one[:n], two[:n], initial, size)


@njit(**INNER)
def line_search(line: Line) -> float:
    """A step in (0, 1] at which the slope has fallen to a fraction of its size at 0; 0 if dy is no descent."""
    low, high, step = 0.0, 1.0, 0.0
    start, low_slope, high_slope = 0.0, 0.0, 0.0
    for k in range(MAX_SEARCH):
        # Ends first; then the slope is known to change sign: secant steps, and halving every third time.
        if k == 1:
            step = high
        elif k > 1:
            step = 0.5 * (low + high) if k % 3 == 0 else low - low_slope * (high - low) / (high_slope - low_slope)
        here, noise = slope_of_theta(line, step)
        if k == 0:
            start = low_slope = here
            if not here < noise:
                return 0.0
        elif k == 1:
            high_slope = here
            if here <= max(-WHOLE_SLOPE * start, noise):
                return high
            if start >= 0.0:
                return 0.0
        elif abs(here) <= -SEARCHED_SLOPE * start:
            return step
        elif here < 0.0:
            low, low_slope = step, here
        else:
            high, high_slope = step, here
    return low


@njit(**INNER)
def slope_of_theta(line: Line, step: float) -> tuple[float, float]:
    """d theta / d step, and its rounding."""
    total, size = 0.0, 0.0
    for r in range(line.y.size):
        term = max(line.y[r] + step * line.dy[r], 0.0) * line.dy[r]
        total += term
        size += abs(term)
    return total + line.initial, 4.0 * EPSILON * (size + line.size)


@njit(**INNER)
def change_along_line(line: Line, step: float) -> tuple[float, float]:
    """theta after the step less theta before it, and its rounding."""
    total, size = 0.0, 0.0
    for r in range(line.y.size):
        before, after = max(line.y[r], 0.0), max(line.y[r] + step * line.dy[r], 0.0)
        term = 0.5 * (after - before) * (after + before)
        total += term
        size += abs(term)
    return total + step * line.initial, 4.0 * EPSILON * (size + step * line.size)
