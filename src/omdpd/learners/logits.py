"""Learners that move a policy by exponential weights and multipliers by gradient steps: the second skeleton.

    Q_k       = TPE_tau(r~_k, pi_k) - sum_i lam_{k,i} TPE(d~_{k,i}, pi_k)
    pi_{k+1}  ~ pi_k^(1 - eta tau) exp(eta Q_k)
    lam_{k+1} = min([ (1 - eta tau) lam_k + rate ( V_k(d~) + margin ) ]^+, most)

A learner of this kind is its settings, its card, what it needs, and `rates(setting, k)`, which may depend on k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from omdpd.beliefs.bonuses import Bonus
from omdpd.beliefs.counts import Counts
from omdpd.learners.lagrangian import costs_of, evaluate
from omdpd.learners.needs import Needs, check_needs
from omdpd.learners.policy_steps import policy_of_logits, tilted
from omdpd.learners.protocol import Card, Report
from omdpd.learners.start import uniform_logits
from omdpd.problem.arrays import Floats
from omdpd.problem.setting import Feedback, Setting


class Rates(NamedTuple):
    """The step of the policy, the temperature, the step of the multipliers, their margin and their largest value."""

    eta: float
    tau: float
    rate: float
    margin: float
    most: float


@dataclass(frozen=True, eq=False)
class State:
    """Counts, the log-policy in play and the multipliers; `k` episodes have been seen."""

    setting: Setting
    k: int
    counts: Counts
    logits: Floats
    lam: Floats

    # Version 0.2 kept constants that follow from the settings, too.
    retired: ClassVar[tuple[str, ...]] = ("primal_rate", "dual_rate", "most", "eta", "tau", "large")


class OnLogits:
    """The verbs of such a learner; with `looks_ahead` the multipliers see the costs of the policy after its step."""

    card: ClassVar[Card]
    needs: ClassVar[Needs] = Needs()
    looks_ahead: ClassVar[bool] = False

    def rates(self, setting: Setting, k: int) -> Rates:
        """The rates after episode k (zero-based), or the sentence that says which of them cannot be."""
        raise NotImplementedError

    def init(self, setting: Setting) -> State:
        """The uniform policy, lam = 0."""
        check_needs(self, setting)
        self.rates(setting, 0)
        return State(setting, 0, Counts.empty(setting), uniform_logits(setting), np.zeros(setting.n_constraints))

    def policy(self, state: State) -> Floats:
        """exp of the log-policy."""
        return policy_of_logits(state.logits)

    def update(self, state: State, feedback: Feedback) -> State:
        """Evaluate the policy that was played with the newest estimates; one step of each player."""
        setting, counts = state.setting, state.counts.add(feedback)
        bonus: Bonus = self.bonus  # type: ignore[attr-defined]  # the one of `Bonused`
        eta, tau, rate, margin, most = self.rates(setting, state.k)
        believed = bonus.estimate(setting, counts, state.k + 1)
        found = evaluate(policy_of_logits(state.logits), believed, setting.mu, state.lam, tau)
        logits = tilted(state.logits, found.gains, eta, 1.0 - eta * tau)
        costs = costs_of(policy_of_logits(logits), believed, setting.mu) if self.looks_ahead else found.costs
        lam = np.minimum(np.maximum((1.0 - eta * tau) * state.lam + rate * (costs + margin), 0.0), most)
        return replace(state, k=state.k + 1, counts=counts, logits=logits, lam=lam)

    def report(self, state: State) -> Report:
        """The next step size and the largest multiplier."""
        return Report(step_size=self.rates(state.setting, state.k).eta, weight=float(state.lam.max()))
