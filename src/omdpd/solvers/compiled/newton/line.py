"""The dual of a mirror step along a Newton direction: how far to go, and what is gained there.

    theta(step) = 1/2 sum_r ([y_r + step dy_r]^+)^2 + mu.(V + step dV)

A row that stands for several comes scaled by the root of its copies.
"""

from __future__ import annotations

from typing import NamedTuple

from omdpd.jit.decorators import glue, rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.newton.certificate import EPSILON

# A whole step may leave the slope this part of its size at 0, a searched one that.  The trials of a search at least
# halve its interval every third time; this many of them reach 1e-4, and only rounding asks for a shorter step.
WHOLE_SLOPE, SEARCHED_SLOPE, MAX_SEARCH = 0.3, 0.2, 40
# Trials of a bent step (where a line is cut, water filling with the masses of its linear model), and the factor between
# their lengths.
TRIALS, SHORTER = 4, 0.4
# The trust region of the multipliers: after a step that was cut it shrinks by no more than the first number, to no less
# than the second, and it grows by the last after a whole or a bent step.
SHRINKAGE, MIN_RADIUS, GROWTH = 1e-3, 1e-9, 4.0


class Line(NamedTuple):
    """Slacks and their changes of the rows that count, mu.dV and sum |mu dV|."""

    y: Floats
    dy: Floats
    initial: float
    size: float


@glue
def line_along(y: Floats, dy: Floats, mu: Floats, dV: Floats) -> Line:
    """The line from the slacks y along dy and dV, of which the first entries are those of the first step's states."""
    initial, size = 0.0, 0.0
    for i in range(mu.size):
        initial += mu[i] * dV[i]
        size += abs(mu[i] * dV[i])
    return Line(y, dy, initial, size)


@rule
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


@glue
def slope_of_theta(line: Line, step: float) -> tuple[float, float]:
    """d theta / d step, and its rounding."""
    total, size = 0.0, 0.0
    for r in range(line.y.size):
        moved = line.y[r] + step * line.dy[r]
        if moved > 0.0:  # most rows are not, at large sizes
            total += moved * line.dy[r]
            size += abs(moved * line.dy[r])
    return total + line.initial, 4.0 * EPSILON * (size + line.size)


@rule
def change_along_line(line: Line, step: float) -> tuple[float, float]:
    """theta after the step less theta before it, and its rounding."""
    total, size = 0.0, 0.0
    for r in range(line.y.size):
        term = change_of_row(line.y[r], line.y[r] + step * line.dy[r])
        total += term
        size += abs(term)
    return total + step * line.initial, 4.0 * EPSILON * (size + step * line.size)


@glue
def change_of_row(before: float, after: float) -> float:
    """1/2 ([after]^+)^2 - 1/2 ([before]^+)^2, without cancellation."""
    left, right = max(before, 0.0), max(after, 0.0)
    return 0.5 * (right - left) * (right + left)


@glue
def next_radius(radius: float, step: float, farthest: float, grew: bool, short: float) -> float:
    """The trust region after a step whose longest move of a multiplier was `farthest`; it shrinks below `short`."""
    if grew:
        return max(radius, GROWTH * farthest)
    if step < short and farthest > 0.0:
        return max(farthest * max(2.0 * step, SHRINKAGE), MIN_RADIUS)
    return radius
