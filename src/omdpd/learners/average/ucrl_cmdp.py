"""UCRL-CMDP: an optimistic linear program over the shares of steps in the long run, planned anew for every stretch.

    reach = sqrt( ln(S A T^2) / n )                                                  for every next state
    max r~.x  subject to  d~_i.x <= 0,  x a share of steps that some kernel of the box around p_hat keeps

The extended program has a variable for every state, action and next state.  What is played is one table (S, A), for a
stretch of steps; here a stretch is a window of `play.windows`.

Certain: the extended program over all kernels in the box, stationary policies, stretches of a fixed length, which
follows from T.  From memory: the width, its power of T, and that a stretch has about T^(1/3) steps.  Ours: rewards and
costs, known in the paper, are estimated with the library's bonuses; `transition_scale` multiplies the width (1 is the
paper); the least-violating policy is played where the program has no solution, where the paper plays any.
Source: Singh, Gupta, Shroff (2020; arXiv 2002.12435), Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import box_around, effective_episodes
from omdpd.learners.needs import Needs
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import OverBox, State, solved
from omdpd.solvers.programs import average_plan


@dataclass(frozen=True)
class UCRLCMDP(OverBox):
    """Optimistic linear program over long-run shares of steps."""

    stationary: bool = True
    needs = Needs(windows=True)

    card = Card(
        "extended linear program over long-run shares of steps",
        ("bandit",),
        "O~(T^(2/3)) regret and violation of T steps without resets",
        "Singh, Gupta, Shroff (2020), Algorithm 1",
        "every policy has one closed class; rewards and costs known there, estimated here; its widths are from memory",
    )

    def planned(self, state: State) -> State:
        """Plan the next stretch."""
        setting, counts = state.setting, state.counts.pooled()
        H, S, A = setting.shape
        log = np.log(S * A * (H * effective_episodes(setting, state.k + 1)) ** 2)
        reach = self.transition_scale * np.sqrt(log / np.maximum(counts.departures[..., None], 1.0))
        box = box_around(counts, np.broadcast_to(reach, counts.transitions.shape))
        believed = self.estimator.estimate_with(box, setting, state.counts, state.k)
        plan = average_plan(box.lower[0], box.upper[0], believed.reward[:1], believed.cost[:, :1])
        return solved(replace(state, policy=np.repeat(plan.policy, H, axis=0)), 1, plan.feasible)
