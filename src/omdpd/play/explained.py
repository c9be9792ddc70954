"""Why a solution plays what it plays: what is still to come, where it draws, and its policies without randomness.

V_h(s) = sum over actions of pi_h(a|s) (c_h(s,a) + sum_t p_h(t|s,a) V_{h+1}(t))          for reward and every cost
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from omdpd.play.policy import Evaluation, Policy
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP
from omdpd.solvers.chains import UNKNOWN, chain_of, gain_and_bias, order_of, reduced_chain, values_in_the_long_run
from omdpd.solvers.compiled.listed import Codes, listed_values
from omdpd.solvers.sweeps import lists_of
from omdpd.solvers.undrawn import undrawn
from omdpd.worlds.card import natural_value

if TYPE_CHECKING:
    from omdpd.play.solution import Solution

# A probability below this is rounding, and so is a difference of what two actions cost, or of values, relative to them.
ROUNDING = 1e-9
# Of so many places where a policy draws each is printed.
MAX_DRAWS = 20
NONE_FOUND = "none found: every policy without randomness that was tried exceeds a budget, though others may not"
NONE_EXISTS = "there is none: every policy without randomness exceeds a budget"


@dataclass(frozen=True, eq=False)
class ToGo:
    """What a policy earns (H, S) and costs (I, H, S) from every step and state on, in the user's units.

    In the long run there is one step; of averages they are averages from a state on.
    """

    reward: Floats
    costs: Floats


@dataclass(frozen=True)
class Draw:
    """A step and state where a policy draws among actions.

    `reached` is how likely an episode comes there; without an end (`long_run`), which share of the steps is played
    there, discounted where they are.  `constraints` name the budgets that make it draw: those that bind,
    and of which the actions use different amounts.
    """

    step: int
    state: int
    state_name: str
    probabilities: dict[str, float]
    reached: float
    constraints: tuple[str, ...]
    long_run: bool = False

    def __str__(self) -> str:
        actions = ", ".join(f"{name} {100.0 * p:.4g} %" for name, p in self.probabilities.items())
        why = f", because of {' and '.join(self.constraints)}" if self.constraints else ""
        often = f"{100.0 * self.reached:.4g} %"
        where, how = ("", f"{often} of the steps") if self.long_run else (f"step {self.step}, ", f"reached in {often}")
        return f"{where}{self.state_name} ({how}): {actions}{why}"


@dataclass(frozen=True, eq=False)
class Pure:
    """A policy that never draws, what it earns and costs, how much less than the optimum, and its share in that.

    No policy that never draws and meets the budgets earns more than `at_most`, minus infinity where there is none.
    Where none was found it is false, `why` is the sentence that says so, and the policy exceeds the budgets least of
    those that were tried, as a share of them.
    """

    policy: Policy
    evaluation: Evaluation
    loss: float
    share: float
    at_most: float
    why: str = ""

    def __bool__(self) -> bool:
        return not self.why

    @property
    def proved(self) -> bool:
        """Whether this is proved to be the best that never draws and meets the budgets, or proved not to exist."""
        near = self.at_most <= self.evaluation.value + ROUNDING * max(1.0, abs(self.evaluation.value))
        return self.at_most == -np.inf or (near and self.evaluation.safe)

    def __str__(self) -> str:
        if self.why:
            return f"{self.why}; the nearest {self.evaluation}"
        best = (
            "proved the best" if self.proved else f"at most {self.at_most - self.evaluation.value:.3g} below the best"
        )
        return f"{self.evaluation}, {self.loss:.6g} below the optimum; {best} that never draws"


def to_go(solution: Solution) -> ToGo:
    """The values to go of the solution's policy."""
    problem, cmdp = solution.study.problem, solution.cmdp
    H, laws, policy = cmdp.shape[0], cmdp.laws.listed(), np.ascontiguousarray(solution.policy.table)
    left = (H - np.arange(H))[:, None] if cmdp.discount is None else np.full((1, 1), cmdp.steps)
    low, high = cmdp.reward_range

    def summed(table: Floats) -> Floats:
        if cmdp.discount is not None:
            return values_in_the_long_run(laws, policy[0], table[0], cmdp.discount)[None]
        return listed_values(*lists_of(laws), policy, np.ascontiguousarray(table))[:H]

    costs = [
        (summed(table) + left * b / cmdp.steps) * scale
        for table, b, scale in zip(problem.tables, cmdp.budget, cmdp.cost_scale, strict=True)
    ]
    return ToGo(left * low + (high - low) * summed(problem.reward), np.array(costs))


class Draws(list[Draw]):
    """Where a policy draws; of many places the first ones are printed, and how many more there are."""

    def __str__(self) -> str:
        more = len(self) - MAX_DRAWS
        return "\n".join([*map(str, self[:MAX_DRAWS]), *([f"(and {more} more)"] if more > 0 else [])])

    __repr__ = __str__


def draws(solution: Solution) -> Draws:
    """Where the solution's policy draws, of the places that it reaches, the most often reached first."""
    cmdp, long_run = solution.cmdp, solution.cmdp.discount is not None
    packed = solution.policy.packed
    assert packed is not None
    states, actions = solution.policy.names()
    binding = {i: _costs_after(solution, i) for i, price in enumerate(solution.shadow_prices) if price > ROUNDING}
    found = []
    for place, row, reached in zip(packed.places.tolist(), packed.rows, packed.mass.tolist(), strict=True):
        (h, s), drawn = divmod(place, cmdp.shape[1]), np.flatnonzero(row > ROUNDING)
        if len(drawn) < 2:
            continue
        apart = {i: np.ptp(_costs_of_actions(cmdp, i, h, s, after[h])[drawn]) for i, after in binding.items()}
        why = tuple(solution.constraints[i] for i, spread in apart.items() if spread > ROUNDING)
        law = {actions[a]: float(row[a]) for a in drawn.tolist()}
        found.append(Draw(h, s, states[s], law, reached / (cmdp.steps if long_run else 1.0), why, long_run))
    return Draws(sorted(found, key=lambda each: -each.reached))


def pure_policies(solution: Solution) -> list[Pure]:
    """The policies without randomness whose mixture the solution is, with their shares.

    Whoever draws one of them by its share before an episode, and plays it to the end, has the solution's numbers.
    """
    study = solution.study
    return [_pure(solution, study.problem.codes(v), share, study.mixture.bound) for share, v in study.mixture.held]


def best_pure(solution: Solution) -> Pure:
    """The best policy found that never draws and meets the budgets, with what none exceeds; or that none was found."""
    study = solution.study
    codes, at_most = undrawn(study.problem, study.mixture, study.least, solution.card.shares)
    found, none = _pure(solution, codes, 1.0, at_most), NONE_EXISTS if at_most == -np.inf else NONE_FOUND
    return found if found.evaluation.safe else replace(found, why=solution.impossible or none)


def _pure(solution: Solution, codes: Codes, share: float, at_most: float) -> Pure:
    policy = Policy(solution.study.problem.pure(codes), solution.cmdp.labels)
    found = policy.evaluate(solution.cmdp)
    return Pure(policy, found, solution.evaluation.value - found.value, share, natural_value(solution.cmdp, at_most))


def _costs_after(solution: Solution, i: int) -> Floats:
    """What a constraint costs after every step, by the state that follows, (H, S); of averages, the bias of it.

    States where the policy draws for ever, and what follows them, are of one closed class: there biases compare.
    """
    cmdp, costs = solution.cmdp, solution.values.costs[i]
    if cmdp.discount is None:
        return np.concatenate([costs[1:], np.zeros((1, cmdp.shape[1]))])
    if cmdp.discount < 1.0:
        return cmdp.discount * costs
    policy = solution.policy.table[0]
    spent = (policy * cmdp.cost[i, 0]).sum(axis=1) * cmdp.cost_scale[i]
    chain = chain_of(cmdp.laws.listed(), policy)
    return gain_and_bias(chain, spent, UNKNOWN, reduced_chain(chain, 1.0, order_of(chain)))[1][None]


def _costs_of_actions(cmdp: CMDP, i: int, h: int, s: int, after: Floats) -> Floats:
    """What each action costs from (h, s) on, (A,), where the state that follows costs `after` (S,)."""
    laws = (cmdp.laws.law(h, s, a) for a in range(cmdp.shape[2]))
    following = np.array([chances @ after[successors] for successors, chances in laws])
    return np.asarray(cmdp.cost[i, h, s]) * cmdp.cost_scale[i] + following
