"""What the policy in play can lose at most, as the data see it: the live certificate of docs/theory.md, 11.

r^, d^, p^ are means of a row's own visits, shared with nobody, and b(lam) is `rules.own_bonus` at
.64 + ln+(k / (30 HSA n)).  With any prices lam >= 0

    U  = max over policies of the value of r^ - sum_j lam_j d_j + b(lam),      R- = value of r^ - b(0) of the policy

both under p^.  While no row is off by more than its b, no safe policy earns more than U, and the policy earns R-.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs import rules
from omdpd.beliefs.rows import Charged, Own, Tables
from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import sum_of_vector


@rule
def loss_at_most(g: Tables, own: Own, charged: Charged, policy: Floats, mu: Floats) -> float:
    """U - R- of a policy (E,), at most H, in one pass backward; `charged` has tables as they were revealed, if any.

    Where costs are met on the way, d_j are the row's own.  A row never visited has the mean of every range, and the
    believed law of `g`.
    """
    prices, met, total_price = charged.prices, len(own.costs) > 0, sum_of_vector(charged.prices)
    price = total_price if met else 0.0
    seen: Floats = own.moves.p  # type: ignore[union-attr]  # laid out as g is
    best, least = np.zeros((g.H + 1, g.S)), np.zeros((g.H + 1, g.S))
    for h in range(g.H - 1, -1, -1):
        for s in range(g.S):
            most, total = -np.inf, 0.0
            for e in range((h * g.S + s) * g.A, (h * g.S + s + 1) * g.A):
                n = own.visits[e]
                law = seen[e] if n > 0.0 else g.p[e]
                reward, ahead, behind, scale = own.rewards[e] / n if n > 0.0 else 0.5, 0.0, 0.0, max(n, 1.0)
                for t in range(g.S if h + 1 < g.H else 0):
                    ahead += law[t] * best[h + 1, t] / scale
                    behind += law[t] * least[h + 1, t] / scale
                for j in range(prices.size):
                    ahead -= prices[j] * (own.costs[j, e] / scale if met else charged.tables[j, e])
                width = rules.ALWAYS + rules.overdue(rules.OVERDUE_SHARE * own.episodes, n, own.n_rows)
                most = max(most, reward + ahead + rules.own_bonus(1.0, price, width, n))
                total += policy[e] * (reward + behind - rules.own_bonus(1.0, 0.0, width, n))
            # Nobody earns more than 1 in a step, and no cost is below -1.
            best[h, s], least[h, s] = min(most, (g.H - h) * (1.0 + total_price)), max(total, 0.0)
    lost = 0.0
    for s in range(g.S):
        lost += mu[s] * (best[0, s] - least[0, s])
    return min(lost, float(g.H))
