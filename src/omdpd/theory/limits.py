"""The least that anybody pays who does not know the costs, to first order: a line beside what learners pay."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omdpd.beliefs.rules import errors_for, margin
from omdpd.experiments.spec import RunSpec
from omdpd.natures.protocol import changes_of
from omdpd.play.loop import seed_of
from omdpd.play.units import Units
from omdpd.problem.arrays import Floats, check_number, positive_integer
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.programs import best_policy, written_out

# A price below this is a solver's rounding.
BINDS = 1e-7


class Boundary(NamedTuple):
    """Regret and strong violation of somebody who knows everything but the costs."""

    regret: float
    violation: float


def boundary(episodes: int, z: float, sigma: float, price: float, growth: float = 0.0) -> Boundary:
    """Give what a plan pays that stays z standard errors of its cost, sigma/sqrt k after k episodes, below its budget.

        violation = sigma sum_k psi(z_k) k^(-1/2),     regret = price sigma sum_k z_k k^(-1/2),
        psi(z) = phi(z) - z (1 - Phi(z)),              z_k = z, or `errors_for` it where it grows

    `price` is the shadow price of the budget; docs/theory.md, 12, has the bound that no learner is below.

    >>> [round(each) for each in boundary(3000, 1.0, 2.1, 0.13)]
    [30, 19]
    >>> [round(each) for each in boundary(3000, 1.0, 2.1, 0.13, growth=0.5)]
    [37, 12]
    """
    from scipy.special import ndtr

    positive_integer("episodes", episodes)
    for name, number in (("z", z), ("sigma", sigma), ("price", price)):
        check_number(name, number, "at least 0")
    errors = sigma / np.sqrt(np.arange(1.0, episodes + 1.0))
    each = z if growth == 0.0 else np.array([errors_for(z, growth, float(k)) for k in range(1, episodes + 1)])
    density, above = np.exp(-0.5 * np.square(each)) / math.sqrt(2.0 * math.pi), ndtr(np.negative(each))
    return Boundary(price * float((each * errors).sum()), float(((density - each * above) * errors).sum()))


def boundary_of(
    cmdp: CMDP, tables: Floats, episodes: int, errors: float, noisy: bool, growth: float = 0.0
) -> Boundary | None:
    """Give the boundary of a world whose costs are these tables (n, H, S, A), budgets taken off; None if none is safe.

    Plans stay so many standard errors below every budget.  The cost of the best plan q* is known to sigma/sqrt k,
    sigma^2 = sum q* (v + Var_p C): v = 1 - d^2 is the noise of costs that are met as 1 or -1 (0 where they are exact),
    C what a plan costs from the next state on.  Tables without a price do not bind, and are left out; the violation is
    that of the worst of the others.
    """
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, tables)
    if not best.feasible:
        return None
    each = [Boundary(0.0, 0.0)]
    for price, table in zip(best.multipliers.tolist(), tables, strict=True):
        ahead = np.zeros(cmdp.shape[1])
        variance = 1.0 - table**2 if noisy else np.zeros(cmdp.shape)
        for h in range(cmdp.shape[0] - 1, -1, -1):
            mean = cmdp.transition[h] @ ahead
            variance[h] += cmdp.transition[h] @ ahead**2 - mean**2
            ahead = ((table[h] + mean) * best.policy[h]).sum(axis=-1)
        if price > BINDS:
            sigma = math.sqrt(float((best.occupancy * variance).sum()))
            each.append(boundary(episodes, errors, sigma, price, growth))
    return Boundary(math.fsum(b.regret for b in each), max(b.violation for b in each))


@dataclass(frozen=True)
class Limit:
    """The mean boundary over the instances of a world and nature."""

    world: str
    nature: str
    episodes: int
    seeds: int
    regret: float
    violation: float


def limits_of(runs: Iterable[RunSpec], z: float = 1.0, growth: float = 0.0) -> list[Limit]:
    """Give the boundary beside some runs, for the margin that the default learner keeps with this z and its growth.

    It is in the user's units.  Places are left out whose tables never repeat, where no policy is safe, or whose
    constraints have different units.
    """
    found: dict[tuple[str, str, int], dict[int, Boundary | None]] = {}
    for spec in runs:
        line = found.setdefault((spec.world.label, spec.nature.label, spec.episodes), {})
        if spec.seed not in line:
            line[spec.seed] = _boundary(spec, z, growth)
    limits = []
    for (world, nature, episodes), line in found.items():
        known = [each for each in line.values() if each is not None]
        if known:
            regret, violation = (float(np.mean(side)) for side in zip(*known, strict=True))
            limits.append(Limit(world, nature, episodes, len(known), regret, violation))
    return limits


def _boundary(spec: RunSpec, z: float, growth: float) -> Boundary | None:
    cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
    nature = spec.nature.build(cmdp, seed_of(spec.stream(1)))
    units = Units.of(cmdp)
    if not nature.repeats or changes_of(nature) or not written_out(cmdp.shape) or units.common_scale is None:
        return None
    first = nature.draw(0, np.zeros(cmdp.shape))
    tables = np.reshape(getattr(nature, "tables", first.cost), (-1, *cmdp.shape))
    errors = margin(z, 1.0, 1.0, 1, nature.feedback == "full")
    found = boundary_of(cmdp, tables, spec.episodes, errors, first.cost_noise == "two-point", growth)
    return None if found is None else Boundary(units.span * found.regret, units.common_scale * found.violation)
