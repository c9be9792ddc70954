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

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from omdpd.beliefs import representations
from omdpd.beliefs.confidence import (
    COST_SCALE,
    DELTA,
    REWARD_SCALE,
    TRANSITION_SCALE,
    BoxEstimator,
    EmpiricalEstimator,
    Estimate,
    Estimator,
    KnownModel,
)
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.layouts import Layout, RowPolicy, inherited
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.revealed import TableMemory
from omdpd.beliefs.shared_rows import Scores, SharedRows
from omdpd.beliefs.sharing import Evidence, SharedKernel
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.learners.needs import ModelToBeGiven
from omdpd.learners.protocol import Card, Certificate, Promise, Report
from omdpd.learners.proximal_steps import (
    Ground,
    Representation,
    State,
    caution_after,
    first_occupancy,
    forgiven,
    largest_growth,
    layout_for,
    nothing_seen,
    order_on_graph,
    prices_of,
)
from omdpd.learners.surrogate import Stepping, Surrogate, Weighting, distance, flow, inexactness, kernel_move
from omdpd.problem.arrays import Floats, InvalidInputError, whole_number
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.products import add_violation, dot
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.regions import Kernel, Region
from omdpd.storage.packing import WHERE_SET

# A violation below this share of max(1, H max|d|) is the solver's noise, not the policy's: ignored, summed, reported.
NOISE = 1e-7
# The hinge weight eta w that a mirror step is given at most; beyond it a constraint is as good as hard.
MAX_WEIGHT = 1e4


class Corrected(NamedTuple):
    """Where an episode leaves the iterate: q_hat_{k+1}, eta_{k+1}, and what the second solve adds to the accounts."""

    q_hat: Floats
    eta: float
    multipliers: Floats
    log: SolveLog
    inexactness: float
    drift: float | None


@dataclass(frozen=True)
class ProximalOMDPD:
    """The practical form; build one with `standard` (the default), another preset, or `known_model`.

    Large problems are held on a graph of what was visited (see `beliefs.layouts`); `layout` says which of the two.
    """

    estimator: Estimator | SharingEstimator = EmpiricalEstimator()
    weighting: Weighting = Weighting()
    stepping: Stepping = Stepping()
    memory: int = 8
    layout: Representation | None = field(default=None, metadata=WHERE_SET)

    def __post_init__(self) -> None:
        whole_number("memory", self.memory, 0)

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
        layout: Representation | None = None,
        w_max: float = Weighting.w_max,
        c_prime: float = Stepping.c_prime,
    ) -> ProximalOMDPD:
        """The default: estimates shared between steps, exact hinges, `z` standard errors of safety on every cost."""
        weighting = Weighting(w0, gamma_scale, w_max, lagged)
        stepping = Stepping(eta, c_prime, eta_bandit, patient)
        return ProximalOMDPD(SharingEstimator(z, exploration, stationary), weighting, stepping, memory, layout)

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
        layout: Representation | None = None,
        one_over_n: float = EmpiricalEstimator.one_over_n,
        pseudo_observations: float = EmpiricalEstimator.pseudo_observations,
        delta: float = DELTA,
    ) -> ProximalOMDPD:
        """Empirical kernel, exact hinges, a shrinking margin on cost (`kappa` is the safety dial)."""
        estimator = EmpiricalEstimator(kappa, reward_scale, one_over_n, pseudo_observations, stationary, delta)
        return ProximalOMDPD(estimator, Weighting(w0, gamma_scale, lagged=lagged), Stepping(eta), memory, layout)

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
        layout: Representation | None = None,
    ) -> ProximalOMDPD:
        """`cautious` without the margin."""
        return ProximalOMDPD.cautious(
            0.0, reward_scale, stationary, w0=w0, gamma_scale=gamma_scale, lagged=lagged, eta=eta, memory=memory,
            layout=layout,
        )  # fmt: skip

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
        clip: bool = True,
        trusting: bool = True,
        delta: float = DELTA,
    ) -> ProximalOMDPD:
        """The same loop over a small confidence box, closest to the paper's optimism.

        With `known_model` a run hands over what `ProximalOMDPD.known_model` takes, and the scales are idle.
        """
        box = BoxEstimator.practical(reward_scale, cost_scale, transition_scale, stationary, clip, trusting, delta)
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
            self._guarantee(),
            "this library; docs/departures.md",
        )

    def _guarantee(self) -> str:
        """What is proved of these settings; Theorem A of docs/theory.md is about bonuses that no preset has."""
        if isinstance(self.estimator, KnownModel | ModelToBeGiven):
            return "run-time certificate of regret and violation"
        whose = "while the box holds the truth" if self.estimator.covers_truth else "as the beliefs see it"
        return f"no rate with these bonuses; run-time certificate of the plans, {whose} (docs/theory.md, 6 and 8)"

    def keeps_tables(self, setting: Setting) -> bool:
        """Whether what it believes of this setting is held in tables, or else on a graph of what was visited."""
        return layout_for(self.estimator, setting, self.layout) == "dense"

    def init(self, setting: Setting) -> State:
        """V = 0, q_hat_1 = the uniform policy under the uniform (or the known) kernel; then steps 1-2 for k = 1."""
        self._check(setting)
        V, none = np.zeros(setting.n_constraints), np.zeros(0)
        counts, evidence = nothing_seen(self.estimator, setting, self.layout)
        caution = None if evidence is None else Caution()
        layout = representations.layout_of(setting, counts)
        shape = setting.shape if layout is None else layout.copies.shape
        prices = Prices(none, np.zeros((0, *shape)))
        believed, shared = self._believe(setting, counts, layout, 0, evidence, prices, caution)
        eta = self.stepping.first(setting)
        weights, capped = self._weights(setting, 1, V, eta)
        memory = (TableMemory(self.memory),) * setting.n_constraints
        q_hat = first_occupancy(self.estimator, setting, believed.region)
        ground = Ground(setting, believed, 0.0, shared, caution, memory, q_hat, eta, none)
        m = ground.surrogate(self.estimator, memory, weights)
        step, shortened = ground.step_or_shorter(m)
        return State(
            setting, 0, counts, believed, 0.0, memory, weights, m, shortened * step.multipliers, step.occupancy,
            ground.q_hat, V, eta, reward_sum=0.0, inexactness=inexactness(step, setting.horizon, eta / shortened),
            log=SolveLog().after(step), saturations=0, capped=capped, ignored=0.0,
            drift=(shortened - 1.0) * setting.horizon / eta, evidence=evidence, caution=caution,
            planned_violation=0.0,
        )  # fmt: skip

    def policy(self, state: State) -> Floats:
        """The policy of q_k; uniform where a state has no mass."""
        if isinstance(state.believed.region, Graph):
            return self.row_policy(state).table()
        return policy_of_occupancy(state.q)

    def row_policy(self, state: State) -> RowPolicy:
        """The policy of q_k in a large problem, to be asked one step and state at a time: ``.at(step, state)``."""
        region = state.believed.region
        if not isinstance(region, Graph):
            raise InvalidInputError("the state is of a small problem: its policy is a table")
        return RowPolicy(region, state.q, state.setting.n_actions)

    def update(self, state: State, feedback: Feedback) -> State:
        """Steps 3-6 for the episode just played, then 1-2 for the next."""
        setting, region, k = state.setting, state.believed.region, state.k + 1
        q = flow(region, state.q)
        caution = caution_after(state, feedback)
        memory, observed = state.memory, state.believed.counted_cost
        if isinstance(feedback, FullFeedback):  # step 3
            observed = feedback.cost.reshape(-1, *state.q.shape)
            memory = tuple([kept.meet(table) for kept, table in zip(memory, observed, strict=True)])
        V = state.V.copy()  # step 4
        added, ignored = add_violation(V, observed, q, NOISE, setting.horizon)
        # Weights move with V, with eta, and with k where K is not known; most of the time with none of them.
        still = added == 0.0 and setting.n_episodes is not None
        weights, capped = state.weights, state.capped
        if not (still or self.weighting.lagged):
            weights, capped = self._weights(setting, k, V, state.eta, capped)
        now = self._correct(state, memory, weights, V)  # steps 5 and 6
        counts = representations.counts_after(state.counts, feedback)  # step 1 for the next episode
        evidence = (
            None if state.evidence is None else representations.evidence_after(state.evidence, state.counts, feedback)
        )
        layout = representations.layout_of(setting, counts)
        parent = layout.parents(region) if layout is not None and isinstance(region, Graph) else None
        caution = None if caution is None else caution.inherited(parent)
        prices = Prices(prices_of(state, q, self.weighting.w0), inherited(state.predicted.hinges.tables, parent))
        believed, shared = self._believe(setting, counts, layout, k, evidence, prices, caution)
        if not (still and now.eta == state.eta):  # step 2
            weights, capped = self._weights(setting, k + 1, V, now.eta, capped)
        margin = 0.0
        if shared is None:
            margin = dot(believed.margin, flow(believed.region, inherited(state.q, parent)))
        q_hat = inherited(now.q_hat, parent)
        ground = Ground(setting, believed, margin, shared, caution, memory, q_hat, now.eta, now.multipliers)
        m = ground.surrogate(self.estimator, memory, weights)
        step, shortened = ground.step_or_shorter(m)
        multipliers = step.multipliers if shortened == 1.0 else shortened * step.multipliers
        # A step of length eta/c satisfies its inequality with c/eta, of which only 1/eta telescopes.
        moved = kernel_move(region, believed.region, parent) + (shortened - 1.0) * setting.horizon
        return State(
            setting, k, counts, believed, margin, memory, weights, m, multipliers, step.occupancy,
            q_hat, V, now.eta, state.reward_sum + dot(state.believed.reward, q),
            now.inexactness + inexactness(step, setting.horizon, now.eta / shortened), now.log.after(step),
            state.saturations + self.weighting.potential(setting, k).saturated(V), capped, state.ignored + ignored,
            None if now.drift is None else now.drift + moved / now.eta, evidence, caution,
            None if state.planned_violation is None else state.planned_violation + largest_growth(state.V, V, added),
        )  # fmt: skip

    def report(self, state: State) -> Report:
        """Step size, largest weight, what was ignored as noise, what plans promised, and the certificate if any."""
        planned = state.planned_violation
        return Report(
            state.log, state.eta, max(state.weights.tolist()), saturations=state.saturations, ignored=state.ignored,
            certificate=self._certificate(state), believed=state.believed,
            promise=None if planned is None else Promise(state.reward_sum, planned),
        )  # fmt: skip

    def regret_bound(self, state: State) -> float | None:
        """(C + C')/eta_{k+1} >= sum_k f_k(q_k) - f_k(q*), where the region holds the truth, and with what solves add.

        A believed kernel does not hold it: there q* is the occupancy, under each belief, of a policy that the beliefs
        call safe in every episode, and what it moves as the beliefs do is added (None in a run that an earlier version
        began, where it is not known).
        """
        moving = isinstance(state.believed.region, Kernel | Graph) and not isinstance(self.estimator, KnownModel)
        if moving and state.drift is None:
            return None
        first = state.setting.horizon * (1.0 + self.stepping.c_prime) / state.eta
        return first + state.inexactness + (state.drift or 0.0)

    def observed_surrogate(self, before: State, after: State) -> Surrogate:
        """f_k, the surrogate that the episode between two states turned out to have."""
        weights = before.weights
        if not self.weighting.lagged:
            weights, _ = self._weights(before.setting, after.k, after.V, before.eta)
        return self._ground(before).surrogate(self.estimator, after.memory, weights)

    def _believe(
        self, setting: Setting, counts: Counts | Visits, layout: Layout | None, k: int,
        evidence: Evidence | Scores | None, prices: Prices, caution: Caution | None,
    ) -> tuple[Estimate[Region], SharedKernel | SharedRows | None]:  # fmt: skip
        """Step 1: what is believed before zero-based episode k, and the kernel's error where steps share."""
        if not isinstance(self.estimator, SharingEstimator):
            return representations.estimate(self.estimator, setting, counts, layout, k), None
        assert evidence is not None
        assert caution is not None
        return representations.shared_estimate(self.estimator, setting, counts, layout, evidence, prices, caution)

    def _weights(self, setting: Setting, k: int, V: Floats, eta: float, capped: bool = False) -> tuple[Floats, bool]:
        """w(V) before one-based episode k as far as a step takes it, and whether it was ever less than w(V)."""
        wanted = self.weighting.potential(setting, k).slope(V)
        weights = np.minimum(wanted, MAX_WEIGHT / eta)
        return weights, capped or wanted.tolist() != weights.tolist()

    def _correct(self, state: State, memory: tuple[TableMemory, ...], weights: Floats, V: Floats) -> Corrected:
        """Steps 5 and 6: q_hat_{k+1} from the surrogate that was met, and the step size from the surprise.

        With nothing new (f_k = m_k) q_k already is the minimiser, and the second projection is skipped.  V is the
        violation with this episode's.
        """
        m, eta, q, H, region = state.predicted, state.eta, state.q, state.setting.horizon, state.believed.region
        same = memory is state.memory or all(
            after.same_as(before) for after, before in zip(memory, state.memory, strict=True)
        )
        if same and (weights is state.weights or np.array_equal(weights, state.weights)):
            drift = None if state.drift is None else state.drift + forgiven(state, m, weights, flow(region, q), V)
            return Corrected(q, eta, state.multipliers, state.log, state.inexactness, drift)
        ground = self._ground(state)
        f = ground.surrogate(self.estimator, memory, weights)
        step = ground.step(f)
        q_hat = step.occupancy
        x, x_hat = flow(region, q), flow(region, q_hat)
        surprise = (f.value(x) - m.value(x)) - (f.value(x_hat) - m.value(x_hat))
        surprise = max(surprise - (distance(region, q_hat, q) + distance(region, q, state.q_hat)) / eta, 0.0)
        charged = self.stepping.charges(memory)
        slower = surprise / (H * self.stepping.c_prime) if charged else 0.0
        owed = forgiven(state, f, weights, x, V) + (0.0 if charged else surprise)
        return Corrected(
            q_hat, 1.0 / (1.0 / eta + slower), step.multipliers, state.log.after(step),
            state.inexactness + inexactness(step, H, eta), None if state.drift is None else state.drift + owed,
        )  # fmt: skip

    def _ground(self, state: State) -> Ground:
        """What the steps of the episode being played stand on."""
        shared = None
        if isinstance(self.estimator, SharingEstimator) and state.evidence is not None:
            shared = representations.kernel_with_error(self.estimator, state.setting, state.counts, state.evidence)
        return Ground(
            state.setting, state.believed, state.margin, shared, state.caution, state.memory,
            state.q_hat, state.eta, state.multipliers,
        )  # fmt: skip

    def _certificate(self, state: State) -> Certificate | None:
        """The bound, and what it says of regret and violation: phi / slack <= sum_k w_k x_k in `regret_bound`."""
        bound = None if state.capped else self.regret_bound(state)
        if bound is None:
            return None
        potential = self.weighting.potential(state.setting, state.k + 1)
        slack = self.weighting.slack(potential, state.setting.horizon)
        phi = potential.total(state.V) / slack
        return Certificate(bound, bound - phi, potential.inverse(slack * (bound + state.reward_sum)))

    def _check(self, setting: Setting) -> None:
        self.estimator.check(setting)
        if self.layout == "graph" and order_on_graph(self.estimator) is None:
            raise InvalidInputError(
                "layout is 'graph', but only estimators with one kernel made of counts can be laid out on one"
            )
