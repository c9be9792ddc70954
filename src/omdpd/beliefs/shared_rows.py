"""The beliefs of the standard learner by rows of the graph of what was visited.

The rules are those of tables (`rules`, `rows`, `assembly`); only the linear algebra differs.  Counts come by pair: see
`visits`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from omdpd.beliefs import rules
from omdpd.beliefs.assembly import InLists, Sums, believe_cost, expected_reward, lift_of_estimate, price_of
from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.evidence import Scores
from omdpd.beliefs.keys import bounds, distinct
from omdpd.beliefs.layouts import Layout
from omdpd.beliefs.margins import Caution
from omdpd.beliefs.pooling import places, share_laws
from omdpd.beliefs.rows import Charged, Errors, Lists, Own, cost_variance, write_reward, write_shares_of
from omdpd.beliefs.standard import Prices, SharingEstimator
from omdpd.beliefs.visits import Visits
from omdpd.jit.decorators import entry
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.setting import Setting
from omdpd.solvers.graph import Graph


@dataclass(frozen=True, eq=False)
class SharedRows:
    """A kernel on a graph with counts of moves and the two parts of its error, and where the counts of its rows are."""

    graph: Graph
    lists: Lists
    moves: Lists
    errors: Errors
    place: Integers
    ends: Integers
    episodes: float

    def lifted(self, estimator: SharingEstimator, caution: Caution, useless: bool, tables: Floats) -> Floats:
        """Revealed tables (n, E), each raised by its margin under these beliefs, unless margins are useless."""
        if caution.plan is None or estimator.z == 0.0 or useless:
            return tables
        H = self.graph.layers.size - 1
        found = plan_variances(self.lists, self.errors, caution.plan, tables)
        z = rules.errors_for(estimator.z, estimator.z_power, self.episodes)
        lifts = [rules.margin(z, caution.share, each, H, True) for each in found]
        return tables + np.array(lifts)[:, None]


def shared_rows(estimator: SharingEstimator, visits: Visits, scores: Scores, layout: Layout) -> SharedRows:
    """The kernel of the shared estimates, and its error."""
    v, seen, (H, S, A) = visits, layout.seen, visits.shape
    ends = bounds(v.rows, H, seen.pairs)
    place = places(layout.visited, layout.steps, ends, v.rows, H)
    group_ends = bounds(v.moves, H, distinct(v.moves, H))
    probabilities, spread, own, common, counts = share_laws(
        layout.visited, layout.steps, place, ends, v.rows, v.visits, layout.entries, layout.source,
        group_ends, seen.ends, v.moves, v.move_counts, H, rules.best_weight(scores.kernel, estimator.stationary),
    )  # fmt: skip
    g = layout.graph(probabilities, spread, S)
    groups = row_groups(layout.layers, layout.rows, layout.states, layout.actions, S, A)
    lists = Lists(
        g.layers, g.rows, groups, S * A + S + 1, g.copies, g.entries, g.successors, g.probabilities, g.spread,
        g.members, S,
    )  # fmt: skip
    moves = lists._replace(probabilities=counts, spread=np.zeros(spread.size))
    return SharedRows(g, lists, moves, Errors(own, common), place, ends, float(v.visits.sum()) / H)


def shared_row_estimate(
    estimator: SharingEstimator,
    setting: Setting,
    visits: Visits,
    scores: Scores,
    layout: Layout,
    prices: Prices,
    caution: Caution,
) -> tuple[Estimate[Graph], SharedRows]:
    """r~ with its bonus, the costs lifted by their margins, and p~."""
    v, n, n_costs = visits, layout.visited.size, setting.n_constraints if setting.feedback == "bandit" else 0
    kernel = shared_rows(estimator, visits, scores, layout)
    reward, cost, lifted = np.empty(n), np.zeros((setting.n_constraints, n)), np.zeros((setting.n_constraints, n))
    plan = np.zeros(n) if caution.plan is None else caution.plan
    believe_rows(
        kernel.lists, kernel.moves, kernel.errors, layout.visited, kernel.place, kernel.ends,
        (v.visits, v.reward_sum, v.reward_squares, v.cost_sum[:n_costs], v.cost_squares[:n_costs]),
        (scores.reward, scores.cost, estimator.stationary), Charged(prices.each, prices.tables), plan,
        (
            0.0 if caution.plan is None else rules.errors_for(estimator.z, estimator.z_power, kernel.episodes),
            caution.share, estimator.exploration, estimator.persistence, float(math.prod(setting.shape)),
        ),
        reward, cost, lifted,
    )  # fmt: skip
    return Estimate(reward, lifted, cost, np.zeros(n), kernel.graph), kernel


@entry
def believe_rows(
    g: Lists, moves: Lists, errors: Errors, pairs: Integers, place: Integers, ends: Integers,
    counts: tuple[Floats, ...], scores: tuple[Floats, Floats, bool], charged: Charged, plan: Floats,
    dials: tuple[float, float, float, float, float], reward: Floats, cost: Floats, lifted: Floats,
) -> None:  # fmt: skip
    """Write r~, d and d with its margin: `learners.standard.believing.believe` by rows of a graph.

    `counts` are visits, sums and squares of rewards and of costs, by pair and step; `dials` are z, the share of the
    margin, the exploration, the persistence and HSA.
    """
    n, reward_sum, reward_squares, cost_sum, cost_squares = counts
    reward_score, cost_score, stationary = scores
    z, share, exploration, persistence, n_rows = dials
    E, H = plan.size, g.layers.size - 1
    chosen, work, cost_noise, seen = np.empty(E), np.empty((3, E)), np.zeros(E), np.zeros((2 + len(cost_sum), E))
    noise, known, where = work[0], Errors(work[1], work[2]), InLists(pairs, place, ends)
    for e in range(E):
        if place[e] >= 0:
            seen[0, e], seen[1, e] = n[place[e]], reward_sum[place[e]]
            for i in range(len(cost_sum)):
                seen[2 + i, e] = cost_sum[i, place[e]]
    write_shares_of(g, plan, chosen)
    for i in range(len(cost_sum)):
        met = Sums(n, cost_sum[i], cost_squares[i], cost_score[i], stationary)
        believe_cost(where, met, price_of(charged.prices, i), cost[i], noise, known, cost_noise)
        lift = 0.0
        if z > 0.0:
            lift = lift_of_estimate(g, (plan, chosen), cost[i], noise, (errors, known), z, share)
        for e in range(E):
            lifted[i, e] = cost[i, e] + lift
    met = Sums(n, reward_sum, reward_squares, reward_score, stationary)
    expected = expected_reward(where, met, persistence, E)
    own = Own(seen[0], seen[1], seen[2:], moves, n.sum() / H, n_rows, persistence)
    write_reward(g, errors, own, expected, cost_noise, charged, exploration, reward)


@entry
def plan_variances(g: Lists, errors: Errors, plan: Floats, tables: Floats) -> Floats:
    """The variance of what a plan costs under each of some tables (n, E) that are known, (n,)."""
    found, chosen = np.empty(len(tables)), np.empty(plan.size)
    write_shares_of(g, plan, chosen)
    for j in range(len(tables)):
        found[j] = cost_variance(g, plan, chosen, tables[j], errors)
    return found


@entry
def row_groups(layers: Integers, rows: Integers, states: Integers, actions: Integers, S: int, A: int) -> Integers:
    """One number for the rows of one (s, a), of one state's unseen actions, and of all other states, over layers."""
    groups = np.empty(actions.size, np.int64)
    for i in range(layers[-1]):
        for r in range(rows[i], rows[i + 1]):
            s, a = states[i], actions[r]
            groups[r] = S * A + S if s < 0 else S * A + s if a < 0 else s * A + a
    return groups
