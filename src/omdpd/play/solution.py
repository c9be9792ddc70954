"""Solve a problem whose model is known.

    V*(b) = max r.q   subject to   c_i.q <= b_i for every constraint i,   q an occupancy

Where no policy meets the budgets the answer is that sentence, and the policy that exceeds them least.  All numbers are
in the user's units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.play.policy import Evaluation, Policy
from omdpd.problem.arrays import Floats, one_step, over_steps
from omdpd.problem.cmdp import CMDP
from omdpd.problem.markup import facts_html, table_html
from omdpd.solvers.planning import room_under
from omdpd.worlds.card import ProblemCard, problem_card


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The optimum of a known problem, or the fact that its budgets are impossible.

    Attributes
    ----------
    feasible
        Whether some policy meets every budget.
    policy, evaluation
        The best such policy, or the one whose largest excess is least; what it earns and costs, exactly.
    shadow_prices : (I,)
        What one more unit of each budget earns; nan where the budgets are impossible.
    slater_gap
        max over policies of the least room below any budget; negative where the budgets are impossible.
    free_value
        The best value without constraints.
    least_costs : (I,)
        The least that any policy costs, for each constraint on its own.
    constraints
        Their names.
    """

    feasible: bool
    policy: Policy
    evaluation: Evaluation
    shadow_prices: Floats
    slater_gap: float
    free_value: float
    least_costs: Floats
    constraints: tuple[str, ...]

    @property
    def value(self) -> float | None:
        """V*; None where the budgets are impossible."""
        return self.evaluation.value if self.feasible else None

    @property
    def impossible(self) -> str:
        """The sentence that says why the budgets cannot be met; empty where they can."""
        return "" if self.feasible else _why(self)

    def lines(self) -> list[str]:
        """The solution for a person."""
        found = self.evaluation
        text = [] if self.feasible else [self.impossible]
        what = "best safe value" if self.feasible else "the nearest policy earns"
        text += [f"{what:<32} {found.value:.6f}", f"{'without constraints':<32} {self.free_value:.6f}"]
        text.append(f"{'Slater gap':<32} {self.slater_gap:.6f}")
        for i, name in enumerate(self.constraints):
            price = f"; one more unit of budget earns {self.shadow_prices[i]:.6g}" if self.feasible else ""
            least = f" (least possible {self.least_costs[i]:.6g})"
            text.append(f"{name:<32} costs {found.costs[i]:.6g} of {found.budget[i]:.6g}{least}{price}")
        return text

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Solution({self.impossible or f'value {self.evaluation.value:.6g}'})"

    def _repr_html_(self) -> str:
        """The solution in a notebook."""
        found = self.evaluation
        facts = {
            "best safe value": self.impossible or f"{found.value:.6g}",
            "without constraints": f"{self.free_value:.6g}", "Slater gap": f"{self.slater_gap:.6g}",
        }  # fmt: skip
        head = ("constraint", "budget", "cost", "least possible", "one more unit of budget earns")
        columns = (found.budget, found.costs, self.least_costs, self.shadow_prices)
        rows = [(name, *(f"{column[i]:.6g}" for column in columns)) for i, name in enumerate(self.constraints)]
        return facts_html("solution", facts, table_html(head, rows))


def solve(cmdp: CMDP) -> Solution:
    """The best policy that meets every budget, exactly; or the sentence that there is none, and what comes nearest."""
    card = problem_card(cmdp)
    policy = Policy(card.plan.policy, cmdp.labels)
    return Solution(
        card.feasible, policy, policy.evaluate(cmdp), _prices(card), _slater_gap(cmdp), card.free_value,
        np.array([c.least_cost for c in card.constraints]), tuple(c.name for c in card.constraints),
    )  # fmt: skip


def _prices(card: ProblemCard) -> Floats:
    """Shadow prices in units of reward per unit of cost."""
    return np.array([c.multiplier * c.unit if card.feasible else np.nan for c in card.constraints])


def _slater_gap(cmdp: CMDP) -> float:
    """max_q min_i (b_i - c_i.q) in the user's units, in which constraints have other scales than for learners."""
    largest = float(cmdp.cost_scale.max())
    share = cmdp.cost_scale / largest
    excess = over_steps(one_step(cmdp.excess, 1) * share[:, None, None, None], cmdp.shape[0], 1)
    return largest * room_under(cmdp.laws, cmdp.initial, excess)


def _why(solution: Solution) -> str:
    """Which budget is below the least possible cost, or that they cannot be met together."""
    found = solution.evaluation
    for name, budget, least in zip(solution.constraints, found.budget, solution.least_costs, strict=True):
        if least > budget:
            return f"no policy meets the budget {budget:.6g} of {name}: the least possible cost is {least:.6g}"
    each = ", ".join(
        f"{c:.6g} of {b:.6g} ({name})"
        for name, c, b in zip(solution.constraints, found.costs, found.budget, strict=True)
    )
    return f"no policy meets all budgets at once: the one that exceeds them least costs {each}"
