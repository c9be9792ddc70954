"""The finite-horizon method of Chen, Jain and Luo: an optimistic program over H steps, with an allowance on the budget.

    reach = 4 sqrt(p a) + 28 a,   a = ln(2 S A H K / delta) / n                      for every next state
    max r~.q  subject to  d~_i.q <= span,   q in Q(box of half-width reach around p_hat)            in every episode

The paper is about average reward without resets: it cuts the stream into stretches of H steps, plans each by this
program from the state at hand, and allows the budget of a stretch to be passed by the span of a bias.  Here a stretch
is an episode with its own start and budget, so nothing carries over, and the allowance `span` is 0.

Certain, from a published implementation by others: the extended program over H steps, planned anew for every stretch.
From memory: the constants 4 and 28, the logarithm, the allowance.  Ours: rewards and costs, known in the paper, are
estimated with the library's bonuses; `transition_scale` multiplies the width (1 is the paper); counts are per step
unless `stationary` says that the kernel is the same at every step, as in the paper; the least-violating policy is
played where the program has no solution.
Source: Chen, Jain, Luo (ICML 2022; arXiv 2202.00150), Algorithm 3.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from omdpd.beliefs.confidence import box_around, effective_episodes
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import OverBox, Program, State
from omdpd.learners.settings import nonnegative


@dataclass(frozen=True)
class ChenJainLuo(OverBox):
    """Optimistic linear program over H steps, with an allowance on the budget."""

    _: KW_ONLY
    span: float = nonnegative(0.0)

    card = Card(
        "extended linear program over H steps, an allowance on the budget",
        ("bandit",),
        "O~(T^(2/3)) regret and violation of T steps without resets; none is stated for episodes",
        "Chen, Jain, Luo (ICML 2022), Algorithm 3",
        "made for average reward; rewards and costs known there, estimated here; its widths are from memory",
    )

    def program(self, state: State) -> Program:
        """The extended program; the allowance is taken off the costs of the first step, which every episode pays."""
        setting, counts, k = state.setting, self.pooled(state.counts), state.k
        H, S, A = setting.shape
        log = np.log(2.0 * S * A * H * effective_episodes(setting, k + 1) / self.delta)
        a = log / np.maximum(counts.departures[..., None], 1.0)
        reach = self.transition_scale * (4.0 * np.sqrt(counts.transition_mean() * a) + 28.0 * a)
        box = box_around(counts, reach)
        believed = self.estimator.estimate_with(box, setting, state.counts, k)
        cost = believed.cost.copy()
        cost[:, 0] -= self.span
        return Program(box, believed.reward, cost)
