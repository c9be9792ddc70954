"""Linear and penalised programs over a confidence polytope by its vertices, which dynamic programming finds.

    maximise  reward.q   subject to   d_j.q <= 0,                     q in Q(box)         (`plan_by_vertices`)
    maximise  reward.q - 1/(2 eta) ( [ lam + eta d.q ]^+ )^2,         q in Q(box)         (`penalised_by_vertices`)

A vertex that maximises <table, q> is one optimistic backward pass.  So the first program is solved by the revised
simplex method on the handful of rows d_j alone, columns being vertices priced by dynamic programming; the second has a
concave dual in one variable, whose pieces are vertices.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import checked_entry, checked_inner
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.boxes import sort_descending, support

OPTIMAL, INFEASIBLE, GAVE_UP = 0, 1, 2
# Reduced costs below this (values are at most H in size) are rounding.
PRICED_OUT = 1e-11
# Steps of the ratio test that differ by less are ties.
TIE = 1e-13
# The smallest pivot; a worst excess below `NOTHING` after the first phase is neither zero nor positive for sure.
MIN_PIVOT = 1e-11
NOTHING = 1e-10
# What a basic column is: a vertex, the worst excess t of the first phase, or (from zero on) the slack of a row.
VERTEX, EXCESS = -2, -1


@checked_entry
def best_vertex(lower: Floats, upper: Floats, mu: Floats, table: Floats, q: Floats) -> float:
    """Write into `q` an occupancy of the box that maximises <table, q>; return the maximum."""
    H, S, A = table.shape
    V, W = np.zeros(S), np.zeros(S)
    choice = np.zeros((H, S), dtype=np.int64)
    rows = np.zeros((H, S, S))
    order = np.arange(S)
    for h in range(H - 1, -1, -1):
        sort_descending(V, order)
        for s in range(S):
            best = -np.inf
            for a in range(A):
                value = table[h, s, a]
                if h + 1 < H:
                    value += support(lower, upper, h, s, a, V, order)
                if value > best:
                    best = value
                    choice[h, s] = a
            W[s] = best
            if h + 1 < H:
                spread(lower, upper, h, s, choice[h, s], V, order, rows)
        for s in range(S):
            V[s] = W[s]
    value = 0.0
    mass = mu.copy()
    for s in range(S):
        value += mu[s] * V[s]
    for h in range(H):
        for s in range(S):
            W[s] = 0.0
        for s in range(S):
            for a in range(A):
                q[h, s, a] = 0.0
            q[h, s, choice[h, s]] = mass[s]
            for t in range(S):
                W[t] += mass[s] * rows[h, s, t]
        for s in range(S):
            mass[s] = W[s]
    return value


@checked_inner
def spread(lower, upper, h, s, a, V, order, rows):
    """Write into rows[h, s] a law that reaches `support`; states of equal V share in proportion to their room."""
    rest = 1.0
    for t in range(V.size):
        rows[h, s, t] = lower[h, s, a, t]
        rest -= lower[h, s, a, t]
    k = 0
    while rest > 0.0 and k < order.size:
        end, room = k, 0.0
        while end < order.size and V[order[end]] == V[order[k]]:
            room += upper[h, s, a, order[end]] - lower[h, s, a, order[end]]
            end += 1
        more = min(room, rest)
        for place in range(k, end):
            t = order[place]
            if room > 0.0:
                rows[h, s, t] += more * (upper[h, s, a, t] - lower[h, s, a, t]) / room
        rest -= more
        k = end


@checked_entry
def plan_by_vertices(
    lower: Floats, upper: Floats, mu: Floats, reward: Floats, tables: Floats, max_pivots: int
) -> tuple[Floats, Floats, int, int]:
    """Maximise reward.q over q in Q(box) with d_j.q <= 0, by at most `max_pivots` pivots of the revised simplex method.

    First phase: minimise t with d_j.q <= t, from the unconstrained optimum on.  Returns q, the prices of the tables
    (>= 0), a status and the number of pivots.  INFEASIBLE: q has the least worst excess and the prices are zero.
    GAVE_UP: too many pivots, or a worst excess too small to be told from zero.
    """
    H, S, A = reward.shape
    m = tables.shape[0]
    vertices = np.zeros((m + 1, H, S, A))
    gains, column, y, direction = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1)
    entering, priced = np.zeros((H, S, A)), np.zeros((H, S, A))
    best_vertex(lower, upper, mu, reward, entering)
    gain = fill_column(tables, reward, entering, column)
    first = 0
    for j in range(m):
        if column[j] > column[first]:
            first = j
    if m == 0 or column[first] <= 0.0:
        return entering, np.zeros(m), OPTIMAL, 0
    # From the slacks (and nothing in the row of sum theta = 1): the vertex enters there, then t in the row of `first`.
    kind, inverse, x = slack_basis(m)
    x[m] = 1.0
    kind[m], gains[m] = VERTEX, gain
    copy_table(entering, vertices[m])
    exchange(inverse, x, column, m, 1.0, -np.inf)
    for i in range(m):
        column[i] = -1.0
    column[m] = 0.0
    apply(inverse, column, direction)
    kind[first] = EXCESS
    exchange(inverse, x, direction, first, x[first] / direction[first], 0.0)
    # True; for a constant the compiler would make versions of what follows.
    phase_one = m > 0
    for pivot in range(max_pivots):
        prices_of(inverse, kind, gains, phase_one, y)
        entered = price_out(lower, upper, mu, reward, tables, y, kind, phase_one, entering, priced)
        if entered == EXCESS:
            return finished(vertices, kind, x, y, phase_one, m, pivot)
        if entered == VERTEX:
            gain = fill_column(tables, reward, entering, column)
        else:
            gain = 0.0
            for i in range(m + 1):
                column[i] = 1.0 if i == entered else 0.0
        apply(inverse, column, direction)
        leaving = ratio_test(x, direction, kind)
        if leaving < 0:
            break
        if kind[leaving] == EXCESS:
            phase_one = False
        kind[leaving], gains[leaving] = entered, gain
        if entered == VERTEX:
            copy_table(entering, vertices[leaving])
        exchange(inverse, x, direction, leaving, max(x[leaving], 0.0) / direction[leaving], 0.0)
    return vertices[m], np.zeros(m), GAVE_UP, max_pivots


@checked_inner
def dot(table, q):
    """<table, q>."""
    total = 0.0
    for h in range(q.shape[0]):
        for s in range(q.shape[1]):
            for a in range(q.shape[2]):
                total += table[h, s, a] * q[h, s, a]
    return total


@checked_inner
def copy_table(source, target):
    """target = source."""
    for h in range(source.shape[0]):
        for s in range(source.shape[1]):
            for a in range(source.shape[2]):
                target[h, s, a] = source[h, s, a]


@checked_inner
def add_table(scale, source, target):
    """target += scale * source."""
    for h in range(source.shape[0]):
        for s in range(source.shape[1]):
            for a in range(source.shape[2]):
                target[h, s, a] += scale * source[h, s, a]


@checked_inner
def fill_column(tables, reward, q, column):
    """column = (d_j.q, 1); returns reward.q."""
    m = tables.shape[0]
    for j in range(m):
        column[j] = dot(tables[j], q)
    column[m] = 1.0
    return dot(reward, q)


@checked_inner
def slack_basis(m):
    """The basis of slacks alone: what every row's column is, its inverse, and the point, all zero."""
    kind, inverse = np.empty(m + 1, np.int64), np.zeros((m + 1, m + 1))
    for i in range(m + 1):
        kind[i], inverse[i, i] = i, 1.0
    return kind, inverse, np.zeros(m + 1)


@checked_inner
def apply(matrix, vector, result):
    """result = matrix vector."""
    for i in range(result.size):
        result[i] = 0.0
        for j in range(vector.size):
            result[i] += matrix[i, j] * vector[j]


@checked_inner
def prices_of(inverse, kind, gains, phase_one, y):
    """y = cost of the basis times its inverse: t costs one in the first phase, a vertex less its gain in the second."""
    for j in range(y.size):
        y[j] = 0.0
    for i in range(y.size):
        cost = (1.0 if kind[i] == EXCESS else 0.0) if phase_one else -gains[i]
        for j in range(y.size):
            y[j] += cost * inverse[i, j]


@checked_inner
def price_out(lower, upper, mu, reward, tables, y, kind, phase_one, entering, priced):
    """The column of most negative reduced cost, written to `entering` if it is a vertex; EXCESS if there is none."""
    m = tables.shape[0]
    size = 1.0
    copy_table(reward, priced)
    if phase_one:
        add_table(-1.0, reward, priced)
    for j in range(m):
        size += abs(y[j])
        if y[j] != 0.0:
            add_table(y[j], tables[j], priced)
    worst = -PRICED_OUT * (size + abs(y[m]))
    reduced = -(best_vertex(lower, upper, mu, priced, entering) + y[m])
    entered = EXCESS
    if reduced < worst:
        worst, entered = reduced, VERTEX
    for j in range(m):
        basic = False
        for i in range(m + 1):
            basic = basic or kind[i] == j
        if -y[j] < worst and not basic:
            worst, entered = -y[j], j
    return entered


@checked_inner
def ratio_test(x, direction, kind):
    """The basic variable that reaches zero first; of ties t, then the largest pivot."""
    step = np.inf
    for i in range(x.size):
        if direction[i] > MIN_PIVOT:
            step = min(step, max(x[i], 0.0) / direction[i])
    leaving = -1
    for i in range(x.size):
        if direction[i] > MIN_PIVOT and max(x[i], 0.0) / direction[i] <= step + TIE:
            if kind[i] == EXCESS:
                return i
            if leaving < 0 or direction[i] > direction[leaving]:
                leaving = i
    return leaving


@checked_inner
def exchange(inverse, x, direction, leaving, step, least):
    """A column of this direction enters by `step`: product-form update of the inverse, and values cut at `least`."""
    pivot = direction[leaving]
    for j in range(x.size):
        inverse[leaving, j] /= pivot
    for i in range(x.size):
        if i != leaving:
            for j in range(x.size):
                inverse[i, j] -= direction[i] * inverse[leaving, j]
            x[i] = max(x[i] - step * direction[i], least)
    x[leaving] = step


@checked_inner
def finished(vertices, kind, x, y, phase_one, m, pivots):
    """The mixture of the basic vertices, with the prices of the rows."""
    q, prices = np.zeros(vertices.shape[1:]), np.zeros(m)
    total, excess = 0.0, 0.0
    for i in range(m + 1):
        if kind[i] == VERTEX:
            total += x[i]
        elif kind[i] == EXCESS:
            excess = x[i]
    for i in range(m + 1):
        if kind[i] == VERTEX:
            add_table(x[i] / total, vertices[i], q)
    if phase_one:
        return q, prices, INFEASIBLE if excess > NOTHING else GAVE_UP, pivots
    for j in range(m):
        prices[j] = max(-y[j], 0.0)
    return q, prices, OPTIMAL, pivots


@checked_entry
def penalised_by_vertices(
    lower: Floats, upper: Floats, mu: Floats, reward: Floats, table: Floats, lam: float, eta: float, max_vertices: int
) -> tuple[Floats, float, float, int]:
    """Maximise reward.q - 1/(2 eta) ([lam + eta d.q]^+)^2 over q in Q(box): (q, price, duality gap, vertices tried).

    The dual is max_q (reward - y d).q + (y^2/2 - lam y)/eta, to be minimised over y >= 0: the upper envelope of lines
    plus a parabola.  Two vertices bracket its minimum and are replaced until none lies above them; the answer is their
    mixture with lam + eta d.q = y.
    """
    left, right, found = np.zeros(reward.shape), np.zeros(reward.shape), np.zeros(reward.shape)
    priced = np.zeros(reward.shape)
    best_vertex(lower, upper, mu, reward, left)
    add_table(-1.0, table, priced)
    best_vertex(lower, upper, mu, priced, right)
    value_l, slope_l = dot(reward, left), dot(table, left)
    value_r, slope_r = dot(reward, right), dot(table, right)
    price, share, count = 0.0, 1.0, 2
    while count < max_vertices:
        count += 1
        price, share = bracketed(value_l, slope_l, value_r, slope_r, lam, eta)
        copy_table(reward, priced)
        add_table(-price, table, priced)
        height = best_vertex(lower, upper, mu, priced, found)
        line = max(value_l - price * slope_l, value_r - price * slope_r)
        if height - line <= 1e-13 * max(1.0, abs(line), price * (abs(slope_l) + abs(slope_r))):
            break
        value, slope = dot(reward, found), dot(table, found)
        if lam + eta * slope > price:
            value_l, slope_l = value, slope
            copy_table(found, left)
        else:
            value_r, slope_r = value, slope
            copy_table(found, right)
    q = np.zeros(reward.shape)
    add_table(share, left, q)
    add_table(1.0 - share, right, q)
    reached = max(lam + eta * dot(table, q), 0.0)
    primal = dot(reward, q) - 0.5 * reached * reached / eta
    copy_table(reward, priced)
    add_table(-price, table, priced)
    dual = best_vertex(lower, upper, mu, priced, found) + (0.5 * price * price - lam * price) / eta
    return q, price, max(dual - primal, 0.0), count


@checked_inner
def bracketed(value_l, slope_l, value_r, slope_r, lam, eta):
    """The minimum over y >= 0 of the two lines' envelope and the parabola: (y, share of the left vertex)."""
    own_l, own_r = max(lam + eta * slope_l, 0.0), max(lam + eta * slope_r, 0.0)
    if slope_l <= slope_r:
        return own_l, 1.0
    crossing = (value_l - value_r) / (slope_l - slope_r)
    if own_l <= crossing:
        return own_l, 1.0
    if own_r >= crossing:
        return own_r, 0.0
    return crossing, ((crossing - lam) / eta - slope_r) / (slope_l - slope_r)
