"""ProximalOMDPD: optimistic mirror descent on the surrogate itself, with its hinges kept exact.

The same optimistic mirror descent and exponential potential as OMDPD, but each step minimises the surrogate instead of
its subgradient, the prediction is the next surrogate, and the step size follows the realised surprise.  One episode:

    1  r~_k, d~_k, Q_k from the data before k
    2  m_k(q) = -r~_k.q + sum_i w_{k-1,i} sum_{d in M_k,i} [d.q]^+
       q_k = argmin_{Q_k} eta_k m_k(q) + D(q, q_hat_k)
    3  play pi(q_k); a revealed table is put into the memory
    4  V_i += [d_{k,i}.q_k]^+ ;   w_k = w(V)
    5  f_k(q) = -r~_k.q + sum_i w_{k,i} sum_{d in M'_k,i} [d.q]^+           (w_{k-1,i} with lagged weights)
       q_hat_{k+1} = argmin_{Q_k} eta_k f_k(q) + D(q, q_hat_k)
    6  delta_k = (f_k - m_k)(q_k) - (f_k - m_k)(q_hat_{k+1}) - (D(q_hat_{k+1}, q_k) + D(q_k, q_hat_k)) / eta_k
       1 / eta_{k+1} = 1 / eta_k + [delta_k]^+ / C'

Units are raw: alpha of the paper is one, and V takes the place of lam.  What can be proved is in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import (
    COST_SCALE,
    REWARD_SCALE,
    TRANSITION_SCALE,
    BoxEstimator,
    EmpiricalEstimator,
    Estimate,
    Estimator,
    KnownModel,
)
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.revealed import TableMemory
from omdpd.beliefs.sharing import Evidence, SharedBeliefs
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.learners.needs import ModelToBeGiven, require_nonnegative, require_positive
from omdpd.learners.potential import positive_part
from omdpd.learners.protocol import Card, Certificate, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.learners.surrogate import (
    Stepping,
    Surrogate,
    Weighting,
    distance,
    inexactness,
    kernel_move,
    matching,
    remembered_hinges,
)
from omdpd.problem.arrays import Floats, inner
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import Hinges, SolveLog, Status, Step, mirror_step
from omdpd.solvers.regions import Kernel, Region

# A violation below this share of max(1, H max|d|) is the solver's noise, not the policy's: ignored, summed, reported.
NOISE = 1e-7
# The hinge weight eta w that a mirror step is given at most; beyond it a constraint is as good as hard.
MAX_WEIGHT = 1e4
# By how much a step that cannot be solved is shortened, in turn.
SHORTENED = (1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class State:
    """Everything carried from one episode to the next; `k` episodes have been seen, and q is played in the next.

    `drift` is what a believed kernel that moves has added to the certificate so far, together with surprises that did
    not slow the steps (None in a run that an earlier version began: nothing is certified then).  `evidence` and
    `caution` belong to estimators that share between steps.
    """

    setting: Setting
    k: int
    counts: Counts
    believed: Estimate[Region]
    margin: float
    memory: tuple[TableMemory, ...]
    weights: Floats
    predicted: Surrogate
    multipliers: Floats
    q: Floats
    q_hat: Floats
    V: Floats
    eta: float
    reward_sum: float
    inexactness: float
    log: SolveLog
    saturations: int
    capped: bool
    ignored: float
    drift: float | None = None
    evidence: Evidence | None = None
    caution: Caution | None = None


@dataclass(frozen=True)
class ProximalOMDPD:
    """The practical form; build one with `standard` (the default), another preset, or `known_model`."""

    estimator: Estimator | SharingEstimator = EmpiricalEstimator()
    weighting: Weighting = Weighting()
    stepping: Stepping = Stepping()
    memory: int = 8

    @staticmethod
    def standard(
        z: float = 1.0,
        exploration: float = 1.0,
        w0: float = 10.0,
        gamma_scale: float = 16.0,
        stationary: bool = False,
        *,
        lagged: bool = True,
        patient: bool = True,
        eta: float = 1.0,
        eta_bandit: float = 0.1,
        memory: int = 8,
    ) -> ProximalOMDPD:
        """The default: estimates shared between steps, exact hinges, `z` standard errors of safety on every cost."""
        weighting = Weighting(w0, gamma_scale, lagged=lagged)
        stepping = Stepping(eta, eta_bandit=eta_bandit, patient=patient)
        return ProximalOMDPD(SharingEstimator(z, exploration, stationary), weighting, stepping, memory)

    @staticmethod
    def cautious(
        kappa: float = EmpiricalEstimator.kappa,
        reward_scale: float = EmpiricalEstimator.reward_scale,
        stationary: bool = False,
        *,
        w0: float = Weighting.w0,
        gamma_scale: float = Weighting.gamma_scale,
        lagged: bool = False,
        eta: float = Stepping.eta_init,
        memory: int = 8,
    ) -> ProximalOMDPD:
        """Empirical kernel, exact hinges, a shrinking margin on cost (`kappa` is the safety dial)."""
        estimator = EmpiricalEstimator(kappa=kappa, stationary=stationary, reward_scale=reward_scale)
        return ProximalOMDPD(estimator, Weighting(w0, gamma_scale, lagged=lagged), Stepping(eta), memory)

    @staticmethod
    def balanced(
        reward_scale: float = EmpiricalEstimator.reward_scale,
        stationary: bool = False,
        *,
        w0: float = Weighting.w0,
        gamma_scale: float = Weighting.gamma_scale,
        lagged: bool = False,
        eta: float = Stepping.eta_init,
        memory: int = 8,
    ) -> ProximalOMDPD:
        """`cautious` without the margin."""
        constants = {"w0": w0, "gamma_scale": gamma_scale, "eta": eta}
        return ProximalOMDPD.cautious(0.0, reward_scale, stationary, lagged=lagged, memory=memory, **constants)

    @staticmethod
    def optimistic(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        *,
        known_model: bool = False,
        w0: float = Weighting.w0,
        gamma_scale: float = Weighting.gamma_scale,
        eta: float = Stepping.eta_init,
        memory: int = 8,
    ) -> ProximalOMDPD:
        """The same loop over a small confidence box, closest to the paper's optimism.

        With `known_model` a run hands over what `ProximalOMDPD.known_model` takes, and the scales are idle.
        """
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary)
        estimator: Estimator = ModelToBeGiven() if known_model else box
        return ProximalOMDPD(estimator, Weighting(w0, gamma_scale), Stepping(eta), memory)

    @staticmethod
    def known_model(transition: Floats, reward: Floats, cost: Floats | None = None) -> ProximalOMDPD:
        """Nothing is estimated; with the cost given too it is known from the first episode on."""
        return ProximalOMDPD(KnownModel(transition, reward, cost))

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "exact hinges, next-surrogate prediction, self-tuned step; a margin on cost is the safety dial",
            ("bandit", "full"),
            "run-time certificate; O~(sqrt K) regret and violation with theory-scale bonuses (docs/theory.md)",
            "this library; docs/departures.md",
        )

    def init(self, setting: Setting) -> State:
        """V = 0, q_hat_1 = the uniform policy under the uniform (or the known) kernel; then steps 1-2 for k = 1."""
        self._check(setting)
        known = self.estimator.transition if isinstance(self.estimator, KnownModel) else None
        q_hat = uniform_occupancy(setting, known)
        counts = Counts.empty(setting)
        sharing = isinstance(self.estimator, SharingEstimator)
        evidence, caution = (Evidence.empty(setting), Caution()) if sharing else (None, None)
        shared = self._shared(setting, counts, evidence)
        none = Prices(np.zeros(0), np.zeros((0, *setting.shape)))
        believed = self._believe(setting, counts, 0, shared, none, caution)
        V = np.zeros(setting.n_constraints)
        start = State(
            setting, 0, counts, believed, 0.0, (TableMemory(self.memory),) * setting.n_constraints, V,
            Surrogate(believed.reward, Hinges.none(setting.shape)), np.zeros(0), q_hat, q_hat, V,
            eta=self.stepping.first(setting), reward_sum=0.0, inexactness=0.0, log=SolveLog(), saturations=0,
            capped=False, ignored=0.0, drift=0.0, evidence=evidence, caution=caution,
        )  # fmt: skip
        return self._predict(start, shared)

    def policy(self, state: State) -> Floats:
        """The policy of q_k; uniform where a state has no mass."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """Steps 3-6 for the episode just played, then 1-2 for the next."""
        prices = Prices(state.multipliers / state.eta, state.predicted.hinges.tables)
        caution = None if state.caution is None else _after_episode(state.caution, state, feedback)
        memory = state.memory
        observed = state.believed.counted_cost
        if isinstance(feedback, FullFeedback):  # step 3
            observed = feedback.cost
            memory = tuple(kept.meet(table) for kept, table in zip(memory, observed, strict=True))
        state = self._count(state, observed)  # step 4
        state = self._correct(state, memory)  # steps 5 and 6
        evidence = None if state.evidence is None else state.evidence.after(state.counts, feedback)
        counts, k = state.counts.add(feedback), state.k + 1
        shared = self._shared(state.setting, counts, evidence)
        believed = self._believe(state.setting, counts, k, shared, prices, caution)  # step 1 for the next episode
        drift = kernel_move(state.believed.region, believed.region) / state.eta
        state = replace(
            state, k=k, counts=counts, evidence=evidence, caution=caution, believed=believed,
            margin=float(np.vdot(state.q, believed.margin)), drift=None if state.drift is None else state.drift + drift,
        )  # fmt: skip
        return self._predict(state, shared)

    def report(self, state: State) -> Report:
        """Step size, largest weight, what was ignored as noise, and the certificate where it applies."""
        return Report(
            state.log, state.eta, float(state.weights.max()), saturations=state.saturations, ignored=state.ignored,
            certificate=self._certificate(state), believed=state.believed,
        )  # fmt: skip

    def _shared(self, setting: Setting, counts: Counts, evidence: Evidence | None) -> SharedBeliefs | None:
        """What an estimator that shares between steps believes."""
        if not isinstance(self.estimator, SharingEstimator) or evidence is None:
            return None
        return self.estimator.beliefs(setting, counts, evidence)

    def _believe(
        self, setting: Setting, counts: Counts, k: int, shared: SharedBeliefs | None, prices: Prices,
        caution: Caution | None,
    ) -> Estimate[Region]:  # fmt: skip
        """Step 1: what is believed before zero-based episode k."""
        if not isinstance(self.estimator, SharingEstimator):
            return self.estimator.estimate(setting, counts, k)
        assert shared is not None
        assert caution is not None
        return self.estimator.estimate(setting, counts, shared, prices, caution)

    def _predict(self, state: State, shared: SharedBeliefs | None) -> State:
        """Step 2: q_k = argmin_{Q_k} eta_k m_k(q) + D(q, q_hat_k), with the newest tables and the current weights."""
        weights, capped = self._weights(state, state.V)
        m = self._surrogate(state, state.memory, weights, shared)
        step, shortened = _step_or_shorter(state, m)
        H, eta = state.setting.horizon, state.eta
        # A step of length eta/c satisfies its inequality with c/eta, of which only 1/eta telescopes.
        drift = None if state.drift is None else state.drift + (shortened - 1.0) * H / eta
        return replace(
            state, weights=weights, capped=state.capped or capped, predicted=m, q=step.occupancy, drift=drift,
            multipliers=shortened * step.multipliers, log=state.log.after(step),
            inexactness=state.inexactness + inexactness(step, H, eta / shortened),
        )  # fmt: skip

    def _count(self, state: State, observed: Floats) -> State:
        """Step 4: V_i += [d_i.q_k]^+ without any margin, and w_k = w(V) unless weights lag."""
        excess = positive_part(inner(observed, state.q))
        noise = NOISE * np.maximum(1.0, state.setting.horizon * np.abs(observed).reshape(len(observed), -1).max(axis=1))
        real = np.where(excess > noise, excess, 0.0)
        V = state.V + real
        weights, capped = (state.weights, False) if self.weighting.lagged else self._weights(state, V)
        potential = self.weighting.potential(state.setting, state.k + 1)
        return replace(
            state, V=V, saturations=state.saturations + potential.saturated(V),
            weights=weights, capped=state.capped or capped,
            ignored=state.ignored + float((excess - real).sum()),
            reward_sum=state.reward_sum + float(np.vdot(state.believed.reward, state.q)),
        )  # fmt: skip

    def _weights(self, state: State, V: Floats) -> tuple[Floats, bool]:
        """w(V) as far as a step takes it, and whether that is less than w(V)."""
        wanted = self.weighting.potential(state.setting, state.k + 1).slope(V)
        weights = np.minimum(wanted, MAX_WEIGHT / state.eta)
        return weights, bool((wanted > weights).any())

    def _correct(self, state: State, memory: tuple[TableMemory, ...]) -> State:
        """Steps 5 and 6: q_hat_{k+1} from the surrogate that was met, and the step size from the surprise.

        With nothing new (f_k = m_k) q_k already is the minimiser, and the second projection is skipped.
        """
        m, eta, q = state.predicted, state.eta, state.q
        same = all(after.same_as(before) for after, before in zip(memory, state.memory, strict=True))
        if same and self.weighting.lagged:
            return replace(state, memory=memory, q_hat=q)
        f = self._surrogate(state, memory, state.weights, self._shared(state.setting, state.counts, state.evidence))
        if same and np.array_equal(f.hinges.weights, m.hinges.weights):
            return replace(state, memory=memory, q_hat=q)
        step = _step(state, f)
        q_hat = step.occupancy
        surprise = (f.value(q) - m.value(q)) - (f.value(q_hat) - m.value(q_hat))
        surprise = max(surprise - (distance(q_hat, q) + distance(q, state.q_hat)) / eta, 0.0)
        charged = self.stepping.charges(memory)
        slower = surprise / (state.setting.horizon * self.stepping.c_prime) if charged else 0.0
        drift = state.drift if charged or state.drift is None else state.drift + surprise
        return replace(
            state, memory=memory, q_hat=q_hat, multipliers=step.multipliers, eta=1.0 / (1.0 / eta + slower),
            log=state.log.after(step), drift=drift,
            inexactness=state.inexactness + inexactness(step, state.setting.horizon, eta),
        )  # fmt: skip

    def _surrogate(
        self, state: State, memory: tuple[TableMemory, ...], weights: Floats, shared: SharedBeliefs | None
    ) -> Surrogate:
        """-r~.q plus one hinge per constraint (its estimate), or per remembered table (with its margin)."""
        believed, start = state.believed, state.multipliers
        if state.setting.feedback == "bandit":
            hinges = Hinges(believed.cost, weights, matching(start, len(weights)))
        else:
            kept = remembered_hinges(weights, memory, self._lift(state, shared), start)
            hinges = kept or Hinges.none(state.setting.shape)
        return Surrogate(believed.reward, hinges)

    def _lift(self, state: State, shared: SharedBeliefs | None) -> Callable[[Floats], float]:
        """What a revealed table is raised by, under the beliefs of this state."""
        setting, caution, memory = state.setting, state.caution, state.memory
        if isinstance(self.estimator, SharingEstimator) and shared is not None and caution is not None:
            lift = self.estimator.revealed_lift
            return lambda d: lift(setting, shared, caution, memory, d)
        scale = state.margin / setting.horizon
        return lambda d: scale * float(np.abs(d).max())

    def _certificate(self, state: State) -> Certificate | None:
        """(C + C')/eta_{k+1} >= sum_i Phi(V_i) + sum_k r~_k.(q* - q_k), where the region holds the truth.

        A believed kernel does not hold it: there q* is the occupancy, under each belief, of a policy that the beliefs
        call safe in every episode, and what it moves as the beliefs do is added to the bound.
        """
        moving = isinstance(state.believed.region, Kernel) and not isinstance(self.estimator, KnownModel)
        if state.capped or (moving and state.drift is None):
            return None
        H = state.setting.horizon
        bound = H * (1.0 + self.stepping.c_prime) / state.eta + state.inexactness + (state.drift or 0.0)
        potential = self.weighting.potential(state.setting, state.k + 1)
        slack = self.weighting.slack(potential, H)
        phi = float(potential.value(state.V).sum()) / slack
        return Certificate(bound, bound - phi, potential.inverse(slack * (bound + state.reward_sum)))

    def _check(self, setting: Setting) -> None:
        self.estimator.check(setting)
        require_nonnegative(self, "memory")
        require_nonnegative(self.weighting, "gamma_scale")
        require_positive(self.weighting, "w0")
        require_positive(self.stepping, "eta_init", "eta_bandit")


def _step(state: State, surrogate: Surrogate, shortened: float = 1.0) -> Step:
    """argmin_{Q_k} eta_k surrogate(q) + D(q, q_hat_k), or the same with eta_k / shortened."""
    mu, region = state.setting.mu, state.believed.region
    return mirror_step(region, mu, state.q_hat, -surrogate.reward, state.eta / shortened, surrogate.hinges)


def _step_or_shorter(state: State, surrogate: Surrogate) -> tuple[Step, float]:
    """The step, and by how much it had to be shortened to be solved.

    Prices in the thousands make a surrogate of that size: the step is then a linear program in all but name, at whose
    degenerate vertices an interior-point method may come to a halt; a shorter step is a step too.
    """
    for shortened in SHORTENED:
        step = _step(state, surrogate, shortened)
        if step.status is not Status.FAILED:
            break
    return step, shortened


def _after_episode(caution: Caution, state: State, feedback: Feedback) -> Caution:
    """What margins depend on after an episode: the plan just played, whether it had room, how new its tables were."""
    caution = replace(caution, plan=state.q).after_plan(state.predicted.excess(state.q), state.setting.horizon)
    return caution.after_tables(state.memory, feedback.cost) if isinstance(feedback, FullFeedback) else caution
