"""The exponential potential that turns cumulative violation into a penalty: the rules are `standard.weights`'s."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.learners.standard.weights import Slope, inverse_potential, potential_at, slope_of, weight_at
from omdpd.problem.arrays import Floats


@dataclass(frozen=True)
class Potential:
    """Phi with weight `w0` at zero and growth rate `beta`."""

    w0: float
    beta: float
    w_max: float = 1e6

    @cached_property
    def phi(self) -> Slope:
        """The same for compiled code."""
        return slope_of(float(self.w0), float(self.beta), float(self.w_max))

    @property
    def kink(self) -> float:
        """Where the slope reaches its cap."""
        return self.phi.kink

    def slope(self, x: Floats) -> Floats:
        """Phi'(x) = min(w0 exp(beta x), w_max).

        >>> Potential(w0=1.0, beta=0.5, w_max=10.0).slope(np.array([0.0, 2.0, 1e9])).round(3)
        array([ 1.   ,  2.718, 10.   ])
        """
        return np.array([weight_at(self.phi, each) for each in x.tolist()])

    def saturated(self, x: Floats) -> bool:
        """Whether some slope sits at its cap."""
        return max(x.tolist()) >= self.kink

    def value(self, x: Floats) -> Floats:
        """Phi(x) of every entry, linear beyond the cap."""
        return np.array([potential_at(self.phi, each) for each in x.tolist()])

    def total(self, x: Floats) -> float:
        """sum_i Phi(x_i)."""
        total = 0.0
        for each in x.tolist():  # not `sum`, which rounds otherwise from Python 3.12 on
            total += potential_at(self.phi, each)
        return total

    def inverse(self, y: float) -> float:
        """The x >= 0 with Phi(x) = y."""
        return inverse_potential(self.phi, float(y))


def positive_part(x: Floats) -> Floats:
    """[x]^+."""
    return np.maximum(x, 0.0)
