"""Planning where much is equal, against HiGHS: ``make ties N=2000``.

Random problems whose tables are 0 or 1: costs that are the rewards, one less the rewards, one table for all of it, or
drawn apart; kernels that are drawn or lead to one state each; 2 to 30 states, one or two constraints.  Every card must
be there within `MAX_SECONDS`, its value within 1e-8 of a program in the value function, and with one constraint the
ends of its price within 1e-5 of those that further programs find among the optimal prices (where these are wrong,
backward induction must prove it).
"""

from __future__ import annotations

import sys
import time

import numpy as np

from omdpd.problem.cmdp import CMDP
from omdpd.worlds.card import ProblemCard, problem_card
from tests.references.reference_programs import dual_value, price_ends

MAX_SECONDS = 2.0
KINDS = ("cost = reward", "cost = 1 - reward", "all equal", "apart")


def tied_problem(seed: int, kind: str, n_constraints: int, max_states: int = 30) -> CMDP:
    """A problem of 0 and 1 with budgets between the least and the most that an episode can cost."""
    rng = np.random.default_rng((seed, KINDS.index(kind), n_constraints))
    H, S, A = int(rng.integers(1, 8)), int(rng.integers(2, max_states + 1)), int(rng.integers(1, 4))
    p = rng.dirichlet(np.ones(S), (S, A)) if rng.random() < 0.5 else np.eye(S)[rng.integers(0, S, (S, A))]
    reward = rng.integers(0, 2, (S, A)).astype(np.float64)
    tied = {"cost = reward": reward, "cost = 1 - reward": 1.0 - reward, "all equal": np.full((S, A), 1.0)}
    cost = np.stack([tied.get(kind, rng.integers(0, 2, (S, A)).astype(np.float64)) for _ in range(n_constraints)])
    if kind == "all equal":
        reward = np.full((S, A), float(rng.integers(0, 2)))
    budget = rng.integers(0, H + 1, n_constraints) if rng.random() < 0.5 else rng.uniform(0.1, 0.9, n_constraints) * H
    return CMDP.from_arrays(p, reward, cost, budget.astype(np.float64), horizon=H)


def faults(cmdp: CMDP, card: ProblemCard) -> list[str]:
    """What is wrong with a card, in words."""
    value, _ = dual_value(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess)
    if value is None or card.value is None:
        return [] if value is None and card.value is None else [f"feasible: {card.value}, by HiGHS: {value}"]
    wrong = [] if abs(card.value - value) <= 1e-8 else [f"value {card.value}, by HiGHS {value}"]
    if cmdp.n_constraints == 1:
        told = card.constraints[0]
        ends = told.multiplier, np.inf if told.multiplier_high is None else told.multiplier_high
        for mine, other in zip(
            ends, price_ends(cmdp.transition, cmdp.initial, cmdp.reward, cmdp.excess[0]), strict=True
        ):
            if mine != other and abs(mine - other) > 1e-5 and not disproved(cmdp, other, ends[0]):
                wrong.append(f"a price ends at {mine}, by HiGHS at {other}")
    return wrong


def disproved(cmdp: CMDP, price: float, optimal: float) -> bool:
    """Whether backward induction proves that a price half-way between these is not optimal.

    A program's tolerance of 1e-10 hides an edge of 1e-6; this does not, to 1e-13.
    """
    least, there = (bound_by(cmdp, p) for p in (optimal, 0.5 * (optimal + price)))
    return there > least + 1e-13


def bound_by(cmdp: CMDP, price: float) -> float:
    """max_q (r - price d).q, which is least where the price is optimal."""
    values = np.zeros(cmdp.shape[1])
    for h in reversed(range(cmdp.shape[0])):
        values = (cmdp.reward[h] - price * cmdp.excess[0, h] + cmdp.transition[h] @ values).max(axis=1)
    return float(cmdp.initial @ values)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    slowest, wrong = 0.0, 0
    for i in range(n):
        kind, n_constraints = KINDS[i % 4], 1 + i // 4 % 2
        cmdp = tied_problem(i, kind, n_constraints)
        began = time.process_time()
        card = problem_card(cmdp)
        spent = time.process_time() - began
        slowest = max(slowest, spent if i else 0.0)  # the first one loads compiled code
        for fault in faults(cmdp, card):
            wrong += 1
            print(f"problem {i} ({kind}, {n_constraints} constraints, {cmdp.shape}): {fault}", flush=True)
    print(f"{n} problems, {wrong} wrong, at most {slowest:.3f} s of processor time each")
    sys.exit(1 if wrong or slowest > MAX_SECONDS else 0)


if __name__ == "__main__":
    main()
