"""The chain of inequalities behind Theorem 5.1, measured on a run of OMDPD.

    Phi(lam_k) - Phi(lam_{k-1})                       <=  Phi'(lam_k) alpha [d~_k.q_k]^+                    Eq. 22
    Phi(lam_K) + alpha sum_k r~_k.(q* - q_k)          <=  sum_k f_k(q_k) - f_k(q*)                          Eq. 23
                                                      <=  sum_k <grad_k, q_k - q*>                          convexity
                                                      <=  sqrt C (4.5 sqrt E_K + 1)                         Lemma 5.8
    sqrt E_K                                          <=  2 alpha (1 + sqrt L) sqrt(6SAHK) (1 + Phi')       Lemma 5.9

Tables are those of the surrogate f_k: r~_k and d~_k with the newest episode in them.  Lemma 5.9 is taken before its
last step, which puts in the theorem's alpha, and with several constraints Phi and Phi' are summed over them.  Beyond
the premises of a lemma both sides are measured all the same, and the note says what is missing.  G = sqrt(6SAHK).
The right side of Lemma 5.8 is the one that is proved (docs/theory.md, section 9), not the paper's 3.5 sqrt C (...).
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.confidence import DELTA, BoxEstimator, KnownModel, log_term
from omdpd.learners.omdpd import OMDPD, State, Surrogate, surrogate_bound
from omdpd.learners.potential import positive_part
from omdpd.learners.protocol import PlanInputs
from omdpd.play.ledger import visit_bounds
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.products import dot, dots
from omdpd.theory.bounds import theorem_terms, total
from omdpd.theory.estimates import GoodEvent, OptimismChecks, Split
from omdpd.theory.inequalities import NO_COMPARATOR, HeldAgainst, Inequality, SeenEpisode, Track

# Name, place and statement of what the two terms of the optimisation error are bounded by, and of the remark.
OPTIMISATION = ("optimisation, Term 2", "Lemma 5.11", "sum_k r~_k.(q* - q_k) <= 2 (1 + sqrt L)(SAH + 4 sqrt C G)")
OPTIMISM = ("optimism, Term 1", "Lemma 5.12", "sum_k (r - r~_k).q* <= SAH sqrt((K-1)/2 ln(2/delta)) + SAH")
RESET = "not proved: sets did not only shrink, a row's boxes had nothing in common"
CONSTANT = ("constant regret", "Remark 5.2", "sum_k r.(q* - q_k) <= 2 (1 + sqrt L) SAH")


class OMDPDWatch:
    """Everything that is followed of a run of OMDPD."""

    def __init__(self, learner: OMDPD, truth: HeldAgainst) -> None:
        self.learner = learner
        self._event, self._split = GoodEvent(truth), Split()
        self._optimism = OptimismChecks(truth, covers=True)
        self._estimation, self._chain = Estimation(learner, truth), Chain(learner, truth)
        self._plan: PlanInputs | None = None

    def see(self, episode: SeenEpisode) -> None:
        """One more episode: the plan that was played is of the state before, the surrogate of the one after."""
        planned, now = self._plan or self.learner.report(episode.before).plan, self.learner.report(episode.after)
        assert planned is not None
        assert now.plan is not None
        assert now.believed is not None
        reward, cost = now.plan.reward, episode.cost if episode.revealed else now.plan.cost
        self._event.see(episode)
        self._split.see(episode, episode.cost if episode.revealed else planned.cost, planned.occupancy)
        self._optimism.see(reward, cost, now.believed.region)
        self._estimation.see(episode, planned)
        self._chain.see(episode, reward, cost)
        self._plan = now.plan

    def done(self) -> list[Inequality]:
        """All inequalities, in the order of the proof."""
        parts = (self._event, self._optimism, self._split, self._estimation, self._chain)
        return [each for part in parts for each in part.done()]


class Estimation:
    """Lemma 5.10: what wrong tables cost under the true laws (its Term 2), and what a wrong kernel does (Term 1)."""

    def __init__(self, learner: OMDPD, truth: HeldAgainst) -> None:
        self.truth, self._sums = truth, np.zeros(2)
        delta = learner.estimator.delta if isinstance(learner.estimator, BoxEstimator) else DELTA
        self._L = log_term(truth.setting, 0, delta)
        self._kernel_bound = _terms(truth, delta, None)["estimation of the kernel"]
        self._table = Track(
            "estimation of rewards", "Lemma 5.10, Term 2", "sum_k <q^pi_k, |r~ - r|> <= 2 sqrt L times the bound of F^N"
        )
        self._kernel = Track(
            "estimation of the kernel", "Lemma 5.10, Term 1",
            "sum_k |r~.q_k - r~.q^pi_k| <= sqrt(S SAH^3 K) + S^2 A H^3",
            "the paper gives the order alone: constants of one, no logarithms",
        )  # fmt: skip

    def see(self, episode: SeenEpisode, planned: PlanInputs) -> None:
        """One more episode that was planned like this."""
        error = np.abs(planned.reward - self.truth.cmdp.reward)
        self._sums += dot(error, episode.occupancy), abs(dot(planned.reward, planned.occupancy - episode.occupancy))
        self._table.add(self._sums[0], 2.0 * float(np.sqrt(self._L)) * visit_bounds(self.truth.setting, episode.k)[1])
        self._kernel.add(self._sums[1], self._kernel_bound)

    def done(self) -> list[Inequality]:
        """Both terms."""
        return [self._table.done(), self._kernel.done()]


class Chain:
    """Drift, key inequality, surrogate regret, gradient variation, and what the theorem makes of them."""

    def __init__(self, learner: OMDPD, truth: HeldAgainst) -> None:
        self.learner, self.truth = learner, truth
        self._sums = np.zeros(5)  # r~.(q* - q), f(q) - f(q*), <grad, q - q*>, (r - r~).q*, V* - V^pi
        self._violation = 0.0
        self._drift = Track(
            "drift", "Eq. 22", "Phi(lam_k) - Phi(lam_{k-1}) <= Phi'(lam_k) alpha [d~_k.q_k]^+", single=True
        )
        self._key = Track(
            "key inequality", "Eq. 23", "Phi(lam_k) + alpha sum_j r~_j.(q* - q_j) <= sum_j f_j(q_j) - f_j(q*)"
        )
        self._convex = Track(
            "convexity of the surrogates", "proof of Lemma 5.8",
            "sum_j f_j(q_j) - f_j(q*) <= sum_j <grad_j, q_j - q*>",
        )  # fmt: skip
        self._surrogate = Track(
            "surrogate regret", "Lemma 5.8", "sum_j <grad_j, q_j - q*> <= sqrt C (4.5 sqrt E_k + 1)",
            _needs(learner.unmet(truth.setting.horizon)),
        )  # fmt: skip
        self._variation = Track(
            "gradient variation", "Lemma 5.9", "sqrt E_k <= 2 alpha (1 + sqrt L) sqrt(6SAHk) (1 + sum_i Phi'(lam_i))"
        )
        self._theorem = Theorem(learner, truth)

    def see(self, episode: SeenEpisode, reward: Floats, cost: Floats) -> None:
        """One more episode with the tables of its surrogate."""
        before, after, q = episode.before, episode.after, episode.before.q
        self._follow_potential(episode.k, before, after, positive_part(dots(cost, q)))
        if after.resets and not before.resets:
            for track in (self._surrogate, *self._theorem.on_steps):
                track.remark(f"{RESET} in episode {episode.k}")
        best = self.truth.occupancy
        self._violation += max(float(dots(episode.cost, episode.occupancy).max()), 0.0)
        if best is not None and self.truth.best.value is not None:
            weights = after.potential.slope(after.lam)
            f, towards = Surrogate(after.alpha, reward, cost, weights, at=q), best - q
            self._sums += (
                dot(reward, towards), value(f, q) - value(f, best), -dot(after.grad, towards),
                dot(self.truth.cmdp.reward - reward, best),
                self.truth.best.value - dot(self.truth.cmdp.reward, episode.occupancy),
            )  # fmt: skip
            gained, surrogate, linear, _, _ = self._sums.tolist()
            self._key.add(after.potential.total(after.lam) + after.alpha * gained, surrogate)
            self._convex.add(surrogate, linear)
            self._surrogate.add(linear, surrogate_bound(after.diameter, after.variation))
        self._theorem.see(self._sums, float(after.lam.max()) / after.alpha, self._violation)

    def _follow_potential(self, k: int, before: State, after: State, violated: Floats) -> None:
        """Eq. 22 and Lemma 5.9, for which no comparator is needed."""
        slope, potential = after.potential.slope(after.lam), after.potential
        grown = potential.total(after.lam) - potential.total(before.lam)
        self._drift.add(grown, after.alpha * float(slope @ violated))
        H, S, A = self.truth.setting.shape
        delta = self.learner.estimator.delta if isinstance(self.learner.estimator, BoxEstimator) else DELTA
        width = 1.0 + float(np.sqrt(log_term(self.truth.setting, 0, delta)))
        root = float(np.sqrt(6.0 * S * A * H * k))
        self._variation.add(
            float(np.sqrt(after.variation)), 2.0 * after.alpha * width * root * (1.0 + float(slope.sum()))
        )

    def done(self) -> list[Inequality]:
        """The chain, in the order of the proof."""
        needing = [track.done(NO_COMPARATOR) for track in (self._key, self._convex, self._surrogate)]
        return [self._drift.done(), *needing, self._variation.done(), *self._theorem.done()]


class Theorem:
    """Lemmas 5.11 to 5.13, the remark and Theorem 5.1: sums so far beside the bounds at K."""

    def __init__(self, learner: OMDPD, truth: HeldAgainst) -> None:
        delta = learner.estimator.delta if isinstance(learner.estimator, BoxEstimator) else DELTA
        terms = theorem_terms(truth.setting, delta, learner.init(truth.setting).diameter)
        at = {term.name: term.value for term in terms}
        violation = "max_i sum_k [d~_i.q_k]^+ <= 16 (1 + sqrt L) sqrt C G ln(K + 8 sqrt C G / SAH + 2)"
        whole = "<= the sum of the terms of omdpd lab bounds"
        rows = [
            (*OPTIMISATION, at["regret, optimisation"]), (*OPTIMISM, at["regret, optimism of rewards"]),
            (*CONSTANT, at["regret, optimisation, known model"]),
            ("believed violation", "Lemma 5.13", violation, at["violation, optimisation"]),
            ("regret", "Theorem 5.1", f"regret {whole}", total(terms, "regret")),
            ("violation", "Theorem 5.1", f"strong violation {whole}", total(terms, "violation")),
        ]  # fmt: skip
        unknown = "the remark is about a known model, and this learner estimates its own"
        self._tracks: list[tuple[Track, float]] = []
        self.on_steps: list[Track] = []  # those that rest on Lemma 5.8
        for name, where, text, right in rows:
            missing = (
                []
                if "5.12" in where
                else learner.unmet(truth.setting.horizon) + _constants(learner, where.startswith("Remark"))
            )
            if where.startswith("Remark"):
                missing.append("(1 + sqrt C) / alpha + 4.5 sqrt(C SAH) on its right side")
            track = Track(name, where, text, "; ".join(filter(None, (_needs(missing), trivial(right, truth)))))
            if truth.occupancy is None and "violation" not in name:
                track.end(NO_COMPARATOR)
            elif where.startswith("Remark") and not isinstance(learner.estimator, KnownModel):
                track.end(unknown)
            self._tracks.append((track, right))
            if "5.12" not in where:
                self.on_steps.append(track)

    def see(self, sums: Floats, believed_violation: float, violation: float) -> None:
        """The sums after one more episode."""
        lefts = (sums[0], sums[3], sums[0], believed_violation, sums[4], violation)
        for (track, right), left in zip(self._tracks, lefts, strict=True):
            track.add(float(left), right)

    def done(self) -> list[Inequality]:
        """The six."""
        return [track.done() for track, _ in self._tracks]


def value(f: Surrogate, q: Floats) -> float:
    """f(q) = alpha (-r~.q + sum_i w_i [d~_i.q]^+), without the quadratic term that the paper's f_k carries."""
    return f.alpha * (float(f.weights @ positive_part(dots(f.cost, q))) - dot(f.reward, q))


def trivial(right: float, truth: HeldAgainst) -> str:
    """The sentence that a bound says nothing, where it does not."""
    most = truth.most
    return f"trivial: no run exceeds HK = {most:.4g}" if right >= most else ""


def _terms(truth: HeldAgainst, delta: float, diameter: float | None) -> dict[str, float]:
    return {term.name: term.value for term in theorem_terms(truth.setting, delta, diameter)}


def _needs(missing: list[str]) -> str:
    """The note of a lemma whose premises are not all fulfilled."""
    return f"not proved here: it needs {', '.join(missing)}" if missing else ""


def _constants(learner: OMDPD, remark: bool) -> list[str]:
    """Which constants are not the theorem's (or the remark's)."""
    given = [name for name in ("alpha", "w0", "beta_root") if getattr(learner, name) is not None]
    wanted = [f"the {'remark' if remark else 'theorem'}'s {' and '.join(given)}"] if given else []
    if not remark and isinstance(learner.estimator, KnownModel) and not given:
        wanted.append("the theorem's beta, not the remark's")
    return wanted
