"""Heating: with linear terms and hinges divided by a large temperature a step is easy, and one cools it to one.

The regulariser is then as many times as heavy.  The temperature falls as fast as Newton's method can follow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import glue, rule
from omdpd.problem.arrays import Floats

# Share of the uniform policy in the start: every reachable state then has mass, and V a meaning there.
MIX = 0.01
# What a heated problem, which is followed loosely, is solved to.
TOLERANCE_HEATED = 1e-6
# The temperature falls by the first factor at first and then, depending on how well Newton's method can follow, by one
# between the other two; a factor above the last means that it cannot, and the problem is given up.
COOLING, MIN_FACTOR, MAX_FACTOR = 0.1, 0.01, 0.8


class Ladder(NamedTuple):
    """The temperature, the factor by which it falls next, and the lowest that a solve has reached (0 before any)."""

    tau: float
    factor: float
    reached: float


@rule
def next_rung(now: Ladder, solved: bool, hottest: float) -> Ladder:
    """The ladder after a solve at `now.tau` that is not the last one; given up where even the hottest one failed."""
    factor, reached = now.factor, now.reached
    if solved:
        factor, reached = max(factor * factor, MIN_FACTOR), now.tau
    elif reached > 0.0:
        factor = np.sqrt(factor)
    elif now.tau > 1.0:
        factor = np.inf
    return Ladder(max(1.0, reached * factor) if reached > 0.0 else hottest, factor, reached)


@glue
def hottest(c: Floats, W: Floats) -> float:
    """A temperature at which no number of the objective exceeds one."""
    tau = 10.0
    for r in range(c.size):
        tau = max(tau, abs(c[r]))
    for j in range(W.size):
        tau = max(tau, W[j])
    return tau


@glue
def divide(numbers: Floats, tau: float, heated: Floats) -> None:
    """heated := numbers / tau."""
    for r in range(numbers.size):
        heated[r] = numbers[r] / tau
