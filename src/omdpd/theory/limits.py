"""A line beside what learners pay: the least that one pays who does not know the costs, to first order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from omdpd.beliefs.rules import errors_for, margin
from omdpd.experiments.spec import RunSpec
from omdpd.natures.protocol import changes_of
from omdpd.play.loop import seed_of
from omdpd.play.simulate import BETA_COUNTS
from omdpd.play.units import Units
from omdpd.problem.arrays import Floats, check_number, positive_integer
from omdpd.problem.cmdp import CMDP, Noise
from omdpd.solvers.programs import best_policy, written_out

# A price below this is a solver's rounding.
BINDS = 1e-7


class Boundary(NamedTuple):
    """Regret and strong violation of a learner that knows everything but the costs."""

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
    cmdp: CMDP, tables: Floats, episodes: int, errors: float, noise: Noise, growth: float = 0.0
) -> Boundary | None:
    """Give the boundary of a world whose costs are these tables (n, H, S, A), budgets taken off; None if none is safe.

    Plans stay so many standard errors below every budget.  The cost of the best plan q* is known to sigma/sqrt k,
    sigma^2 = sum q* (v + Var_p C): v is the noise of one cost (1 - d^2 where it is met as 1 or -1), C what a plan costs
    from the next state on.  Tables without a price do not bind, and are left out; the violation is that of the worst of
    the others.
    """
    best = best_policy(cmdp.transition, cmdp.initial, cmdp.reward, tables)
    if not best.feasible:
        return None
    each = [Boundary(0.0, 0.0)]
    for price, table in zip(best.multipliers.tolist(), tables, strict=True):
        ahead, variance = np.zeros(cmdp.shape[1]), noise_of(table, noise)
        for h in range(cmdp.shape[0] - 1, -1, -1):
            mean = cmdp.transition[h] @ ahead
            variance[h] += cmdp.transition[h] @ ahead**2 - mean**2
            ahead = ((table[h] + mean) * best.policy[h]).sum(axis=-1)
        if price > BINDS:
            each.append(boundary(episodes, errors, float((best.occupancy * variance).sum()) ** 0.5, price, growth))
    return Boundary(math.fsum(b.regret for b in each), max(b.violation for b in each))


def noise_of(table: Floats, noise: Noise) -> Floats:
    """Give the variance of one observation of every cost of a table: (high - d)(d - low), or a share of it.

    >>> noise_of(np.array([0.0, 0.1]), "two-point"), noise_of(np.array([0.0, 0.1, 0.05]), "own-range")
    (array([1.  , 0.99]), array([0.    , 0.    , 0.0025]))
    """
    low, high = (table.min(), table.max()) if noise == "own-range" else (-1.0, 1.0)
    share = {"exact": 0.0, "beta": 1.0 / (BETA_COUNTS + 1.0)}.get(noise, 1.0)
    return np.asarray(share * (high - table) * (table - low))


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
            cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
            nature = spec.nature.build(cmdp, seed_of(spec.stream(1)))
            line[spec.seed] = boundary_in(cmdp, nature, spec.episodes, z, growth)
    limits = []
    for place, line in found.items():
        known = [each for each in line.values() if each is not None]
        if known:
            limits.append(Limit(*place, len(known), *(float(np.mean(side)) for side in zip(*known, strict=True))))
    return limits


def boundary_in(cmdp: CMDP, nature: Any, episodes: int, z: float = 1.0, growth: float = 0.0) -> Boundary | None:
    """Give `limits_of` for one world and nature."""
    units = Units.of(cmdp)
    if not nature.repeats or changes_of(nature) or not written_out(cmdp.shape) or units.common_scale is None:
        return None
    first = nature.draw(0, np.zeros(cmdp.shape))
    tables = np.reshape(getattr(nature, "tables", first.cost), (-1, *cmdp.shape))
    safety = margin(z, 1.0, 1.0, 1, nature.feedback == "full")
    found = boundary_of(cmdp, tables, episodes, safety, first.cost_noise, growth)
    return None if found is None else Boundary(units.span * found.regret, units.common_scale * found.violation)
