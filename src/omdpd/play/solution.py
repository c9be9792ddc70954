"""Solve a problem whose model is known.

    V*(b) = max r.q   subject to   c_i.q <= b_i for every constraint i,   q an occupancy

Where no policy meets the budgets the answer is that sentence, and the policy that exceeds them least.  All numbers are
in the user's units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from omdpd.play.explained import Draws, Pure, ToGo, best_pure, draws, pure_policies, to_go
from omdpd.play.policy import Evaluation, Policy
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.problem.markup import facts_html, table_html
from omdpd.problem.tables import limit_name
from omdpd.solvers.chains import chain_of, closed_classes
from omdpd.solvers.columns import Mixture
from omdpd.solvers.planning import SolvedProblem
from omdpd.worlds.card import ROOM, ROUNDING, ProblemCard, natural_value, price_text, problem_card


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The optimum of a known problem, or the fact that its budgets are impossible.

    Attributes
    ----------
    feasible
        Whether some policy meets every budget.
    policy, evaluation
        The best such policy, or one whose largest excess, as a share of its budget, is least and that keeps the other
        budgets where it can; what it earns and costs, exactly.
    shadow_prices : (I,)
        What one more unit of each budget earns; nan where the budgets are impossible.
    free_value
        The best value without constraints.
    least_costs : (I,)
        The least that any policy costs, for each constraint on its own.
    constraints
        Their names.
    cmdp, card
        The problem, and what is known about it.
    """

    feasible: bool
    policy: Policy
    evaluation: Evaluation
    shadow_prices: Floats
    free_value: float
    least_costs: Floats
    constraints: tuple[str, ...]
    cmdp: CMDP
    card: ProblemCard

    @property
    def study(self) -> SolvedProblem:
        """How it was solved."""
        return self.card.study

    @property
    def room(self) -> float:
        """The room of the safest policy below every budget, as a share of it; negative where they are impossible."""
        return self.card.room

    @cached_property
    def slater_gap(self) -> float:
        """max over policies of the least room below any budget; negative where the budgets are impossible.

        Several constraints are compared as the numbers that they are; `room` compares them as shares of their budgets.
        It is infinite where no constraint has a limit.
        """
        room = self.study.room(self.cmdp.cost_scale, ~self.cmdp.unlimited)
        return max(0.0, room) if self.feasible else room

    @property
    def occupancy(self) -> Floats:
        """How likely every step, state and action is under the policy, (H, S, A)."""
        return self.study.plan.occupancy

    @cached_property
    def values(self) -> ToGo:
        """What the policy earns and costs from every step and state on."""
        return to_go(self)

    def randomises(self) -> Draws:
        """Where the policy draws among actions: how likely each is, how often it comes there, and because of what."""
        return draws(self)

    def pure_policies(self) -> list[Pure]:
        """The policies without randomness that the optimum mixes, with the shares of the coin that chooses one."""
        return pure_policies(self)

    def deterministic(self) -> Pure:
        """The best policy found that never draws and meets the budgets, its `loss`, and what none exceeds, `at_most`.

        Small problems are searched until value and `at_most` meet (`proved`).  Where it is false, and printed is a
        sentence, there is none, or none was found: with one constraint there always is one.
        """
        return best_pure(self)

    @property
    def value(self) -> float | None:
        """V*; None where the budgets are impossible."""
        return self.evaluation.value if self.feasible else None

    @property
    def bound(self) -> float | None:
        """What no policy earns that meets the budgets, as multipliers prove it; None where the budgets are impossible.

        It is `study.mixture.bound` in the user's units.
        """
        return natural_value(self.cmdp, self.study.mixture.bound) if self.feasible else None

    @property
    def gap(self) -> float | None:
        """How far the value may be below the best, `bound` less `value`: rounding; None where nothing is proved."""
        return None if self.bound is None else max(self.bound - self.evaluation.value, 0.0)

    @cached_property
    def note(self) -> str:
        """Of averages: how many closed classes the policy has, and whether it needs a coin before the first step."""
        if self.cmdp.discount != 1.0:
            return ""
        chain = chain_of(self.cmdp.laws.listed(), self.policy.table[0])
        n = len(closed_classes(chain)[0])
        alone = self.policy.evaluate(self.cmdp)
        if not np.allclose([alone.value, *alone.costs], [self.evaluation.value, *self.evaluation.costs], 1e-7, 1e-9):
            return (
                f"the policy has {n} closed classes, and no stationary one was found that is the optimum: draw one of "
                "`pure_policies()` by its share before the first step, and play it for ever"
            )
        return "the policy has one closed class" if n == 1 else f"the policy has {n} closed classes"

    @property
    def impossible(self) -> str:
        """The sentence that says why the budgets cannot be met; empty where they can."""
        return "" if self.feasible else _why(self)

    def lines(self) -> list[str]:
        """The solution for a person."""
        found = self.evaluation
        text = [] if self.feasible else [self.impossible]
        what = "best safe value" if self.feasible else "the nearest policy earns"
        numbers = {what: found.value, "without constraints": self.free_value}
        text += [f"{name:<32} {round(number, 6) + 0.0:.6f}" for name, number in numbers.items()]
        text += [f"{ROOM:<32} {self.card.room_text}"] if self.card.room_text else []
        for i, name in enumerate(self.constraints):
            price = f"; {price_text(name, self.shadow_prices[i])}" if self.feasible else ""
            least = f" (least possible {self.least_costs[i]:.6g})"
            limit, price = (", no limit", "") if np.isinf(found.budget[i]) else (f" of {found.budget[i]:.6g}", price)
            if found.budget[i] < 0.0:  # at least so much of something, as a cost with a minus
                done, asked, most = (0.0 - each[i] for each in (found.costs, found.budget, self.least_costs))
                limit += f": {done:.6g}, and at least {asked:.6g} is asked for"
                least = f" (most possible {most:.6g})"
            text.append(f"{name:<32} costs {found.costs[i]:.6g}{limit}{least}{price}")
        return [*text, self.note] if self.note else text

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Solution({self.impossible or f'value {self.evaluation.value:.6g}'})"

    def _repr_html_(self) -> str:
        """The solution in a notebook."""
        found = self.evaluation
        facts = {
            "best safe value": self.impossible or f"{found.value:.6g}",
            "without constraints": f"{self.free_value:.6g}", ROOM: self.card.room_text or "no limit",
        }  # fmt: skip
        head = ("constraint", "budget", "cost", "least possible", "one more unit of budget earns")
        columns = (found.costs, self.least_costs, self.shadow_prices)
        named = [(name, limit_name(b)) for name, b in zip(self.constraints, found.budget, strict=True)]
        rows = [(*names, *(f"{column[i]:.6g}" for column in columns)) for i, names in enumerate(named)]
        return facts_html("solution", facts, table_html(head, rows))


def solve(cmdp: CMDP) -> Solution:
    """The best policy that meets every budget, exactly; or a sentence that no policy does, and what comes nearest."""
    card = problem_card(cmdp)
    if not card.feasible:
        nearest = card.study.nearest(card.shares, card.limited, ROUNDING * cmdp.steps)
        card = replace(card, study=replace(card.study, mixture=nearest))
    policy = Policy(card.study.problem.packed(card.study.mixture), cmdp.labels)
    prices = np.array([c.multiplier * c.unit if card.feasible else np.nan for c in card.constraints])
    return Solution(
        card.feasible, policy, _evaluation(cmdp, card.study.mixture, policy), prices, card.free_value,
        np.array([c.least_cost for c in card.constraints]), tuple(c.name for c in card.constraints),
        cmdp, card,
    )  # fmt: skip


def _evaluation(cmdp: CMDP, mixture: Mixture, policy: Policy) -> Evaluation:
    """What the policy earns and costs; where the optimum is a coin over several and no single one, what they do."""
    alone, earned = policy.evaluate(cmdp), natural_value(cmdp, mixture.value)
    spent = (mixture.costs + cmdp.budget) * cmdp.cost_scale
    if cmdp.discount != 1.0 or np.allclose([alone.value, *alone.costs], [earned, *spent], 1e-7, 1e-9):
        return alone
    return Evaluation(earned, spent, cmdp.limits)


def _why(solution: Solution) -> str:
    """Which budget is below the least possible cost, or that they cannot be met together."""
    found = solution.evaluation
    for name, budget, least in zip(solution.constraints, found.budget, solution.least_costs, strict=True):
        if least > budget:
            return f"no policy meets the budget {budget:.6g} of {name}: the least possible cost is {least:.6g}"
    spent = zip(solution.card.constraints, found.costs, strict=True)
    each = ", ".join(
        f"{cost:.6g} of {c.budget:.6g} ({c.name}, {100.0 * max(cost - c.budget, 0.0) / c.size:.4g} % over)"
        for c, cost in spent
        if c.budget < np.inf
    )
    what = "the one whose largest excess, as a share of its budget, is least"
    return f"no policy meets all budgets at once: {what} costs {each}"
