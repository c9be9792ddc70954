"""One mirror step over a confidence polytope, by a structured interior-point method with a certificate.

    minimise  D(q, q') + eta <loss, q> + sum_j ( W_j t_j + rho_j t_j^2 / 2 ),   t_j = [ d_j.q + b_j ]^+
    over      q in Q = { occupancies of any policy under any kernel with lower <= p <= upper }

Euclid: D + eta <loss, q> = 1/2 ||q - c||^2 + const, c = q' - eta loss.  KL: c = log q' - eta loss.
Every row (h,s,a) is eliminated in closed form (`interior_rows`), which leaves a block tridiagonal system in the values V
(`interior_newton`) with a border of one line per hinge (`interior_hinges`).  The answer is the forward pass of a policy
and a kernel in the box, so it is feasible to rounding, and its gap is certified (`interior_certificate`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.arrays import Floats, Integers
from omdpd.kernels.interior_certificate import backward, exact_dot, forward, hinge_gap, recover_kernel, row_gap
from omdpd.kernels.interior_hinges import HB, HINGE_SLOTS, HR, HW, WT, XI, centre_hinge, dots_of, price
from omdpd.kernels.interior_iterate import Store, iterate, measure
from omdpd.kernels.interior_layout import C, C0, DEAD_MASS, GLUE, OPTIONS, Q, RP, YY, allocate, by_step, classify, load, place
from omdpd.kernels.interior_start import (
    start_flow,
    start_kernel,
    start_multipliers,
    start_slacks,
    value_range,
    water_fill,
)
from omdpd.kernels.interior_steps import total_weight

SOLVED, ALMOST, FAILED = 0, 1, 2
# A point above the tolerance is still `ALMOST` solved below this relative gap.
ALMOST_GAP = 1e-8
MAX_ITERATIONS = 120
# Gaps computed without getting better before a start is given up.
PATIENCE = 4
# Dual scale of a problem whose values are flat.
LEAST_RANGE = 1e-2
# Starts tried in turn: first target relative to the range of V, share of the uniform policy, cap on W in the same unit.
LADDER = ((0.1, 0.1, np.inf), (1.0, 0.3, np.inf), (0.03, 0.5, 10.0), (10.0, 0.5, np.inf))
WARM_TARGET = 0.02
# Complementarity, relative to the accepted gap, from which steps are refined and from which gaps are computed.
REFINE_FROM = 1e5
CHECK_FROM = 2.0
# A hinge of weight W is known to W 1e-16, hence counts in the unit of the gap.
HINGE_UNIT = 1e-5
# A hinge that can change the objective by less than this part of the tolerance is left out.
NEGLIGIBLE = 1e-3


class Task(NamedTuple):
    """What is asked, hinges in storage order, and scratch.  `data`: W, b, rho, unit, max|d| of every hinge."""

    reference: Floats
    lower: Floats
    upper: Floats
    mu: Floats
    p_warm: Floats
    terms: Floats
    data: Floats
    xi: Floats
    mass: Floats
    flow: Floats
    order: Integers
    scratch: Floats
    kl: bool
    tol: float
    floor: float


class Answer(NamedTuple):
    """The best certified point so far; record = (gap, scale)."""

    q: Floats
    p: Floats
    V: Floats
    xi: Floats
    record: Floats


@njit(**OPTIONS)
def solve_box(c, reference, lower, upper, mu, d, W, b, rho, kl, tol, warm, p_warm):
    """Solve the problem above; all arrays float64 and C-contiguous, bounds tight.

    Parameters
    ----------
    c, reference : (H, S, A)
        Linear part as above; the point q' whose policy the start follows.
    lower, upper : (H, S, A, S)
    mu : (S,)
    d, W, b, rho : (m, H, S, A), (m,), (m,), (m,)
    kl, tol, warm, p_warm
        Divergence; accepted gap relative to `scale`; whether `p_warm` (H, S, A, S) is an earlier solution's kernel.

    Returns
    -------
    q, p, V, xi : (H, S, A), (H, S, A, S), (H, S), (m,)
        Occupancy, its kernel, values, slopes of the hinges.
    gap, scale : float
        Certified duality gap, and max(1, range of V, 1e-5 sum_j W_j H max|d_j|).
    iterations, status : int
        Status 0: gap <= tol scale.  1: gap <= 1e-8 scale.  2: neither.
    """
    H, S, n_actions = c.shape
    E, rows = allocate(H, S, n_actions)
    E5, R4 = by_step(E, rows, H, S, n_actions)
    shift = np.empty(H)
    load(E5, R4, c, lower, upper, shift)
    terms, data = load_hinges(R4, d, W, b, rho)
    floor = HINGE_UNIT * H * np.sum(data[0] * data[4])
    task = Task(
        reference,
        lower,
        upper,
        mu,
        p_warm,
        terms,
        data,
        np.zeros(W.size),
        np.zeros((H, S)),
        np.zeros((H, S)),
        np.empty(S, dtype=np.int64),
        np.empty((3, R4.shape[3])),
        kl,
        tol,
        floor,
    )
    answer = Answer(
        np.zeros((H, S, n_actions)), np.zeros(lower.shape), np.zeros((H, S)), np.zeros(W.size), np.array([np.inf, 1.0])
    )
    keep = presolve(E5, R4, task)
    w = make_store(E, E5, rows, R4, task, keep)
    iterations = 0
    for rung in range(len(LADDER)):
        iterations += climb(w, task, answer, keep, rung, warm and rung == 0)
        if answer.record[0] <= tol * answer.record[1]:
            break
    if not np.isfinite(answer.record[0]):
        begin(w, task, 0.1, 0.0, np.inf, False)
        certify(w, task, answer, keep)
    finish(task, answer, shift)
    gap, scale = answer.record[0], answer.record[1]
    status = SOLVED if gap <= tol * scale else ALMOST if gap <= ALMOST_GAP * scale else FAILED
    return answer.q, answer.p, answer.V, answer.xi, gap, scale, iterations, status


@njit(**OPTIONS)
def load_hinges(R4, d, W, b, rho):
    """Hinges in storage order, each divided by the power of two nearest max|d|, which is exact."""
    m, H, S, n_actions = d.shape
    nb, hb, R = R4.shape[1] - 1, R4.shape[2], R4.shape[3]
    terms = np.zeros((m, nb + 1, hb * R))
    data = np.zeros((5, m))
    for j in range(m):
        largest = np.abs(d[j]).max()
        unit = 2.0 ** np.round(np.log2(largest)) if largest > 0.0 else 1.0
        data[0, j], data[1, j], data[2, j] = W[j] * unit, b[j] / unit, rho[j] * unit * unit
        data[3, j], data[4, j] = unit, largest / unit
        for h in range(H):
            block, i = place(h, H, hb, nb)
            for s in range(S):
                for a in range(n_actions):
                    terms[j, block, i * R + a * S + s] = d[j, h, s, a] / unit
    return terms, data


@njit(**OPTIONS)
def presolve(E5, R4, task):
    """Indices of the hinges that can go either way; the others are priced once and for all (`task.xi`).

    By dynamic programming: v <= 0 on all of Q means xi = 0; v >= 0 on all of Q and no curvature means xi = W.
    One of the two is ruled out by the sign of v at the reference.
    """
    m, S, n_actions = task.terms.shape[0], task.mu.size, task.reference.shape[2]
    V = np.zeros(task.mass.shape)
    H = V.shape[0]
    keep = np.empty(m, dtype=np.int64)
    kept = 0
    for j in range(m):
        weight, bias, rho, size = task.data[0, j], task.data[1, j], task.data[2, j], task.data[4, j]
        reach = max(bias, 0.0) + H * size
        if size == 0.0:
            task.xi[j] = weight + rho * bias if bias > 0.0 else 0.0
            continue
        if weight * reach + 0.5 * rho * reach * reach <= NEGLIGIBLE * task.tol:
            continue
        v = bias
        for h in range(H):
            block, i = place(h, H, R4.shape[2], R4.shape[1] - 1)
            for s in range(S):
                for a in range(n_actions):
                    v += task.terms[j, block, i * R4.shape[3] + a * S + s] * task.reference[h, s, a]
        sign = -1.0 if v > 0.0 else 1.0
        gain = (sign * task.terms[j]).reshape(R4.shape[1:])
        water_fill(E5, gain, n_actions, task.mass, False, V, task.order, task.scratch)
        most = sign * bias
        for s in range(S):
            most += task.mu[s] * V[0, s]
        if most <= 0.0 and v <= 0.0:
            continue
        if most <= 0.0 and rho == 0.0:
            task.xi[j] = weight
            continue
        keep[kept] = j
        kept += 1
    for j in range(m):
        if task.xi[j] != 0.0:
            R4[C0] -= task.xi[j] * task.terms[j].reshape(R4.shape[1:])
    return keep[:kept]


@njit(**OPTIONS)
def make_store(E, E5, rows, R4, task, keep):
    """Working memory of the iterations, with the hinges that presolve kept."""
    H, S = task.mass.shape
    m = keep.size
    hinge = np.zeros((HINGE_SLOTS, m))
    terms = np.empty((m, rows.shape[1], rows.shape[2]))
    for k in range(m):
        terms[k] = task.terms[keep[k]]
        hinge[HW, k], hinge[HB, k], hinge[HR, k] = task.data[0, keep[k]], task.data[1, keep[k]], task.data[2, keep[k]]
    values = np.zeros((3, H, S))
    blocks = np.zeros((4, H, S, S))
    small = np.zeros((2, m, m))
    return Store(
        E,
        E5,
        rows,
        R4,
        task.mu,
        values[0],
        values[1],
        values[2],
        blocks[0],
        blocks[1],
        blocks[2],
        blocks[3],
        np.zeros((S, S)),
        hinge,
        terms,
        np.zeros((m, H, S)),
        np.zeros(terms.shape),
        np.zeros(R4.shape[1:]),
        small[0],
        small[1],
        np.zeros(m),
    )


@njit(**GLUE)
def begin(w, task, start, mix, cap, warm):
    """Put the start point into storage; returns the sum of the barrier weights."""
    n_actions = task.reference.shape[2]
    classify(w.E, w.rows)
    start_kernel(w.E, w.E5, w.rows, warm, task.p_warm)
    start_flow(w.E5, w.R4, task.reference, task.mu, mix, task.mass)
    start_slacks(w.E, w.rows, task.kl)
    for h in range(task.flow.shape[0]):
        for s in range(task.flow.shape[1]):
            task.flow[h, s] = max(task.reference[h, s].sum(), 0.0)
    w.hinge[XI] = 0.0
    m = w.d.shape[0]
    v = np.zeros(m)
    if m > 0:
        dots_of(np.abs(w.d), w.rows[Q], w.hinge[WT])
        dots_of(w.d, w.rows[Q], v)
    for attempt in range(2 if m > 0 else 1):
        price(w.d, w.hinge[XI], w.rows)
        water_fill(w.E5, w.R4[C], n_actions, task.flow, task.kl, w.V, task.order, task.scratch)
        vs = max(value_range(w.V, task.mass), LEAST_RANGE)
        for j in range(m):
            w.hinge[WT, j] = max(w.hinge[WT, j], 1e-12)
            centre_hinge(w.hinge, j, v[j] + w.hinge[HB, j], start * vs, cap * vs)
    start_multipliers(w.E, w.E5, w.rows, w.R4, w.V, start * vs)
    return total_weight(w.E, w.rows) + 2.0 * w.hinge[WT].sum()


@njit(**GLUE)
def climb(w, task, answer, keep, rung, warm):
    """Iterate from one start until the gap is accepted or stops falling; returns the number of iterations."""
    start, mix, cap = LADDER[rung]
    weight = begin(w, task, WARM_TARGET if warm else start, mix, cap, warm)
    n_actions = task.reference.shape[2]
    now = measure(w)
    stale, least = 0, np.inf
    for iteration in range(MAX_ITERATIONS):
        spread = value_range(w.V, task.mass)
        unit = task.tol * max(max(1.0, spread), task.floor)
        if now <= CHECK_FROM * unit:
            gap = certify(w, task, answer, keep)
            if gap <= task.tol:
                return iteration
            stale = 0 if gap < 0.5 * least else stale + 1
            least = min(least, gap)
            if stale >= PATIENCE:
                return iteration
        step = iterate(w, n_actions, task.kl, max(spread, LEAST_RANGE), now, weight, now <= REFINE_FROM * unit)
        now = measure(w)
        if not (step > 1e-9 and np.isfinite(now)):
            return iteration + 1
    certify(w, task, answer, keep)
    return MAX_ITERATIONS


@njit(**GLUE)
def certify(w, task, answer, keep):
    """Relative gap of the feasible point that belongs to the iterate, which is kept if it is the best so far."""
    H, S = w.V.shape
    n_actions = task.reference.shape[2]
    for k in range(keep.size):
        task.xi[keep[k]] = w.hinge[XI, k]
    recover_kernel(w.E, w.rows)
    backward(w.E5, w.R4, n_actions, task.mass, DEAD_MASS, task.kl, w.V, task.order, task.scratch)
    forward(w.E5, w.R4, n_actions, task.mu, task.flow)
    gap = row_gap(w.R4, H, S * n_actions, task.kl)
    point = w.rows[RP].reshape(-1)
    for j in range(task.xi.size):
        v, size = exact_dot(task.terms[j].reshape(-1), point, task.data[1, j])
        gap += hinge_gap(v, size, task.xi[j], task.data[0, j], task.data[2, j])
    scale = max(max(1.0, value_range(w.V, task.mass)), task.floor)
    if not (gap / scale < answer.record[0] / answer.record[1]):
        return gap / scale if np.isfinite(gap) else np.inf
    answer.record[0], answer.record[1] = gap, scale
    answer.V[:] = w.V
    answer.xi[:] = task.xi
    copy_out(w, answer)
    return gap / scale


@njit(**OPTIONS)
def copy_out(w, answer):
    """Occupancy (slot RP) and kernel (slot YY) in the caller's layout."""
    H, S, n_actions = answer.q.shape
    nb, hb = w.E5.shape[1], w.E5.shape[3]
    for h in range(H):
        b, i = place(h, H, hb, nb)
        for s in range(S):
            for a in range(n_actions):
                answer.q[h, s, a] = w.R4[RP, b, i, a * S + s]
                if h + 1 < H:
                    for t in range(S):
                        answer.p[h, s, a, t] = w.E5[YY, b, t, i, a * S + s]


@njit(**OPTIONS)
def finish(task, answer, shift):
    """Undo the shift of c and the units of the hinges; the last step's kernel, which nothing uses, is its box's centre."""
    H, S, n_actions, _ = answer.p.shape
    total = 0.0
    for h in range(H - 1, -1, -1):
        total += shift[h]
        for s in range(S):
            answer.V[h, s] += total
    for j in range(answer.xi.size):
        answer.xi[j] /= task.data[3, j]
    for s in range(S):
        for a in range(n_actions):
            low, high = task.lower[H - 1, s, a], task.upper[H - 1, s, a]
            width = high.sum() - low.sum()
            share = min(max((1.0 - low.sum()) / width, 0.0), 1.0) if width > 0.0 else 0.0
            for t in range(S):
                answer.p[H - 1, s, a, t] = low[t] + share * (high[t] - low[t])
    for h in range(H):
        for s in range(S):
            for a in range(n_actions):
                for t in range(S):
                    p = max(answer.p[h, s, a, t], task.lower[h, s, a, t])
                    answer.p[h, s, a, t] = min(p, task.upper[h, s, a, t])
