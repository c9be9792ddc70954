"""ProximalOMDPD: optimistic mirror descent on the surrogate itself, with its hinges kept exact.

The same optimistic mirror descent and exponential potential as OMDPD, but each step minimises the surrogate instead of
its subgradient, the prediction is the next surrogate, and the step size follows the realised surprise.  One episode:

    1  r~_k, d~_k, Q_k from the data before k
    2  m_k(q) = -r~_k.q + sum_i w_{k-1,i} sum_{d in M_k,i} [d.q]^+
       q_k = argmin_{Q_k} eta_k m_k(q) + D(q, q_hat_k)
    3  play pi(q_k); a revealed table is put into the memory
    4  V_i += [d_{k,i}.q_k]^+ ;   w_k = w(V)
    5  f_k(q) = -r~_k.q + sum_i w_{k,i} sum_{d in M'_k,i} [d.q]^+
       q_hat_{k+1} = argmin_{Q_k} eta_k f_k(q) + D(q, q_hat_k)
    6  delta_k = (f_k - m_k)(q_k) - (f_k - m_k)(q_hat_{k+1}) - (D(q_hat_{k+1}, q_k) + D(q_k, q_hat_k)) / eta_k
       1 / eta_{k+1} = 1 / eta_k + [delta_k]^+ / C'

Units are raw: alpha of the paper is one, and V takes the place of lam.
"""

from __future__ import annotations

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
    effective_episodes,
)
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.revealed import TableMemory
from omdpd.learners.needs import ModelToBeGiven
from omdpd.learners.potential import Potential, positive_part
from omdpd.learners.protocol import Card, Certificate, Report
from omdpd.learners.start import uniform_occupancy
from omdpd.problem.arrays import Floats, InvalidInputError, inner
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.mirror import Hinges, SolveLog, Step, mirror_step
from omdpd.solvers.regions import Region

# A violation below this share of max(1, H max|d|) is the solver's noise, not the policy's: ignored, summed, reported.
NOISE = 1e-7
# The hinge weight eta w that a mirror step is given at most; beyond it a constraint is as good as hard.
MOST_WEIGHT = 1e4


@dataclass(frozen=True)
class Weighting:
    """w(V) = min(w0 exp(gamma V), w_max) with gamma = gamma_scale / sqrt(I H K)."""

    w0: float = 1.0
    gamma_scale: float = 16.0
    w_max: float = 1e6

    def potential(self, setting: Setting, k: int) -> Potential:
        """Phi before one-based episode k (K itself where it is known)."""
        gamma = self.gamma_scale / np.sqrt(setting.n_constraints * setting.horizon * effective_episodes(setting, k))
        return Potential(self.w0, float(gamma), self.w_max)


@dataclass(frozen=True)
class Stepping:
    """eta_1 = H eta_init, and C' = H c_prime in the self-tuned step."""

    eta_init: float = 1.0
    c_prime: float = 1.0 / 16.0


@dataclass(frozen=True, eq=False)
class Surrogate:
    """-r~.q + sum_j w_j [d_j.q]^+."""

    reward: Floats
    hinges: Hinges

    def value(self, q: Floats) -> float:
        """The surrogate at q."""
        return self.hinges.value(q) - float(np.vdot(self.reward, q))


@dataclass(frozen=True, eq=False)
class State:
    """Everything carried from one episode to the next; `k` episodes have been seen, and q is played in the next."""

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


@dataclass(frozen=True)
class ProximalOMDPD:
    """The practical form; build one with `cautious` (the default), `balanced`, `optimistic` or `known_model`."""

    estimator: Estimator = EmpiricalEstimator()
    weighting: Weighting = Weighting()
    stepping: Stepping = Stepping()
    memory: int = 8

    @staticmethod
    def cautious(
        kappa: float = EmpiricalEstimator.kappa,
        reward_scale: float = EmpiricalEstimator.reward_scale,
        stationary: bool = False,
    ) -> ProximalOMDPD:
        """The default: empirical kernel, exact hinges, a shrinking margin on cost (`kappa` is the safety dial)."""
        return ProximalOMDPD(EmpiricalEstimator(kappa=kappa, stationary=stationary, reward_scale=reward_scale))

    @staticmethod
    def balanced(reward_scale: float = EmpiricalEstimator.reward_scale, stationary: bool = False) -> ProximalOMDPD:
        """The same without the margin."""
        return ProximalOMDPD.cautious(0.0, reward_scale, stationary)

    @staticmethod
    def optimistic(
        reward_scale: float = REWARD_SCALE,
        cost_scale: float = COST_SCALE,
        transition_scale: float = TRANSITION_SCALE,
        stationary: bool = False,
        *,
        known_model: bool = False,
    ) -> ProximalOMDPD:
        """The same loop over a small confidence box, closest to the paper's optimism.

        With `known_model` a run hands over what `ProximalOMDPD.known_model` takes, and the other settings are idle.
        """
        if known_model:
            return ProximalOMDPD(ModelToBeGiven())
        return ProximalOMDPD(BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary))

    @staticmethod
    def known_model(transition: Floats, reward: Floats, cost: Floats | None = None) -> ProximalOMDPD:
        """Nothing is estimated; with the cost given too it is known from the first episode on."""
        return ProximalOMDPD(KnownModel(transition, reward, cost))

    @property
    def card(self) -> Card:
        """The learner's line in the table of learners."""
        return Card(
            "exact hinges, next-surrogate prediction, self-tuned step; kappa is the safety dial",
            ("bandit", "full"),
            "run-time certificate with a known model or a box that holds the truth; else measured only",
            "this library; docs/departures.md",
        )

    def init(self, setting: Setting) -> State:
        """V = 0, q_hat_1 = the uniform policy under the uniform (or the known) kernel; then steps 1-2 for k = 1."""
        self._check(setting)
        H = setting.horizon
        known = self.estimator.transition if isinstance(self.estimator, KnownModel) else None
        q_hat = uniform_occupancy(setting, known)
        counts = Counts.empty(setting)
        believed = self.estimator.estimate(setting, counts, 0)
        V = np.zeros(setting.n_constraints)
        start = State(
            setting, 0, counts, believed, 0.0, (TableMemory(self.memory),) * setting.n_constraints, V,
            Surrogate(believed.reward, Hinges.none(setting.shape)), np.zeros(0), q_hat, q_hat, V,
            eta=H * self.stepping.eta_init, reward_sum=0.0, inexactness=0.0, log=SolveLog(), saturations=0,
            capped=False, ignored=0.0,
        )  # fmt: skip
        return self._predict(start, 0, counts, believed, margin=0.0)

    def policy(self, state: State) -> Floats:
        """The policy of q_k; uniform where a state has no mass."""
        return policy_of_occupancy(state.q)

    def update(self, state: State, feedback: Feedback) -> State:
        """Steps 3-6 for the episode just played, then 1-2 for the next."""
        memory = state.memory
        met = state.believed.counted_cost
        if isinstance(feedback, FullFeedback):  # step 3
            met = feedback.cost
            memory = tuple(kept.meet(table) for kept, table in zip(memory, feedback.cost, strict=True))
        state = self._count(state, met)  # step 4
        state = self._correct(state, memory)  # steps 5 and 6
        counts = state.counts.add(feedback)
        believed = self.estimator.estimate(state.setting, counts, state.k + 1)  # step 1 for the next episode
        return self._predict(state, state.k + 1, counts, believed, float(np.vdot(state.q, believed.margin)))

    def report(self, state: State) -> Report:
        """Step size, largest weight, what was ignored as noise, and the certificate where it applies."""
        return Report(
            state.log, state.eta, float(state.weights.max()), saturations=state.saturations, ignored=state.ignored,
            certificate=self._certificate(state), believed=state.believed,
        )  # fmt: skip

    def _predict(self, state: State, k: int, counts: Counts, believed: Estimate[Region], margin: float) -> State:
        """Step 2: q_k = argmin_{Q_k} eta_k m_k(q) + D(q, q_hat_k), with the newest tables and the current weights."""
        wanted = self.weighting.potential(state.setting, k + 1).slope(state.V)
        weights = np.minimum(wanted, MOST_WEIGHT / state.eta)
        m = _surrogate(state, believed, margin, weights, state.memory)
        step = _step(state, believed, m)
        return replace(
            state, k=k, counts=counts, believed=believed, margin=margin, weights=weights, predicted=m, q=step.occupancy,
            multipliers=step.multipliers,
            log=state.log.after(step), inexactness=state.inexactness + _inexactness(step, state),
            capped=state.capped or bool(np.any(wanted > weights)),
        )  # fmt: skip

    def _count(self, state: State, met: Floats) -> State:
        """Step 4: V_i += [d_i.q_k]^+ without any margin, and w_k = w(V)."""
        excess = positive_part(inner(met, state.q))
        noise = NOISE * np.maximum(1.0, state.setting.horizon * np.abs(met).reshape(len(met), -1).max(axis=1))
        real = np.where(excess > noise, excess, 0.0)
        V = state.V + real
        potential = self.weighting.potential(state.setting, state.k + 1)
        wanted = potential.slope(V)
        weights = np.minimum(wanted, MOST_WEIGHT / state.eta)
        return replace(
            state, V=V, saturations=state.saturations + potential.saturated(V),
            weights=weights, capped=state.capped or bool(np.any(wanted > weights)),
            ignored=state.ignored + float((excess - real).sum()),
            reward_sum=state.reward_sum + float(np.vdot(state.believed.reward, state.q)),
        )  # fmt: skip

    def _correct(self, state: State, memory: tuple[TableMemory, ...]) -> State:
        """Steps 5 and 6: q_hat_{k+1} from the surrogate that was met, and the step size from the surprise.

        With nothing new (f_k = m_k) q_k already is the minimiser, and the second projection is skipped.
        """
        m, eta, q = state.predicted, state.eta, state.q
        f = _surrogate(state, state.believed, state.margin, state.weights, memory)
        same = all(after.same_as(before) for after, before in zip(memory, state.memory, strict=True))
        if same and np.array_equal(f.hinges.weights, m.hinges.weights):
            return replace(state, memory=memory, q_hat=q)
        step = _step(state, state.believed, f)
        q_hat = step.occupancy
        surprise = (f.value(q) - m.value(q)) - (f.value(q_hat) - m.value(q_hat))
        surprise -= (_distance(q_hat, q) + _distance(q, state.q_hat)) / eta
        slower = max(surprise, 0.0) / (state.setting.horizon * self.stepping.c_prime)
        return replace(
            state, memory=memory, q_hat=q_hat, multipliers=step.multipliers, eta=1.0 / (1.0 / eta + slower),
            log=state.log.after(step),
            inexactness=state.inexactness + _inexactness(step, state),
        )  # fmt: skip

    def _certificate(self, state: State) -> Certificate | None:
        """(C + C')/eta_{k+1} >= sum_i Phi(V_i) + sum_k r~_k.(q* - q_k), where the region holds the truth."""
        if not self.estimator.covers_truth or state.capped:
            return None
        H = state.setting.horizon
        bound = H * (1.0 + self.stepping.c_prime) / state.eta + state.inexactness
        potential = self.weighting.potential(state.setting, state.k + 1)
        phi = float(potential.value(state.V).sum())
        return Certificate(bound, bound - phi, potential.inverse(bound + state.reward_sum))

    def _check(self, setting: Setting) -> None:
        self.estimator.check(setting)
        if self.memory < 0:
            raise InvalidInputError(f"memory is {self.memory}, but must be at least 0")


def _surrogate(
    state: State, believed: Estimate[Region], margin: float, weights: Floats, memory: tuple[TableMemory, ...]
) -> Surrogate:
    """-r~.q plus one hinge per constraint (its estimate), or per remembered table (with the scalar margin)."""
    setting = state.setting
    if setting.feedback == "bandit":
        tables, each = believed.cost, weights
    else:
        lift = margin / setting.horizon
        # By label, not by age: the order then stays, and an earlier step's multipliers are a good start.
        kept = [(w, d) for w, held in zip(weights, memory, strict=True) for d in held.by_label()]
        if not kept:
            return Surrogate(believed.reward, Hinges.none(setting.shape))
        each = np.array([w for w, _ in kept])
        tables = np.stack([d + lift * np.abs(d).max() if lift > 0.0 else d for _, d in kept])
    start = state.multipliers if state.multipliers.shape == each.shape else None
    return Surrogate(believed.reward, Hinges(tables, each, start))


def _step(state: State, believed: Estimate[Region], surrogate: Surrogate) -> Step:
    """argmin_{Q_k} eta_k surrogate(q) + D(q, q_hat_k)."""
    mu = state.setting.mu
    return mirror_step(believed.region, mu, state.q_hat, -surrogate.reward, state.eta, surrogate.hinges)


def _distance(q: Floats, q_other: Floats) -> float:
    """D = 1/2 |q - q'|^2."""
    return 0.5 * float(((q - q_other) ** 2).sum())


def _inexactness(step: Step, state: State) -> float:
    """What a solve of gap g can add to the certificate: (g + 2 sqrt(H g)) / eta."""
    return (step.gap + 2.0 * float(np.sqrt(state.setting.horizon * step.gap))) / state.eta
