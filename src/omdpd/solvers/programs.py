"""Linear programs over occupancies: the best policy under constraints, with dual values, and what to do without one.

    maximise  reward.q   subject to   d_j.q <= 0 for every table j,   q an occupancy

of one kernel, or of any kernel in a confidence box (the extended form, x_h(s,a,s') = q_h(s,a) p_h(s'|s,a)).
An infeasible program is an answer, not an error: the plan then is the policy whose largest d_j.q is least.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import highspy
import numpy as np
from scipy.sparse import block_array, coo_array, diags_array, eye_array, kron

from omdpd.problem.arrays import Floats, Integers, inner
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.vertices import GAVE_UP, OPTIMAL, plan_by_vertices

# Pricing by dynamic programming beats HiGHS up to about this many tables; and what it may cost before it gives up.
FEW_TABLES = 12
MAX_PIVOTS = 300
# HiGHS' own feasibility tolerances; a plan's rows hold to this.
ACCURACY = 1e-9
# Rows that are added to a program at a time, of very many: it then stays small, and few rounds are needed.
MAX_ADDED = 16
# A program is written out up to this many entries of its kernel, and this many of its rows.
MAX_WRITTEN = 2_000_000
MAX_ROWS = 10_000

Row = TypeVar("Row", bound=Hashable)


class SolverError(RuntimeError):
    """The linear-programming solver ended without an answer."""


@dataclass(frozen=True, eq=False)
class Basis:
    """A simplex basis, for a warm start of a program of the same shape."""

    columns: Integers
    rows: Integers


@dataclass(frozen=True, eq=False)
class Plan:
    """The answer of a program.

    `multipliers` (n,) are the shadow prices of the tables, >= 0 (zeros if infeasible); `violation` is the largest
    d_j.q of the plan (at most rounding if `feasible`).  `bound`, where it was worked out, is at least the best value
    (if infeasible: at most the least violation), so that the plan is off by at most the distance to it.
    """

    occupancy: Floats
    policy: Floats
    value: float
    multipliers: Floats
    feasible: bool
    violation: float
    basis: Basis | None = None
    bound: float | None = None


@dataclass(frozen=True, eq=False)
class Against:
    """A plan against very many tables, those of them that became rows of its program (n, H, S, A), and its solves."""

    plan: Plan
    rows: Floats
    solves: int


@dataclass(frozen=True, eq=False)
class RowPlan(Generic[Row]):
    """A plan under named tables, the names of those that became rows of its program, and how often it was solved."""

    plan: Plan
    rows: tuple[Row, ...]
    solves: int


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse rows by (row, column, value), with bounds; columns are counted from zero."""

    row: Integers
    column: Integers
    value: Floats
    lower: Floats
    upper: Floats
    n_columns: int


def written_out(shape: tuple[int, int, int]) -> bool:
    """Whether problems of this shape are small enough for a linear program over all their steps."""
    H, S, A = shape
    return H * S * A * S <= MAX_WRITTEN and H * S <= MAX_ROWS


def best_policy(transition: Floats, initial: Floats, reward: Floats, tables: Floats) -> Plan:
    """The best policy of one kernel with d_j.q <= 0 for every table of `tables` (n, H, S, A)."""
    return _plan(_kernel_rows(transition, initial), reward, tables, None)


def plan_in_kernel(p: Floats, initial: Floats, reward: Floats, tables: Floats) -> Plan:
    """Find `best_policy` by `vertex_plan` while tables are few, and else by one program over all steps."""
    few = len(tables) <= FEW_TABLES
    return vertex_plan(p, p, initial, reward, tables) if few else best_policy(p, initial, reward, tables)


def optimistic_plan(
    lower: Floats, upper: Floats, initial: Floats, reward: Floats, tables: Floats, basis: Basis | None = None
) -> Plan:
    """The best policy and kernel in a box with d_j.q <= 0 for every table: the extended program of OptCMDP."""
    return _plan(_box_rows(lower, upper, initial), reward, tables, basis)


def average_plan(lower: Floats, upper: Floats, reward: Floats, tables: Floats) -> Plan:
    """The best shares of steps (1, S, A) that policies and kernels in a box (S, A, S) keep, for tables (n, 1, S, A)."""
    return _plan(_average_rows(lower, upper), reward, tables, None)


def vertex_plan(
    lower: Floats, upper: Floats, initial: Floats, reward: Floats, tables: Floats, basis: Basis | None = None
) -> Plan:
    """`optimistic_plan` for few tables, ten times faster: a simplex method on the tables' rows alone.

    Its columns are vertices of the polytope, found by dynamic programming.  With many tables, or where rounding leaves
    it undecided, the program goes to HiGHS, from `basis` on.
    """
    if len(tables) <= FEW_TABLES:
        q, prices, status, _ = plan_by_vertices(lower, upper, initial, reward, tables, MAX_PIVOTS)
        if status != GAVE_UP:
            excess = tables.reshape(len(tables), q.size) @ q.ravel()
            violation = float(excess.max()) if len(tables) else 0.0
            value = float(np.vdot(reward, q))
            return Plan(q, policy_of_occupancy(q), value, prices, status == OPTIMAL, violation)
    return optimistic_plan(lower, upper, initial, reward, tables, basis)


def plan_under(
    tables: Mapping[Row, Floats], rows: Iterable[Row], shape: tuple[int, int, int], solve: Callable[[Floats], Plan]
) -> RowPlan[Row]:
    """The plan of `solve` under named tables, of which only those of `rows` and what is found violated become rows."""
    names = [row for row in rows if row in tables]

    def chosen(some: list[Row]) -> Floats:
        return np.array([tables[row] for row in some]).reshape(-1, *shape)

    def violated(occupancy: Floats, bar: float) -> Floats:
        missing = [row for row, d in tables.items() if row not in names and np.vdot(d, occupancy) > bar]
        names.extend(missing)
        return chosen(missing)

    found = by_rows(chosen(names), solve, violated)
    return RowPlan(found.plan, tuple(names), found.solves)


def by_rows(chosen: Floats, solve: Callable[[Floats], Plan], violated: Callable[[Floats, float], Floats]) -> Against:
    """Solve with the chosen tables and add those that the plan violates, until none is left."""
    solves = 0
    while True:
        plan = solve(chosen)
        solves += 1
        added = violated(plan.occupancy, max(plan.violation, 0.0) + 10.0 * ACCURACY)
        if not len(added):
            return Against(plan, chosen, solves)
        chosen = np.concatenate([chosen, added])


def most_violated(tables: Floats, occupancy: Floats, bar: float) -> Floats:
    """The tables with the largest excess above the bar."""
    excess = inner(tables, occupancy)
    worst = np.argsort(-excess)[:MAX_ADDED]
    return tables[worst[excess[worst] > bar]]


def least_total_violation(transition: Floats, initial: Floats, tables: Floats, weights: Floats) -> float:
    """min_q sum_k w_k max_i [d_ki.q]^+ for tables (n, I, H, S, A): the least that a fixed policy pays in hindsight."""
    rows = _kernel_rows(transition, initial)
    n, per_episode = tables.shape[:2]
    full = _with_slacks(rows, tables.reshape(-1, *tables.shape[2:]), np.repeat(np.arange(n), per_episode))
    total = float(weights.sum())
    cost = np.r_[np.zeros(rows.n_columns), weights / total]
    # Thousands of dense rows and few columns: the interior point is several times faster than the simplex here.
    return total * float(run_highs(full, cost, None, "ipm")[3])


def _plan(rows: SparseRows, reward: Floats, tables: Floats, basis: Basis | None) -> Plan:
    """Maximise reward.q; if the tables cannot all hold, minimise the largest excess instead."""
    n = len(tables)
    cost = np.zeros(rows.n_columns)
    cost[: reward.size] = -reward.ravel()
    status, x, duals, _, found = run_highs(_with_tables(rows, tables), cost, basis)
    feasible = status == highspy.HighsModelStatus.kOptimal
    if not feasible:
        one = _with_slacks(rows, tables, np.zeros(n, np.int64))
        x = run_highs(one, np.r_[np.zeros(rows.n_columns), 1.0], None)[1]
        duals, found = np.zeros(n), None
    q = np.maximum(x[: reward.size], 0.0).reshape(reward.shape)
    excess = tables.reshape(n, q.size) @ q.ravel()
    prices = np.maximum(-duals[len(duals) - n :], 0.0) if n else np.zeros(0)
    violation = float(excess.max()) if n else 0.0
    return Plan(q, policy_of_occupancy(q), float(np.vdot(reward, q)), prices, feasible, violation, found)


def _with_tables(rows: SparseRows, tables: Floats) -> SparseRows:
    """Append d_j.q <= 0."""
    n, size = len(tables), int(np.prod(tables.shape[1:]))
    first = len(rows.lower)
    return SparseRows(
        np.r_[rows.row, np.repeat(np.arange(first, first + n), size)],
        np.r_[rows.column, np.tile(np.arange(size), n)],
        np.r_[rows.value, tables.ravel()],
        np.r_[rows.lower, np.full(n, -np.inf)],
        np.r_[rows.upper, np.zeros(n)],
        rows.n_columns,
    )


def _with_slacks(rows: SparseRows, tables: Floats, slack: Integers) -> SparseRows:
    """Append d_j.q <= t_slack(j) with slacks t >= 0, counted from zero."""
    full = _with_tables(rows, tables)
    n, first = len(tables), len(rows.lower)
    return SparseRows(
        np.r_[full.row, np.arange(first, first + n)],
        np.r_[full.column, rows.n_columns + slack],
        np.r_[full.value, -np.ones(n)],
        full.lower,
        full.upper,
        rows.n_columns + int(slack.max()) + 1,
    )


def _kernel_rows(transition: Floats, initial: Floats) -> SparseRows:
    """sum_a q_h(s,a) - sum p_{h-1}(s|.) q_{h-1} = 1[h=0] mu(s), columns q_h(s,a)."""
    H, S, A = transition.shape[:3]
    n = H * S * A
    own = np.arange(n)
    before = np.repeat(np.arange(n - S * A), S)
    arrive = (np.arange(n - S * A) // (S * A) + 1)[:, None] * S + np.arange(S)
    row = np.r_[own // A, arrive.ravel()]
    value = np.r_[np.ones(n), -transition[:-1].ravel()]
    bounds = np.r_[initial, np.zeros((H - 1) * S)]
    return SparseRows(row, np.r_[own, before], value, bounds, bounds, n)


@lru_cache(maxsize=8)
def _box_pattern(H: int, S: int, A: int) -> tuple[Integers, Integers]:
    """Rows and columns of the extended form: flow, row sums, then upper and lower bounds of every x."""
    n, n_before, n_x = H * S * A, (H - 1) * S * A, (H - 1) * S * A * S
    own, x = np.arange(n), np.arange(n_x)
    r_of_x = x // S
    arrive = (r_of_x // (S * A) + 1) * S + x % S
    sums = H * S + np.arange(n_before)
    first = H * S + n_before
    row = np.r_[own // A, arrive, sums, sums[r_of_x], first + x, first + x, first + n_x + x, first + n_x + x]
    column = np.r_[own, n + x, np.arange(n_before), n + x, n + x, r_of_x, n + x, r_of_x]
    return row, column


def _box_rows(lower: Floats, upper: Floats, initial: Floats) -> SparseRows:
    """The flow in q and x, sum_t x = q, x - upper q <= 0 and x - lower q >= 0."""
    H, S, A = lower.shape[:3]
    n, n_before, n_x = H * S * A, (H - 1) * S * A, (H - 1) * S * A * S
    row, column = _box_pattern(H, S, A)
    one, least, most = np.ones(n_x), lower[:-1].ravel(), upper[:-1].ravel()
    value = np.r_[np.ones(n), -one, -np.ones(n_before), one, one, -most, one, -least]
    flow = np.r_[initial, np.zeros((H - 1) * S), np.zeros(n_before)]
    nothing = np.full(n_x, np.inf)
    low, high = np.r_[flow, -nothing, np.zeros(n_x)], np.r_[flow, np.zeros(n_x), nothing]
    return SparseRows(row, column, value, low, high, n + n_x)


def _average_rows(lower: Floats, upper: Floats) -> SparseRows:
    """sum q = 1, what enters a state leaves it, sum_t x = q, x - upper q <= 0 and x - lower q >= 0, in q and x."""
    S, A, _ = lower.shape
    n, pairs = S * A, eye_array(S * A)
    each, n_x = kron(pairs, np.ones((S, 1))), S * A * S
    x, leaves = eye_array(n_x), kron(eye_array(S), np.ones((1, A)))
    most, least = (-(diags_array(bound.ravel()) @ each) for bound in (upper, lower))
    enters, nothing = kron(np.ones((1, n)), eye_array(S)), coo_array((1, n_x))
    blocks = [[np.ones((1, n)), nothing], [leaves, -enters], [-pairs, each.T], [most, x], [least, x]]
    matrix, none = block_array(blocks, format="coo"), np.full(n_x, np.inf)
    flow = np.r_[1.0, np.zeros(S + n)]
    low, high = np.r_[flow, -none, np.zeros(n_x)], np.r_[flow, np.zeros(n_x), none]
    return SparseRows(matrix.row.astype(np.int64), matrix.col.astype(np.int64), matrix.data, low, high, n + n_x)


def run_highs(
    rows: SparseRows, cost: Floats, basis: Basis | None, solver_name: str = "choose"
) -> tuple[highspy.HighsModelStatus, Floats, Floats, float, Basis | None]:
    """Minimise cost.x over x >= 0 and the rows: status, x, row duals, objective, final basis."""
    order = np.argsort(rows.row, kind="stable")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), len(rows.lower)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(len(cost)), np.full(len(cost), np.inf)
    lp.row_lower_, lp.row_upper_ = rows.lower, rows.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.r_[0, np.cumsum(np.bincount(rows.row, minlength=len(rows.lower)))].astype(np.int32)
    lp.a_matrix_.index_ = rows.column[order].astype(np.int32)
    lp.a_matrix_.value_ = rows.value[order]
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("solver", solver_name)
    solver.setOptionValue("primal_feasibility_tolerance", ACCURACY)
    solver.setOptionValue("dual_feasibility_tolerance", ACCURACY)
    solver.passModel(lp)
    if basis is not None:
        _warm(solver, basis, len(rows.lower))
    solver.run()
    status = solver.getModelStatus()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible):
        status = _again(solver)
    solution, final = solver.getSolution(), solver.getBasis()
    kept = Basis(np.array([int(b) for b in final.col_status]), np.array([int(b) for b in final.row_status]))
    return status, np.array(solution.col_value), np.array(solution.row_dual), solver.getObjectiveValue(), kept


def _warm(solver: highspy.Highs, basis: Basis, n_rows: int) -> None:
    """Start from a basis of the same columns; rows that are new begin as basic."""
    start = highspy.HighsBasis()
    basic = int(highspy.HighsBasisStatus.kBasic)
    rows = np.r_[basis.rows, np.full(n_rows - len(basis.rows), basic)] if n_rows > len(basis.rows) else basis.rows
    start.col_status = [highspy.HighsBasisStatus(int(b)) for b in basis.columns]
    start.row_status = [highspy.HighsBasisStatus(int(b)) for b in rows[:n_rows]]
    start.valid = True
    solver.setBasis(start)


def _again(solver: highspy.Highs) -> highspy.HighsModelStatus:
    """One more try from scratch, without presolve; then say that the solver failed."""
    solver.clearSolver()
    solver.setOptionValue("presolve", "off")
    solver.run()
    status = solver.getModelStatus()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible):
        raise SolverError(f"HiGHS ended with status {solver.modelStatusToString(status)}")
    return status
