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

from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import DELTA, SAFE_COST_SCALE, log_term
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import require_feedback
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_policy
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.programs import vertex_plan

# Jeffreys' prior of a share.
HALF = 0.5


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the policy in play, and how many programs had no solution; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    policy: Floats
    infeasible: int


@dataclass(frozen=True, eq=False)
class Draw:
    """A model drawn from the posterior: kernel, reward, and costs with their margin."""

    transition: Floats
    reward: Floats
    cost: Floats


@dataclass(frozen=True)
class PosteriorSampling:
    """A linear program under a drawn model; `kappa` is the margin on its cost, `prior` the Dirichlet's."""

    kappa: float = SAFE_COST_SCALE
    prior: float = 0.1
    stationary: bool = False
    delta: float = DELTA

    draws = True

    def __post_init__(self) -> None:
        check_settings(self, positive=("prior",), nonnegative=("kappa",), shares=("delta",))

    @staticmethod
    def practical(
        kappa: float = kappa, prior: float = prior, stationary: bool = stationary, *, delta: float = delta
    ) -> PosteriorSampling:
        """Linear program under a model drawn from the posterior, with a margin on the cost."""
        return PosteriorSampling(kappa, prior, stationary, delta)

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "linear program under a model drawn from the posterior",
            ("bandit",),
            "O~(sqrt K) Bayesian regret and, with pessimism, nearly constant violation (as the abstracts say)",
            "Kalagarla, Jain, Nuzzo (2023); Provodin et al. (2024)",
            "stochastic costs; draws random numbers of its own",
        )

    def init(self, setting: Setting) -> State:
        """The plan of a model drawn from the prior."""
        require_feedback(self, setting, "bandit")
        return self._planned(State(setting, 0, Counts.empty(setting), uniform_policy(setting), 0))

    def policy(self, state: State) -> Floats:
        """The plan's policy."""
        return state.policy.copy()

    def update(self, state: State, feedback: Feedback) -> State:
        """Count, draw, plan."""
        return self._planned(replace(state, k=state.k + 1, counts=state.counts.add(feedback)))

    def report(self, state: State) -> Report:
        """Programs solved, and how many had no solution."""
        return Report(SolveLog(solves=state.k + 1), infeasible=state.infeasible)

    def drawn(self, setting: Setting, counts: Counts, k: int) -> Draw:
        """The model of episode k."""
        rng = np.random.default_rng((setting.seed or 0, k))
        counts = counts.pooled() if self.stationary else counts
        gamma = rng.standard_gamma(counts.transitions + self.prior)
        # A draw of nothing but zeros has lost its digits: the mean stands for it.
        total = gamma.sum(axis=-1, keepdims=True)
        p = np.where(total > 0.0, gamma / np.where(total > 0.0, total, 1.0), counts.transition_mean())
        n = counts.visits
        reward = rng.beta(HALF + counts.reward_sum, HALF + np.maximum(n - counts.reward_sum, 0.0))
        paid = 0.5 * (n + counts.cost_sum)
        cost = 2.0 * rng.beta(HALF + np.maximum(paid, 0.0), HALF + np.maximum(n - paid, 0.0)) - 1.0
        margin = self.kappa * np.sqrt(log_term(setting, k, self.delta) / np.maximum(n, 1.0))
        return Draw(p, reward, cost + margin)

    def _planned(self, state: State) -> State:
        model = self.drawn(state.setting, state.counts, state.k)
        plan = vertex_plan(model.transition, model.transition, state.setting.mu, model.reward, model.cost)
        return replace(state, policy=plan.policy, infeasible=state.infeasible + (not plan.feasible))
