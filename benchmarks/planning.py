"""A known model, solved by us and by the short scripts that one would write instead: ``python benchmarks/planning.py``.

`cmdp.solve()` against a linear program over occupancies (SciPy's HiGHS, sparse) and, with one budget, against bisection
on the price over backward induction by QuantEcon (where it is installed); all in one process, processor time, best of
three where a solve is short.  The scripts give the value (QuantEcon also the price), ours policy, prices and proof.
A script that took longer than `MAX_SECONDS` is not asked about larger problems.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix, eye, kron, vstack

from omdpd import CMDP
from omdpd.problem.laws import laws_of_entries

MAX_SECONDS = 1.0
A, H, SUCCESSORS = 5, 20, 5
STATES = (5, 20, 100, 500, 2000, 20000)
MAX_DENSE = 500


def problem(S: int, dense: bool, n_budgets: int, seed: int = 7) -> CMDP:
    """Random laws, rewards and costs; budgets a little below what one does without them."""
    rng = np.random.default_rng(seed)
    n = S if dense else min(SUCCESSORS, S)
    following = np.tile(np.arange(S), S * A) if dense else rng.integers(0, S, S * A * n)
    chances = rng.dirichlet(np.ones(n), S * A).ravel()
    laws = laws_of_entries(np.repeat(np.arange(S * A), n), following, chances, (H, S, A))
    p = laws.expand()[0] if dense else laws
    return CMDP.from_arrays(p, rng.random((S, A)), rng.random((n_budgets, S, A)), [0.45 * H] * n_budgets, horizon=H)


def by_linprog(cmdp: CMDP) -> float:
    """max r.q subject to the flow and c_i.q <= b_i."""
    _, S, _ = cmdp.shape
    laws = cmdp.laws.listed()
    rows = np.repeat(np.arange(S * A), np.diff(laws.pointers))
    p = coo_matrix((laws.probabilities, (laws.successors, rows)), shape=(S, S * A))
    flow = kron(eye(H), kron(eye(S), np.ones((1, A)))) - kron(eye(H, k=-1), p)
    tables = csr_matrix(cmdp.cost.reshape(cmdp.n_constraints, -1))
    start = np.r_[cmdp.initial, np.zeros((H - 1) * S)]
    found = linprog(-cmdp.reward.ravel(), vstack([tables]), cmdp.budget, csr_matrix(flow), start)
    return float(-found.fun)


def by_quantecon(cmdp: CMDP) -> float:
    """Bisection on the price until the bound is known to ten digits."""
    from quantecon.markov import DiscreteDP, backward_induction

    _, S, _ = cmdp.shape
    laws = cmdp.laws.listed()
    state, action = np.repeat(np.arange(S), A), np.tile(np.arange(A), S)
    p = csr_matrix((laws.probabilities, laws.successors, laws.pointers), shape=(S * A, S))
    r, c = cmdp.reward[0].ravel(), cmdp.cost[0, 0].ravel()

    def bound(price: float) -> tuple[float, float]:
        ddp = DiscreteDP(r - price * (c - cmdp.budget[0] / H), p, 1.0, state, action)
        values, policy = backward_induction(ddp, H)
        mass, cost = cmdp.initial, 0.0
        for h in range(H):
            chosen = np.arange(S) * A + policy[h]
            cost += float(mass @ c[chosen])
            mass = p[chosen].T @ mass
        return float(cmdp.initial @ values[0]), cost - float(cmdp.budget[0])

    low, high = 0.0, 10.0
    best = np.inf
    for _ in range(45):
        middle = 0.5 * (low + high)
        value, over = bound(middle)
        best = min(best, value)
        low, high = (middle, high) if over > 0.0 else (low, middle)
    return best


def timed(solve: Callable[[CMDP], float], cmdp: CMDP) -> tuple[float, float]:
    """(milliseconds, value), the best of three where that is quick."""
    spent = []
    while len(spent) < 3 and sum(spent) < 1.0:
        began = time.process_time()
        value = solve(cmdp)
        spent.append(time.process_time() - began)
    return 1e3 * min(spent), value


def main() -> int:
    """Print a table; exit code 1 where a script was faster or another value was found."""
    ways: dict[str, Callable[[CMDP], float]] = {"ours": lambda cmdp: cmdp.solve().value, "linprog": by_linprog}
    try:
        import quantecon  # noqa: F401

        ways["quantecon"] = by_quantecon
    except ImportError:
        print("quantecon is not installed: its column is missing")
    timed(ways["ours"], problem(5, True, 2))  # loads compiled code
    if "quantecon" in ways:
        timed(ways["quantecon"], problem(5, True, 1))
    lost, slow = 0, set()
    for dense in (True, False):
        for n_budgets in (1, 2):
            slow.clear()
            for S in [S for S in STATES if not dense or S <= MAX_DENSE]:
                cmdp = problem(S, dense, n_budgets)
                asked = [w for w in ways if w not in slow and (w != "quantecon" or n_budgets == 1)]
                found = {way: timed(ways[way], cmdp) for way in asked}
                slow |= {way for way, (spent, _) in found.items() if spent > 1e3 * MAX_SECONDS and way != "ours"}
                best = min(spent for spent, _ in found.values())
                off = max(abs(value - found["ours"][1]) for _, value in found.values())
                lost += found["ours"][0] > best or off > 1e-7
                shown = "  ".join(f"{way} {spent:10.2f}" for way, (spent, _) in found.items())
                laws = "dense" if dense else "sparse"
                print(f"S {S:6d} {laws:6s} budgets {n_budgets}  ms: {shown}  off {off:.0e}", flush=True)
    print(f"{lost} lost")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
