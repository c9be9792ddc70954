"""Play many episodes of any learner whose update is compiled: the loop of `play.loop`, in one call.

The truth is here, and in nothing that a learner's function is given: that gets its own state and what an episode shows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from omdpd.jit.decorators import typed_entry
from omdpd.play.compiled.episode import add_judgement, are_laws, at_least, play_judge
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.boxes import inside
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.compiled.products import costliest

f1, f2, f3, f4, f5 = (types.Array(types.float64, n, "C") for n in range(1, 6))
i1, b1, yes = types.Array(types.int64, 1, "C"), types.Array(types.boolean, 1, "C"), types.boolean
# What a compiled learner is: (dials, at, vector, states, actions, rewards, costs, tables) -> 1 once it has learnt.
STEP = types.int64(f1, i1, f1, i1, i1, f1, f2, f2)
LEARNT = 1


class Truth(NamedTuple):
    """The world, the tables (n, I, H, S, A) of its rounds, what is drawn of observations, and how it is judged.

    `mean_cost` (I, H, S, A) is what an estimated cost is held against (no rows where costs are revealed).
    """

    transition: Floats
    initial: Floats
    reward: Floats
    tables: Floats
    mean_cost: Floats
    drawn_rewards: bool
    drawn_costs: bool
    revealed: bool
    lawful: float


class BatchColumns(NamedTuple):
    """What is told of every episode: value (B,), excess (B, I), the first numbers of the state (B, n), and optimism.

    Sums go on from those before: `value_sum` and `violation_sum` have B + 1 places.
    """

    value: Floats
    excess: Floats
    told: Floats
    optimism: Any
    value_sum: Floats
    violation_sum: Floats
    excess_sum: Floats
    occupancy_sum: Floats


_tuple: Any = types.NamedTuple
TRUTH = _tuple((f4, f1, f3, f5, f4, yes, yes, yes, types.float64), Truth)
COLUMNS = _tuple((f1, f2, f2, b1, f1, f1, f1, f3), BatchColumns)


@typed_entry(types.int64(types.FunctionType(STEP), f1, i1, f1, i1, TRUTH, i1, f2, COLUMNS))
def play_many(
    learn: Any, dials: Floats, at: Integers, vector: Floats, places: Integers, truth: Truth, choices: Integers,
    uniforms: Floats, columns: BatchColumns,
) -> int:  # fmt: skip
    """Play an episode per choice, or as many as can be learnt so; how many.  The state's vector is changed in place.

    A choice below zero is the costliest table for the policy in play, and is written; `places` are where policy, r~,
    p~ and d~ lie in the vector; `uniforms` (B, (3 + I) H) are the random numbers of every episode.
    """
    (H, S, A), n, E = truth.reward.shape, truth.tables.shape[1], truth.reward.size
    states, actions, rewards, costs = np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H), np.empty((n, H))
    nothing, rows = np.empty((0, 0)), truth.tables.reshape((len(truth.tables), n, E))
    policy = vector[places[0] : places[0] + E].reshape((H, S, A))
    reward = vector[places[1] : places[1] + E].reshape((H, S, A))
    kernel = vector[places[2] : places[2] + E * S].reshape((H, S, A, S))
    held = len(truth.mean_cost)
    cost = vector[max(places[3], 0) : max(places[3], 0) + held * E].reshape((held, H, S, A))
    for b in range(len(choices)):
        if not are_laws(policy, truth.lawful):
            return b
        occupancy = occupancy_of_policy(policy, truth.transition, truth.initial)
        which = choices[b] if choices[b] >= 0 else costliest(truth.tables, occupancy)
        value = play_judge(
            policy, occupancy, truth.transition, truth.initial, truth.reward, truth.tables[which], uniforms[b],
            truth.drawn_rewards, truth.drawn_costs, states, actions, rewards, costs, columns.excess[b],
        )  # fmt: skip
        if truth.revealed:
            done = learn(dials, at, vector, states, actions, rewards, nothing, rows[which])
        else:
            done = learn(dials, at, vector, states, actions, rewards, costs, nothing)
        if done != LEARNT:
            return b
        choices[b], columns.value[b] = which, value
        paid = add_judgement(columns.excess[b], columns.excess_sum, occupancy, columns.occupancy_sum)
        columns.value_sum[b + 1] = columns.value_sum[b] + value
        columns.violation_sum[b + 1] = columns.violation_sum[b] + paid
        for j in range(columns.told.shape[1]):
            columns.told[b, j] = vector[j]
        columns.optimism[b] = (
            inside(kernel, kernel, truth.transition)
            and at_least(reward, truth.reward)
            and at_least(truth.mean_cost, cost)
        )
    return len(choices)
