"""Posterior sampling: plan for a model drawn from what is believed, with a margin on its cost.

    p_h(.|s,a)  ~ Dirichlet(n_h(s,a,.) + prior),    r_h(s,a) ~ Beta(1/2 + sum r, 1/2 + n - sum r)
    d           : the same for (1 + d) / 2, plus kappa sqrt(L / n)
    play the best policy of   max r.q  subject to  d.q <= 0   under the drawn kernel

Source: Kalagarla, Jain, Nuzzo (2023; arXiv 2301.11547, Safe PSRL) and Provodin et al. (2024).  Certain, from their
abstracts: one draw per episode in the place of confidence sets, a linear program under it, Bayesian regret of
O~(sqrt K), and pessimism about the cost for nearly constant violation.  Ours: rewards and costs, known there, are drawn
too, the priors, and the margin `kappa`.  Where the program has no solution the least-violating policy is played.

The draws are the learner's own: episode k takes them from (seed of the setting, k), so that a run that was stopped goes
on with the same ones.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from omdpd.beliefs.confidence import DELTA, SAFE_COST_SCALE
from omdpd.beliefs.counts import Counts
from omdpd.learners.factors import Factor, margin
from omdpd.learners.protocol import Card
from omdpd.learners.replanned import Program, Replanned, State, unplanned
from omdpd.learners.settings import Settings, nonnegative, positive, share
from omdpd.learners.widths import mean_width
from omdpd.problem.setting import Setting
from omdpd.solvers.regions import Box

# Jeffreys' prior of a share.
HALF = 0.5


@dataclass(frozen=True)
class PosteriorSampling(Settings, Replanned[State]):
    """Linear program under a model drawn from the posterior, with a margin on the cost.

    `kappa` is the margin, `prior` the Dirichlet's.
    """

    kappa: float = nonnegative(SAFE_COST_SCALE)
    prior: float = positive(0.1)
    stationary: bool = False
    _: KW_ONLY
    delta: float = share(DELTA)

    draws = True
    card = Card(
        "linear program under a model drawn from the posterior",
        ("bandit",),
        "O~(sqrt K) Bayesian regret and, with pessimism, nearly constant violation (as the abstracts say)",
        "Kalagarla, Jain, Nuzzo (2023); Provodin et al. (2024)",
        "stochastic costs; draws random numbers of its own",
    )
    factors = (Factor("transition width", "prior"), margin("kappa"))
    start = unplanned

    def program(self, state: State) -> Program:
        """The best policy of the model of episode k."""
        return self.drawn(state.setting, state.counts, state.k)

    def drawn(self, setting: Setting, counts: Counts, k: int) -> Program:
        """The model of episode k, its costs with their margin."""
        rng = np.random.default_rng((setting.seed or 0, k))
        counts = self.pooled(counts)
        gamma = rng.standard_gamma(counts.transitions + self.prior)
        # A draw of nothing but zeros has lost its digits: the mean stands for it.
        total = gamma.sum(axis=-1, keepdims=True)
        p = np.where(total > 0.0, gamma / np.where(total > 0.0, total, 1.0), counts.transition_mean())
        n = counts.visits
        reward = rng.beta(HALF + counts.reward_sum, HALF + np.maximum(n - counts.reward_sum, 0.0))
        paid = 0.5 * (n + counts.cost_sum)
        cost = 2.0 * rng.beta(HALF + np.maximum(paid, 0.0), HALF + np.maximum(n - paid, 0.0)) - 1.0
        return Program(Box(p, p), reward, cost + self.kappa * mean_width(setting, counts, k, self.delta))
