"""The best policy under constraints, for laws of any form and size; every answer is checked by a bound.

Problems are solved over their deterministic policies (`columns.py`), in a few sweeps over the entries of the laws:
nothing of size S A S is ever made.  Only small ones with many tables are written out as linear programs
(`programs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats
from omdpd.problem.laws import Laws
from omdpd.solvers.columns import (
    ROUNDING,
    AnyProblem,
    Mixture,
    PlayedProblem,
    Problem,
    Vertex,
    best_mixture,
    mixture_within,
    price_of_less,
    safest_mixture,
)
from omdpd.solvers.programs import FEW_TABLES, Against, Plan, best_policy, by_rows, most_violated
from omdpd.solvers.trade_off import prices_of_more

# With more than `FEW_TABLES`, a program is written out up to this many entries of its kernel.
MAX_AT_ONCE = 5_000


@dataclass(frozen=True, eq=False)
class SolvedProblem:
    """A known problem, solved: its optimum, the best policy without tables, and for each table one of least d_j.q."""

    problem: PlayedProblem
    mixture: Mixture
    free: Vertex
    least: tuple[Vertex, ...]

    @cached_property
    def plan(self) -> Plan:
        """The optimum in tables (H, S, A)."""
        return _plan(self.problem, self.mixture)

    @property
    def violation(self) -> float:
        """The largest d_j.q of the optimum."""
        return _violation(self.mixture)

    @cached_property
    def prices(self) -> Floats:
        """What one more unit of every budget earns, (m,)."""
        return prices_of_more(self.problem, self.mixture)

    def price_of_less(self) -> float | None:
        """What one unit less loses, of a single table (None: no policy can do with less)."""
        less = price_of_less(self.problem, self.mixture, self.least[0])
        return None if less is None else max(less, float(self.prices[0]))

    def room(self, units: Floats, limited: npt.NDArray[np.bool_]) -> float:
        """max_q min_j -u_j d_j.q over the limited tables: the room of the safest policy; infinite if none is limited.

        It is negative where no policy meets all budgets.
        """
        if not limited.any():
            return np.inf
        return 0.0 - float((self.safest(units, limited).costs * units)[limited].max())

    def safest(self, units: Floats, limited: npt.NDArray[np.bool_]) -> Mixture:
        """The mixture whose largest u_j d_j.q over the limited tables is least; some table is limited.

        Tables without a limit have budgets far beyond their costs: in units of their own they are never the largest.
        """
        least = np.array([vertex.costs[j] for j, vertex in enumerate(self.least)])
        if limited.sum() == 1:
            j = int(limited.argmax())
            return Mixture((self.least[j],), np.ones(1), np.zeros(len(units)), float(least[j]), feasible=False)
        far = 2.0 * max(float(np.abs(units * least)[limited].max()), 1.0)
        units = np.where(limited, units, far / np.maximum(np.abs(least), ROUNDING))
        return safest_mixture(self.problem, known=(*self.mixture.vertices, *self.least), units=units)

    def nearest(self, units: Floats, limited: npt.NDArray[np.bool_], rounding: float) -> Mixture:
        """Of mixtures whose largest u_j d_j.q is least, up to `rounding`, one that keeps the other tables it can.

        Where not all of these can be kept together, the first ones are.
        """
        safest = self.safest(units, limited)
        alone = np.array([vertex.costs[j] <= 0.0 for j, vertex in enumerate(self.least)])
        if not (limited & alone & (safest.costs > rounding)).any():
            return safest
        slack = np.where(limited, max(float((safest.costs * units)[limited].max()), 0.0) / units + rounding, 0.0)
        found = mixture_within(self.problem, slack)
        for j in np.flatnonzero(limited & alone):
            kept = np.where(np.arange(len(slack)) == j, 0.0, slack)
            tried = mixture_within(self.problem, kept)
            if tried.feasible:
                slack, found = kept, tried
        return replace(found, feasible=False) if found.feasible else safest


def study(problem: PlayedProblem) -> SolvedProblem:
    """Solve max r.q subject to d_j.q <= 0 for every table, and what is asked around it."""
    mixture = best_mixture(problem)
    least = tuple(problem.best(np.r_[0.0, -row])[0] for row in np.eye(len(problem.tables)))
    return SolvedProblem(problem, mixture, mixture.vertices[0], least)


def best_plan(laws: Laws, initial: Floats, reward: Floats, tables: Floats) -> Plan:
    """The best policy with d_j.q <= 0 for every table of `tables` (n, H, S, A), or the one of least worst excess."""
    H, S, A = laws.shape
    if len(tables) > FEW_TABLES and H * S * A * S <= MAX_AT_ONCE:
        return best_policy(laws.expand(), initial, reward, tables)
    problem = Problem.of(laws.listed(), initial, reward, tables)
    return _plan(problem, best_mixture(problem))


def best_plan_against(laws: Laws, initial: Floats, reward: Floats, chunks: Callable[[], Iterable[Floats]]) -> Against:
    """`best_plan` for very many tables: they come in chunks, and rows are added as they are found violated."""

    def violated(occupancy: Floats, bar: float) -> Floats:
        found = [most_violated(chunk, occupancy, bar) for chunk in chunks()]
        return found[0] if len(found) == 1 else most_violated(np.concatenate(found), occupancy, bar)

    nothing = np.zeros((0, *reward.shape))
    return by_rows(nothing, lambda tables: best_plan(laws, initial, reward, tables), violated)


def safest_plan(laws: Laws, initial: Floats, tables: Floats) -> Floats:
    """The policy (H, S, A) whose largest d_j.q is least."""
    problem = Problem.of(laws.listed(), initial, np.zeros_like(tables[0][:1]), tables)
    return problem.occupancy_and_policy(safest_mixture(problem))[1]


def room_under(problem: AnyProblem) -> float:
    """max_q min_j -d_j.q: how far the safest policy stays below every budget; negative where none meets them all."""
    return 0.0 - float(safest_mixture(problem).costs.max())


def _plan(problem: PlayedProblem, mixture: Mixture) -> Plan:
    q, policy = problem.occupancy_and_policy(mixture)
    violation = _violation(mixture)
    return Plan(q, policy, mixture.value, mixture.prices, mixture.feasible, violation, None, mixture.bound)


def _violation(mixture: Mixture) -> float:
    return float(mixture.costs.max()) if len(mixture.prices) else 0.0
