"""Copies and sums of arrays as plain loops.

Numba's own allow for any shape and layout, for broadcasting, and for a message about what does not fit: one of them
takes up to a second to compile, these a twentieth of it.
"""

from __future__ import annotations

from omdpd.jit.decorators import inner
from omdpd.problem.arrays import Floats


@inner
def copy_vector(source: Floats, target: Floats) -> None:
    """target := source, (n,)."""
    for i in range(source.size):
        target[i] = source[i]


@inner
def copy_matrix(source: Floats, target: Floats) -> None:
    """target := source, (m, n)."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@inner
def sum_of_vector(vector: Floats) -> float:
    """The sum of the entries, in the order in which they lie."""
    total = 0.0
    for i in range(vector.size):
        total += vector[i]
    return total
