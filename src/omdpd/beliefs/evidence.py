"""How well every weight m of a grid has predicted an episode, from the counts before it.

One step of a trajectory asks about one (s, a), of which every layer g has n_g observations with sum X_g (see `pooling`
for f and T).  Every m of the grid predicts every observation before it is made, and its log score is added up; the m
that predicted best is taken (the prequential rule, `rules.best_weight`).

Counts in tables and counts in lists are gathered into the same small arrays, and scored by the same function.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omdpd.beliefs.counting import add_counts
from omdpd.beliefs.counts import NO_COSTS, Counts
from omdpd.beliefs.rules import COST_TRUSTS, REWARD_TRUSTS, TRUST, WEIGHTS, overall_mean, unit_cost
from omdpd.beliefs.visits import Visits
from omdpd.jit.decorators import entry, rule
from omdpd.jit.pointers import assume_distinct
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.records import fast_init
from omdpd.problem.setting import BanditFeedback, Feedback, Setting

# A predicted mean is kept this far from 0 and 1 before its logarithm is taken.
MIN_CHANCE = 1e-3
# A product of chances below this is not multiplied further: its logarithm is taken instead.
SMALL = 1e-200
N_WEIGHTS, N_TRUSTS = WEIGHTS.size, COST_TRUSTS.size


class Gathered(NamedTuple):
    """What an episode is scored with, by step h and layer g: all counts are those before it.

    `n`, `reward` (H, H): visits of the pair met at step h in layer g, and their rewards; `cost` (I, H, H): their costs
    as if in [0, 1]; `led` (H, H): how often the pair led to the state that came next (of the last step nothing).
    """

    n: Floats
    reward: Floats
    cost: Floats
    led: Floats


@rule
def nothing_gathered(H: int, n_costs: int) -> Gathered:
    """Room for what is gathered."""
    return Gathered(np.zeros((H, H)), np.zeros((H, H)), np.zeros((n_costs, H, H)), np.zeros((H, H)))


@rule
def add_scores(
    seen: Gathered, rewards: Floats, costs: Floats, reward_base: float, cost_bases: Floats, S: int,
    kernel_score: Floats, reward_score: Floats, cost_score: Floats,
) -> None:  # fmt: skip
    """Add one episode to the scores (m,), (m, 1) and (I, m, trust); bases are the means of everything met."""
    H, n_costs = len(rewards), len(costs)
    f, total = np.empty((H, N_WEIGHTS)), np.empty(N_WEIGHTS)
    moved, chance, work = np.empty(N_WEIGHTS), np.empty((n_costs + 1, N_TRUSTS, N_WEIGHTS)), np.empty((7, N_WEIGHTS))
    for k in range(N_WEIGHTS):
        moved[k] = 1.0
        for i in range(n_costs + 1):
            for j in range(N_TRUSTS):
                chance[i, j, k] = 1.0
    for h in range(H):
        n = seen.n[h]
        write_shares(n, f, total)
        predict_mean(
            n, seen.reward[h], h, rewards[h], reward_base, f, total, REWARD_TRUSTS, work[0], work[2:], chance[-1],
            reward_score,
        )  # fmt: skip
        for i in range(n_costs):
            predict_mean(
                n, seen.cost[i, h], h, unit_cost(costs[i, h], 1.0), cost_bases[i], f, total, COST_TRUSTS, work[0],
                work[2:], chance[i], cost_score[i],
            )  # fmt: skip
        if h + 1 < H:
            predict_departure(n, seen.led[h], h, S, f, work[0], work[1], moved, kernel_score)
    for k in range(N_WEIGHTS):
        kernel_score[k] += math.log(moved[k])
        reward_score[k, 0] += math.log(chance[-1, 0, k])
        for i in range(n_costs):
            for j in range(N_TRUSTS):
                cost_score[i, k, j] += math.log(chance[i, j, k])


@rule
def write_shares(n: Floats, f: Floats, total: Floats) -> None:
    """Write f_g = m / (n_g + m) of the layers that have seen something, (H, m), and sum_g f_g n_g, (m,)."""
    assume_distinct()
    for k in range(N_WEIGHTS):
        total[k] = 0.0
    for g in range(n.size):
        if n[g] > 0.0:
            for k in range(N_WEIGHTS):
                f[g, k] = WEIGHTS[k] / (n[g] + WEIGHTS[k])
                total[k] += f[g, k] * n[g]


@rule
def predict_mean(
    n: Floats, X: Floats, h: int, seen: float, base: float, f: Floats, total: Floats, trusts: Floats,
    level: Floats, x: Floats, chance: Floats, scores: Floats,
) -> None:  # fmt: skip
    """Score the means that (m, trust) expect of layer h against what was seen there: x ln x~ + (1 - x) ln(1 - x~).

    Logarithms are most of the work, and coins need one in all: the chance of what they showed is multiplied into
    `chance` (trust, m).  Of everything else the score is added to `scores` (m, trust).  `level` (m,) and `x`, whose
    first rows are (trust, m), are overwritten.
    """
    assume_distinct()
    for k in range(N_WEIGHTS):
        level[k] = 0.0
    for g in range(n.size):
        if n[g] > 0.0:
            for k in range(N_WEIGHTS):
                level[k] += f[g, k] * X[g]
    for j in range(trusts.size):
        for k in range(N_WEIGHTS):
            expected = (level[k] + trusts[j] * base) / (total[k] + trusts[j])
            x[j, k] = min(max((X[h] + WEIGHTS[k] * expected) / (n[h] + WEIGHTS[k]), MIN_CHANCE), 1.0 - MIN_CHANCE)
    if seen == 1.0 or seen == 0.0:
        small = 0
        for j in range(trusts.size):
            for k in range(N_WEIGHTS):
                chance[j, k] *= x[j, k] if seen == 1.0 else 1.0 - x[j, k]
                small += chance[j, k] < SMALL
        for j in range(trusts.size if small > 0 else 0):
            for k in range(N_WEIGHTS):
                if chance[j, k] < SMALL:
                    scores[k, j] += math.log(chance[j, k])
                    chance[j, k] = 1.0
    else:
        for j in range(trusts.size):
            for k in range(N_WEIGHTS):
                scores[k, j] += seen * math.log(x[j, k]) + (1.0 - seen) * math.log(1.0 - x[j, k])


@rule
def predict_departure(
    n: Floats, X: Floats, h: int, S: int, f: Floats, T: Floats, level: Floats, chance: Floats, scores: Floats
) -> None:
    """Multiply the chances (m,) by those of the next state that was seen, X of which were seen before.

    The last layer leads nowhere; `T` and `level` (m,) are overwritten.
    """
    assume_distinct()
    for k in range(N_WEIGHTS):
        T[k], level[k] = TRUST, TRUST / S
    for g in range(n.size - 1):
        if n[g] > 0.0:
            for k in range(N_WEIGHTS):
                T[k] += f[g, k] * n[g]
                level[k] += f[g, k] * X[g]
    for k in range(N_WEIGHTS):
        chance[k] *= (X[h] + WEIGHTS[k] * level[k] / T[k]) / (n[h] + WEIGHTS[k])
    for k in range(N_WEIGHTS):
        if chance[k] < SMALL:
            scores[k] += math.log(chance[k])
            chance[k] = 1.0


# --------------------------------------------------------------------------------------------- counts in tables
class Past(NamedTuple):
    """Counts, and the evidence beside them, over rows e = (h, s, a): see `Counts` and `Evidence`."""

    visits: Floats
    transitions: Floats
    reward_sum: Floats
    cost_sum: Floats
    reward_squares: Floats
    cost_squares: Floats
    kernel_score: Floats
    reward_score: Floats
    cost_score: Floats


@rule
def add_episode(
    past: Past, S: int, A: int, states: Integers, actions: Integers, rewards: Floats, costs: Floats
) -> None:
    """Add one episode to counts and evidence, in place; `costs` (I, H), or (0, H) where none are met."""
    H, n_costs, R = len(states), len(costs), S * A
    seen, size, bases = nothing_gathered(H, n_costs), 0.0, np.zeros(n_costs)
    reward_total = 0.0
    for e in range(past.visits.size):
        size += past.visits[e]
        reward_total += past.reward_sum[e]
        for i in range(n_costs):
            bases[i] += unit_cost(past.cost_sum[i, e], past.visits[e])
    for i in range(n_costs):
        bases[i] = overall_mean(bases[i], size)
    for h in range(H):
        for g in range(H):
            e = g * R + states[h] * A + actions[h]
            seen.n[h, g], seen.reward[h, g] = past.visits[e], past.reward_sum[e]
            for i in range(n_costs):
                seen.cost[i, h, g] = unit_cost(past.cost_sum[i, e], past.visits[e])
            if h + 1 < H:
                seen.led[h, g] = past.transitions[e, states[h + 1]]
    add_scores(
        seen, rewards, costs, overall_mean(reward_total, size), bases, S,
        past.kernel_score, past.reward_score, past.cost_score,
    )  # fmt: skip
    for h in range(H):
        e = h * R + states[h] * A + actions[h]
        past.reward_squares[e] += rewards[h] ** 2
        for i in range(n_costs):
            past.cost_squares[i, e] += unit_cost(costs[i, h], 1.0) ** 2
    add_counts(past.visits, past.transitions, past.reward_sum, past.cost_sum, S, A, states, actions, rewards, costs)


@entry
def count_episode(
    past: Past, S: int, A: int, states: Integers, actions: Integers, rewards: Floats, costs: Floats
) -> None:
    """`add_episode`, for Python."""
    add_episode(past, S, A, states, actions, rewards, costs)


# ---------------------------------------------------------------------------------------------- counts in lists
@entry
def add_list_scores(
    states: Integers, pairs: Integers, rewards: Floats, costs: Floats, keys: Integers, visits: Floats,
    reward_sum: Floats, cost_sum: Floats, moves: Integers, move_counts: Floats, S: int,
    kernel_score: Floats, reward_score: Floats, cost_score: Floats,
) -> None:  # fmt: skip
    """Add one episode to the scores, in place, from counts in the order (s, a, h): see `Visits`."""
    H, n_costs = len(states), len(costs)
    seen, unit, bases = nothing_gathered(H, n_costs), np.empty(visits.size), np.empty(n_costs)
    for h in range(H):
        write_by_step(keys, visits, pairs[h], seen.n[h])
        write_by_step(keys, reward_sum, pairs[h], seen.reward[h])
        if h + 1 < H:
            write_by_step(moves, move_counts, pairs[h] * S + states[h + 1], seen.led[h])
    for i in range(n_costs):
        for k in range(visits.size):
            unit[k] = unit_cost(cost_sum[i, k], visits[k])
        bases[i] = overall_mean(unit.sum(), visits.sum())
        for h in range(H):
            write_by_step(keys, unit, pairs[h], seen.cost[i, h])
    base = overall_mean(reward_sum.sum(), visits.sum())
    add_scores(seen, rewards, costs, base, bases, S, kernel_score, reward_score, cost_score)


@rule
def write_by_step(keys: Integers, counts: Floats, group: int, found: Floats) -> None:
    """Write the counts of one group, whose keys are group H + h, by step; zero where there is none."""
    H = found.size
    for h in range(H):
        found[h] = 0.0
    for k in range(np.searchsorted(keys, group * H), np.searchsorted(keys, group * H + H)):
        found[keys[k] % H] = counts[k]


# ------------------------------------------------------------------------------------------- as states keep them
@fast_init
@dataclass(frozen=True, eq=False)
class Evidence:
    """What is kept besides counts in tables: sums of squares, and the scores of every weight.

    `reward_squares` (H,S,A); `cost_squares` (I,H,S,A) of u = (d+1)/2; `kernel_score` (m,), `reward_score` (m, 1) and
    `cost_score` (I, m, trust).
    """

    reward_squares: Floats
    cost_squares: Floats
    kernel_score: Floats
    reward_score: Floats
    cost_score: Floats

    @staticmethod
    def empty(setting: Setting) -> Evidence:
        """Nothing seen: every weight is as good as any other."""
        I, none = setting.n_constraints, Scores.empty(setting)  # noqa: E741
        return Evidence(np.zeros(setting.shape), np.zeros((I, *setting.shape)), none.kernel, none.reward, none.cost)


@dataclass(frozen=True, eq=False)
class Scores:
    """How well every weight predicted, beside counts in lists: `kernel` (m,), `reward` (m, 1), `cost` (I, m, trust)."""

    kernel: Floats
    reward: Floats
    cost: Floats

    @staticmethod
    def empty(setting: Setting) -> Scores:
        """Nothing seen: every weight is as good as any other."""
        costs = np.zeros((setting.n_constraints, N_WEIGHTS, N_TRUSTS))
        return Scores(np.zeros(N_WEIGHTS), np.zeros((N_WEIGHTS, REWARD_TRUSTS.size)), costs)

    def after(self, visits: Visits, feedback: Feedback) -> Scores:
        """The scores with one more episode; `visits` are those before it, which made the predictions."""
        walk, v, (_, S, A) = feedback.trajectory, visits, visits.shape
        new = Scores(self.kernel.copy(), self.reward.copy(), self.cost.copy())
        costs = feedback.costs if isinstance(feedback, BanditFeedback) else np.zeros((0, v.shape[0]))
        add_list_scores(
            walk.states, walk.states * A + walk.actions, feedback.rewards, costs, v.rows, v.visits, v.reward_sum,
            v.cost_sum, v.moves, v.move_counts, S, new.kernel, new.reward, new.cost,
        )  # fmt: skip
        return new


def counted(counts: Counts, evidence: Evidence, logged: Iterable[Feedback]) -> tuple[Counts, Evidence]:
    """Counts in tables and the evidence beside them, with more episodes."""
    (_, S, A), I = counts.visits.shape, len(counts.cost_sum)  # noqa: E741
    new = [array.copy() for array in (*vars(counts).values(), *vars(evidence).values())]
    n, moves, rewards, costs, squares, cost_squares, *scores = new
    past = Past(
        n.reshape(-1), moves.reshape(-1, S), rewards.reshape(-1), costs.reshape(I, -1), squares.reshape(-1),
        cost_squares.reshape(I, -1), *scores,
    )  # fmt: skip
    for feedback in logged:
        walk = feedback.trajectory
        met = feedback.costs if isinstance(feedback, BanditFeedback) else NO_COSTS
        count_episode(past, S, A, walk.states, walk.actions, feedback.rewards, met)
    return Counts(*new[:4]), Evidence(*new[4:])
