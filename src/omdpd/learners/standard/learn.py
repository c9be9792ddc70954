"""The default learner, compiled: `learn` is one episode of it, `steps` with beliefs that are tables.

Compiled or not, this is the learner: the verbs, the loop that plays many episodes, and the tests call `learn`.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.memory import KEPT
from omdpd.beliefs.pooling import share_kernel
from omdpd.beliefs.rules import best_weight, margin_is_useless
from omdpd.jit.decorators import entry, glue
from omdpd.jit.pointers import borrow, outlive
from omdpd.learners.standard.believing import Dials, believe, dials_of
from omdpd.learners.standard.on_tables import Met, choose, hinges_met
from omdpd.learners.standard.state import HINGES, NOVELTY, WEIGHT, K, Parts, Sizes, parts_of
from omdpd.learners.standard.steps import certify, look_back, plan_ahead, potential_before, write_weights
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.entries import copy_matrix, copy_vector
from omdpd.solvers.compiled.products import largest

# What `learn` answers: the episode is learnt, or there is no room for its tables and nothing was changed.
DONE, NO_ROOM = 1, 2


@entry
def learn(
    given: Floats, at: Integers, vector: Floats, states: Integers, actions: Integers, rewards: Floats, costs: Floats,
    tables: Floats,
) -> int:  # fmt: skip
    """Change a state in place by one episode (none if it has no step), and plan the next; DONE, or NO_ROOM.

    Parameters
    ----------
    given, at, vector
        The dials, where every part of the state begins (`state.places`), and the state.
    states, actions, rewards : (H,)
        The episode, or nothing before the first one.
    costs, tables : (I, H), (I, E)
        The costs that were met, or the tables that were revealed; there are none of the other kind.
    """
    d, z, s = dials_of(given), Sizes(at[0], at[1], at[2], at[3], at[4]), borrow(parts_of(vector, at))
    prices = np.zeros(int(s.account[HINGES]))
    if len(tables) > 0 and not has_room(d, z, s):
        return NO_ROOM
    if len(states) > 0:
        look_back(d, z, s, Met(states, actions, rewards, costs), tables, prices)
    plan_ahead(d, z, s, prices)
    outlive(vector)
    return DONE


@entry
def describe(given: Floats, at: Integers, vector: Floats) -> None:
    """Write what follows from the rest of a state: policy, kernel with its error, largest weight, bound."""
    d, z, s = dials_of(given), Sizes(at[0], at[1], at[2], at[3], at[4]), parts_of(vector, at)
    m = best_weight(s.past.kernel_score, d.stationary)
    share_kernel(s.past.transitions, s.past.visits, z.S * z.A, m, s.kernel, s.own, s.common)
    s.account[WEIGHT] = largest(s.weights)
    certify(d, z, s, potential_before(d, z, s, s.account[K] + 1.0))
    choose(z, s)


@entry
def beliefs_of(given: Floats, at: Integers, vector: Floats, prices: Floats) -> int:
    """Step 1 alone: write the beliefs and the hinges, and say how many hinges there are."""
    d, z, s = dials_of(given), Sizes(at[0], at[1], at[2], at[3], at[4]), parts_of(vector, at)
    believe(d, z, s, prices)
    return int(s.account[HINGES])


@entry
def met_hinges(given: Floats, at: Integers, vector: Floats, overflowed: bool) -> int:
    """Write the hinges of the surrogate that was met, and say how many they are.

    The state has the beliefs before an episode, and violation and memory after it; `overflowed` is of the one before.
    """
    d, z, s = dials_of(given), Sizes(at[0], at[1], at[2], at[3], at[4]), parts_of(vector, at)
    if not d.lagged:
        write_weights(s, potential_before(d, z, s, s.account[K] + 1.0))
    tables, weights, _ = hinges_met(d, z, s, margin_is_useless(overflowed, s.account[NOVELTY]))
    copy_matrix(tables, s.tables)
    copy_vector(weights, s.hinge_weights)
    return int(s.account[HINGES])


@glue
def has_room(d: Dials, z: Sizes, s: Parts) -> bool:
    """Whether one more table of every constraint can be kept, or need not be."""
    room = True
    for i in range(z.I):
        room = room and (s.tally[i, KEPT] < z.C or 0.0 <= d.capacity <= z.C)
    return room
