"""The sets of kernels that a step is taken over: a confidence box, or one kernel (dense, or as a layered graph)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.problem.arrays import Booleans, Floats, InvalidInputError
from omdpd.problem.records import fast_init
from omdpd.solvers.compiled.boxes import inside, tighten
from omdpd.solvers.graph import Graph


@fast_init
@dataclass(frozen=True, eq=False)
class Box:
    """B = {p : lower <= p <= upper, rows sum to one}, shapes (H, S, A, S), tightened to bounds that are reached."""

    lower: Floats
    upper: Floats

    def contains(self, transition: Floats) -> bool:
        """Whether the kernel lies in the box (the last step does not matter)."""
        return inside(self.lower, self.upper, transition)

    def within(self, earlier: Box) -> tuple[Box, int]:
        """This box cut with an earlier one (nesting), and how many rows had nothing in common: they keep this box."""
        lower, upper = np.maximum(self.lower, earlier.lower), np.minimum(self.upper, earlier.upper)
        empty = (lower > upper).any(-1) | (lower.sum(-1) > 1.0) | (upper.sum(-1) < 1.0)
        lower = np.where(empty[..., None], self.lower, lower)
        upper = np.where(empty[..., None], self.upper, upper)
        return Box(*tighten(lower, upper)), int(empty.sum())

    def on_support(self, support: Booleans) -> Box:
        """This box without the next states that a pair (h,s,a) cannot lead to, (H, S, A, S)."""
        return Box(*tighten(np.where(support, self.lower, 0.0), np.where(support, self.upper, 0.0)))


@fast_init
@dataclass(frozen=True, eq=False)
class Kernel:
    """A single kernel (H, S, A, S): known, or estimated and taken at its word."""

    transition: Floats

    def contains(self, transition: Floats) -> bool:
        """Whether it is this kernel (the last step does not matter)."""
        return inside(self.transition, self.transition, transition)


Region = Box | Kernel | Graph


def bounds_of(region: Region) -> tuple[Floats, Floats]:
    """The least and the largest kernel of a dense region, (H, S, A, S) each."""
    if isinstance(region, Graph):
        raise InvalidInputError("the region is a layered graph, but a plan over kernels needs a dense Box or Kernel")
    return (region.lower, region.upper) if isinstance(region, Box) else (region.transition, region.transition)
