"""The card of a problem: its sizes, its optimum, and how much the constraints bind.

    V*(b)        = max r.q   subject to   c_i.q <= b_i                          the optimum
    free value   = max r.q                                                     what it would be without constraints
    Slater gap   = max_q min_i (b_i - c_i.q)                                   the room of the safest policy
    multipliers  = the gain per unit of budget (dV*/db, from above), and the loss per unit taken away (from below)

Everything here is exact and computed from the truth.  Value and costs are in the user's units; the Slater gap and the
multipliers are those of the scaled problem that learners see.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.problem.labels import CHANCE
from omdpd.problem.laws import DenseLaws
from omdpd.problem.machine_memory import refuse_beyond_memory
from omdpd.problem.markup import facts_html, table_html
from omdpd.problem.tables import limit_name, long_run_name, wide
from omdpd.solvers.chains import MAX_FACTORISED
from omdpd.solvers.columns import Bools, PlayedProblem, Problem
from omdpd.solvers.compiled.reduction import ROOM_FOR_TIES
from omdpd.solvers.long_run import LongRunProblem
from omdpd.solvers.packed import MAX_HELD, code_type
from omdpd.solvers.planning import SolvedProblem, best_plan, room_under, study
from omdpd.solvers.programs import Plan
from omdpd.solvers.sweeps import once
from omdpd.worlds.facts import Facts


@dataclass(frozen=True, eq=False)
class ConstraintCard:
    """One constraint in the user's units, except the multipliers; `unit` times one of them is a natural price.

    `multiplier` is what one more unit of budget earns and `multiplier_high` what one less loses (None: not known).
    """

    name: str
    budget: float
    scale: float
    unit: float
    cost: float
    least_cost: float
    free_cost: float
    multiplier: float
    multiplier_high: float | None

    @property
    def share(self) -> float | None:
        """0: the budget is the least possible cost; 1: the reward-optimal policy just meets it."""
        spread = self.free_cost - self.least_cost
        return (self.budget - self.least_cost) / spread if spread > 1e-12 and self.budget < np.inf else None

    @property
    def size(self) -> float:
        """What room is a share of: the budget without its sign; of a budget of 0, what policies cost, or 1.

        What is next to never paid is rounding, and no size.
        """
        spent = max(abs(self.least_cost), abs(self.free_cost))
        return abs(self.budget) or (spent if spent > ROUNDING * self.scale else self.scale)

    @property
    def binds(self) -> bool:
        """Whether more budget would earn more."""
        return self.multiplier > 1e-9


@dataclass(frozen=True, eq=False)
class ProblemCard:
    """What is known about a problem; `value` is None where no policy meets every budget."""

    name: str
    shape: tuple[int, int, int]
    stationary: bool
    feasible: bool
    value: float | None
    free_value: float
    constraints: tuple[ConstraintCard, ...]
    scenarios: tuple[str, ...]
    scenario_value: float | None
    study: SolvedProblem
    discount: float | None = None

    @property
    def plan(self) -> Plan:
        """The optimal plan; or, without one, the plan whose largest excess is least."""
        return self.study.plan

    @cached_property
    def slater_gap(self) -> float:
        """max_q min_i -d_i.q, as learners see costs; negative where no policy meets every budget.

        Constraints without a limit do not count: it is infinite where there are no others.
        """
        return self.study.room(np.ones(len(self.constraints)), self.limited)

    @property
    def limited(self) -> Bools:
        """Which constraints have a limit, (I,)."""
        return np.array([constraint.budget < np.inf for constraint in self.constraints], bool)

    @property
    def shares(self) -> Floats:
        """What a unit of every table is as a share of its budget's size, (I,)."""
        return np.array([c.scale / c.size if c.budget < np.inf else 1.0 for c in self.constraints])

    @cached_property
    def room(self) -> float:
        """max_q min_i (b_i - c_i.q) / |b_i|: the room of the safest policy below every budget, as a share of it."""
        room = self.study.room(self.shares, self.limited)
        return max(0.0, room) if self.feasible or abs(room) < ROUNDING else room

    def share_text(self, share: float, whose: str) -> str:
        """A share of budgets for a person: in the unit of a single limit, of several in percent."""
        sizes = [c.size for c in self.constraints if c.budget < np.inf]
        return f"{share * sizes[0]:.6g}" if len(sizes) == 1 else f"{100.0 * share:.4g} {whose}"

    @property
    def room_text(self) -> str:
        """The room for a person; empty where nothing is limited."""
        if self.room == np.inf:
            return ""
        if self.room < 0.0 and sum(c.budget < np.inf for c in self.constraints) > 1:
            return f"none: every policy exceeds some budget by {-100.0 * self.room:.4g} % of it or more"
        return self.share_text(self.room, "% of each by one policy")

    def _repr_html_(self) -> str:
        """The card in a notebook."""
        H, S, A = self.shape
        length = H if self.discount is None else f"without an end ({long_run_name(self.discount)})"
        facts = {
            "states, actions, steps": f"{S}, {A}, {length}",
            "best safe value": self._none if self.value is None else f"{self.value:.6g}",
            "without constraints": f"{self.free_value:.6g}", "Slater gap": limit_name(self.slater_gap),
        }  # fmt: skip
        head = ("constraint", "budget", "least possible", "reward-optimal", "one more unit of budget earns")
        rows = [
            (c.name, limit_name(c.budget), f"{c.least_cost:.6g}", f"{c.free_cost:.6g}",
             f"{c.multiplier * c.unit:.6g}" if self.feasible else "-")
            for c in self.constraints
        ]  # fmt: skip
        return facts_html(self.name, facts, table_html(head, rows))

    @property
    def _none(self) -> str:
        """That no policy is safe, and by how much the nearest is not."""
        return f"none: some budget is exceeded by {self.share_text(-self.room, '% of it')}"

    @property
    def _gap_units(self) -> str:
        """That the gap is of rescaled costs, where they are; of one constraint it is also known in the user's units."""
        scales = [constraint.scale for constraint in self.constraints]
        if all(scale == 1.0 for scale in scales):
            return ""
        own = f" ({self.slater_gap * scales[0]:.6g} in your units)" if len(scales) == 1 else ""
        return f" as learners see costs{own}"

    def lines(self) -> list[str]:
        """The card for a person."""
        H, S, A = self.shape
        kind = "the same at every step" if self.stationary else "step by step"
        length = f"{H} steps (dynamics {kind})" if self.discount is None else long_run_name(self.discount)
        text = [
            f"{self.name}: {S} states, {A} actions, {length}, {_some(len(self.constraints))}",
            f"best value without constraints   {self.free_value:.6f}",
        ]
        if self.value is None:
            text.append(f"best safe value                  {self._none}")
        else:
            lost = self.free_value - self.value
            text.append(f"best safe value                  {self.value:.6f} (the constraints cost {lost:.6f})")
        if self.room_text:
            text.append(f"{ROOM:<32} {self.room_text}")
        if self.slater_gap < np.inf:
            meaning = _gap_meaning(self.slater_gap)
            text.append(f"Slater gap                       {self.slater_gap:.6f}{self._gap_units}{meaning}")
        for constraint in self.constraints:
            text += _constraint_lines(constraint, self.feasible)
        if self.scenarios:
            best = "no policy is safe in all of them" if self.scenario_value is None else (
                f"the best policy safe in all of them earns {self.scenario_value:.6f}"
            )  # fmt: skip
            text.append(f"natural adversary                {', '.join(self.scenarios)}; {best}")
        return text


# What the room of the safest policy is called where it is shown.
ROOM = "room below the budgets"
# A cost of less than this per step is what taking a budget off and adding it again leaves of zero.
ROUNDING = 1e-12


def problem_card(cmdp: CMDP) -> ProblemCard:
    """Solve a problem and describe it; one that does not fit into this machine is refused before."""
    H, S, A = cmdp.shape
    what = f"solving a problem of {S} states, {A} actions and {H} steps"
    refuse_beyond_memory(what, bytes_to_solve(cmdp), "lump states together, or shorten the horizon")
    known, scale = study(planned(cmdp, cmdp.excess, never_paid(cmdp))), cmdp.cost_scale
    plan = known.mixture
    prices = known.prices if plan.feasible else plan.prices
    less = known.price_of_less() if cmdp.n_constraints == 1 and plan.feasible else None
    span = cmdp.reward_range[1] - cmdp.reward_range[0]
    names = constraint_names(cmdp)
    least = np.array([known.least[i].costs[i] for i in range(cmdp.n_constraints)])
    costs = [excess + cmdp.budget for excess in (known.mixture.costs, least, known.free.costs)]
    rounding = np.where(cmdp.budget == 0.0, 0.0, ROUNDING * H)
    spent, least, free = (np.where(np.abs(cost) < rounding, 0.0, cost) * scale for cost in costs)
    constraints = tuple(
        ConstraintCard(
            names[i], float(cmdp.limits[i]), float(scale[i]), span / float(scale[i]), float(spent[i]), float(least[i]),
            float(free[i]), float(prices[i]), less,
        )
        for i in range(cmdp.n_constraints)
    )  # fmt: skip
    return ProblemCard(
        cmdp.name, cmdp.shape, cmdp.stationary, plan.feasible,
        natural_value(cmdp, plan.value) if plan.feasible else None, natural_value(cmdp, known.free.value), constraints,
        () if cmdp.scenarios is None else cmdp.scenarios.names, scenario_value(cmdp), known, cmdp.discount,
    )  # fmt: skip


def bytes_to_solve(cmdp: CMDP) -> float:
    """About how much memory a solution takes besides the problem itself, true within a factor of two."""
    (H, S, A), n = cmdp.shape, max(len(once(cmdp.reward)), len(once(cmdp.cost[0])))
    found = 8.0 * (3 + 3 * cmdp.n_constraints) * n * S * A + min(2.0 * H * S * code_type(A).itemsize, 2.0 * MAX_HELD)
    if isinstance(cmdp.laws, DenseLaws):  # they are listed
        found += 28.0 * cmdp.laws.n_entries
    if cmdp.discount is not None:  # chains, tables of what follows an action, and ties while an order is looked for:
        # an entry ties two states, often two that are tied already
        ties = 6.0 * ROOM_FOR_TIES * (S > MAX_FACTORISED)
        found += (24.0 + ties) * cmdp.laws.n_entries + 8.0 * (6 * S * A + 20 * S)
    return found


def facts_of(cmdp: CMDP) -> Facts:
    """The numbers of a problem as learners see it, like those kept for our own worlds (nan: no safe policy)."""
    card = problem_card(cmdp)
    low, high = cmdp.reward_range
    unsafe = float("nan")
    prices = tuple(constraint.multiplier for constraint in card.constraints)
    return Facts(
        card.study.mixture.value if card.feasible else unsafe, (card.free_value - cmdp.steps * low) / (high - low),
        card.slater_gap, prices, card.scenario_value,
    )  # fmt: skip


def planned(cmdp: CMDP, tables: Floats, never: Bools | None = None) -> PlayedProblem:
    """A problem as planners take it, under these tables (n, H, S, A); what they find is allowed.

    Of the tables `never` (n,) nothing is ever paid, without a tolerance; only costs that are rounding are none.
    """
    place = None if cmdp.mask is None else cmdp.mask.place
    tables, never = once(tables, 1), np.zeros(len(tables), bool) if never is None else never
    if never.any():
        least = ROUNDING * np.where(never, tables.max(axis=(1, 2, 3)), 0.0)
        tables = np.where(np.abs(tables) < wide(least), 0.0, tables)
    if cmdp.discount is not None:
        return LongRunProblem(cmdp.laws.listed(), cmdp.initial, cmdp.reward, tables, cmdp.discount, place, never)
    return Problem(cmdp.laws.listed(), cmdp.initial, once(cmdp.reward), tables, place, never)


def never_paid(cmdp: CMDP) -> Bools:
    """Which constraints are kept by never paying at all, (I,): those with a budget of 0 and no negative cost.

    Of averages none: what is paid now and then, but ever less often, is no share of the steps.
    """
    return (cmdp.discount != 1.0) & (cmdp.budget == 0.0) & np.array([cost.min() >= 0.0 for cost in cmdp.cost], bool)


def constraint_names(cmdp: CMDP) -> tuple[str, ...]:
    """The names of the constraints, given or counted."""
    return cmdp.labels.counted(n_constraints=cmdp.n_constraints).constraints


def natural_value(cmdp: CMDP, value: float) -> float:
    """A value of the scaled problem in the user's units of reward."""
    low, high = cmdp.reward_range
    return cmdp.steps * low + (high - low) * value


def safe_plan(cmdp: CMDP, tables: Floats) -> Plan:
    """The best policy that is safe for every table."""
    if cmdp.discount is not None:
        return study(planned(cmdp, tables)).plan
    return best_plan(cmdp.laws, cmdp.initial, cmdp.reward, tables)


def slater_gap(cmdp: CMDP) -> float:
    """max_q min_i -d_i.q, negative where no policy meets every budget."""
    return room_under(planned(cmdp, cmdp.excess))


def scenario_value(cmdp: CMDP) -> float | None:
    """The value of the best policy that is safe in every scenario, in the user's units; None without one."""
    if cmdp.scenarios is None:
        return None
    plan = safe_plan(cmdp, cmdp.scenarios.rows)
    return natural_value(cmdp, plan.value) if plan.feasible else None


def _constraint_lines(card: ConstraintCard, feasible: bool) -> list[str]:
    """Two lines per constraint: where the budget lies, and what it is worth."""
    between = card.share is not None and card.share >= 0.0
    way = 100.0 * (card.share or 0.0)
    where = "" if not between else f", {way:.1f} % of the way between them" if way <= 100.0 else ", which spends less"
    limit = "no limit" if card.budget == np.inf else f"budget {card.budget:.6g}"
    text = [f"{card.name}: {limit}; least possible {card.least_cost:.6g}, reward-optimal {card.free_cost:.6g}{where}"]
    if not feasible:
        over = card.least_cost - card.budget
        met = "can be met on its own, but not together with the others"
        return [*text, f"  impossible: every policy costs at least {over:.6g} more" if over > 0.0 else f"  {met}"]
    if not card.binds:
        return [*text, f"  does not bind: more budget would earn nothing (the optimum spends {card.cost:.6g})"]
    worth = f"  binds: {price_text(card.name, card.multiplier * card.unit)}"
    high = card.multiplier_high
    if high is not None and high > card.multiplier * (1.0 + 1e-6):
        worth += f", one less loses {high * card.unit:.6g}"
    scaled = "" if card.scale == 1.0 else f"; learners see costs and budget divided by {card.scale:.6g}"
    return [*text, worth + scaled]


def price_text(name: str, price: float) -> str:
    """What a little more of a budget earns, for a person: of a chance, one more hundredth."""
    if name.startswith(CHANCE):
        return f"one more percentage point earns {price / 100.0:.6g}"
    return f"one more unit of budget earns {price:.6g}"


def _some(n: int) -> str:
    return "1 constraint" if n == 1 else f"{n} constraints"


def _gap_meaning(gap: float) -> str:
    if gap < -1e-9:
        return " (negative: no policy meets every budget)"
    return " (no policy meets the budgets with room to spare)" if gap <= 1e-9 else ""
