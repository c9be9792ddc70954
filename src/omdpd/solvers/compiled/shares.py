"""The shares of a few known policies: a linear program with a row per table, by the simplex method of `vertices.py`.

    maximise  values.theta   subject to   costs theta <= 0,   sum theta = 1,   theta >= 0          theta (n,)

costs being (m, n).  Where nothing satisfies the rows, the answer minimises the largest of them instead.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry, checked_inner, glue
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import sum_of_vector
from omdpd.solvers.compiled.vertices import (
    EXCESS,
    MIN_PIVOT,
    NOTHING,
    apply,
    exchange,
    prices_of,
    ratio_test,
    slack_basis,
)

# Pivots after which the first column that gains is taken, not the best: then no basis can come again.
PATIENCE = 50
# A column gains where its reduced cost is below this, relative to what it is a sum of: rounding is less.
GAIN = 1e-13


@checked_entry
def best_shares(values: Floats, costs: Floats, max_pivots: int) -> tuple[Floats, Floats, float]:
    """Shares (n,), prices of the rows (m,) and the largest row that cannot be avoided (0 where all can hold).

    Where it is positive, the prices are the weights, which sum to one, that prove it.
    """
    m, n = costs.shape
    kind, inverse, x = slack_basis(m)
    gains, column, y, direction = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1)
    # From the slacks: column 0 enters in the row of sum theta = 1, then the excess t in the row that exceeds most.
    x[m], kind[m], gains[m] = 1.0, m, values[0]
    fill(costs, 0, m, column)
    exchange(inverse, x, column, m, 1.0, -np.inf)
    first = 0
    for j in range(m):
        first = j if costs[j, 0] > costs[first, 0] else first
    phase_one = m > 0 and costs[first, 0] > 0.0
    if phase_one:
        column[:m], column[m] = -1.0, 0.0
        apply(inverse, column, direction)
        kind[first], gains[first] = EXCESS, 0.0
        exchange(inverse, x, direction, first, x[first] / direction[first], 0.0)
    for pivot in range(max_pivots):
        prices_of(inverse, kind, gains, phase_one, y)
        entered = gainful(values, costs, y, kind, phase_one, pivot > PATIENCE)
        if entered < 0:
            if not phase_one or excess_of(kind, x) > NOTHING:
                break
            phase_one = False
            continue
        fill(costs, entered - m, entered, column)
        apply(inverse, column, direction)
        leaving = held_at_zero(kind, direction, x, phase_one)
        if leaving < 0:
            leaving = ratio_test(x, direction, kind)
        if leaving < 0:
            break
        if kind[leaving] == EXCESS:
            phase_one = False
        kind[leaving], gains[leaving] = entered, values[entered - m] if entered >= m else 0.0
        exchange(inverse, x, direction, leaving, max(x[leaving], 0.0) / direction[leaving], 0.0)
    shares, prices = np.zeros(n), np.zeros(m)
    for i in range(m + 1):
        if kind[i] >= m:
            shares[kind[i] - m] = x[i]
    for j in range(m):
        prices[j] = max(-y[j], 0.0)
    return shares / sum_of_vector(shares), prices, excess_of(kind, x) if phase_one else 0.0


@glue
def fill(costs, place, entered, column):
    """The column of share `place`, or (where `entered` is a row) the slack of that row."""
    m = costs.shape[0]
    for j in range(m):
        column[j] = costs[j, place] if entered >= m else (1.0 if j == entered else 0.0)
    column[m] = 1.0 if entered >= m else 0.0


@checked_inner
def gainful(values, costs, y, kind, phase_one, any_will_do):
    """The column of most negative reduced cost (or the first negative one): a row's slack, or m + share; -1: none."""
    m, n = costs.shape
    worst, entered = 0.0, -1
    for k in range(m + n):
        reduced, size = -y[k] if k < m else -y[m] - (0.0 if phase_one else values[k - m]), 1.0 + abs(y[m])
        for j in range(m):
            part = y[j] * costs[j, k - m] if k >= m else 0.0
            reduced -= part
            size += abs(y[j]) if k < m else abs(part)
        basic = False
        for i in range(m + 1):
            basic = basic or kind[i] == k
        if reduced < min(worst, -GAIN * size) and not basic:
            worst, entered = reduced, k
            if any_will_do:
                break
    return entered


@glue
def excess_of(kind, x):
    """The excess t, zero unless it is basic."""
    for i in range(kind.size):
        if kind[i] == EXCESS:
            return x[i]
    return 0.0


@glue
def held_at_zero(kind, direction, x, phase_one):
    """The row of an excess that is basic after the first phase: it leaves before it could move; -1: there is none."""
    if not phase_one:
        for i in range(kind.size):
            if kind[i] == EXCESS and abs(direction[i]) > MIN_PIVOT:
                x[i] = 0.0
                return i
    return -1
