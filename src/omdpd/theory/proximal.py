"""The inequalities of docs/theory.md, measured on a run of ProximalOMDPD.

With u_k the occupancy of the comparator's policy under the kernel that is believed in episode k (q* itself over a
confidence box, and where the model is known),

    |u_{k+1} - u_k|_1                       <=  drift_k                                                  Drift
    sum_k f_k(q_k) - f_k(u_k)               <=  (C + C')/eta + drift/eta + what solves add               Lemma 1
    sum_i Phi(V_i)                          <=  e^{gamma H} sum_k sum_i w_{k,i} x_{k,i}                  Lemma 2
    sum_k r~_k.(u_k - q_k),   max_i V_i     <=  the certificate of the run                               Section 6

(without the factor e^{gamma H} where weights do not lag).  The last two are promised as long as u_k meets every
believed constraint, which is followed too.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.confidence import EmpiricalEstimator
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.proximal_state import State
from omdpd.learners.surrogate import kernel_move
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.compiled.products import dot
from omdpd.solvers.regions import Kernel, Region
from omdpd.theory.estimates import GoodEvent, Optimism, Split
from omdpd.theory.inequalities import NO_COMPARATOR, TOLERANCE, Episode, Inequality, Track, Truth
from omdpd.theory.persistence import Persistence

BOX = "over a confidence box, or with a known model, the comparator does not move"
CUT_OFF = "a weight was cut off, and is no longer the potential's slope"
THEOREM_A = (
    "Theorem A is about bonuses of full width, eta = H and gamma = 1/H: no preset has them (docs/theory.md, section 8)"
)


class ProximalWatch:
    """Everything that is followed of a run of ProximalOMDPD."""

    def __init__(self, learner: ProximalOMDPD, truth: Truth) -> None:
        self.learner = learner
        self._event, self._split = GoodEvent(truth), Split()
        self._optimism = Optimism(truth, learner.estimator.covers_truth)
        self._potential, self._plans = Potential(learner, truth), Plans(learner, truth)
        self._persistence = Persistence(learner, truth)

    def see(self, episode: Episode) -> None:
        """One more episode: beliefs, plan and surrogate are of the state before it."""
        believed = episode.before.believed
        cost = episode.cost if episode.revealed else believed.counted_cost
        self._event.see(episode)
        self._split.see(episode, cost, episode.before.q)
        self._optimism.see(believed.reward, episode.cost if episode.revealed else believed.cost, believed.region)
        self._potential.see(episode.before, episode.after)
        self._plans.see(episode.before, episode.after)
        self._persistence.see(episode)

    def done(self) -> list[Inequality]:
        """All inequalities, in the order of docs/theory.md."""
        parts = (self._event, self._optimism, self._split, self._plans, self._potential, self._persistence)
        return [each for part in parts for each in part.done()]


class Potential:
    """Lemma 2, and how much the beliefs of an unshared kernel can move."""

    def __init__(self, learner: ProximalOMDPD, truth: Truth) -> None:
        self.learner, self.truth = learner, truth
        self._paid = self._moved = 0.0
        slack = "e^{gamma H} " if learner.weighting.lagged else ""
        self._phi = Track("potential", "theory.md, Lemma 2", f"sum_i Phi(V_i) <= {slack}sum_k sum_i w_i x_i")
        self._drift = Track("drift of the beliefs", "theory.md, Lemma 1", "sum_k drift_k <= H (H-1) SA (1 + ln k)")

    def see(self, before: State, after: State) -> None:
        """One more episode."""
        # Phi is that of the learner's own setting, which may not say how many episodes there are.
        setting, weighting, k = before.setting, self.learner.weighting, after.k
        if after.capped:
            self._phi.end(CUT_OFF)
        potential = weighting.potential(setting, k)
        weights = before.weights if weighting.lagged else potential.slope(after.V)
        self._paid += float(weights @ (after.V - before.V))
        self._phi.add(potential.total(after.V), weighting.slack(potential, setting.horizon) * self._paid)
        if isinstance(self.learner.estimator, EmpiricalEstimator) and not self.learner.estimator.stationary:
            H, S, A = setting.shape
            self._moved += kernel_move(before.believed.region, after.believed.region, None)
            self._drift.add(self._moved, H * (H - 1) * S * A * (1.0 + float(np.log(k))))

    def done(self) -> list[Inequality]:
        """Both."""
        why = "the bound is that of counts which share nothing between steps; the certificate has the drift itself"
        return [self._phi.done(), self._drift.done(why)]


class Plans:
    """What the comparator would have earned under the beliefs, beside what was planned."""

    def __init__(self, learner: ProximalOMDPD, truth: Truth) -> None:
        self.learner, self.truth = learner, truth
        self._believes_kernel = not learner.estimator.covers_truth
        self._surrogate = self._gained = 0.0
        self._safe_so_far = True
        comparator = "u_k" if self._believes_kernel else "q*"
        self._move = Track("drift", "theory.md, Drift", "|u_{k+1} - u_k|_1 <= drift_k", single=True)
        self._safe = Track(
            "comparator meets the believed rows", "theory.md, 3 (i)", f"max_j d_j.{comparator} <= 0", single=True
        )
        self._good = Track("comparator is believed good", "theory.md, 3 (i)", f"V* <= r~_k.{comparator}", single=True)
        self._lemma = Track(
            "surrogate regret", "theory.md, Lemma 1", f"sum_k f_k(q_k) - f_k({comparator}) <= (C + C')/eta + drift"
        )
        promised = f"sum_k r~_k.({comparator} - q_k) <= certified regret"
        self._regret = Track("certified regret", "theory.md, 6", promised)
        self._violation = Track("certified violation", "theory.md, 6", "max_i V_i <= certified violation")
        self._theorem = Track("regret", "theory.md, Theorem A", "regret <= E_K + X_K")

    def see(self, before: State, after: State) -> None:
        """One more episode."""
        best = self.truth.best
        if best.policy is None or best.value is None or self.truth.occupancy is None:
            return
        u = self._comparator(best.policy, before.believed.region)
        f = self.learner.observed_surrogate(before, after)
        self._surrogate += f.value(before.q) - f.value(u)
        self._gained += dot(before.believed.reward, u - before.q)
        exceeded = float(f.hinges.arguments(u).max(initial=0.0))
        self._safe.add(exceeded, 0.0)
        self._good.add(best.value, dot(before.believed.reward, u))
        if self._believes_kernel:
            moved = self._comparator(best.policy, after.believed.region) - u
            drift = kernel_move(before.believed.region, after.believed.region, None)
            self._move.add(float(np.abs(moved).sum()), drift)
        self._certified(after, exceeded)

    def _certified(self, after: State, exceeded: float) -> None:
        """The bounds that the learner itself states after the episode."""
        if (bound := self.learner.regret_bound(after)) is not None:
            self._lemma.add(self._surrogate, bound)
        if self._safe_so_far and exceeded > TOLERANCE:
            self._safe_so_far, since = False, f"the comparator is not believed safe in episode {after.k}"
            for track in (self._regret, self._violation):
                track.note = f"not promised: {since}"
        certificate = self.learner.report(after).certificate
        if certificate is None:
            self._regret.end(CUT_OFF)
            self._violation.end(CUT_OFF)
        else:
            self._regret.add(self._gained, certificate.regret)
            self._violation.add(float(after.V.max()), certificate.violation)

    def _comparator(self, policy: Floats, region: Region) -> Floats:
        """u_k: the occupancy of the comparator's policy under the believed kernel, or q*."""
        if self._believes_kernel and isinstance(region, Kernel):
            return occupancy_of_policy(policy, region.transition, self.truth.cmdp.initial)
        assert self.truth.occupancy is not None
        return self.truth.occupancy

    def done(self) -> list[Inequality]:
        """The seven."""
        followed = (self._safe, self._good, self._lemma, self._regret, self._violation)
        move = self._move.done(NO_COMPARATOR if self._believes_kernel else BOX)
        theorem = self._theorem.done(THEOREM_A if self._believes_kernel else "Theorem A is about one estimated kernel")
        return [move, *(track.done(NO_COMPARATOR) for track in followed), theorem]
