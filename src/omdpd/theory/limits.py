"""The least that anybody pays who does not know the costs, to first order: a line beside what learners pay."""

from __future__ import annotations

import math
from typing import NamedTuple

from omdpd.problem.arrays import check_number, positive_integer


class Boundary(NamedTuple):
    """Regret and strong violation of somebody who knows everything but the costs."""

    regret: float
    violation: float


def boundary(episodes: int, z: float, sigma: float, price: float) -> Boundary:
    """Give what a plan pays that stays z standard errors of its cost, sigma/sqrt k after k episodes, below its budget.

        violation = psi(z) sigma sum_k k^(-1/2),     regret = price z sigma sum_k k^(-1/2),
        psi(z) = phi(z) - z (1 - Phi(z))

    `price` is the shadow price of the budget; docs/theory.md, 12, has the bound that no learner is below.

    >>> [round(each) for each in boundary(3000, 1.0, 2.1, 0.13)]
    [30, 19]
    """
    positive_integer("episodes", episodes)
    for name, number in (("z", z), ("sigma", sigma), ("price", price)):
        check_number(name, number, "at least 0")
    roots = math.fsum(1.0 / math.sqrt(k) for k in range(1, episodes + 1))
    density, above = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi), 0.5 * math.erfc(z / math.sqrt(2.0))
    return Boundary(price * z * sigma * roots, (density - z * above) * sigma * roots)
