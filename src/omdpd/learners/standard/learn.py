"""One episode of the standard learner: steps 1 to 6 of the docstring of `learners.proximal`, in compiled code.

    look_back    3  a revealed table is put into the memory
                 4  V_i += [d_i.q]^+
                 5  q_hat = argmin of the surrogate f that was met, and 6  a smaller eta where f was a surprise
                    counts and evidence of the episode
    plan_ahead   1  beliefs: r~ with its bonus, d with its margin, p~
                 2  q = argmin of the surrogate m that is predicted; its policy is played next

Compiled or not, this is the learner: the verbs, the loop that plays many episodes, and the tests call `learn`.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs import rules
from omdpd.beliefs.evidence import add_episode
from omdpd.beliefs.memory import KEPT, meet
from omdpd.beliefs.pooling import share_kernel
from omdpd.beliefs.rows import table_drift
from omdpd.jit.decorators import entry, glue, rule
from omdpd.jit.pointers import borrow, outlive
from omdpd.learners.standard.believing import (
    Dials,
    believe,
    dials_of,
    has_overflowed,
    is_futile,
    novelty_after,
    potential_before,
    write_prices,
    write_revealed_hinges,
    write_weights,
)
from omdpd.learners.standard.state import (
    BOUND,
    CAPPED,
    DRIFT,
    ETA,
    FAILURES,
    HINGES,
    IGNORED,
    INEXACTNESS,
    ITERATIONS,
    MAX_GAP,
    MAX_RESIDUAL,
    NOVELTY,
    PLANNED,
    REGRET,
    REWARD_SUM,
    SATURATIONS,
    SHARE,
    SOLVES,
    STARTED,
    VIOLATION,
    WEIGHT,
    K,
    Parts,
    Sizes,
    kept_of,
    parts_of,
    past_of,
)
from omdpd.learners.standard.weights import (
    SHORTER,
    SHORTEST,
    Slope,
    add_violation,
    certified,
    forgiven,
    inexactness,
    potential_at,
    slack,
    slower,
    surprise_of,
    surrogate_bound,
)
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.entries import copy_vector
from omdpd.solvers.compiled.flow import write_policy
from omdpd.solvers.compiled.kernel_step.solve import STEP_TOLERANCE, solve_step
from omdpd.solvers.compiled.newton.certificate import FAILED
from omdpd.solvers.compiled.products import dot, half_square, largest, largest_dot

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
        look_back(d, z, s, states, actions, rewards, costs, tables, prices)
    plan_ahead(d, z, s, prices)
    outlive(vector)
    return DONE


@entry
def describe(given: Floats, at: Integers, vector: Floats) -> None:
    """Write what follows from the rest of a state: policy, kernel with its error, largest weight, bound."""
    d, z, s = dials_of(given), Sizes(at[0], at[1], at[2], at[3], at[4]), parts_of(vector, at)
    share_kernel(
        s.transitions, s.visits, z.S * z.A, rules.best_weight(s.kernel_score, d.stationary), s.kernel, s.own, s.common
    )
    s.account[WEIGHT] = largest(s.weights)
    certify(d, z, s, potential_before(d, z, s.account[K] + 1.0))
    write_policy(s.q.reshape((z.H, z.S, z.A)), s.policy)


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
        write_weights(s, potential_before(d, z, s.account[K] + 1.0))
    if d.bandit:
        copy_vector(s.weights, s.hinge_weights)
    else:
        chosen = np.empty(s.q.size)
        write_policy(s.plan.reshape((z.H, z.S, z.A)), chosen)
        futile = rules.is_futile(overflowed, s.account[NOVELTY])
        write_revealed_hinges(d, z, s, futile, chosen, s.tables, s.hinge_weights)
    return int(s.account[HINGES])


@glue
def look_back(
    d: Dials, z: Sizes, s: Parts, states: Integers, actions: Integers, rewards: Floats, costs: Floats,
    tables: Floats, prices: Floats,
) -> None:  # fmt: skip
    """Steps 3 to 6: what the episode says of the plan, of the tables and of the step size; then counts and evidence."""
    a, n = s.account, int(s.account[HINGES])
    write_prices(d, z, s, prices)
    futile, novelty, changed = is_futile(d, s), a[NOVELTY], False
    share = rules.margin_share(a[SHARE], rules.is_exceeded(largest_dot(s.tables[:n], s.q), z.H), not d.bandit)
    if not d.bandit:  # step 3
        novelty = novelty_after(s, tables)
        for i in range(z.I):
            changed = meet(kept_of(s, i), tables[i], d.capacity) or changed
    a[K] += 1.0
    before = s.V.copy()
    worst, ignored = add_violation(s.V, s.cost if d.bandit else tables, s.q, z.H)  # step 4
    a[PLANNED], a[IGNORED], a[REWARD_SUM] = a[PLANNED] + worst, a[IGNORED] + ignored, a[REWARD_SUM] + dot(s.reward, s.q)
    phi = potential_before(d, z, a[K])
    if not d.lagged:
        changed = write_weights(s, phi) or changed
    if changed:  # steps 5 and 6
        be_surprised(d, z, s, futile, before)
    else:
        a[DRIFT] += forgiven(a[SHARE], owed(s, before), penalty(s.tables, s.hinge_weights, n, s.q))
        copy_vector(s.q, s.q_hat)
        copy_vector(s.multipliers, s.start)
    a[SATURATIONS] += reaches(s.V, phi.kink)
    a[STARTED], a[SHARE], a[NOVELTY] = 1.0, share, novelty
    copy_vector(s.q, s.plan)
    add_episode(past_of(s), z.S, z.A, states, actions, rewards, costs)


@glue
def plan_ahead(d: Dials, z: Sizes, s: Parts, prices: Floats) -> None:
    """Steps 1 and 2: the next beliefs, and the plan that is best under them near q_hat."""
    a, eta = s.account, s.account[ETA]
    before = s.kernel.copy()
    warm = believe(d, z, s, prices)
    shortened = 1.0
    while True:
        gap, scale, steps, status, residual = mirror_step(z, s, eta / shortened, warm, s.tables, s.hinge_weights, s.q)
        if status != FAILED or shortened >= SHORTEST:
            break
        # Prices in the thousands make a surrogate of that size: the step is then a linear program in all but name, at
        # whose degenerate vertices an interior-point method may come to a halt; a shorter step is a step too.
        shortened *= SHORTER
    for j in range(int(a[HINGES])):
        s.multipliers[j] *= shortened
    log_step(a, gap, scale, steps, status, residual)
    a[INEXACTNESS] += inexactness(gap, z.H, eta / shortened)
    # A step of length eta/c satisfies its inequality with c/eta, of which only 1/eta telescopes.
    moved = table_drift(s.kernel, before, z.H) if a[STARTED] else 0.0
    a[DRIFT] += (moved + (shortened - 1.0) * z.H) / eta
    certify(d, z, s, potential_before(d, z, a[K] + 1.0))
    write_policy(s.q.reshape((z.H, z.S, z.A)), s.policy)


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
def be_surprised(d: Dials, z: Sizes, s: Parts, futile: bool, before: Floats) -> None:
    """Steps 5 and 6: q_hat from the surrogate f that was met, and a smaller step where f was not the prediction m.

    With patience a surprise slows the steps only after more tables were revealed than are remembered: a finite pool
    surprises a finite number of times.
    """
    a, eta, m = s.account, s.account[ETA], int(s.account[HINGES])
    tables, weights, q_hat = np.empty(s.tables.shape), np.empty(s.hinge_weights.size), np.empty(s.q.size)
    copy_vector(s.multipliers, s.start)
    if d.bandit:  # only the weights are others
        warm, tables = True, s.tables.copy()
        copy_vector(s.weights, weights)
    else:
        chosen = np.empty(s.q.size)
        write_policy(s.plan.reshape((z.H, z.S, z.A)), chosen)
        warm = write_revealed_hinges(d, z, s, futile, chosen, tables, weights)
    gap, scale, steps, status, residual = mirror_step(z, s, eta, warm, tables, weights, q_hat)
    n = int(a[HINGES])
    at_plan = penalty(tables, weights, n, s.q) - penalty(s.tables, s.hinge_weights, m, s.q)
    at_best = penalty(tables, weights, n, q_hat) - penalty(s.tables, s.hinge_weights, m, q_hat)
    moved = half_square(q_hat, s.q) + half_square(s.q, s.q_hat)
    surprise = surprise_of(at_plan, at_best, moved, eta)
    charged = not d.patient or has_overflowed(d, s)
    a[DRIFT] += forgiven(a[SHARE], owed(s, before), penalty(tables, weights, n, s.q)) + (0.0 if charged else surprise)
    a[INEXACTNESS] += inexactness(gap, z.H, eta)
    a[ETA] = slower(eta, surprise if charged else 0.0, z.H, d.c_prime)
    log_step(a, gap, scale, steps, status, residual)
    copy_vector(q_hat, s.q_hat)
    copy_vector(s.multipliers, s.start)


@glue
def has_room(d: Dials, z: Sizes, s: Parts) -> bool:
    """Whether one more table of every constraint can be kept, or need not be."""
    room = True
    for i in range(z.I):
        room = room and (s.tally[i, KEPT] < z.C or 0.0 <= d.capacity <= z.C)
    return room


@glue
def owed(s: Parts, before: Floats) -> float:
    """sum_i w_i x_i, where V grew by x."""
    total = 0.0
    for i in range(s.V.size):
        total += s.weights[i] * (s.V[i] - before[i])
    return total


@glue
def certify(d: Dials, z: Sizes, s: Parts, phi: Slope) -> None:
    """What the run-time bound says of regret and violation; not a number once a weight was cut."""
    a, total = s.account, 0.0
    for i in range(s.V.size):
        total += potential_at(phi, s.V[i])
    a[BOUND], a[REGRET], a[VIOLATION] = np.nan, np.nan, np.nan
    if not a[CAPPED]:
        a[BOUND] = surrogate_bound(z.H, d.c_prime, a[ETA], a[INEXACTNESS], a[DRIFT])
        a[REGRET], a[VIOLATION] = certified(phi, slack(phi, z.H, d.lagged), a[BOUND], total, a[REWARD_SUM])


@glue
def log_step(a: Floats, gap: float, scale: float, steps: int, status: int, residual: float) -> None:
    """Solves so far, and the worst of them."""
    a[SOLVES] += 1.0
    a[FAILURES] += 1.0 if status == FAILED else 0.0
    a[ITERATIONS] += steps
    a[MAX_GAP], a[MAX_RESIDUAL] = max(a[MAX_GAP], gap / scale), max(a[MAX_RESIDUAL], residual)


@rule
def penalty(tables: Floats, weights: Floats, n: int, q: Floats) -> float:
    """sum_j w_j [d_j.q]^+ over the first n tables."""
    total = 0.0
    for j in range(n):
        total += weights[j] * max(dot(tables[j], q), 0.0)
    return total


@glue
def reaches(V: Floats, kink: float) -> float:
    """1 if some slope of the potential sits at its cap, else 0."""
    for i in range(V.size):
        if V[i] >= kink:
            return 1.0
    return 0.0
