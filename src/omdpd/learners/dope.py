"""DOPE: doubly optimistic and pessimistic exploration around a known baseline policy.

    bbar(h,s,a) = sum_s' radius(h,s,a,s')
    the baseline for K0 = S^2 A H^4 / room^2 episodes, then
    max (r + (H^2 / room) bbar).q   subject to   (d + H bbar).q <= 0,   q in Q(box);     the baseline if infeasible

Certain: all of this, with room = -V(d, baseline) (K0 up to logarithms).  Ours: rewards and costs, known in the paper,
are estimated, with bonuses `reward_scale` and `cost_scale` times sqrt(L/n) that make the reward optimistic and the
cost pessimistic (no violation rests on the latter, so it is not zero); the library's radius with `transition_scale`
(K0 falls with its square, since K0 is when the box is small enough); bbar is at most 2, the distance of two laws, and 0
at the last step, which leads nowhere.  The authors' released experiment differs in two ways, both options here:
`released` (the setting `narrow`) has its radius min(sqrt(p(1-p) L/n) + L/n, L / sqrt n, 1), with our L; and with
`known_support` the learner is told which next states each pair can lead to, as the experiment's program knows.
Source: Bura, HasanzadeZonuzy, Kalathil, Shakkottai, Chamberland (NeurIPS 2022).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from omdpd.beliefs.confidence import SAFE_COST_SCALE, box_around, log_term_transition, radius
from omdpd.learners.factors import WIDTHS, margin
from omdpd.learners.needs import Needs, SafeChoice, SafePolicy
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, State, unplanned
from omdpd.learners.settings import ONES, Preset, Scaled, given, later, nonnegative
from omdpd.learners.widths import mean_width
from omdpd.problem.arrays import Booleans, Floats
from omdpd.problem.setting import Setting


@dataclass(frozen=True)
class DOPE(Scaled, Replanned[State]):
    """The extended program with kernel bonuses on both sides, around a known baseline."""

    cost_scale: float = nonnegative(SAFE_COST_SCALE)
    safe_policy: SafeChoice = "least-cost"
    _: KW_ONLY
    narrow: bool = False
    known_support: bool = later(field(default=False), False)
    support: Booleans | None = later(given(None), None)
    safe: SafePolicy | None = given(None)

    card = Card(
        "extended linear program, kernel bonuses on reward and cost, baseline policy",
        ("bandit",),
        "O~(sqrt K) regret, no violation",
        "Bura, HasanzadeZonuzy, Kalathil, Shakkottai, Chamberland (NeurIPS 2022)",
        "a strictly safe policy and its cost are known; rewards and costs too, which are estimated here",
    )
    needs = Needs(safe=True)
    factors = (*WIDTHS, margin("cost_scale"))
    start = unplanned
    released = Preset("The radius of the authors' released experiment.", narrow=True)
    theory = Preset(
        "The published bonuses: at usual numbers of episodes nothing but the safe policy is played.",
        "safe", **ONES,
    )  # fmt: skip

    def program(self, state: State) -> Program | None:
        """The extended program, after the first episodes."""
        setting, k, room = state.setting, state.k, self.known(state.setting).room
        if k < self.warm_up(setting, room):
            return None
        counts, Lp = self.pooled(state.counts), log_term_transition(setting, k, self.delta)
        around = narrow_radius if self.narrow else radius
        reach = around(counts.transition_mean(), counts.departures[..., None], self.transition_scale, Lp)
        reach = reach if self.support is None else np.where(self.support, reach, 0.0)
        bbar = np.minimum(reach.sum(axis=-1), 2.0)
        bbar[-1] = 0.0
        H, width = setting.horizon, mean_width(setting, counts, k, self.delta)
        reward = counts.reward_mean() + self.reward_scale * width + (H**2 / room) * bbar
        cost = counts.cost_mean() + self.cost_scale * width + H * bbar
        box = box_around(counts, reach)
        return Program(box if self.support is None else box.on_support(self.support), reward, cost)

    def warm_up(self, setting: Setting, room: float) -> float:
        """K0 = S^2 A H^4 / room^2, times the square of the scale of the radius."""
        H, S, A = setting.shape
        return self.transition_scale**2 * S**2 * A * H**4 / room**2


def narrow_radius(p_hat: Floats, n: Floats, scale: float, Lp: float) -> Floats:
    """The half-width of the authors' released code, times `scale`."""
    visits = np.maximum(n, 1.0)
    share = Lp / visits
    reach = np.sqrt(p_hat * (1.0 - p_hat) * share) + share
    return scale * np.minimum(np.minimum(reach, Lp / np.sqrt(visits)), 1.0)
