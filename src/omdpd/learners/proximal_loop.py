"""ProximalOMDPD with other beliefs than the default's: a box, a known or an empirical kernel, and graphs.

Beliefs that grow with what was visited are no one vector, and a solve on a graph takes milliseconds: here Python runs
the six steps of `standard.steps`, and these are the functions that they ask of such beliefs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from omdpd.beliefs.confidence import EmpiricalEstimator, Estimate, Estimator, KnownModel
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.empirical_rows import empirical_rows
from omdpd.beliefs.evidence import Scores
from omdpd.beliefs.layouts import Layout, RowPolicy, inherited, uniform_rows
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.memory import TableMemory
from omdpd.beliefs.rules import is_exceeded
from omdpd.beliefs.shared_rows import SharedRows, shared_row_estimate, shared_rows
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.jit.decorators import in_python
from omdpd.learners.proximal_state import State, account_of
from omdpd.learners.standard import state as at
from omdpd.learners.standard import steps
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.state import Sizes, sizes_of
from omdpd.learners.standard.weights import Slope
from omdpd.learners.start import uniform_occupancy
from omdpd.learners.surrogate import Surrogate, Weighting, distance, flow, kernel_move, remembered_tables
from omdpd.learners.tables_or_graph import Representation, nothing_seen
from omdpd.problem.arrays import Floats, Integers, InvalidInputError
from omdpd.problem.setting import Feedback, FullFeedback, Setting
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.products import dot, largest, largest_dot
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import Hinges, SolveLog
from omdpd.solvers.mirror import mirror_step as solve
from omdpd.solvers.regions import Region


@dataclass(eq=False)
class OpenState:
    """A state while an episode is learnt, with the names of `standard.state.Parts`: its arrays are changed in place.

    `warm` says whether the last step started from `start`, `parent` where the rows of the beliefs' graph were before it
    grew; `shared` is the error of a kernel that steps share.
    """

    loop: Loop
    setting: Setting
    counts: Counts | Visits
    evidence: Scores | None
    memory: tuple[TableMemory, ...]
    account: Floats
    V: Floats
    weights: Floats
    multipliers: Floats
    start: Floats
    believed: Estimate[Region]
    margin: float
    q: Floats
    q_hat: Floats
    plan: Floats
    tables: Floats
    hinge_weights: Floats
    warm: bool = False
    parent: Integers | None = None
    shared: SharedRows | None = None

    @property
    def reward(self) -> Floats:
        """r~."""
        return self.believed.reward

    @property
    def cost(self) -> Floats:
        """The cost that counts as violation."""
        return self.believed.counted_cost

    @property
    def caution(self) -> Caution:
        """What margins depend on."""
        a = self.account
        return Caution(self.plan if a[at.STARTED] else None, float(a[at.SHARE]), float(a[at.NOVELTY]))

    def closed(self) -> State:
        """The state as a value."""
        a, n = self.account, int(self.account[at.HINGES])
        told = [None if each != each else each for each in a.tolist()]
        m = Surrogate(
            self.reward, Hinges(self.tables, self.hinge_weights, self.start[:n].copy() if self.warm else None)
        )
        state = State(
            self.setting, int(a[at.K]), self.counts, self.believed, self.margin, self.memory, self.weights, m,
            self.multipliers[:n].copy(), self.q, self.q_hat, self.V, a[at.ETA], a[at.REWARD_SUM], a[at.INEXACTNESS],
            SolveLog.of(a[at.LOG : at.LOG + at.N_LOG]), int(a[at.SATURATIONS]), bool(a[at.CAPPED]), a[at.IGNORED],
            told[at.DRIFT], self.evidence, None if self.evidence is None else self.caution, told[at.PLANNED],
        )  # fmt: skip
        state.__dict__["account"] = a  # certified already; not stored
        return state


# ------------------------------------------------------------------------------------------ what the steps ask
def flow_of(s: OpenState, q: Floats) -> Floats:
    """What inner products with tables are taken of."""
    return flow(s.believed.region, q)


def potential_before(d: Dials, z: Sizes, s: OpenState, k: float) -> Slope:
    """The potential before one-based episode k."""
    return s.loop.weighting.potential(s.setting, int(k)).phi


def distance_of(s: OpenState, q: Floats, q_other: Floats) -> float:
    """D(q, q')."""
    return distance(s.believed.region, q, q_other)


def meets_tables(z: Sizes, s: OpenState, x: Floats) -> bool:
    """Whether a plan meets every remembered table as it is."""
    return not any(is_exceeded(largest_dot(kept.stack, x), z.H) for kept in s.memory if kept.tables)


def has_overflowed(d: Dials, s: OpenState) -> bool:
    """Whether more tables of some constraint came than are remembered."""
    return any(kept.overflowed for kept in s.memory)


def novelty_with(s: OpenState, tables: Floats) -> float:
    """How far revealed tables have been from the remembered ones, with these; the memory is the one before them."""
    return s.caution.after_tables(s.memory, tables).novelty


def remember(d: Dials, z: Sizes, s: OpenState, tables: Floats) -> bool:
    """Put revealed tables into the memory; whether other tables are kept now."""
    before, s.memory = s.memory, tuple([kept.meet(table) for kept, table in zip(s.memory, tables, strict=True)])
    return not all(now.same_as(old) for now, old in zip(s.memory, before, strict=True))


def hinges_met(d: Dials, z: Sizes, s: OpenState, useless: bool) -> tuple[Floats, Floats, bool]:
    """The hinges of the surrogate that was met: tables, weights, and whether old multipliers fit."""
    if isinstance(s.loop.estimator, SharingEstimator):
        assert isinstance(s.counts, Visits)
        assert s.evidence is not None
        s.shared = shared_rows(s.loop.estimator, s.counts, s.evidence, Layout.of(s.setting, s.counts))
    return _hinges(d, s, useless)


def mirror_step(
    z: Sizes, s: OpenState, eta: float, warm: bool, tables: Floats, weights: Floats, q: Floats
) -> tuple[float, float, int, int, float]:
    """argmin eta (-r~.q + sum_j w_j [d_j.q]^+) + D(q, q_hat) over the beliefs' region; multipliers are written."""
    n = len(weights)
    hinges = Hinges(tables, weights, s.start[:n] if warm else None)
    step = solve(s.believed.region, s.setting.mu, s.q_hat, -s.reward, float(eta), hinges)
    q[...], s.multipliers[:n] = step.occupancy, step.multipliers
    return float(step.gap), float(step.scale), step.iterations, int(step.status), float(step.residual)


def count(z: Sizes, s: OpenState, met: Feedback) -> None:
    """Add an episode to counts and evidence."""
    s.counts, s.evidence = _counted(s.counts, s.evidence, [met])


def believe(d: Dials, z: Sizes, s: OpenState, prices: Floats) -> bool:
    """Step 1: beliefs, on a graph that may have grown, and hinges; whether old multipliers fit the hinges."""
    layout, region = Layout.of(s.setting, s.counts) if isinstance(s.counts, Visits) else None, s.believed.region
    s.parent = layout.parents(region) if layout is not None and isinstance(region, Graph) else None
    s.q, s.q_hat, s.plan, s.tables = (inherited(each, s.parent) for each in (s.q, s.q_hat, s.plan, s.tables))
    k = int(s.account[at.K])
    s.believed, s.shared = _beliefs(
        s.loop.estimator, s.setting, s.counts, s.evidence, layout, k, Prices(prices, s.tables), s.caution
    )
    if s.shared is None and k > 0:
        s.margin = dot(s.believed.margin, flow(s.believed.region, s.q))
    s.tables, s.hinge_weights, s.warm = _hinges(d, s, s.caution.margin_is_useless(s.memory))
    return s.warm


def law_of(s: OpenState) -> Region:
    """The believed kernels as they are now."""
    return s.believed.region


def law_moved(z: Sizes, s: OpenState, before: Region) -> float:
    """A bound on how far, in L1, any policy's occupancy moved from an earlier kernel to the believed one."""
    return kernel_move(before, s.believed.region, s.parent)


def loss_of(d: Dials, z: Sizes, s: OpenState) -> float:
    """Not a number: what a policy can lose is asked of tables alone."""
    return np.nan


def choose(z: Sizes, s: OpenState) -> None:
    """Nothing: the policy is asked of the plan."""


def copy_vector(source: Floats, target: Floats) -> None:
    """target := source."""
    target[...] = source


ASKED = (
    flow_of, potential_before, distance_of, meets_tables, has_overflowed, novelty_with, remember, hinges_met,
    mirror_step, count, believe, law_of, law_moved, loss_of, choose, copy_vector,
)  # fmt: skip
STEPS = in_python(steps, {each.__name__: each for each in ASKED})


# ------------------------------------------------------------------------------------------ the verbs
@dataclass(frozen=True)
class Loop:
    """The settings of `ProximalOMDPD`, and what it does with a `State`."""

    estimator: Estimator | SharingEstimator
    weighting: Weighting
    dials: Dials

    def begin(self, setting: Setting, eta: float, layout: Representation | None) -> State:
        """V = 0, q_hat_1 = the uniform policy under the uniform (or the known) kernel; then steps 1-2 for k = 1."""
        counts, evidence = nothing_seen(self.estimator, setting, layout)
        laid, n = Layout.of(setting, counts) if isinstance(counts, Visits) else None, setting.n_constraints
        none = np.zeros((0, *(setting.shape if laid is None else laid.copies.shape)))
        believed, _ = _beliefs(self.estimator, setting, counts, evidence, laid, 0, Prices(np.zeros(0), none), Caution())
        q_hat = _first_occupancy(self.estimator, setting, believed.region)
        a, multipliers = np.zeros(at.N_ACCOUNT), np.zeros(self._most_hinges(setting))
        a[at.ETA], a[at.SHARE] = eta, 1.0
        s = OpenState(
            self, setting, counts, evidence, (TableMemory(int(self.dials.capacity)),) * n, a, np.zeros(n), np.zeros(n),
            multipliers, multipliers.copy(), believed, 0.0, q_hat.copy(), q_hat, q_hat.copy(), none, np.zeros(0),
        )  # fmt: skip
        STEPS.plan_ahead(self.dials, sizes_of(setting, 1), s, np.zeros(0))
        return s.closed()

    def after(self, state: State, feedback: Feedback) -> State:
        """Steps 3-6 for the episode just played, then 1-2 for the next."""
        s, z, prices = self._opened(state), sizes_of(state.setting, 1), np.zeros(len(state.multipliers))
        tables = feedback.cost.reshape(-1, *state.q.shape) if isinstance(feedback, FullFeedback) else None
        STEPS.look_back(self.dials, z, s, feedback, tables, prices)
        STEPS.plan_ahead(self.dials, z, s, prices)
        return s.closed()

    def certified(self, state: State) -> Floats:
        """The numbers of a state with its certificate, as `standard.verbs` reports them."""
        s, z = self._opened(state), sizes_of(state.setting, 1)
        STEPS.certify(self.dials, z, s, potential_before(self.dials, z, s, state.k + 1))
        return s.account

    def observed_surrogate(self, before: State, after: State) -> Surrogate:
        """f_k, the surrogate that the episode between two states turned out to have."""
        s, z, d = self._opened(before), sizes_of(before.setting, 1), self.dials
        useless = s.caution.margin_is_useless(before.memory)
        s.memory, s.V = after.memory, after.V
        if not d.lagged:
            STEPS.write_weights(s, potential_before(d, z, s, after.k))
        tables, weights, _ = hinges_met(d, z, s, useless)
        return Surrogate(before.believed.reward, Hinges(tables, weights))

    def _opened(self, state: State) -> OpenState:
        """A state to be changed; arrays that others may hold are copied, or replaced and never written to."""
        a = vars(state)["account"].copy() if "account" in vars(state) else account_of(state)
        if state.caution is None:
            a[at.SHARE], a[at.NOVELTY] = 1.0, 0.0  # margins of these beliefs depend on neither
        n, hinges, plan = len(state.multipliers), state.predicted.hinges, np.zeros(state.q.shape)
        if self.estimator.covers_truth and state.drift is None:
            a[at.DRIFT] = 0.0  # beliefs that hold the truth do not drift
        multipliers = np.zeros(max(n, self._most_hinges(state.setting)))
        multipliers[:n] = state.multipliers
        if state.caution is not None and state.caution.plan is not None:
            plan[...] = state.caution.plan
        return OpenState(
            self, state.setting, state.counts, state.evidence if isinstance(state.evidence, Scores) else None,
            state.memory, a, state.V.copy(), state.weights.copy(), multipliers, multipliers.copy(), state.believed,
            state.margin, state.q.copy(), state.q_hat.copy(), plan, hinges.tables, hinges.weights,
        )  # fmt: skip

    def _most_hinges(self, setting: Setting) -> int:
        return setting.n_constraints * (1 if self.dials.bandit else max(int(self.dials.capacity), 1))


def policy(state: State) -> Floats:
    """The policy of q_k; uniform where a state has no mass."""
    return row_policy(state).table() if isinstance(state.believed.region, Graph) else policy_of_occupancy(state.q)


def row_policy(state: State) -> RowPolicy:
    """The policy of q_k in a large problem, to be asked one step and state at a time: ``.at(step, state)``."""
    region = state.believed.region
    if not isinstance(region, Graph):
        raise InvalidInputError("the state is of a small problem: its policy is a table")
    return RowPolicy(region, state.q, state.setting.n_actions)


def counted(state: State, logged: Sequence[Feedback]) -> State:
    """A state that has counted logged episodes, and learnt nothing else from them."""
    scores = state.evidence if isinstance(state.evidence, Scores) else None
    counts, evidence = _counted(state.counts, scores, logged)
    return replace(state, counts=counts, evidence=evidence)


# ------------------------------------------------------------------------------------------ parts of these
def _beliefs(
    estimator: Estimator | SharingEstimator, setting: Setting, counts: Counts | Visits, scores: Scores | None,
    layout: Layout | None, k: int, prices: Prices, caution: Caution,
) -> tuple[Estimate[Region], SharedRows | None]:  # fmt: skip
    """What is believed before zero-based episode k, and the kernel's error where steps share."""
    if isinstance(counts, Counts):
        assert not isinstance(estimator, SharingEstimator)
        return estimator.estimate(setting, counts, k), None
    assert layout is not None
    if isinstance(estimator, EmpiricalEstimator):
        return empirical_rows(estimator, setting, counts, layout, k), None
    assert isinstance(estimator, SharingEstimator)
    assert scores is not None
    return shared_row_estimate(estimator, setting, counts, scores, layout, prices, caution)


def _hinges(d: Dials, s: OpenState, useless: bool) -> tuple[Floats, Floats, bool]:
    """One hinge per constraint (its estimate), or per remembered table (with its margin)."""
    before, kept = int(s.account[at.HINGES]), remembered_tables(s.weights, s.memory)
    if d.bandit:
        tables, weights = s.believed.cost, s.weights.copy()
    elif kept is None:
        tables, weights = np.zeros((0, *s.q.shape)), np.zeros(0)
    else:
        tables, weights = _lifted(s, useless, kept[0]), kept[1]
    s.account[at.HINGES] = len(weights)
    return tables, weights, len(weights) == before


def _lifted(s: OpenState, useless: bool, tables: Floats) -> Floats:
    """Revealed tables with their margins, under these beliefs."""
    if s.shared is not None and isinstance(s.loop.estimator, SharingEstimator):
        return s.shared.lifted(s.loop.estimator, s.caution, useless, tables)
    scale = s.margin / s.setting.horizon
    if not scale > 0.0:
        return tables
    sizes = np.array([largest(table) for table in tables])
    return tables + scale * sizes.reshape(-1, *(1,) * (tables.ndim - 1))


def _counted(
    counts: Counts | Visits, scores: Scores | None, met: Sequence[Feedback]
) -> tuple[Counts | Visits, Scores | None]:
    """Counts and evidence with some episodes more."""
    for feedback in met:
        if scores is not None and isinstance(counts, Visits):
            scores = scores.after(counts, feedback)
        counts = counts.add(feedback)
    return counts, scores


def _first_occupancy(estimator: object, setting: Setting, region: Region) -> Floats:
    """q_hat_1: of the uniform policy, under the kernel whose laws are all uniform, or under the known one."""
    if isinstance(region, Graph):
        return uniform_rows(setting, region)
    return uniform_occupancy(setting, estimator.transition if isinstance(estimator, KnownModel) else None)
