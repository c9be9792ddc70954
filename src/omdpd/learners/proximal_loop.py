"""The same six steps for other beliefs than the default's: a box, a known or an empirical kernel, and graphs.

Beliefs that grow with what was visited are no one vector, and a solve on a graph takes milliseconds: here the steps are
in Python, with the rules of `standard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from omdpd.beliefs.confidence import EmpiricalEstimator, Estimate, Estimator, KnownModel
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.empirical_rows import empirical_rows
from omdpd.beliefs.evidence import Scores
from omdpd.beliefs.layouts import Layout, RowPolicy, inherited
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.shared_rows import SharedRows, shared_row_estimate, shared_rows
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.learners.protocol import Certificate, Promise, Report
from omdpd.learners.proximal_steps import (
    Ground,
    State,
    caution_after,
    first_occupancy,
    forgiven,
    prices_of,
)
from omdpd.learners.standard.weights import (
    add_violation,
    certified,
    heaviest,
    slower,
    surprise_of,
    surrogate_bound,
)
from omdpd.learners.surrogate import Stepping, Surrogate, Weighting, distance, flow, inexactness, kernel_move
from omdpd.learners.tables_or_graph import Representation, nothing_seen
from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.products import dot
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import SolveLog
from omdpd.solvers.regions import Kernel, Region


class Corrected(NamedTuple):
    """Where an episode leaves the iterate: q_hat_{k+1}, eta_{k+1}, and what the second solve adds to the accounts."""

    q_hat: Floats
    eta: float
    multipliers: Floats
    log: SolveLog
    inexactness: float
    drift: float | None


@dataclass(frozen=True)
class Loop:
    """The settings of `ProximalOMDPD`, and what it does with a `State`."""

    estimator: Estimator | SharingEstimator
    weighting: Weighting
    stepping: Stepping
    memory: int
    layout: Representation | None

    def begin(self, setting: Setting) -> State:
        """V = 0, q_hat_1 = the uniform policy under the uniform (or the known) kernel; then steps 1-2 for k = 1."""
        V, none = np.zeros(setting.n_constraints), np.zeros(0)
        counts, evidence = nothing_seen(self.estimator, setting, self.layout)
        caution = None if evidence is None else Caution()
        layout = Layout.of(setting, counts) if isinstance(counts, Visits) else None
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

    def after(self, state: State, feedback: Feedback) -> State:
        """Steps 3-6 for the episode just played, then 1-2 for the next."""
        setting, region, k = state.setting, state.believed.region, state.k + 1
        q = flow(region, state.q)
        caution = caution_after(state, feedback)
        memory, observed = state.memory, state.believed.counted_cost
        if isinstance(feedback, FullFeedback):  # step 3
            observed = feedback.cost.reshape(-1, *state.q.shape)
            memory = tuple([kept.meet(table) for kept, table in zip(memory, observed, strict=True)])
        V = state.V.copy()  # step 4
        worst, ignored = add_violation(V, observed, q, setting.horizon)
        # Weights move with V, with eta, and with k where K is not known; most of the time with none of them.
        still = worst == 0.0 and setting.n_episodes is not None
        weights, capped = state.weights, state.capped
        if not (still or self.weighting.lagged):
            weights, capped = self._weights(setting, k, V, state.eta, capped)
        now = self._correct(state, memory, weights, V)  # steps 5 and 6
        counts, evidence = state.counts.add(feedback), None  # step 1 for the next episode
        if isinstance(state.evidence, Scores) and isinstance(state.counts, Visits):
            evidence = state.evidence.after(state.counts, feedback)
        layout = Layout.of(setting, counts) if isinstance(counts, Visits) else None
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
            None if state.planned_violation is None else state.planned_violation + worst,
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
        return surrogate_bound(
            state.setting.horizon, self.stepping.c_prime, state.eta, state.inexactness, state.drift or 0.0
        )

    def counted(self, state: State, logged: Sequence[Feedback]) -> State:
        """A state that has counted logged episodes, and learnt nothing else from them."""
        counts, scores = state.counts, state.evidence
        for feedback in logged:
            if isinstance(scores, Scores) and isinstance(counts, Visits):
                scores = scores.after(counts, feedback)
            counts = counts.add(feedback)
        return replace(state, counts=counts, evidence=scores)

    def observed_surrogate(self, before: State, after: State) -> Surrogate:
        """f_k, the surrogate that the episode between two states turned out to have."""
        weights = before.weights
        if not self.weighting.lagged:
            weights, _ = self._weights(before.setting, after.k, after.V, before.eta)
        return self._ground(before).surrogate(self.estimator, after.memory, weights)

    def _believe(
        self, setting: Setting, counts: Counts | Visits, layout: Layout | None, k: int,
        scores: Scores | None, prices: Prices, caution: Caution | None,
    ) -> tuple[Estimate[Region], SharedRows | None]:  # fmt: skip
        """Step 1: what is believed before zero-based episode k, and the kernel's error where steps share."""
        estimator = self.estimator
        if isinstance(counts, Counts):
            assert not isinstance(estimator, SharingEstimator)
            return estimator.estimate(setting, counts, k), None
        assert layout is not None
        if isinstance(estimator, EmpiricalEstimator):
            return empirical_rows(estimator, setting, counts, layout, k), None
        assert isinstance(estimator, SharingEstimator)
        assert scores is not None
        assert caution is not None
        return shared_row_estimate(estimator, setting, counts, scores, layout, prices, caution)

    def _weights(self, setting: Setting, k: int, V: Floats, eta: float, capped: bool = False) -> tuple[Floats, bool]:
        """w(V) before one-based episode k as far as a step takes it, and whether it was ever less than w(V)."""
        wanted = self.weighting.potential(setting, k).slope(V)
        weights = np.minimum(wanted, heaviest(float(eta)))
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
        moved = distance(region, q_hat, q) + distance(region, q, state.q_hat)
        surprise = surprise_of(f.value(x) - m.value(x), f.value(x_hat) - m.value(x_hat), moved, eta)
        charged = self.stepping.charges(memory)
        owed = forgiven(state, f, weights, x, V) + (0.0 if charged else surprise)
        return Corrected(
            q_hat, slower(eta, surprise if charged else 0.0, H, self.stepping.c_prime), step.multipliers,
            state.log.after(step), state.inexactness + inexactness(step, H, eta),
            None if state.drift is None else state.drift + owed,
        )  # fmt: skip

    def _ground(self, state: State) -> Ground:
        """What the steps of the episode being played stand on."""
        shared = None
        if isinstance(self.estimator, SharingEstimator) and isinstance(state.evidence, Scores):
            assert isinstance(state.counts, Visits)
            layout = Layout.of(state.setting, state.counts)
            shared = shared_rows(self.estimator, state.counts, state.evidence, layout)
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
        loose = self.weighting.slack(potential, state.setting.horizon)
        found = certified(potential.phi, loose, bound, potential.total(state.V), float(state.reward_sum))
        return Certificate(bound, *found)
