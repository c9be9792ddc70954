"""What the standard learner believes before a step, and what the step is penalised with.

r~, d, p~     estimates shared between steps (`pooling`), the rewards with their bonus (`rows.write_reward`)
hinges        one per estimated cost or remembered table, raised by its margin
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.beliefs import rules
from omdpd.beliefs.assembly import InTables, Sums, believe_cost, expected_reward, lift_of_estimate, price_of
from omdpd.beliefs.memory import KEPT, LABELS, distance, overflowed
from omdpd.beliefs.pooling import share_kernel
from omdpd.beliefs.rows import Charged, Errors, Own, Tables, cost_variance, write_reward
from omdpd.beliefs.rules import errors_for, margin, margin_is_useless, novelty_after
from omdpd.jit.decorators import glue, rule
from omdpd.learners.standard.state import HINGES, NOVELTY, SHARE, STARTED, Parts, Sizes, kept_of
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import sum_of_vector


class Dials(NamedTuple):
    """What a user sets, whether costs are met on the way, and K (0 if it is not known).

    With no `persistence` rewards and their bonus are those of version 0.2: a row that looks bad is left for good.
    """

    bandit: float
    episodes: float
    z: float
    exploration: float
    stationary: float
    w0: float
    gamma_scale: float
    w_max: float
    lagged: float
    c_prime: float
    patient: float
    capacity: float
    persistence: float = 0.0
    z_power: float = 0.0


@glue
def dials_of(given: Floats) -> Dials:
    """The dials, by name."""
    return Dials(
        given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7], given[8], given[9], given[10],
        given[11], given[12], given[13],
    )  # fmt: skip


@rule
def believe(d: Dials, z: Sizes, s: Parts, prices: Floats) -> bool:
    """Step 1: kernel, costs, rewards with their bonus, and hinges; whether old multipliers fit the hinges."""
    past, E, R, n_costs = s.past, s.past.visits.size, z.S * z.A, z.I if d.bandit else 0
    errors, cost_noise, where = np.zeros((3, n_costs, E)), np.zeros(E), InTables(R)
    noise, own, common = errors[0], errors[1], errors[2]
    m = rules.best_weight(past.kernel_score, d.stationary)
    share_kernel(past.transitions, past.visits, R, m, s.kernel, s.own, s.common)
    for i in range(n_costs):
        met = Sums(past.visits, past.cost_sum[i], past.cost_squares[i], past.cost_score[i], d.stationary)
        believe_cost(where, met, price_of(prices, i), s.cost[i], noise[i], Errors(own[i], common[i]), cost_noise)
    met = Sums(past.visits, past.reward_sum, past.reward_squares, past.reward_score, d.stationary)
    write_reward(
        Tables(z.H, z.S, z.A, s.kernel), Errors(s.own, s.common),
        own_of(d, z, s), expected_reward(where, met, d.persistence, E), cost_noise, Charged(prices, s.tables),
        d.exploration, s.reward,
    )  # fmt: skip
    if d.bandit:
        return write_estimated_hinges(d, z, s, noise, own, common)
    useless = margin_is_useless(has_overflowed(d, s), s.account[NOVELTY])
    return write_revealed_hinges(d, z, s, useless, s.policy, s.tables, s.hinge_weights)


@glue
def own_of(d: Dials, z: Sizes, s: Parts) -> Own:
    """What every row has seen itself."""
    return Own(
        s.past.visits, s.past.reward_sum, s.past.cost_sum[: z.I if d.bandit else 0],
        Tables(z.H, z.S, z.A, s.past.transitions), sum_of_vector(s.past.visits) / z.H, s.past.visits.size,
        d.persistence,
    )  # fmt: skip


@glue
def errors_now(d: Dials, z: Sizes, s: Parts) -> float:
    """The standard errors of safety after all episodes that were counted."""
    return errors_for(d.z, d.z_power, sum_of_vector(s.past.visits) / z.H)


@rule
def write_estimated_hinges(d: Dials, z: Sizes, s: Parts, noise: Floats, own: Floats, common: Floats) -> bool:
    """One hinge per constraint: its expected cost, raised by its margin; whether old multipliers fit."""
    g, started, warm = Tables(z.H, z.S, z.A, s.kernel), s.account[STARTED], s.account[HINGES] == z.I
    for i in range(z.I):
        lift = 0.0
        if started and d.z > 0.0:
            # The policy in the state is still that of the last plan.
            errors = Errors(s.own, s.common), Errors(own[i], common[i])
            z_now = errors_now(d, z, s)
            lift = lift_of_estimate(g, (s.plan, s.policy), s.cost[i], noise[i], errors, z_now, s.account[SHARE])
        for e in range(s.plan.size):
            s.tables[i, e] = s.cost[i, e] + lift
        s.hinge_weights[i] = s.weights[i]
    s.account[HINGES] = z.I
    return warm


@rule
def write_revealed_hinges(
    d: Dials, z: Sizes, s: Parts, useless: bool, chosen: Floats, tables: Floats, weights: Floats
) -> bool:
    """One hinge per remembered table, raised by its margin; whether old multipliers fit.

    `chosen` is the policy of the plan whose cost is asked about.
    """
    g, started, before, n = Tables(z.H, z.S, z.A, s.kernel), s.account[STARTED], s.account[HINGES], 0
    for i in range(z.I):
        for j in range(i * z.C, i * z.C + int(s.tally[i, KEPT])):
            lift = 0.0
            if started and d.z > 0.0 and not useless:
                variance = cost_variance(g, s.plan, chosen, s.kept[j], Errors(s.own, s.common))
                lift = margin(errors_now(d, z, s), s.account[SHARE], variance, z.H, True)
            for e in range(s.plan.size):
                tables[n, e] = s.kept[j, e] + lift
            weights[n] = s.weights[i]
            n += 1
    s.account[HINGES] = n
    return n == before and n > 0


@glue
def has_overflowed(d: Dials, s: Parts) -> bool:
    """Whether more tables of some constraint came than are remembered."""
    found = False
    for i in range(s.V.size):
        found = found or overflowed(d.capacity, s.tally[i, LABELS])
    return found


@rule
def novelty_with(s: Parts, tables: Floats) -> float:
    """How far revealed tables have been from the remembered ones, with these; the memory is the one before them."""
    found, most = False, 0.0
    for i in range(s.V.size):
        if s.tally[i, KEPT] > 0.0:
            kept = kept_of(s, i)
            found, most = True, max(most, distance(kept.tables, int(s.tally[i, KEPT]), tables[i]))
    return novelty_after(s.account[NOVELTY], most) if found else s.account[NOVELTY]
