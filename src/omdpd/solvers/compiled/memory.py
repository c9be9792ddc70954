"""Comparing a cost table with remembered ones."""

from __future__ import annotations

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.options import ENTRY
from omdpd.solvers.compiled.products import largest


@njit(**ENTRY)
def parallel_place(tables: Floats, sizes: Floats, table: Floats, size: float, same: float) -> int:
    """The first j with max |d_j / |d_j| - d / |d|| <= same, where |d| is the largest entry; -1 if there is none."""
    d = table.ravel()
    for j in range(len(tables)):
        other = tables[j].ravel()
        equal = True
        for i in range(d.size):
            if abs(other[i] / sizes[j] - d[i] / size) > same:
                equal = False
                break
        if equal:
            return j
    return -1


@njit(**ENTRY)
def nearest(tables: Floats, table: Floats) -> float:
    """min_j max |d_j - d|; infinite without tables."""
    least = np.inf
    d = table.ravel()
    for j in range(len(tables)):
        other = tables[j].ravel()
        most = 0.0
        for i in range(d.size):
            most = max(most, abs(other[i] - d[i]))
            if most >= least:
                break
        least = min(least, most)
    return least


@njit(**ENTRY)
def lift_by_size(tables: Floats, share: float, lifted: Floats) -> None:
    """Write every table (n, H, S, A) with its entries raised by `share` of its largest one."""
    for j in range(len(tables)):
        d, out = tables[j].ravel(), lifted[j].ravel()
        lift = share * largest(tables[j])
        for i in range(d.size):
            out[i] = d[i] + lift
