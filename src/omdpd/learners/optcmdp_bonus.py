"""OptCMDP-bonus: a linear program under the empirical kernel, its optimism all in the tables.

    max r~.q  subject to  d~_i.q <= 0,  q an occupancy of p_hat,      r~ = r_hat + b,   d~_i = d_hat_i - b

with b = bonus of the mean + H sum_s' radius(s'), the confidence box's half-widths.  Where the program has no solution
the least-violating policy is played, and counted.

Source: Efroni, Mannor, Pirotta (2020), Algorithm 2.  The program and the shape of b are the paper's.  Ours: signed
costs, the scales below one, r~ and d~ cut to what an episode can still bring, and what is played without a solution.
"""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.learners.factors import WIDTHS
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, State, unplanned
from omdpd.learners.settings import ONES, Bonused, Preset
from omdpd.solvers.regions import Box


@dataclass(frozen=True)
class OptCMDPBonus(Bonused, Replanned[State]):
    """The same under the empirical kernel, optimism in the tables."""

    card = Card(
        "linear program under the empirical kernel with bonuses, replanned every episode",
        ("bandit",),
        "O~(sqrt K) strong regret and violation",
        "Efroni, Mannor, Pirotta (2020), Algorithm 2",
        "stochastic costs",
    )
    factors = WIDTHS
    start = unplanned
    theory = Preset("The paper's widths.", "", **ONES)

    def program(self, state: State) -> Program:
        """max r~.q subject to d~.q <= 0 under p_hat."""
        believed = self.bonus.estimate(state.setting, state.counts, state.k)
        return Program(Box(believed.transition, believed.transition), believed.reward, believed.cost)
