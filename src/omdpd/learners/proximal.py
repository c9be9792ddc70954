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

from collections.abc import Sequence
from dataclasses import dataclass, field

from omdpd.beliefs.confidence import (
    COST_SCALE,
    DELTA,
    REWARD_SCALE,
    TRANSITION_SCALE,
    BoxEstimator,
    EmpiricalEstimator,
    Estimator,
    KnownModel,
)
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.layouts import RowPolicy
from omdpd.beliefs.standard import SharingEstimator
from omdpd.learners.factors import WIDTHS, margin, reward_width, step
from omdpd.learners.needs import ModelToBeGiven
from omdpd.learners.protocol import Card, Compiled, Report
from omdpd.learners.proximal_loop import Loop, counted, policy, row_policy
from omdpd.learners.proximal_state import State
from omdpd.learners.settings import Preset
from omdpd.learners.standard import verbs as standard
from omdpd.learners.standard.believing import Dials
from omdpd.learners.standard.state import BOUND, Learnt
from omdpd.learners.standard.stored import from_stored
from omdpd.learners.surrogate import Stepping, Surrogate, Weighting
from omdpd.learners.tables_or_graph import (
    Representation,
    begins_as,
    in_tables,
    is_dense,
    may_need_tables,
    order_on_graph,
)
from omdpd.problem.arrays import Floats, InvalidInputError, whole_number
from omdpd.problem.setting import Feedback, Setting
from omdpd.solvers.graph import Graph
from omdpd.storage.packing import WHERE_SET

# What an estimator that shares nothing between steps says of margin and bonus.
UNSHARED = SharingEstimator(0.0, 0.0)


# What is proved of the default, and what that assumes: README and the pages say it in the same words.
RATE = (
    "expected strong violation O~(sqrt K); expected regret O~(sqrt K) plus sums that a run can compute and nothing "
    "bounds"
)
SPAN = "stochastic costs met on the way, values of small span, weights below their cap"


@dataclass(frozen=True)
class ProximalOMDPD:
    """The practical form; build one with `standard` (the default), another preset, or `known_model`.

    `memory` is how many revealed cost tables it plans with: 1 keeps the last one, or a larger multiple of it that came
    before; 0 keeps the last one as it is.
    Beliefs are tables or a graph of what was visited: see `tables_or_graph`.  `layout` says which of the two in runs of
    earlier versions.
    """

    estimator: Estimator | SharingEstimator = EmpiricalEstimator()
    weighting: Weighting = Weighting()
    stepping: Stepping = Stepping()
    memory: int = 8
    layout: Representation | None = field(default=None, metadata=WHERE_SET)

    factors = (reward_width("exploration"), *WIDTHS, margin("z"), margin("kappa"), step("gamma_scale"))

    def __post_init__(self) -> None:
        whole_number("memory", self.memory, 0)

    @staticmethod
    def standard(
        z: float = 1.0,
        exploration: float = 1.0,
        w0: float = 10.0,
        gamma_scale: float = 16.0,
        stationary: bool = False,
        persistence: float = 1.0,
        *,
        lagged: bool = True,
        patient: bool = True,
        eta: float = 1.0,
        eta_bandit: float = 0.1,
        memory: int = 8,
        layout: Representation | None = None,
        w_max: float = Weighting.w_max,
        c_prime: float = Stepping.c_prime,
        z_growth: float = 0.0,
        z_spending: float = 0.0,
    ) -> ProximalOMDPD:
        """Estimates shared between steps, exact hinges, `z` standard errors of safety on every cost.

        It never stops learning: rows that are seldom visited are asked again, ever more seldom (`persistence`).
        """
        estimator = SharingEstimator(z, exploration, stationary, persistence, z_growth, z_spending)
        stepping = Stepping(eta, c_prime, eta_bandit, patient)
        return ProximalOMDPD(estimator, Weighting(w0, gamma_scale, w_max, lagged), stepping, memory, layout)

    settling = Preset(
        "The default of version 0.2, which settles: a row that looks bad is left for good.",
        "z exploration w0 gamma_scale stationary * lagged patient eta eta_bandit memory layout",
        of="standard",
        persistence=0.0,
    )

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

    balanced = Preset(
        "`cautious` without the margin.",
        "reward_scale stationary * w0 gamma_scale lagged eta memory layout",
        of="cautious",
        kappa=0.0,
    )

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
            SPAN if self._persists else "none",
        )

    @property
    def _persists(self) -> bool:
        """Whether it never stops learning: what Theorem D of docs/theory.md is about."""
        return isinstance(self.estimator, SharingEstimator) and self.estimator.persistence > 0.0

    def _guarantee(self) -> str:
        """What is proved of these settings; Theorem A of docs/theory.md is about bonuses that no preset has."""
        if isinstance(self.estimator, KnownModel | ModelToBeGiven):
            return "run-time certificate of regret and violation"
        if self._persists:
            return RATE
        whose = "while the box holds the truth" if self.estimator.covers_truth else "as the beliefs see it"
        return f"no rate with these bonuses; run-time certificate of the plans, {whose} (docs/theory.md, 6 and 8)"

    def keeps_tables(self, setting: Setting) -> bool:
        """Whether what it believes of this setting is, or may come to be, held in tables; a graph will do else."""
        return may_need_tables(self.estimator, setting, self.layout)

    def init(self, setting: Setting) -> State | Learnt:
        """V = 0, q_hat_1 = the uniform policy under the uniform (or the known) kernel; then steps 1-2 for k = 1."""
        self._check(setting)
        begins = begins_as(self.estimator, setting, self.layout)
        if isinstance(self.estimator, SharingEstimator) and begins == "dense":
            return standard.begin(self._dials(setting), setting, self.stepping.first(setting))
        return self._loop(setting).begin(setting, self.stepping.first(setting), self.layout)

    def policy(self, state: State | Learnt) -> Floats:
        """The policy of q_k; uniform where a state has no mass."""
        return state.policy.copy() if isinstance(state, Learnt) else policy(state)

    def row_policy(self, state: State | Learnt) -> RowPolicy:
        """The policy of q_k in a large problem, to be asked one step and state at a time: ``.at(step, state)``."""
        if isinstance(state, Learnt):
            raise InvalidInputError("the state is of a small problem: its policy is a table")
        return row_policy(state)

    def update(self, state: State | Learnt, feedback: Feedback) -> State | Learnt:
        """Steps 3-6 for the episode just played, then 1-2 for the next."""
        if isinstance(state, Learnt):
            return standard.after(self._dials(state.setting), state, feedback)
        new = self._loop(state.setting).after(state, feedback)
        return self.in_tables(new) if self.layout is None and is_dense(new) else new

    def in_tables(self, state: State | Learnt) -> State | Learnt:
        """The same state with its beliefs in tables, if they are on a graph."""
        if isinstance(state, State) and isinstance(state.believed.region, Graph):
            return self.restored(in_tables(state))
        return state

    def report(self, state: State | Learnt) -> Report:
        """Step size, largest weight, what was ignored as noise, what plans promised, and the certificate if any."""
        return standard.report(self._account(state), state.believed)

    def compiled(self, state: State | Learnt) -> Compiled | None:
        """The learner for a loop that plays many episodes in one call; None where its update is not compiled."""
        return standard.compiled(self._dials(state.setting), state) if isinstance(state, Learnt) else None

    def counted(self, state: State | Learnt, logged: Sequence[Feedback]) -> State | Learnt:
        """A state that has counted logged episodes, and learnt nothing else from them."""
        return standard.counted(state, logged) if isinstance(state, Learnt) else counted(state, logged)

    def restored(self, state: State | Learnt) -> State | Learnt:
        """Convert a stored state, perhaps of an earlier version, to the form of this version."""
        if isinstance(state, Learnt):
            return state.as_now()
        if isinstance(self.estimator, SharingEstimator) and isinstance(state.counts, Counts):
            return from_stored(self._dials(state.setting), state)
        return state

    def regret_bound(self, state: State | Learnt) -> float | None:
        """(C + C')/eta_{k+1} >= sum_k f_k(q_k) - f_k(q*), with what solves and moving beliefs add; None if unknown."""
        bound = float(self._account(state)[BOUND])
        return None if bound != bound else bound

    def observed_surrogate(self, before: State | Learnt, after: State | Learnt) -> Surrogate:
        """f_k, the surrogate that the episode between two states turned out to have."""
        if isinstance(before, Learnt) and isinstance(after, Learnt):
            return standard.observed_surrogate(self._dials(before.setting), before, after)
        assert isinstance(before, State)
        assert isinstance(after, State)
        return self._loop(before.setting).observed_surrogate(before, after)

    def _account(self, state: State | Learnt) -> Floats:
        """The numbers of a state, with its certificate."""
        if isinstance(state, Learnt):
            return state.part("account")
        known: Floats | None = vars(state).get("account")  # unless the state was stored meanwhile
        return self._loop(state.setting).certified(state) if known is None else known

    def _loop(self, setting: Setting) -> Loop:
        return Loop(self.estimator, self.weighting, self._dials(setting))

    def _dials(self, setting: Setting) -> Dials:
        """What the six steps are told."""
        w, stepping = self.weighting, self.stepping
        estimator = self.estimator if isinstance(self.estimator, SharingEstimator) else UNSHARED
        told = Dials(
            setting.feedback == "bandit", setting.n_episodes or 0.0, estimator.z, estimator.exploration,
            estimator.stationary, w.w0, w.gamma_scale, w.w_max, w.lagged, stepping.c_prime, stepping.patient,
            self.memory, estimator.persistence, estimator.z_power,
        )  # fmt: skip
        return Dials._make(map(float, told))

    def _check(self, setting: Setting) -> None:
        self.estimator.check(setting)
        if self.layout == "graph" and order_on_graph(self.estimator) is None:
            raise InvalidInputError(
                "layout is 'graph', but only estimators with one kernel made of counts can be laid out on one"
            )
        if isinstance(self.estimator, SharingEstimator) and self.keeps_tables(setting):
            for name, kind in (("estimator", SharingEstimator), ("weighting", Weighting), ("stepping", Stepping)):
                if type(mine := getattr(self, name)) is not kind:
                    raise InvalidInputError(
                        f"{name} is a {type(mine).__name__}, but the compiled step knows {kind.__name__} alone"
                    )
