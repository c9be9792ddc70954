"""Linear programs by SciPy in formulations of their own: the independent reference for `omdpd.solvers.programs`."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def dual_value(transition, initial, reward, tables):
    """min over V and prices >= 0 of mu.V_0 with V_h(s) >= (r - prices.d)_h(s,a) + p.V_{h+1}: (value, prices).

    The value function form, where the library maximises over occupancies.  Unbounded below means that no policy
    satisfies the tables: then (None, None).
    """
    found, _ = _value_form(transition, initial, reward, tables)
    if found.status == 3:
        return None, None
    assert found.status == 0, found.message
    return float(found.fun), found.x[len(found.x) - len(tables) :]


def price_ends(transition, initial, reward, table):
    """(least, largest) price of one table among the optimal ones of `dual_value`; infinite if there is no largest."""
    best, program = _value_form(transition, initial, reward, table[None])
    assert best.status == 0, best.message
    price = np.zeros(len(best.x))
    price[-1] = 1.0
    optimal = np.vstack([program.pop("A_ub"), program.pop("c")])
    below = np.r_[program.pop("b_ub"), best.fun + 1e-10 * max(1.0, abs(best.fun))]
    ends = [linprog(sign * price, A_ub=optimal, b_ub=below, **program) for sign in (1.0, -1.0)]
    assert ends[0].status == 0, ends[0].message
    assert ends[1].status in (0, 3), ends[1].message
    return float(ends[0].fun), float(-ends[1].fun) if ends[1].status == 0 else np.inf


def _value_form(transition, initial, reward, tables):
    """The answer of SciPy, and what it was asked."""
    H, S, A = reward.shape
    n = len(tables)
    values = np.zeros((H, S, A, H, S))
    for h in range(H):
        values[h, np.arange(S), :, h, np.arange(S)] = -1.0
        if h + 1 < H:
            values[h, :, :, h + 1] += transition[h]
    program = {
        "c": np.r_[initial, np.zeros((H - 1) * S + n)],
        "A_ub": np.c_[values.reshape(H * S * A, H * S), -tables.reshape(n, H * S * A).T], "b_ub": -reward.ravel(),
        "bounds": [(None, None)] * (H * S) + [(0.0, None)] * n, "method": "highs",
        "options": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    }  # fmt: skip
    return linprog(**program), program


def least_worst_excess(transition, initial, tables):
    """min over policies of the largest [d_j.q]^+, by its dual: max mu.V_0 over prices >= 0 that sum to at most one."""
    H, S, A = tables.shape[1:]
    n = len(tables)
    rows, bounds = [], []
    for h in range(H):
        for s in range(S):
            for a in range(A):
                row = np.zeros((H, S))
                row[h, s] = 1.0
                if h + 1 < H:
                    row[h + 1] -= transition[h, s, a]
                rows.append(np.r_[row.ravel(), -tables[:, h, s, a]])
                bounds.append(0.0)
    rows.append(np.r_[np.zeros(H * S), np.ones(n)])
    bounds.append(1.0)
    cost = np.zeros(H * S + n)
    cost[:S] = -initial
    limits = [(None, None)] * (H * S) + [(0.0, None)] * n
    answer = linprog(cost, A_ub=np.array(rows), b_ub=np.array(bounds), bounds=limits, method="highs")
    assert answer.status == 0, answer.message
    return float(-answer.fun)


def least_total(transition, initial, tables):
    """min over occupancies of sum_k max_i [d_ki.q]^+ for the tables (K, I, H, S, A) of K episodes, one by one."""
    K, per_episode, H, S, A = tables.shape
    n = H * S * A
    flow = np.zeros((H, S, n + K))
    for h in range(H):
        for s in range(S):
            start = (h * S + s) * A
            flow[h, s, start : start + A] = 1.0
            if h > 0:
                flow[h, s, (h - 1) * S * A : h * S * A] -= transition[h - 1, :, :, s].ravel()
    paid = -np.repeat(np.eye(K), per_episode, axis=0)
    answer = linprog(
        np.r_[np.zeros(n), np.ones(K)], A_ub=np.c_[tables.reshape(-1, n), paid], b_ub=np.zeros(K * per_episode),
        A_eq=flow.reshape(H * S, n + K), b_eq=np.r_[initial, np.zeros((H - 1) * S)], method="highs",
    )  # fmt: skip
    assert answer.status == 0, answer.message
    return float(answer.fun)


def extended_value(box, initial, reward, tables, worst=False):
    """The best value over policies and kernels of a box, with joint variables x_h(s,a,t) alone: (value, occupancy).

    With `worst` the largest excess [d_j.q]^+ is minimised instead.  (None, None) if the tables cannot hold.
    """
    H, S, A = reward.shape
    n = H * S * A * S

    def place(h, s, a, t):
        return ((h * S + s) * A + a) * S + t

    equal, right, less = [], [], []
    for h in range(H):
        for s in range(S):
            row = np.zeros(n + 1)
            for a in range(A):
                row[place(h, s, a, 0) : place(h, s, a, 0) + S] += 1.0
            if h > 0:
                row[[place(h - 1, x, a, s) for x in range(S) for a in range(A)]] -= 1.0
            equal.append(row)
            right.append(initial[s] if h == 0 else 0.0)
            for a in range(A):
                for t in range(S):
                    for sign, bound in ((1.0, box.upper), (-1.0, box.lower)):
                        row = np.zeros(n + 1)
                        row[place(h, s, a, 0) : place(h, s, a, 0) + S] = -sign * bound[h, s, a, t]
                        row[place(h, s, a, t)] += sign
                        less.append(row)
    for table in tables:
        less.append(np.r_[np.repeat(table.ravel(), S), -1.0 if worst else 0.0])
    cost = np.r_[np.zeros(n), 1.0] if worst else np.r_[-np.repeat(reward.ravel(), S), 0.0]
    answer = linprog(
        cost, A_ub=np.array(less), b_ub=np.zeros(len(less)), A_eq=np.array(equal), b_eq=right, method="highs"
    )
    if answer.status == 2:
        return None, None
    assert answer.status == 0, answer.message
    return float(answer.fun if worst else -answer.fun), answer.x[:n].reshape(H, S, A, S).sum(axis=-1)


def pinned(policy):
    """q_h(s, .) proportional to the policy, as tables with a hair of room for rounding."""
    rows = []
    for h, s, a in np.ndindex(policy.shape):
        row = np.zeros(policy.shape)
        row[h, s] = -policy[h, s, a]
        row[h, s, a] += 1.0
        rows += [row - 1e-9 / len(policy), -row - 1e-9 / len(policy)]
    return np.array(rows)
