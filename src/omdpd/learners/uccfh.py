"""UC-CFH: optimistic planning by a linear program, in phases that end when a count has doubled.

    reach = min( sqrt(Lp / (2n)),  sqrt(2 p (1-p) Lp / n) + 7 Lp / (3 (n-1)) )        Hoeffding's and Bernstein's width
    max r~.q  subject to  d~_i.q <= 0,   q in Q(box of half-width reach around p_hat)

Certain, from the abstract: an optimistic linear program for a finite horizon, planned again and again with what was
seen, and a count of the episodes that are not nearly optimal and safe (PAC).  From memory: the lesser of the two widths
(as in UCFH of Dann and Brunskill, on which it builds) and phases by doubled counts.  Ours: rewards and costs, known in
the paper, are estimated with the library's bonuses; Lp is the library's logarithm in the place of ln(4/delta_1), whose
delta_1 counts phases; `transition_scale` multiplies the width (1 is the paper); no episode is left out once a pair
counts as known, so that it learns on; the least-violating policy is played where the program has no solution.
Source: Kalagarla, Jain, Nuzzo (AAAI 2021; arXiv 2009.11348).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import box_around, log_term_transition
from omdpd.beliefs.counting import has_doubled
from omdpd.learners.factors import WIDTHS
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, before_plans
from omdpd.learners.replanned import State as Planned
from omdpd.learners.settings import UNCLIPPED, Boxed, Preset
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Setting


@dataclass(frozen=True, eq=False, kw_only=True)
class State(Planned):
    """Besides, the visits when the phase began; None before the first."""

    phase: Floats | None = None


@dataclass(frozen=True)
class UCCFH(Boxed, Replanned[State]):
    """Optimistic linear program, planned again when a count has doubled (UC-CFH)."""

    card = Card(
        "extended linear program with the lesser of two widths, planned in phases",
        ("bandit",),
        "O~(1/eps^2) episodes that are not eps-optimal and eps-safe (PAC)",
        "Kalagarla, Jain, Nuzzo (AAAI 2021)",
        "rewards and costs are known, which are estimated here; its widths are from memory",
    )
    factors = WIDTHS
    theory = Preset("The published confidence widths.", "", **UNCLIPPED)

    def start(self, setting: Setting) -> State:
        """No phase yet."""
        return State(**before_plans(setting))

    def planned(self, state: State) -> State:
        """The plan in play, or a new one where a phase begins."""
        if state.phase is not None and not has_doubled(state.counts.visits, state.phase):
            return state
        return super().planned(replace(state, phase=state.counts.visits))

    def program(self, state: State) -> Program:
        """The optimistic program over the box of the lesser width."""
        setting, counts, k = state.setting, self.pooled(state.counts), state.k
        Lp, p = log_term_transition(setting, k, self.delta), counts.transition_mean()
        n = np.maximum(counts.departures[..., None], 1.0)
        bernstein = np.sqrt(2.0 * p * (1.0 - p) * Lp / n) + 7.0 * Lp / (3.0 * np.maximum(n - 1.0, 1.0))
        box = box_around(counts, self.transition_scale * np.minimum(np.sqrt(Lp / (2.0 * n)), bernstein))
        believed = self.estimator.estimate_with(box, setting, state.counts, k)
        return Program(box, believed.reward, believed.cost)
