"""Inner products and distances of tables and occupancies, whatever their number of axes."""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import entry
from omdpd.problem.arrays import Floats


@entry
def dot(table: Floats, q: Floats) -> float:
    """d.q."""
    d, x = table.ravel(), q.ravel()
    total = 0.0
    for i in range(x.size):
        total += d[i] * x[i]
    return total


@entry
def dots(tables: Floats, q: Floats) -> Floats:
    """d_j.q for every table, (m,)."""
    m = len(tables)
    found = np.empty(m)
    for j in range(m):
        found[j] = dot(tables[j], q)
    return found


@entry
def largest_dot(tables: Floats, q: Floats) -> float:
    """max(0, max_j d_j.q)."""
    most = 0.0
    for j in range(len(tables)):
        most = max(most, dot(tables[j], q))
    return most


@entry
def costliest(tables: Floats, q: Floats) -> int:
    """argmax_j max_i d_ji.q over tables (n, I, H, S, A); the first of equals."""
    place, most = 0, -np.inf
    for j in range(len(tables)):
        for i in range(tables.shape[1]):
            cost = dot(tables[j, i], q)
            if cost > most:
                place, most = j, cost
    return place


@entry
def half_square(q: Floats, q_other: Floats) -> float:
    """1/2 |q - q'|^2."""
    x, y = q.ravel(), q_other.ravel()
    total = 0.0
    for i in range(x.size):
        total += (x[i] - y[i]) ** 2
    return 0.5 * total


@entry
def largest(table: Floats) -> float:
    """max |d|."""
    d = table.ravel()
    most = 0.0
    for i in range(d.size):
        most = max(most, abs(d[i]))
    return most
