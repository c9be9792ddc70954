"""The exponential potential that turns cumulative violation into a penalty.

    Phi(x) = (w0 / beta) (exp(beta x) - 1),      Phi'(x) = w0 exp(beta x)            the paper has w0 = beta

The slope is capped at `w_max`; beyond the cap Phi goes on linearly, so it stays convex and cannot overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.problem.arrays import Floats


@dataclass(frozen=True)
class Potential:
    """Phi with weight `w0` at zero and growth rate `beta`."""

    w0: float
    beta: float
    w_max: float = 1e6

    @cached_property
    def kink(self) -> float:
        """Where the slope reaches its cap."""
        return max(math.log(self.w_max / self.w0), 0.0) / self.beta

    def slope(self, x: Floats) -> Floats:
        """Phi'(x) = min(w0 exp(beta x), w_max).

        >>> Potential(w0=1.0, beta=0.5, w_max=10.0).slope(np.array([0.0, 2.0, 1e9])).round(3)
        array([ 1.   ,  2.718, 10.   ])
        """
        kink = self.kink
        return np.array([min(self.w0 * math.exp(self.beta * min(each, kink)), self.w_max) for each in x.tolist()])

    def saturated(self, x: Floats) -> bool:
        """Whether some slope sits at its cap."""
        return max(x.tolist()) >= self.kink

    def value(self, x: Floats) -> Floats:
        """Phi(x) of every entry, linear beyond the cap."""
        return np.array([self._at(each) for each in x.tolist()])

    def total(self, x: Floats) -> float:
        """sum_i Phi(x_i)."""
        total = 0.0
        for each in x.tolist():  # not `sum`, which rounds otherwise from Python 3.12 on
            total += self._at(each)
        return total

    def inverse(self, y: float) -> float:
        """The x >= 0 with Phi(x) = y."""
        at_kink = self._at(self.kink)
        if y > at_kink:
            return self.kink + (y - at_kink) / self.w_max
        return math.log1p(max(y, 0.0) * self.beta / self.w0) / self.beta

    def _at(self, x: float) -> float:
        inside = min(x, self.kink)
        return (self.w0 / self.beta) * math.expm1(self.beta * inside) + self.w_max * (x - inside)


def positive_part(x: Floats) -> Floats:
    """[x]^+."""
    return np.maximum(x, 0.0)
