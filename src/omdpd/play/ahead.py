"""Stretches of a run: many episodes of the standard learner in one compiled call, where nothing new can come up.

An episode by the learner's verbs spends most of its time between them; here a nature that says ahead which rounds come
is played by `solvers.compiled.stretch`, with the same random numbers, rows and states, bit for bit.  Whatever is not
the usual case (a table not met before, a margin below zero, another learner, the user's own metrics) is left to the
verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from omdpd.beliefs import margins
from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.sharing import Evidence
from omdpd.beliefs.standard import REVEALED, SharingEstimator
from omdpd.learners.proximal import MAX_WEIGHT, NOISE, ProximalOMDPD
from omdpd.learners.proximal_steps import SHORTENED, State
from omdpd.learners.surrogate import Stepping, Surrogate, Weighting
from omdpd.natures.protocol import changes_of, rounds_ahead
from omdpd.play.episode import has_tables
from omdpd.play.judging import EXPONENT_START, LATE_SHARE, Totals
from omdpd.play.rows import Row
from omdpd.play.scene import Scene
from omdpd.problem.arrays import ROW_SUM_TOLERANCE, Floats, Integers, InvalidInputError
from omdpd.problem.cmdp import Round
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.box_step.storage import BLAS_STATES
from omdpd.solvers.compiled.handles import handle
from omdpd.solvers.compiled.kernel_step.solve import solve_step
from omdpd.solvers.compiled.standard import add_evidence, standard_beliefs
from omdpd.solvers.compiled.stretch import play_stretch
from omdpd.solvers.compiled.stretch_records import Account, Columns, Dials, Past, Plans, Truth
from omdpd.solvers.mirror import TOLERANCE, Hinges, SolveLog
from omdpd.solvers.regions import Kernel

# What a memory holds: the labels of its tables, constraint by constraint.
Labels = tuple[frozenset[int], ...]
# Rounds beyond this many are never all remembered, and looking them up takes longer than it saves.
MAX_ROUNDS = 64
# So many looked-up novelties are kept.
MAX_KEPT = 4096


class Stretch(NamedTuple):
    """Episodes played together: the true value of each, the rows that were wanted, and where they lead.

    `met` has the key of every table that they met, and how often they did.
    """

    values: Sequence[float]
    rows: Sequence[Row]
    state: State
    totals: Totals
    met: Sequence[tuple[int, float]]


@dataclass(frozen=True, eq=False)
class Stage:
    """A scene whose episodes can be played together: the learner's settings and the truth as compiled code wants them.

    `tables` (n, I, H, S, A) are those of the nature's `rounds`; `novelties` are how far each is from what a memory with
    certain labels holds, as far as it was asked.
    """

    scene: Scene
    learner: ProximalOMDPD
    estimator: SharingEstimator
    setting: Setting
    rounds: Sequence[Round]
    tables: Floats
    novelties: dict[tuple[Labels, int], float] = field(default_factory=dict)

    @staticmethod
    def of(scene: Scene) -> Stage | None:
        """The stage of a scene; None if its episodes have to be played one by one."""
        learner, nature, cmdp, setting = scene.learner, scene.nature, scene.cmdp, scene.setting
        # A subclass may do otherwise.
        if type(learner) is not ProximalOMDPD or type(learner.estimator) is not SharingEstimator:
            return None
        if type(learner.weighting) is not Weighting or type(learner.stepping) is not Stepping:
            return None
        if scene.metrics or not scene.episodes_known or changes_of(nature) or hasattr(nature, "world"):
            return None
        if not learner.weighting.lagged or cmdp.shape[1] >= BLAS_STATES or not learner.keeps_tables(setting):
            return None
        ahead = rounds_ahead(nature, 0, 0)
        if (
            ahead is None
            or len(ahead[0]) > MAX_ROUNDS
            or not all(_plain(each, ahead[0][0], scene) for each in ahead[0])
        ):
            return None
        rounds = ahead[0]
        return Stage(scene, learner, learner.estimator, setting, rounds, np.array([each.cost for each in rounds]))

    def play(
        self, state: State, totals: Totals, rng: np.random.Generator, recorded: Callable[[int], bool], most: int
    ) -> Stretch | None:
        """The next episodes, at most so many; None if the next one is not the usual case."""
        usual = state.drift is not None and state.planned_violation is not None and state.caution is not None
        if not usual or not isinstance(state.counts, Counts) or not isinstance(state.evidence, Evidence):
            return None
        choices = self._usual(state, most)
        if len(choices) == 0 or (self.setting.feedback == "full" and not any(kept.tables for kept in state.memory)):
            return None
        before, each = rng.bit_generator.state, (3 + len(state.V)) * self.setting.horizon
        past, plans = _past(state.counts, state.evidence), _plans(state)
        columns = _columns(totals, len(choices))
        truth = self._truth(state, choices, rng.random((len(choices), each)))
        done = play_stretch(truth, self._dials(state), past, plans, _account(state), columns, *_passes())
        if done.played < 0:
            raise MemoryError("there was not enough memory for an episode")
        if done.played < len(choices):
            rng.bit_generator.state = before
            rng.random((done.played, each))
        if done.played == 0:
            return None
        played = choices[: done.played]
        after = self._state(state, past, plans, done, played)
        wanted = [b for b in range(done.played) if recorded(state.k + b + 1)]
        rows = _rows(state.k, wanted, state.eta, columns)
        sums = _totals(totals, columns, done.played, self.scene.episodes)
        met = [(self.rounds[i].key, float(n)) for i, n in zip(*np.unique(played, return_counts=True), strict=True)]
        return Stretch(columns.value[: done.played].tolist(), rows, after, sums, met)

    def _usual(self, state: State, most: int) -> Integers:
        """Which round every next episode has, up to the first whose tables are not remembered."""
        ahead = rounds_ahead(self.scene.nature, state.k, most)
        assert ahead is not None, "the nature had some before"
        rounds, choices = ahead
        if rounds is not self.rounds and not _same(rounds, self.rounds):
            name = type(self.scene.nature).__name__
            raise InvalidInputError(f"{name}.ahead({state.k}, {most}) must give the same rounds as {name}.ahead(0, 0)")
        if self.setting.feedback == "bandit":
            return choices
        new = np.flatnonzero((choices >= 0) & np.isnan(self._novel(state))[choices])
        return choices[: new[0]] if len(new) else choices

    def _novel(self, state: State) -> Floats:
        """How far the tables of every round are from the remembered ones; not a number if they are not among them."""
        labels: Labels = tuple(frozenset(kept.labels) for kept in state.memory)
        if len(self.novelties) > MAX_KEPT:
            self.novelties.clear()
        for which, tables in enumerate(self.tables):
            if (labels, which) not in self.novelties:
                self.novelties[labels, which] = _novelty(state, tables)
        return np.array([self.novelties[labels, which] for which in range(len(self.tables))])

    def _truth(self, state: State, choices: Integers, uniforms: Floats) -> Truth:
        cmdp, first = self.scene.cmdp, self.rounds[0]
        bandit = self.setting.feedback == "bandit"
        novel = np.zeros(len(self.rounds)) if bandit else self._novel(state)
        return Truth(
            _own(cmdp.transition), _own(cmdp.initial), _own(first.reward), self.tables, choices, novel, uniforms,
            _own(cmdp.excess if bandit else cmdp.excess[:0]),
            first.reward_noise == "two-point", first.cost_noise == "two-point",
        )  # fmt: skip

    def _dials(self, state: State) -> Dials:
        learner, estimator, setting = self.learner, self.estimator, self.setting
        potential = learner.weighting.potential(setting, state.k + 1)
        H = setting.horizon
        return Dials(
            setting.feedback == "bandit", bool(estimator.stationary), float(estimator.exploration), float(estimator.z),
            REVEALED * float(estimator.z), float(state.eta), float(potential.w0), float(potential.beta),
            float(potential.kink), float(potential.w_max), MAX_WEIGHT,
            H * (1.0 + learner.stepping.c_prime) / state.eta, learner.weighting.slack(potential, H),
            NOISE, TOLERANCE, margins.EXCEEDED, margins.FALL, margins.GROWTH, margins.LEAST, margins.DESCENT,
            margins.LOWEST, margins.FORGET, margins.NOVEL, ROW_SUM_TOLERANCE, SHORTENED[1], SHORTENED[-1],
        )  # fmt: skip

    def _state(self, state: State, past: Past, plans: Plans, done: Account, played: Integers) -> State:
        """The state after these episodes."""
        bandit = self.setting.feedback == "bandit"
        q_hat, tables = plans.q_hat, plans.lifted if bandit else plans.tables
        weights = plans.each
        believed = Estimate(plans.reward, plans.lifted, plans.cost, np.zeros(plans.q.shape), Kernel(plans.kernel))
        hinges = Hinges(tables, weights if bandit else plans.weights, plans.start)
        return replace(
            state, k=state.k + done.played,
            counts=Counts(past.visits, past.transitions, past.reward_sum, past.cost_sum),
            believed=believed, memory=state.memory if bandit else self._memory(state, played), weights=weights,
            predicted=Surrogate(plans.reward, hinges), multipliers=plans.multipliers, q=plans.q, q_hat=q_hat, V=plans.V,
            reward_sum=done.reward_sum, inexactness=done.inexactness,
            log=SolveLog(done.solves, done.failures, done.iterations, done.max_gap, done.max_residual),
            saturations=done.saturations, capped=done.capped, ignored=done.ignored, drift=done.drift,
            evidence=Evidence(
                past.reward_squares, past.cost_squares, past.kernel_score, past.reward_score, past.cost_score
            ),
            caution=Caution(q_hat, done.share, done.novelty), planned_violation=done.planned_violation,
        )  # fmt: skip

    def _memory(self, state: State, played: Integers) -> tuple[Any, ...]:
        """The memory with every table of these episodes met again, in the order in which each came last."""
        memory = state.memory
        for which in reversed(list(dict.fromkeys(played[::-1].tolist()))):
            memory = tuple(kept.meet(table) for kept, table in zip(memory, self.tables[which], strict=True))
        return memory


@cache
def _passes() -> tuple[Callable[..., Any], ...]:
    """The long passes, to be handed to `play_stretch`."""
    walk, x, xx, q, T = np.empty(0, np.int64), *(np.empty((0,) * n) for n in range(1, 5))
    counts, squares, scores = (q, T, q, T), (q, T), (x, xx, q)
    return (
        handle(add_evidence, *squares, *scores, *counts, walk, walk, x, xx),
        handle(standard_beliefs, *counts, *squares, *scores, True, True, x, T, q, 1.0, 1.0, q, T, T, T, q, q),
        handle(solve_step, q, q, 1.0, T, x, T, x, False, 1.0, True, x, q, xx, x),
    )


def _novelty(state: State, tables: Floats) -> float:
    """How far revealed tables (I, H, S, A) are from the remembered ones; not a number if a memory would change."""
    pairs = list(zip(state.memory, tables, strict=True))
    if not all(kept.meet(table).same_as(kept) for kept, table in pairs):
        return np.nan
    return max([margins.distance(kept, table) for kept, table in pairs if kept.tables], default=0.0)


def _same(rounds: Sequence[Round], others: Sequence[Round]) -> bool:
    """Whether they are the same rounds in the same order."""
    return len(rounds) == len(others) and all(
        one is two or (_named(one) == _named(two) and np.array_equal(one.cost, two.cost) and one.reward is two.reward)
        for one, two in zip(rounds, others, strict=True)
    )


def _named(each: Round) -> tuple[Any, ...]:
    return each.key, each.reward_noise, each.cost_noise


def _plain(each: Round, first: Round, scene: Scene) -> bool:
    """Whether a round is one that compiled code can play, and differs from the first in its costs alone."""
    noise = each.reward_noise, each.cost_noise
    alike = each.reward is scene.cmdp.reward and noise == (first.reward_noise, first.cost_noise) and each.factor == 1.0
    exact = each.cost.dtype == each.reward.dtype == np.float64
    return alike and exact and "beta" not in noise and has_tables(scene.cmdp, each)


def _own(array: Floats) -> Floats:
    return np.require(array, requirements=("C", "W"))


def _past(counts: Counts, evidence: Evidence) -> Past:
    return Past(
        counts.visits.copy(), counts.transitions.copy(), counts.reward_sum.copy(), counts.cost_sum.copy(),
        evidence.reward_squares.copy(), evidence.cost_squares.copy(),
        evidence.kernel_score.copy(), evidence.reward_score.copy(), evidence.cost_score.copy(),
    )  # fmt: skip


def _plans(state: State) -> Plans:
    believed, hinges = state.believed, state.predicted.hinges
    assert isinstance(believed.region, Kernel)
    stacks = [] if state.setting.feedback == "bandit" else [kept.stack for kept in state.memory if kept.tables]
    held = [i for i, kept in enumerate(state.memory) for _ in kept.tables] if stacks else []
    return Plans(
        state.q.copy(), state.q_hat.copy(), believed.reward.copy(), believed.cost.copy(),
        believed.counted_cost.copy(), believed.region.transition.copy(), hinges.tables.copy(), hinges.weights.copy(),
        state.multipliers.copy(), state.multipliers.copy(), state.weights.copy(), state.V.copy(),
        np.concatenate(stacks) if stacks else np.zeros((0, *state.q.shape)), np.array(held, np.int64),
        _own(state.setting.mu),
    )  # fmt: skip


def _account(state: State) -> Account:
    caution, log = state.caution, state.log
    assert caution is not None
    assert state.drift is not None
    assert state.planned_violation is not None
    return Account(
        0, float(caution.share), float(caution.novelty), caution.overflowed(state.memory), float(state.reward_sum),
        float(state.inexactness), float(state.drift), float(state.ignored), float(state.planned_violation),
        bool(state.capped), int(state.saturations), log.solves, log.failures, log.iterations, float(log.max_gap),
        float(log.max_residual),
    )  # fmt: skip


def _columns(totals: Totals, n: int) -> Columns:
    value_sum, violation_sum = np.empty(n + 1), np.empty(n + 1)
    value_sum[0], violation_sum[0] = totals.value, totals.violation
    return Columns(
        np.empty(n), np.empty((n, len(totals.excess))), value_sum, violation_sum, np.empty(n), np.empty(n), np.empty(n),
        np.empty(n, np.bool_), np.empty(n), np.empty(n), totals.excess.copy(), totals.occupancy.copy(),
    )  # fmt: skip


def _rows(k: int, wanted: list[int], eta: float, columns: Columns) -> list[Row]:
    """The rows of some of the episodes after k; a certificate that is not a number is none."""
    c = columns
    shown = (
        c.value, c.excess, c.value_sum[1:], c.violation_sum[1:], c.weight, c.regret, c.violation, c.optimism,
        c.planned_value, c.planned_violation,
    )  # fmt: skip
    lists = [column[wanted].tolist() for column in shown]
    return [
        Row(
            k + 1 + b, value, tuple(excess), value_sum, violation_sum, eta, weight,
            None if regret != regret else regret, None if violation != violation else violation,
            None, (), holds, planned_value, planned_violation,
        )
        for b, value, excess, value_sum, violation_sum, weight, regret, violation, holds, planned_value,
            planned_violation in zip(wanted, *lists, strict=True)
    ]  # fmt: skip


def _totals(before: Totals, columns: Columns, n: int, n_episodes: int) -> Totals:
    """The sums of a run after n episodes more."""
    k, quarter, late = before.episodes, before.quarter, before.late
    at_quarter, at_late = n_episodes // EXPONENT_START, n_episodes - n_episodes // LATE_SHARE
    if k < at_quarter <= k + n:
        quarter = (at_quarter, float(columns.value_sum[at_quarter - k]), float(columns.violation_sum[at_quarter - k]))
    if k < at_late <= k + n:
        late = (at_late, float(columns.violation_sum[at_late - k]))
    return Totals(
        k + n, float(columns.value_sum[n]), float(columns.violation_sum[n]), columns.excess_sum, columns.occupancy_sum,
        quarter, late, before.rewards,
    )  # fmt: skip
