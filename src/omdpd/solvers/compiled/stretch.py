"""Many episodes of the standard learner in one call: played, judged, learnt from and planned, one after another.

`omdpd.play.loop` plays an episode by the learner's three verbs, and `ProximalOMDPD.update` says what a learner makes of
it; here are the same sums in the same order, for the usual case alone: beliefs in tables, weights that lag, no table
that was not met before, so that nothing surprises the learner.  Tests hold the two to each other, bit for bit.

The long passes (evidence, beliefs, the mirror step) are handed in as functions: they are called where they lie, so that
their bits are those of an episode by itself, and not compiled once more into this one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.counting import add_episode
from omdpd.solvers.compiled.entries import copy_vector, index_of_largest
from omdpd.solvers.compiled.episode import are_laws, at_least, inside, play_judge
from omdpd.solvers.compiled.flow import occupancy_of_policy, policy_of_occupancy
from omdpd.solvers.compiled.kernel_step.solve import FAILED
from omdpd.solvers.compiled.options import ENTRY, INNER
from omdpd.solvers.compiled.pointers import borrow, outlive
from omdpd.solvers.compiled.products import add_violation, costliest, dot, largest_dot
from omdpd.solvers.compiled.sharing import kernel_drift
from omdpd.solvers.compiled.standard import lift_tables
from omdpd.solvers.compiled.stretch_records import Account, Columns, Dials, Past, Plans, Truth


@njit(**{**ENTRY, "no_cfunc_wrapper": True})
def play_stretch(
    truth: Truth,
    dials: Dials,
    past: Past,
    plans: Plans,
    account: Account,
    columns: Columns,
    add_evidence: Any,
    standard_beliefs: Any,
    solve_step: Any,
) -> Account:
    """Play the episodes of `truth.choices`, or as many of them as are the usual case; the account after them.

    Less than no episode was played if there was not enough memory: nothing that was written is of use then.
    """
    truth, past, plans, columns = borrow(truth), borrow(past), borrow(plans), borrow(columns)
    H, S, A = plans.q.shape
    n, m, B = len(plans.V), len(plans.weights), len(truth.choices)
    bandit, eta = dials.bandit, dials.eta
    n_costs = n if bandit else 0
    walk, room = (np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H), np.empty((n, H)), np.empty((0, H))), (
        np.empty((H, S, A)), np.empty((H, S, A)), np.empty((H, S, A)), np.empty((H, S)), np.empty(n), np.empty(m)
    )  # fmt: skip
    others = plans.q.copy(), plans.kernel.copy(), plans.tables.copy(), plans.start.copy()
    states, actions, rewards, costs, no_costs = borrow(walk)
    own, common, loss, values, V_before, prices = borrow(room)
    q_new, kernel_new, tables_new, xi_new = borrow(others)
    # What is written next and what was written last change places after every episode.
    q, kernel, tables, xi = plans.q, plans.kernel, plans.tables, plans.multipliers
    share, novelty, reward_sum = account.share, account.novelty, account.reward_sum
    inexactness, drift, ignored = account.inexactness, account.drift, account.ignored
    planned, capped, saturations = account.planned_violation, account.capped, account.saturations
    solves, failures, iterations = account.solves, account.failures, account.iterations
    max_gap, max_residual = account.max_gap, account.max_residual
    played = 0
    while played < B and share >= 0.0:
        b, which = played, truth.choices[played]
        policy = policy_of_occupancy(q)
        if not are_laws(policy, dials.lawful):
            break
        occupancy = occupancy_of_policy(policy, truth.transition, truth.initial)
        if which < 0:
            which = costliest(truth.tables, occupancy)
            if not truth.novel[which] >= 0.0:
                break
            truth.choices[played] = which
        columns.value[b] = play_judge(
            policy, occupancy, truth.transition, truth.initial, truth.reward, truth.tables[which], truth.uniforms[b],
            truth.drawn_rewards, truth.drawn_costs, states, actions, rewards, costs, columns.excess[b],
        )  # fmt: skip
        add_judgement(columns, b, occupancy)
        # The plan's room, and how new the table is (`Caution`).
        exceeded = largest_dot(tables, q) > dials.exceeded * H
        share = next_share(share, exceeded, not bandit, dials)
        if not bandit:
            novelty = (1.0 - dials.forget) * novelty + dials.forget * truth.novel[which]
        # Steps 3 and 4.  With lagged weights and no new table f_k = m_k, and steps 5 and 6 change nothing.
        copy_vector(plans.V, V_before)
        observed = plans.cost if bandit else truth.tables[which]
        added, left_out = add_violation(plans.V, observed, q, dials.noise, H)
        ignored += left_out
        reward_sum += dot(plans.reward, q)
        planned += largest_growth(V_before, plans.V, added)
        saturations += saturated(plans.V, dials.kink)
        # Step 1 for the next episode.
        seen = costs if bandit else no_costs
        whole = add_evidence(
            past.reward_squares, past.cost_squares, past.kernel_score, past.reward_score, past.cost_score,
            past.visits, past.transitions, past.reward_sum, past.cost_sum, states, actions, rewards, seen,
        )  # fmt: skip
        add_episode(past.visits, past.transitions, past.reward_sum, past.cost_sum, states, actions, rewards, seen)
        write_prices(xi, eta, plans.kept, q, dials, prices)
        lifted = tables_new if bandit else plans.lifted
        whole &= standard_beliefs(
            past.visits, past.transitions, past.reward_sum, past.cost_sum, past.reward_squares, past.cost_squares,
            past.kernel_score, past.reward_score, past.cost_score, dials.stationary, bandit, prices, tables, q,
            dials.exploration, dials.z * share / H, plans.reward, lifted, plans.cost, kernel_new, own, common,
        )  # fmt: skip
        # Step 2.
        if added != 0.0:
            capped = write_weights(plans.V, dials, plans.each) or capped
            for j in range(m):
                plans.weights[j] = plans.each[j] if bandit else plans.each[plans.owner[j]]
        if not bandit:
            futile = account.overflowed and novelty > dials.most_novel
            factor = dials.revealed_z * share / H
            if dials.z == 0.0 or futile:
                copy_table(plans.kept, tables_new)
            else:
                lift_tables(plans.kept, q, kernel_new, own, common, factor, tables_new)
        for h in range(H):
            for s in range(S):
                for a in range(A):
                    loss[h, s, a] = -plans.reward[h, s, a]
        shortened = 1.0
        while True:
            gap, scale, steps, status, residual = solve_step(
                q, loss, eta / shortened, kernel_new, plans.mu, tables_new, plans.weights, False,
                dials.tolerance, True, xi, q_new, values, xi_new,
            )  # fmt: skip
            if status != FAILED or shortened >= dials.shortest:
                break
            shortened *= dials.shorter
        if not (whole and scale > 0.0):  # a function that is handed in ends without a result where memory does
            played = -1
            break
        if shortened != 1.0:
            for j in range(m):
                xi_new[j] *= shortened
        solves, failures, iterations = solves + 1, failures + (status == FAILED), iterations + steps
        max_gap, max_residual = max(max_gap, gap / scale), max(max_residual, residual)
        inexactness += (gap + 2.0 * math.sqrt(H * gap)) / (eta / shortened)
        drift += (kernel_drift(kernel_new, kernel) + (shortened - 1.0) * H) / eta
        q, q_new, kernel, kernel_new = q_new, q, kernel_new, kernel
        tables, tables_new, xi, xi_new = tables_new, tables, xi_new, xi
        # What the row says of the state.
        columns.weight[b] = plans.each[index_of_largest(plans.each)]
        columns.planned_value[b], columns.planned_violation[b] = reward_sum, planned
        write_certificate(columns, b, dials.first_bound + inexactness + drift, reward_sum, plans.V, capped, dials)
        columns.optimism[b] = (
            inside(kernel, kernel, truth.transition)
            and at_least(plans.reward, truth.reward)
            and at_least(truth.seen_cost, tables[:n_costs])
        )
        played += 1
    if played > 0:
        # What was written last may lie in the other arrays; what it replaces is the plan before.
        keep_last(q, q_new, plans.q, plans.q_hat)
        keep_last(xi, xi_new, plans.multipliers, plans.start)
        if played % 2 == 1:
            copy_table(kernel, plans.kernel)
            copy_table(tables, plans.tables)
        if bandit:
            copy_table(plans.tables, plans.lifted)
    outlive(walk, room, others)
    return Account(
        played, share, novelty, account.overflowed, reward_sum, inexactness, drift, ignored, planned, capped,
        saturations, solves, failures, iterations, max_gap, max_residual,
    )  # fmt: skip


@njit(**INNER)
def add_judgement(columns: Columns, b: int, occupancy: Floats) -> None:
    """The sums of a run with episode b: its value, max_i [excess_i]^+, its excess costs and its occupancy."""
    H, S, A = occupancy.shape
    worst = 0.0
    for i in range(columns.excess.shape[1]):
        worst = max(worst, columns.excess[b, i])
        columns.excess_sum[i] += columns.excess[b, i]
    columns.value_sum[b + 1] = columns.value_sum[b] + columns.value[b]
    columns.violation_sum[b + 1] = columns.violation_sum[b] + worst
    for h in range(H):
        for s in range(S):
            for a in range(A):
                columns.occupancy_sum[h, s, a] += occupancy[h, s, a]


@njit(**INNER)
def keep_last(last: Floats, before: Floats, target: Floats, target_before: Floats) -> None:
    """Put two arrays, one of which may be `target`, into `target` and `target_before`."""
    x, y, to, to_before = last.ravel(), before.ravel(), target.ravel(), target_before.ravel()
    for i in range(x.size):
        to_before[i], to[i] = y[i], x[i]


@njit(**INNER)
def copy_table(source: Floats, target: Floats) -> None:
    """target := source, whatever their number of axes."""
    x, y = source.ravel(), target.ravel()
    for i in range(x.size):
        y[i] = x[i]


@njit(**INNER)
def next_share(share: float, exceeded: bool, revealed: bool, dials: Dials) -> float:
    """The share of the margin after a plan: less where a lifted row was exceeded, else more, up to all of it."""
    if exceeded:
        if share > dials.least or not revealed:
            return max(dials.fall * share, dials.least)
        return max(share - dials.descent, dials.lowest)
    if share < dials.least:
        return share + dials.descent / 2.0
    return min(dials.growth * share, 1.0)


@njit(**INNER)
def largest_growth(before: Floats, after: Floats, added: float) -> float:
    """max_i of what V_i grew by, where all of them grew by `added` together."""
    if added == 0.0 or len(after) == 1:
        return added
    most = -np.inf
    for i in range(len(after)):
        most = max(most, after[i] - before[i])
    return most


@njit(**INNER)
def saturated(V: Floats, kink: float) -> int:
    """1 if some slope of the potential sits at its cap, else 0."""
    for i in range(len(V)):
        if V[i] >= kink:
            return 1
    return 0


@njit(**INNER)
def write_prices(xi: Floats, eta: float, kept: Floats, q: Floats, dials: Dials, prices: Floats) -> None:
    """What the plan q would pay for a little more of each cost: at most w0 in all if it meets every table as it is."""
    total = 0.0
    for j in range(len(prices)):
        prices[j] = xi[j] / eta
        total += prices[j]
    if dials.bandit or not total > dials.w0 or largest_dot(kept, q) > dials.exceeded * q.shape[0]:
        return
    for j in range(len(prices)):
        prices[j] = prices[j] * (dials.w0 / total)


@njit(**INNER)
def write_weights(V: Floats, dials: Dials, weights: Floats) -> bool:
    """Phi'(V_i) as far as a step takes it; whether that is less for some i."""
    cut = False
    for i in range(len(V)):
        wanted = min(dials.w0 * math.exp(dials.beta * min(V[i], dials.kink)), dials.w_max)
        weights[i] = min(wanted, dials.heaviest / dials.eta)
        cut = cut or weights[i] != wanted
    return cut


@njit(**INNER)
def write_certificate(
    columns: Columns, b: int, bound: float, reward_sum: float, V: Floats, capped: bool, dials: Dials
) -> None:
    """What the bound says of regret and violation; not a number once a weight was cut."""
    if capped:
        columns.regret[b], columns.violation[b] = np.nan, np.nan
        return
    total = 0.0
    for i in range(len(V)):
        total += potential(V[i], dials)
    columns.regret[b] = bound - total / dials.slack
    y, at_kink = dials.slack * (bound + reward_sum), potential(dials.kink, dials)
    if y > at_kink:
        columns.violation[b] = dials.kink + (y - at_kink) / dials.w_max
    else:
        columns.violation[b] = math.log1p(max(y, 0.0) * dials.beta / dials.w0) / dials.beta


@njit(**INNER)
def potential(x: float, dials: Dials) -> float:
    """Phi(x), linear beyond its kink."""
    inner = min(x, dials.kink)
    return (dials.w0 / dials.beta) * math.expm1(dials.beta * inner) + dials.w_max * (x - inner)
