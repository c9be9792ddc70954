"""What trying a row may teach, in reward: a bonus on the Lagrangian, not on the reward alone.

With prices lam_j on the cost tables d_j a plan earns r - sum_j lam_j d_j, and what is not known of either is worth a
try.  A row has two bonuses: one for itself, on its own observations, and one that looks at what may follow it,

    row = .8 sqrt(max(v_r, floor 40/(40+n_x)) / max(n_x, 1) + c) + hope min(.5/n_x, 1) + .75 [hope - r]^+ / (n_x + .75)
    val = .5 sqrt(max(v_r, floor 40/(40+n_r)) / n_r + c + Var_p(V)/n_p) + hope min(.5/n_r, 1)
          + min(.5/n_p, 1) (max V - p.V),                                                c = sum_i lam_i^2 v_i / n_i
    b = row + min(1, sum_j lam_j) [val - row]^+

where v is the noise of one observation, n_p, n_r, n_i the sizes of the shared estimates (at least 1), and n_x counts
the row's own visits, shared ones only as far as rewards are shared: n_x = n + m/(m+10) [n_r - n]^+.  Where constraints
are cheap only the row's own bonus counts; where they are dear, or nothing looks safe, cost relief further on does.

The constants of `row` are not delicate.  On three-armed Bernoulli bandits with uniform means and 60 to 1300 pulls every
sensible choice loses within 4 % of the others, as long as an arm with a bad start gets a second chance; without the
last term, and with 4 in place of 40, an arm in a hundred is lost for good (`benchmarks/bandits.py`).
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.sharing import SharedBeliefs
from omdpd.problem.arrays import Floats, weighted_sum
from omdpd.solvers.compiled.lookahead import HALF_SHARED, lagrangian_bonus, row_bonus


def bonus(beliefs: SharedBeliefs, visits: Floats, prices: Floats, tables: Floats) -> Floats:
    """The bonus (H, S, A) under prices (J,) of tables (J, H, S, A); estimated costs are the first ones."""
    reward = beliefs.reward
    cost_noise = np.zeros(visits.shape)
    for price, cost in zip(prices, beliefs.costs, strict=False):
        cost_noise += price**2 * cost.noise / np.maximum(cost.size, 1.0)
    share = beliefs.reward_weight / (beliefs.reward_weight + HALF_SHARED)
    row, variance, reach = row_bonus(
        visits, reward.mean, reward.size, reward.noise, cost_noise, share, beliefs.hope, beliefs.floor
    )
    table = reward.mean - weighted_sum(prices, tables) if len(prices) else reward.mean
    dear = min(1.0, float(prices.sum()))
    return lagrangian_bonus(beliefs.kernel, table, row, variance, reach, np.maximum(beliefs.size, 1.0), dear)
