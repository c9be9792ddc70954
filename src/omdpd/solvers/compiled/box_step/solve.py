"""One mirror step over a confidence polytope, by a structured interior-point method with a certificate.

    minimise  D(q, q') + eta <loss, q> + sum_j ( W_j t_j + rho_j t_j^2 / 2 ),   t_j = [ d_j.q + b_j ]^+
    over      q in Q = { occupancies of any policy under any kernel with lower <= p <= upper }

Euclid: D + eta <loss, q> = 1/2 ||q - c||^2 + const, c = q' - eta loss.  KL: c = log q' - eta loss.
Every row (h,s,a) is eliminated in closed form (`interior_rows`), which leaves a block tridiagonal system in the
values V (`interior_newton`) with a border of one line per hinge (`interior_hinges`).  The answer is the forward pass
of a policy and a kernel in the box, so it is feasible to rounding, and its gap is certified (`interior_certificate`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.box_step.certificate import backward, forward, hinge_gaps, recover_kernel, row_gap
from omdpd.solvers.compiled.box_step.hinges import XI, centre_hinges, price, weigh_hinges
from omdpd.solvers.compiled.box_step.iterate import Store, iterate
from omdpd.solvers.compiled.box_step.presolve import load_hinges, presolve, select_hinges
from omdpd.solvers.compiled.box_step.rows import spread
from omdpd.solvers.compiled.box_step.slots import (
    C0,
    DEAD_MASS,
    IW,
    IZ,
    LO,
    NU,
    NW,
    PP,
    RP,
    S1,
    S2,
    S3,
    SL,
    TAU,
    TL,
    TW,
    WD,
    A,
    B,
    C,
    W,
    Z,
    allocate,
    by_step,
    classify,
    extent,
    load,
    memory,
    place,
    sum_to_one,
)
from omdpd.solvers.compiled.box_step.start import (
    start_flow,
    start_kernel,
    start_multipliers,
    start_slacks,
    value_range,
    water_fill,
)
from omdpd.solvers.compiled.options import ENTRY, GLUE, INNER
from omdpd.solvers.compiled.pointers import borrow, outlive

SOLVED, ALMOST, FAILED = 0, 1, 2
# A point above the tolerance is still `ALMOST` solved below this relative gap.
ALMOST_GAP = 1e-8
MAX_ITERATIONS = 240
# Gaps computed without getting better before a start is given up.
PATIENCE = 4
# Dual scale of a problem whose values are flat.
LEAST_RANGE = 1e-2
# Starts tried in turn: first target relative to the range of V, share of the uniform policy, cap on W in the same unit,
# and the sum of widths below which a row is solved as a known kernel.  Such a row takes its best member afterwards, an
# error that the certificate shows; the last starts trade more of it for a better-posed problem.  Last, whether a failed
# step is followed by one that only centres: it saves some problems, and spoils others.
LADDER = (
    (0.1, 0.003, np.inf, 1e-9, False),
    (1.0, 0.3, np.inf, 1e-9, False),
    (0.03, 0.5, 10.0, 1e-9, False),
    (0.1, 0.03, np.inf, 1e-9, True),
    (1.0, 0.5, 1.0, 1e-9, True),
    (0.03, 0.5, 10.0, 1e-6, False),
    (10.0, 0.5, np.inf, 1e-6, True),
)
# First target and share where there are hinges, and else where there is an earlier solution.
HINGED_START, WARM_START = (0.015, 0.2), (0.02, 0.003)
# A step below the first length counts as failed; below the second nothing moves any more.
SHORT_STEP, SHORTEST_STEP = 0.1, 1e-9
# Complementarity, relative to the accepted gap, from which steps are refined, with hinges (whose weights multiply what
# is amiss) and without, and from which gaps are computed.
REFINE_FROM, REFINE_PLAIN_FROM = 1e5, 10.0
CHECK_FROM = 2.0

Solution = tuple[Floats, Floats, Floats, Floats, float, float, int, int]


class Task(NamedTuple):
    """What is asked, hinges in storage order, and scratch.  `data`: W, b, rho, unit, max|d|, reach of every hinge."""

    reference: Floats
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


def solve_box(
    c: Floats,
    reference: Floats,
    lower: Floats,
    upper: Floats,
    mu: Floats,
    d: Floats,
    W: Floats,
    b: Floats,
    rho: Floats,
    kl: bool,
    tol: float,
    warm: bool,
    p_warm: Floats,
) -> Solution:
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
    solution: Solution = solve_in(memory(*c.shape), c, reference, lower, upper, mu, d, W, b, rho, kl, tol, warm, p_warm)
    return solution


@njit(**ENTRY)
def solve_in(memory, c, reference, lower, upper, mu, d, W, b, rho, kl, tol, warm, p_warm):
    """`solve_box` in given memory."""
    H, S, n_actions = c.shape
    m = W.size
    E, rows, over = allocate(memory, H, S, n_actions)
    E5, R4, over4 = by_step(E, rows, over, n_actions)
    shift = np.empty(H)
    load(E5, R4, c, lower, upper, shift)
    values, blocks, square = np.zeros((5, H, S)), np.zeros((4, H, S, S)), np.zeros((S, S))
    order, scratch, planes = (
        np.zeros(S, dtype=np.int64),
        np.zeros((4, max(S, R4.shape[3]))),
        np.zeros((2,) + R4.shape[1:]),
    )
    terms, data, xi, floor = load_hinges(R4, d, W, b, rho)
    q, p, V = np.zeros((H, S, n_actions)), np.zeros(lower.shape), np.zeros((H, S))
    prices, record = np.zeros(m), np.array([np.inf, 1.0])
    task = Task(
        borrow(reference),
        borrow(mu),
        borrow(p_warm),
        borrow(terms),
        borrow(data),
        borrow(xi),
        borrow(values[3]),
        borrow(values[4]),
        borrow(order),
        borrow(scratch),
        kl,
        tol,
        floor,
    )
    answer = Answer(borrow(q), borrow(p), borrow(V), borrow(prices), borrow(record))
    keep = presolve(E5, R4, task)
    price(terms, xi, rows[C0], rows[C0])
    hinge, kept = select_hinges(terms, data, keep)
    X, P, small, short = (
        np.zeros((keep.size, H, S)),
        np.zeros(kept.shape),
        np.zeros((2, keep.size, keep.size)),
        np.zeros((3, keep.size)),
    )
    w = Store(
        borrow(E),
        borrow(E5),
        borrow(rows),
        borrow(R4),
        borrow(over),
        borrow(over4),
        borrow(mu),
        borrow(values[0]),
        borrow(values[1]),
        borrow(values[2]),
        borrow(blocks[0]),
        borrow(blocks[1]),
        borrow(blocks[2]),
        borrow(blocks[3]),
        borrow(square),
        borrow(scratch[3]),
        borrow(hinge),
        borrow(kept),
        borrow(X),
        borrow(P),
        borrow(planes[0].reshape(rows.shape[1:])),
        borrow(planes[0]),
        borrow(small[0]),
        borrow(small[1]),
        borrow(short[0]),
        borrow(short[1]),
        borrow(short[2]),
        borrow(planes[1]),
    )
    iterations = 0
    # The first start once more at the end: if all failed before a gap could be computed, that of the start is.
    for rung in range(len(LADDER) + 1):
        if rung < len(LADDER) or not np.isfinite(record[0]):
            iterations += climb(w, task, answer, keep, rung, warm and rung == 0)
        if record[0] <= tol * record[1]:
            break
    finish(lower, upper, shift, data[3], p, V, prices)
    outlive((values, P, X, planes, terms, kept))
    outlive((blocks, square, scratch, small, hinge, data))
    outlive((order, short, xi))
    gap, scale = record[0], record[1]
    status = SOLVED if gap <= tol * scale else ALMOST if gap <= ALMOST_GAP * scale else FAILED
    return q, p, V, prices, gap, scale, iterations, status


@njit(**GLUE)
def begin(w, task, start, mix, cap, narrow, warm):
    """Put the start point into storage; returns the sum of the barrier weights and the complementarity."""
    E, rows, n_actions = w.E, w.rows, task.reference.shape[2]
    for b in range(E.shape[1]):
        classify(E, b, narrow, E[LO, b], E[WD, b], rows[SL, b], rows[S1, b])
    start_kernel(E, w.E5, rows, warm, task.p_warm)
    start_flow(w.E5, w.R4, task.reference, task.mu, mix, task.mass, task.flow)
    weight = weigh_hinges(w.d, rows, w.hinge)
    for b in range(rows.shape[1]):
        e = min(b, E.shape[1] - 1)
        slacks = E[WD, e], E[W, e], E[Z, e], E[IW, e], E[IZ, e]
        weight += start_slacks(E, rows, b, extent(w.E5, b), rows[S3, b], rows[NW, b], *slacks)
    for _ in range(2):
        price(w.d, w.hinge[XI], rows[C0], rows[C])
        depth = water_fill(w.E5, w.R4[C], n_actions, task.flow, task.kl, w.V, task.order, task.scratch)
        vs = max(max(value_range(w.V, task.mass), 0.0 if task.kl else depth), LEAST_RANGE)
        centre_hinges(w.hinge, start * vs, cap * vs)
        if w.d.shape[0] == 0:
            break
    price(w.d, w.hinge[XI], rows[C0], rows[C])
    for b in range(rows.shape[1]):
        e = min(b, E.shape[1] - 1)
        spread(w.V, b, w.R4[S3, b], w.over4[1])
        start_multipliers(
            E, rows, b, extent(w.E5, b), w.over[1], start * vs, E[A, e], E[B, e], rows[TAU, b], rows[NU, b]
        )
    return weight, start * vs * weight


@njit(**GLUE)
def climb(w, task, answer, keep, rung, warm):
    """Iterate from one start until the gap is accepted or stops falling; returns the number of iterations."""
    start, mix, cap, narrow, centring = LADDER[rung % len(LADDER)]
    if rung == 0 and keep.size > 0:
        start, mix = HINGED_START
    elif warm:
        start, mix = WARM_START
    weight, now = begin(w, task, start, mix, cap, narrow, warm)
    n_actions, limit = task.reference.shape[2], MAX_ITERATIONS if rung < len(LADDER) else 0
    stale, least, step, iteration, broken = 0, np.inf, 1.0, 0, False
    # One place each for `certify` and `iterate`: the compiler copies them wherever they stand.
    while True:
        vs = value_range(w.V, task.mass)
        unit = task.tol * max(max(1.0, vs), task.floor)
        if now <= CHECK_FROM * unit or iteration == limit or broken:
            gap = certify(w, task, answer, keep)
            stale = 0 if gap < 0.5 * least else stale + 1
            least = min(least, gap)
            if gap <= task.tol or stale >= PATIENCE or iteration == limit or broken:
                return iteration
        careful = now <= (REFINE_FROM if keep.size > 0 else REFINE_PLAIN_FROM) * unit
        astray = centring and step < SHORT_STEP
        step, now = iterate(w, n_actions, task.kl, max(vs, LEAST_RANGE), now, weight, careful, astray)
        iteration += 1
        broken = not (step > SHORTEST_STEP and np.isfinite(now))


@njit(**GLUE)
def certify(w, task, answer, keep):
    """Relative gap of the feasible point that belongs to the iterate, which is kept if it is the best so far."""
    H, S = w.V.shape
    n_actions = task.reference.shape[2]
    for k in range(keep.size):
        task.xi[keep[k]] = w.hinge[XI, k]
    for b in range(w.E.shape[1]):
        recover_kernel(w.E, w.rows, b, w.E[PP, b])
        sum_to_one(w.E[TL, b], w.E[TW, b], w.E[PP, b], w.rows[S1, b], w.rows[S2, b], w.rows[S3, b])
    backward(w.E5, w.R4, n_actions, task.mass, DEAD_MASS, task.kl, w.V, task.order, task.scratch)
    forward(w.E5, w.R4, n_actions, task.mu, task.flow)
    gap = row_gap(w.R4, H, S * n_actions, task.kl)
    gap += hinge_gaps(task.terms, w.rows, task.data, task.xi)
    scale = max(max(1.0, value_range(w.V, task.mass)), task.floor)
    if not (gap / scale < answer.record[0] / answer.record[1]):
        return gap / scale if np.isfinite(gap) else np.inf
    answer.record[0], answer.record[1] = gap, scale
    copy_out(w.E5, w.R4, w.V, task.xi, answer.q, answer.p, answer.V, answer.xi)
    return gap / scale


@njit(**INNER)
def copy_out(E5, R4, V, xi, q, p, values, prices):
    """Occupancy (slot RP), kernel (slot PP) in the caller's layout, values and prices."""
    H, S, n_actions = q.shape
    for j in range(xi.size):
        prices[j] = xi[j]
    for h in range(H):
        b, i = place(h, H, E5.shape[3], E5.shape[1])
        for s in range(S):
            values[h, s] = V[h, s]
            for a in range(n_actions):
                q[h, s, a] = R4[RP, b, i, a * S + s]
                if h + 1 < H:
                    for t in range(S):
                        p[h, s, a, t] = E5[PP, b, t, i, a * S + s]


@njit(**INNER)
def finish(lower, upper, shift, units, p, V, xi):
    """Undo the shift of c and the units of the hinges; the last step's kernel, which nothing uses, is a centre."""
    H, S, n_actions, _ = p.shape
    total = 0.0
    for h in range(H - 1, -1, -1):
        total += shift[h]
        for s in range(S):
            V[h, s] += total
    for j in range(xi.size):
        xi[j] /= units[j]
    for s in range(S):
        for a in range(n_actions):
            room, width = 1.0, 0.0
            for t in range(S):
                room -= lower[H - 1, s, a, t]
                width += upper[H - 1, s, a, t] - lower[H - 1, s, a, t]
            share = min(max(room / width, 0.0), 1.0) if width > 0.0 else 0.0
            for t in range(S):
                low = lower[H - 1, s, a, t]
                p[H - 1, s, a, t] = low + share * (upper[H - 1, s, a, t] - low)
    for h in range(H):
        for s in range(S):
            for a in range(n_actions):
                for t in range(S):
                    p[h, s, a, t] = min(max(p[h, s, a, t], lower[h, s, a, t]), upper[h, s, a, t])
