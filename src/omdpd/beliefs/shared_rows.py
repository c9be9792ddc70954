"""The beliefs of the standard learner by rows of the graph of what was visited.

What `sharing`, `exploration` and `margins` say of every row of a table is said here of every row of the graph, with
sums over rows weighted by their copies; tests hold the two to each other.  Counts come by pair (see `visits`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.layouts import Layout
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.revealed import TableMemory
from omdpd.beliefs.sharing import SharedTable
from omdpd.beliefs.standard import REVEALED, Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.setting import BanditFeedback, Feedback, Setting
from omdpd.solvers.compiled.lookahead import HALF_SHARED, row_bonus
from omdpd.solvers.compiled.rows.keys import bounds, distinct
from omdpd.solvers.compiled.rows.lookahead import (
    kernel_row_variance,
    lagrangian_row_bonus,
    noise_row_variance,
    row_groups,
)
from omdpd.solvers.compiled.rows.sharing import kernel_row_scores, kernel_rows, places, table_row_scores, table_rows
from omdpd.solvers.compiled.sharing import (
    COST_TRUSTS,
    HOPE,
    MIN_VARIANCE,
    POOLED,
    REWARD_TRUSTS,
    TRUST,
    WEIGHTS,
    best_pair,
    best_weight,
    noise_share,
    rows_met,
)
from omdpd.solvers.graph import Graph


@dataclass(frozen=True, eq=False)
class Scores:
    """How well every weight predicted: `kernel` (m,), `reward` (m, 1), `cost` (I, m, trust)."""

    kernel: Floats
    reward: Floats
    cost: Floats

    @staticmethod
    def empty(setting: Setting) -> Scores:
        """Nothing seen: every weight is as good as any other."""
        n = WEIGHTS.size
        costs = np.zeros((setting.n_constraints, n, COST_TRUSTS.size))
        return Scores(np.zeros(n), np.zeros((n, REWARD_TRUSTS.size)), costs)

    def after(self, visits: Visits, feedback: Feedback) -> Scores:
        """The scores with one more episode; `visits` are those before it, which made the predictions."""
        walk, v = feedback.trajectory, visits
        _, S, A = v.shape
        pairs = walk.states * A + walk.actions
        kernel = self.kernel + kernel_row_scores(
            walk.states, pairs, v.rows, v.visits, v.moves, v.move_counts, S, WEIGHTS, TRUST
        )
        reward = self.reward + _gain(pairs, feedback.rewards, v, v.reward_sum, REWARD_TRUSTS)
        if not isinstance(feedback, BanditFeedback):
            return Scores(kernel, reward, self.cost)
        observed = (feedback.costs + 1.0) / 2.0
        gained = [_gain(pairs, u, v, sums, COST_TRUSTS) for u, sums in zip(observed, _unit_cost_sums(v), strict=True)]
        return Scores(kernel, reward, self.cost + np.array(gained))


@dataclass(frozen=True, eq=False)
class SharedRows:
    """A kernel on a graph with the two parts of its error, `own` and `common` (R,), per unit of noise.

    `groups` (R,) have one number for the rows of one pair, or of one class, over the layers.
    """

    graph: Graph
    groups: Integers
    n_groups: int
    own: Floats
    common: Floats

    def standard_error(self, plan: Floats, table: Floats, observed: SharedTable | None = None) -> float:
        """The standard error of table.q for q = `plan`; with `observed` the table itself was estimated too."""
        g = self.graph
        variance = kernel_row_variance(
            g.layers, g.rows, g.entries, g.successors, g.probabilities, g.spread, g.members, g.copies, g.n_states,
            self.groups, self.n_groups, plan, table, self.own, self.common,
        )  # fmt: skip
        if observed is not None:
            variance += noise_row_variance(
                plan, g.copies, self.groups, self.n_groups, observed.noise, observed.own, observed.common
            )
        return float(np.sqrt(variance))


def shared_rows(estimator: SharingEstimator, visits: Visits, scores: Scores, layout: Layout) -> SharedRows:
    """The kernel of the shared estimates, and its error."""
    v, seen, (H, S, A) = visits, layout.seen, visits.shape
    weight = POOLED if estimator.stationary else best_weight(scores.kernel)
    ends = bounds(v.rows, H, seen.pairs)
    place = places(layout.visited, layout.steps, ends, v.rows, H)
    group_ends = bounds(v.moves, H, distinct(v.moves, H))
    probabilities, spread, own, common = kernel_rows(
        layout.visited, layout.steps, place, ends, v.rows, v.visits, layout.entries, layout.source,
        group_ends, seen.ends, v.moves, v.move_counts, H, weight, TRUST,
    )  # fmt: skip
    groups = row_groups(layout.layers, layout.rows, layout.states, layout.actions, S, A)
    return SharedRows(layout.graph(probabilities, spread, S), groups, S * A + S + 1, own, common)


def shared_row_estimate(
    estimator: SharingEstimator,
    setting: Setting,
    visits: Visits,
    scores: Scores,
    layout: Layout,
    prices: Prices,
    caution: Caution,
) -> tuple[Estimate[Graph], SharedRows]:
    """r~ with its bonus, the costs lifted by their margins, and p~: `SharingEstimator.estimate` by rows."""
    v, H = visits, setting.horizon
    kernel = shared_rows(estimator, visits, scores, layout)
    tables = _Tables(estimator, layout, v, bounds(v.rows, H, layout.seen.pairs), H)
    n, graph = layout.visited.size, kernel.graph
    mean, spread = rows_met(_column(v.reward_sum), _column(v.visits))
    hope = min(mean + HOPE * spread, 1.0)
    weight = POOLED if estimator.stationary else best_weight(scores.reward[:, 0])
    share = noise_share(_column(v.reward_sum), _column(v.reward_squares), _column(v.visits))
    reward = tables.shared(v.reward_sum, weight, hope, TRUST, share)
    floor = share * max(mean * (1.0 - mean) if mean < 0.5 else 0.25, MIN_VARIANCE)
    costs = tables.costs(scores) if setting.feedback == "bandit" else ()
    cost = np.array([observed.mean for observed in costs]) if costs else np.zeros((setting.n_constraints, n))
    lifted = cost
    if costs and caution.plan is not None and estimator.z > 0.0:
        errors = [kernel.standard_error(caution.plan, observed.mean, observed) for observed in costs]
        lifted = cost + estimator.z * caution.share * np.array(errors)[:, None] / H
    extra = _bonus(kernel, reward, costs, tables.own_visits(), weight, hope, floor, prices)
    believed = Estimate(reward.mean + estimator.exploration * extra, lifted, cost, np.zeros(n), graph)
    return believed, kernel


def lifted_rows(
    estimator: SharingEstimator,
    setting: Setting,
    shared: SharedRows,
    caution: Caution,
    memory: tuple[TableMemory, ...],
    tables: Floats,
) -> Floats:
    """Revealed tables (n, R), each raised by its `revealed_lift`."""
    if caution.plan is None or estimator.z == 0.0 or caution.futile(memory):
        return tables
    errors = np.array([shared.standard_error(caution.plan, table) for table in tables])
    return tables + REVEALED * estimator.z * caution.share * errors[:, None] / setting.horizon


@dataclass(frozen=True, eq=False)
class _Tables:
    """Tables of means by rows, from sums by pair and step."""

    estimator: SharingEstimator
    layout: Layout
    visits: Visits
    ends: Integers
    horizon: int

    @property
    def place(self) -> Integers:
        """Where the counts of every row are, or -1."""
        return places(self.layout.visited, self.layout.steps, self.ends, self.visits.rows, self.horizon)

    def own_visits(self) -> Floats:
        """How often every row itself was visited."""
        return np.append(self.visits.visits, 0.0)[self.place]

    def shared(self, sums: Floats, weight: float, base: float, trust: float, share: float) -> SharedTable:
        """A table in [0, 1]; `share` of a coin's variance is the noise of one observation."""
        x, own, common = table_rows(
            self.layout.visited, self.place, self.ends, sums, self.visits.visits, weight, base, trust
        )
        return SharedTable(x, own, common, share * x * (1.0 - x))

    def costs(self, scores: Scores) -> tuple[SharedTable, ...]:
        """The cost tables, from sums of u = (d+1)/2; their means and noise in units of d."""
        v = self.visits
        found = []
        for sums, squares, score in zip(_unit_cost_sums(v), v.cost_squares, scores.cost, strict=True):
            weight, trust = best_pair(score)
            share = noise_share(_column(sums), _column(squares), _column(v.visits))
            weight = POOLED if self.estimator.stationary else weight
            u = self.shared(sums, weight, _overall_mean(v, sums), trust, share)
            found.append(SharedTable(2.0 * u.mean - 1.0, u.own, u.common, 4.0 * u.noise))
        return tuple(found)


def _bonus(
    kernel: SharedRows, reward: SharedTable, costs: tuple[SharedTable, ...], visits: Floats, weight: float, hope: float,
    floor: float, prices: Prices,
) -> Floats:  # fmt: skip
    """The bonus (R,) under prices of tables: `exploration.bonus` by rows."""
    g, cost_noise = kernel.graph, np.zeros(visits.size)
    for price, cost in zip(prices.each, costs, strict=False):
        cost_noise += price**2 * cost.noise / np.maximum(cost.size, 1.0)
    row, variance, reach = row_bonus(
        _column(visits), _column(reward.mean), _column(reward.size), _column(reward.noise), _column(cost_noise),
        weight / (weight + HALF_SHARED), hope, floor,
    )  # fmt: skip
    table = reward.mean - prices.each @ prices.tables
    size = np.maximum(1.0 / (kernel.own + kernel.common), 1.0)
    return lagrangian_row_bonus(
        g.layers, g.rows, g.entries, g.successors, g.probabilities, g.spread, g.members, g.n_states,
        table, row.ravel(), variance.ravel(), reach.ravel(), size, min(1.0, float(prices.each.sum())),
    )  # fmt: skip


def _gain(pairs: Integers, observed: Floats, visits: Visits, sums: Floats, trusts: Floats) -> Floats:
    """What one episode adds to the scores of a table."""
    base = _overall_mean(visits, sums)
    return table_row_scores(pairs, observed, visits.rows, sums, visits.visits, base, WEIGHTS, trusts)


def _overall_mean(visits: Visits, sums: Floats) -> float:
    """The mean of everything met, with one observation of 1/2 more."""
    return float((sums.sum() + 0.5) / (visits.visits.sum() + 1.0))


def _unit_cost_sums(visits: Visits) -> Floats:
    """Sums of u = (d+1)/2 in [0, 1], (I, n)."""
    return (visits.cost_sum + visits.visits) / 2.0


def _column(values: Floats) -> Floats:
    """A vector as the table that functions of tables take: each entry a step of its own."""
    return values[:, None, None]
