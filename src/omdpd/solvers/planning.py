"""The best policy under constraints, for laws of any form and size; every answer is checked by a bound.

Small problems are written out as linear programs (`programs.py`).  Large ones are solved over their deterministic
policies (`columns.py`), in a few sweeps over the entries of the laws: nothing of size S A S is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from omdpd.problem.arrays import Floats, inner
from omdpd.problem.laws import Laws
from omdpd.solvers.columns import Mixture, Problem, best_mixture, price_range, safest_mixture
from omdpd.solvers.programs import (
    Against,
    Plan,
    best_policy,
    best_policy_against,
    by_rows,
    most_violated,
    safest_policy,
)
from omdpd.solvers.sweeps import greedy_under, occupancy_under

# A program is written out up to this many entries of its kernel, and this many of its rows.
MAX_ENTRIES = 2_000_000
MAX_ROWS = 10_000


def written_out(laws: Laws) -> bool:
    """Whether problems with these laws are small enough for a linear program over all their steps."""
    H, S, A = laws.shape
    return H * S * A * S <= MAX_ENTRIES and H * S <= MAX_ROWS


def best_plan(laws: Laws, initial: Floats, reward: Floats, tables: Floats) -> Plan:
    """The best policy with d_j.q <= 0 for every table of `tables` (n, H, S, A), or the one of least worst excess."""
    if written_out(laws):
        return best_policy(laws.expand(), initial, reward, tables)
    return plan_by_columns(laws, initial, reward, tables)


def plan_by_columns(laws: Laws, initial: Floats, reward: Floats, tables: Floats) -> Plan:
    """`best_plan` over mixtures of deterministic policies, at any size."""
    problem = Problem.of(laws.listed(), initial, reward, tables)
    mixture = best_mixture(problem)
    if mixture is not None:
        return _plan(problem, mixture, mixture.prices, True)
    return _plan(problem, safest_mixture(problem), np.zeros(len(tables)), False)


def prices_of_one(laws: Laws, initial: Floats, reward: Floats, tables: Floats) -> tuple[float, float | None]:
    """The least and the largest optimal multiplier of a single table that some policy meets (None: no largest)."""
    return price_range(Problem.of(laws.listed(), initial, reward, tables))


def best_plan_against(laws: Laws, initial: Floats, reward: Floats, chunks: Callable[[], Iterable[Floats]]) -> Against:
    """`best_plan` for very many tables: they come in chunks, and rows are added as they are found violated."""
    if written_out(laws):
        return best_policy_against(laws.expand(), initial, reward, chunks)

    def violated(occupancy: Floats, bar: float) -> Floats:
        found = [most_violated(chunk, occupancy, bar) for chunk in chunks()]
        return found[0] if len(found) == 1 else most_violated(np.concatenate(found), occupancy, bar)

    nothing = np.zeros((0, *reward.shape))
    return by_rows(nothing, lambda tables: plan_by_columns(laws, initial, reward, tables), violated)


def safest_plan(laws: Laws, initial: Floats, tables: Floats) -> Floats:
    """The policy (H, S, A) whose largest d_j.q over tables with entries in [-1, 1] is least."""
    if written_out(laws):
        return safest_policy(laws.expand(), initial, tables)
    if len(tables) == 1:
        return greedy_under(laws, -tables[0])[0]
    problem = Problem.of(laws.listed(), initial, np.zeros_like(tables[0][:1]), tables)
    return problem.occupancy_and_policy(safest_mixture(problem))[1]


def room_under(laws: Laws, initial: Floats, tables: Floats) -> float:
    """max_q min_j -d_j.q: how far the safest policy stays below every budget; negative where none meets them all."""
    policy = safest_plan(laws, initial, tables)
    return 0.0 - float(inner(tables, occupancy_under(laws, policy, initial)).max())


def _plan(problem: Problem, mixture: Mixture, prices: Floats, feasible: bool) -> Plan:
    q, policy = problem.occupancy_and_policy(mixture)
    violation = float(mixture.costs.max()) if len(prices) else 0.0
    return Plan(q, policy, mixture.value, prices, feasible, violation, None, mixture.bound)
