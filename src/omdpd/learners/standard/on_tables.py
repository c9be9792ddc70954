"""What the six steps ask of beliefs that are tables: flows, remembered tables, hinges, counts, and the mirror step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.beliefs.drift import table_drift
from omdpd.beliefs.evidence import add_episode
from omdpd.beliefs.memory import KEPT, meet
from omdpd.beliefs.rows import Charged, Tables
from omdpd.beliefs.rules import is_exceeded
from omdpd.beliefs.stakes import loss_at_most
from omdpd.jit.decorators import glue, rule
from omdpd.learners.standard.believing import Dials, own_of, write_revealed_hinges
from omdpd.learners.standard.state import ETA, HINGES, Parts, Sizes, kept_of
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.entries import copy_vector
from omdpd.solvers.compiled.flow import write_policy
from omdpd.solvers.compiled.kernel_step.solve import STEP_TOLERANCE, solve_step
from omdpd.solvers.compiled.products import half_square, largest_dot


class Met(NamedTuple):
    """What an episode met: states, actions, rewards (H,), and costs (I, H), none where tables are revealed."""

    states: Integers
    actions: Integers
    rewards: Floats
    costs: Floats


@glue
def flow_of(s: Parts, q: Floats) -> Floats:
    """What inner products with tables are taken of: q itself."""
    return q


@rule
def meets_tables(z: Sizes, s: Parts, x: Floats) -> bool:
    """Whether a plan meets every remembered table as it is."""
    meets = True
    for i in range(z.I):
        kept = kept_of(s, i)
        meets = meets and not is_exceeded(largest_dot(kept.tables[: int(s.tally[i, KEPT])], x), z.H)
    return meets


@glue
def remember(d: Dials, z: Sizes, s: Parts, tables: Floats) -> bool:
    """Put revealed tables into the memory; whether other tables are kept now."""
    changed = False
    for i in range(z.I):
        changed = meet(kept_of(s, i), tables[i], d.capacity) or changed
    return changed


@glue
def hinges_met(d: Dials, z: Sizes, s: Parts, useless: bool) -> tuple[Floats, Floats, bool]:
    """The hinges of the surrogate that was met: tables, weights, and whether old multipliers fit."""
    tables, weights = np.empty(s.tables.shape), np.empty(s.hinge_weights.size)
    if d.bandit:  # only the weights are others
        warm, tables = True, s.tables.copy()
        copy_vector(s.weights, weights)
    else:
        chosen = np.empty(s.q.size)
        write_policy(s.plan.reshape((z.H, z.S, z.A)), chosen)
        warm = write_revealed_hinges(d, z, s, useless, chosen, tables, weights)
    return tables, weights, warm


@glue
def distance_of(s: Parts, q: Floats, q_other: Floats) -> float:
    """D(q, q')."""
    return half_square(q, q_other)


@glue
def mirror_step(
    z: Sizes, s: Parts, eta: float, warm: bool, tables: Floats, weights: Floats, q: Floats
) -> tuple[float, float, int, int, float]:
    """argmin eta (-r~.q + sum_j w_j [d_j.q]^+) + D(q, q_hat) over the believed kernel; multipliers are written."""
    H, S, A, n = z.H, z.S, z.A, int(s.account[HINGES])
    loss, values = np.empty((H, S, A)), np.empty((H, S))
    flat_loss = loss.reshape(H * S * A)
    for e in range(s.reward.size):
        flat_loss[e] = -s.reward[e]
    return solve_step(
        s.q_hat.reshape((H, S, A)), loss, eta, s.kernel.reshape((H, S, A, S)), s.mu, tables[:n].reshape((n, H, S, A)),
        weights[:n], STEP_TOLERANCE, warm, s.start[:n], q.reshape((H, S, A)), values, s.multipliers[:n],
    )  # fmt: skip


@glue
def count(z: Sizes, s: Parts, met: Met) -> None:
    """Add an episode to counts and evidence."""
    add_episode(s.past, z.S, z.A, met.states, met.actions, met.rewards, met.costs)


@glue
def law_of(s: Parts) -> Floats:
    """The believed kernel as it is now."""
    return s.kernel.copy()


@glue
def law_moved(z: Sizes, s: Parts, before: Floats) -> float:
    """A bound on how far, in L1, any policy's occupancy moved from an earlier kernel to the believed one."""
    return table_drift(s.kernel, before, z.H)


@glue
def choose(z: Sizes, s: Parts) -> None:
    """Write the policy of the plan."""
    write_policy(s.q.reshape((z.H, z.S, z.A)), s.policy)


@rule
def loss_of(d: Dials, z: Sizes, s: Parts) -> float:
    """What the policy in play can lose at most as the data see it, by the prices of its own step or by none."""
    n, at = int(s.account[HINGES]), 0
    tables, prices = np.empty((0 if d.bandit else n, s.past.visits.size)), s.multipliers[:n] / s.account[ETA]
    for i in range(0 if d.bandit else z.I):
        for j in range(i * z.C, i * z.C + int(s.tally[i, KEPT])):
            copy_vector(s.kept[j], tables[at])
            at += 1
    g, own = Tables(z.H, z.S, z.A, s.kernel), own_of(d, z, s)
    priced = loss_at_most(g, own, Charged(prices, tables), s.policy, s.mu)
    return min(priced, loss_at_most(g, own, Charged(0.0 * prices, tables), s.policy, s.mu))
