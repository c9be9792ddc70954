"""One mirror step over a confidence polytope, by a structured interior-point method with a certificate.

    minimise  D(q, q') + eta <loss, q> + sum_j W_j [ d_j.q ]^+
    over      q in Q = { occupancies of any policy under any kernel with lower <= p <= upper }

Euclid: D + eta <loss, q> = 1/2 ||q - c||^2 + const, c = q' - eta loss.  KL: c = log q' - eta loss.
Every row (h,s,a) is eliminated in closed form (`rows`), which leaves a block tridiagonal system in the values V
(`newton`) with a border of one line per hinge (`hinges`).  The answer is the forward pass of a policy and a kernel in
the box, so it is feasible to rounding, and its gap is certified (`certificate`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import entry, glue, inner
from omdpd.jit.pointers import borrow, outlive
from omdpd.problem.arrays import Floats, Integers
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.certificate import backward, forward, hinge_gaps, recover_kernel, row_gap
from omdpd.solvers.compiled.box_step.hinges import centre_hinges, price, weigh_hinges
from omdpd.solvers.compiled.box_step.iterate import Border, Store, System, iterate
from omdpd.solvers.compiled.box_step.laws import any_narrow, best_laws, classify, sum_to_one
from omdpd.solvers.compiled.box_step.presolve import load_hinges, presolve, select_hinges
from omdpd.solvers.compiled.box_step.rows import spread
from omdpd.solvers.compiled.box_step.start import (
    start_flow,
    start_kernel,
    start_multipliers,
    start_slacks,
    value_range,
    water_fill,
)
from omdpd.solvers.compiled.box_step.storage import allocate, copy_out, extent, load, pages
from omdpd.solvers.compiled.newton.certificate import ALMOST, FAILED, SOLVED

# A point above the tolerance is still `ALMOST` solved below this relative gap.
ALMOST_GAP = 1e-8
# Iterations from one start; most problems that are not solved by 120 are by 200.
MAX_ITERATIONS = 240
# Gaps computed without getting better before a start is given up.
PATIENCE = 4
# Dual scale of a problem whose values are flat.
MIN_RANGE = 1e-2
# A step below the first length counts as failed; below the second nothing moves any more.
SHORT_STEP, MIN_STEP = 0.1, 1e-9
# Complementarity, relative to the accepted gap, from which steps are refined, with hinges (whose weights multiply what
# is amiss) and without, and from which gaps are computed.
REFINE_FROM, REFINE_PLAIN_FROM = 1e5, 10.0
CHECK_FROM = 2.0
# How often a start is repeated with the best laws for its values held in the narrow rows and entries.  An error of the
# width times a weight becomes one of the width times how far V was off: of 9200 problems of `fuzz.py --mild` 44 failed
# and 651 were almost solved without, none and 156 with it.
HOLDS = 2

Solution = tuple[Floats, Floats, Floats, Floats, float, float, int, int]


class Start(NamedTuple):
    """How to start: first target and cap on W relative to the range of V, share of the uniform policy in the flow.

    A row whose widths sum to less than `narrow` is solved as a known kernel, an entry narrower than `entry` as a known
    number, because slacks of that size have no digits left.  The first time they are the centre and the lower bound;
    if that is not enough, the best law for the values that came out (`HOLDS`).  The certificate is that of the box as
    asked: its sigma counts what every entry could still do.  `centring`: a failed step is followed by one that only
    centres.
    """

    target: float
    uniform: float
    cap: float
    narrow: float
    entry: float
    centring: bool


# Starts tried in turn.  The numbers are problems of `benchmarks/fuzz.py` (40 000 Euclid, 10 000 KL from seed 10^6 on,
# tolerance 1e-10) that a start solves after those before it have not; 7 are almost solved in the end, 4 failed.
STARTS = (
    # Near the reference and its boundary, where most answers are.  49 840.
    Start(target=0.1, uniform=0.003, cap=np.inf, narrow=1e-9, entry=1e-12, centring=False),
    # Far from every boundary: more iterations, and room to turn.  103, nine of which no other start solves.
    Start(target=1.0, uniform=0.3, cap=np.inf, narrow=1e-9, entry=1e-12, centring=False),
    # Prices of heavy hinges begin at the range of V and not at W.  16, of which 12 with some W above 10.
    Start(target=0.03, uniform=0.5, cap=10.0, narrow=1e-9, entry=1e-12, centring=False),
    # Nearly the first again, but what has jammed is centred, which saves some problems and spoils others.  10.
    Start(target=0.1, uniform=0.03, cap=np.inf, narrow=1e-9, entry=1e-12, centring=True),
    # The same from far away with light prices.  4.  The two below solve these and the 10 as well.
    Start(target=1.0, uniform=0.5, cap=1.0, narrow=1e-9, entry=1e-12, centring=True),
    # Boxes and entries too narrow for slacks, too wide for a point, are taken for one.  14, of which 12 of radius 1e-8
    # or less.
    Start(target=0.03, uniform=0.5, cap=10.0, narrow=1e-6, entry=1e-7, centring=False),
    # The same from as far away as possible.  2, which no other start solves.
    Start(target=10.0, uniform=0.5, cap=np.inf, narrow=1e-6, entry=1e-7, centring=True),
)
# With hinges the first start is farther from the reference and aims lower: on 7 262 such problems (Euclid, from seed
# 2 10^6 on) 13.2 iterations instead of 16.2, and four more solved.
HINGED_START = Start(target=0.015, uniform=0.2, cap=np.inf, narrow=1e-9, entry=1e-12, centring=False)


class BoxProblem(NamedTuple):
    """What is asked, hinges in storage order with their slots, prices xi, and scratch."""

    reference: Floats
    mu: Floats
    tables: Floats
    data: Floats
    xi: Floats
    mass: Floats
    flow: Floats
    order: Integers
    scratch: Floats
    tol: float
    gap_unit: float


class BestPoint(NamedTuple):
    """The best certified point so far; record = (gap, scale)."""

    q: Floats
    p: Floats
    V: Floats
    xi: Floats
    record: Floats


def solve_box(
    c: Floats, reference: Floats, lower: Floats, upper: Floats, mu: Floats, d: Floats, W: Floats, kl: bool, tol: float
) -> Solution:
    """Solve the problem above; all arrays float64 and C-contiguous, bounds tight.

    Parameters
    ----------
    c, reference : (H, S, A)
        Linear part as above; the point q' whose policy the start follows.
    lower, upper : (H, S, A, S)
    mu : (S,)
    d, W : (m, H, S, A), (m,)
    kl, tol
        Divergence; accepted gap relative to `scale`.

    Returns
    -------
    q, p, V, xi : (H, S, A), (H, S, A, S), (H, S), (m,)
        Occupancy, its kernel, values, slopes of the hinges.
    gap, scale : float
        Certified duality gap, and max(1, range of V, 1e-5 sum_j W_j H max|d_j|).
    iterations, status : int
        Status 0: gap <= tol scale.  1: gap <= 1e-8 scale.  2: neither.
    """
    solution: Solution = solve_in(pages(*c.shape), c, reference, lower, upper, mu, d, W, kl, tol)
    return solution


@entry
def solve_in(taken, c, reference, lower, upper, mu, d, W, kl, tol):
    """`solve_box` in given pages of memory."""
    H, S, A = c.shape
    at, shift, masses = allocate(taken, H, S, A), np.empty(H), np.zeros((2, H, S))
    load(at.E5, at.rows4, c, lower, upper, shift)
    tables, data, gap_unit = load_hinges(at.rows4, d, W)
    own_problem = BoxProblem(
        reference=reference, mu=mu, tables=tables, data=data, xi=np.zeros(W.size), mass=masses[0], flow=masses[1],
        order=np.zeros(S, dtype=np.int64), scratch=np.zeros((3, at.rows4.shape[3])), tol=tol, gap_unit=gap_unit,
    )  # fmt: skip
    q, p, V, xi, record = np.zeros(c.shape), np.zeros(lower.shape), np.zeros((H, S)), np.zeros(W.size), np.zeros(2)
    record[0], record[1] = np.inf, 1.0
    own_answer = BestPoint(q=q, p=p, V=V, xi=xi, record=record)
    problem, answer = borrow(own_problem), borrow(own_answer)
    keep = presolve(at.E5, problem)
    price(problem.tables, problem.xi, at.rows[slot.BASE_C], at.rows[slot.BASE_C])
    hinge, kept = select_hinges(problem.tables, problem.data, keep)
    border = new_border(hinge, kept, at.rows4, H, S)
    own_store = Store(at=at, system=new_system(H, S), border=border, mu=mu, A=A, kl=kl)
    store = borrow(own_store)
    iterations, attempt, held = 0, 0, 0
    while record[0] > tol * record[1] and attempt <= len(STARTS):
        # The first start once more at the end: if all failed before a gap could be computed, that of the start is.
        if attempt < len(STARTS) or not np.isfinite(record[0]):
            iterations += solve_from(store, problem, answer, keep, attempt, held > 0)
        again = held < HOLDS and attempt < len(STARTS) and any_narrow(at.E, at.rows, STARTS[attempt].entry)
        attempt, held = (attempt, held + 1) if again else (attempt + 1, 0)
    finish(lower, upper, shift, data[slot.UNIT], p, V, xi)
    outlive(own_problem, own_answer, own_store)
    gap, scale = record[0], record[1]
    status = SOLVED if gap <= tol * scale else ALMOST if gap <= ALMOST_GAP * scale else FAILED
    return q, p, V, xi, gap, scale, iterations, status


@glue
def new_system(H, S):
    """Room for the Newton system."""
    values, blocks, square = np.zeros((3, H, S)), np.zeros((4, H, S, S)), np.zeros((S, S))
    return System(
        V=values[0], dV=values[1], correction=values[2], M=blocks[0], off=blocks[1], K=blocks[2], G=blocks[3],
        square=square, line=np.zeros(S),
    )  # fmt: skip


@glue
def new_border(hinge, tables, rows4, H, S):
    """Room for the border that the hinges make."""
    m, P, planes = hinge.shape[1], np.zeros(tables.shape), np.zeros((2,) + rows4.shape[1:])
    squares, lines, by_step = np.zeros((2, m, m)), np.zeros((3, m)), (m,) + rows4.shape[1:]
    return Border(
        hinge=hinge, tables=tables, tables4=tables.reshape(by_step), X=np.zeros((m, H, S)), P=P, P4=P.reshape(by_step),
        dq=planes[0].reshape(tables.shape[1:]), dq3=planes[0], full=squares[0], factor=squares[1], along=lines[0],
        dxi=lines[1], no_price=lines[2], no_right=planes[1],
    )  # fmt: skip


@glue
def place_start(store, problem, start, held):
    """Put the start point into storage; returns the sum of the barrier weights and the complementarity.

    `held`: what is narrow gets the best law for the values that are there.
    """
    E, E5, rows, rows4, spare, spare4 = store.at
    hinge, tables, V = store.border.hinge, store.border.tables, store.system.V
    if held:
        for h in range(V.shape[0] - 1):
            best_laws(E5, h, V.shape[0], V[h + 1], problem.order, problem.scratch[0])
    for b in range(E.shape[1]):
        low, wide, room, share = E[slot.LOWER, b], E[slot.WIDTH, b], rows[slot.ROOM, b], rows[slot.CENTRE, b]
        classify(E, b, start.narrow, start.entry, held, low, wide, room, share)
        start_kernel(E, rows, b, E[slot.START_KERNEL, b])
    start_flow(E5, rows4, problem.reference, problem.mu, start.uniform, problem.mass, problem.flow)
    weight = weigh_hinges(tables, rows, hinge)
    for b in range(rows.shape[1]):
        e = min(b, E.shape[1] - 1)
        weight += start_slacks(
            E, rows, b, extent(E5, b), width=rows[slot.SCRATCH_3, b], weight=rows[slot.SIGN_WEIGHT, b],
            wide=E[slot.WIDTH, e], low_slack=E[slot.LOW_SLACK, e], high_slack=E[slot.HIGH_SLACK, e],
            low_inverse=E[slot.LOW_INVERSE, e], high_inverse=E[slot.HIGH_INVERSE, e],
        )  # fmt: skip
    # The prices of the hinges need the range of V, which needs the prices: once without, once with them.
    for _ in range(2):
        price(tables, hinge[slot.XI], rows[slot.BASE_C], rows[slot.C])
        depth = water_fill(E5, rows4[slot.C], store.A, problem.flow, store.kl, V, problem.order, problem.scratch)
        value_scale = max(max(value_range(V, problem.mass), 0.0 if store.kl else depth), MIN_RANGE)
        centre_hinges(hinge, start.target * value_scale, start.cap * value_scale)
        if tables.shape[0] == 0:
            break
    price(tables, hinge[slot.XI], rows[slot.BASE_C], rows[slot.C])
    target = start.target * value_scale
    for b in range(rows.shape[1]):
        e = min(b, E.shape[1] - 1)
        spread(V, b, rows4[slot.OWN_VALUE, b], spare4[1])
        start_multipliers(
            E, rows, b, extent(E5, b), spare[1], target, low_multiplier=E[slot.LOW_MULTIPLIER, e],
            high_multiplier=E[slot.HIGH_MULTIPLIER, e], tau=rows[slot.TAU, b], nu=rows[slot.NU, b],
        )  # fmt: skip
    return weight, target * weight


@glue
def solve_from(store, problem, answer, keep, attempt, held):
    """Iterate from one start until the gap is accepted or stops falling; returns the number of iterations.

    `held`: what is narrow has the law that is best for the values of the last iteration, in the certificate too.
    """
    start = STARTS[attempt % len(STARTS)]
    if attempt == 0 and keep.size > 0:
        start = HINGED_START
    weight, complementarity = place_start(store, problem, start, held)
    limit = MAX_ITERATIONS if attempt < len(STARTS) else 0
    stale, least, step, iteration, broken = 0, np.inf, 1.0, 0, False
    # One place each for `certify` and `iterate`: the compiler copies them wherever they stand.
    while True:
        value_scale = value_range(store.system.V, problem.mass)
        unit = problem.tol * max(max(1.0, value_scale), problem.gap_unit)
        if complementarity <= CHECK_FROM * unit or iteration == limit or broken:
            gap = certify(store, problem, answer, keep, held)
            stale = 0 if gap < 0.5 * least else stale + 1
            least = min(least, gap)
            if gap <= problem.tol or stale >= PATIENCE or iteration == limit or broken:
                return iteration
        refined = complementarity <= (REFINE_FROM if keep.size > 0 else REFINE_PLAIN_FROM) * unit
        only_centre = start.centring and step < SHORT_STEP
        step, complementarity = iterate(
            store, max(value_scale, MIN_RANGE), complementarity, weight, refined, only_centre
        )
        iteration += 1
        broken = not (step > MIN_STEP and np.isfinite(complementarity))


@glue
def certify(store, problem, answer, keep, held):
    """Relative gap of the feasible point that belongs to the iterate, which is kept if it is the best so far."""
    E, E5, rows, rows4, _, _ = store.at
    V, A = store.system.V, store.A
    for k in range(keep.size):
        problem.xi[keep[k]] = store.border.hinge[slot.XI, k]
    for b in range(E.shape[1]):
        recover_kernel(E, rows, b, E[slot.KERNEL, b])
        sum_to_one(
            E[slot.TRUE_LOWER, b],
            E[slot.TRUE_WIDTH, b],
            E[slot.KERNEL, b],
            missing=rows[slot.SCRATCH_1, b],
            above=rows[slot.SCRATCH_2, b],
            room=rows[slot.SCRATCH_3, b],
        )
    backward(E5, rows4, A, problem.mass, store.kl, held, V, problem.order, problem.scratch)
    forward(E5, rows4, A, problem.mu, problem.flow)
    gap = row_gap(rows4, V.shape[0], V.shape[1] * A, store.kl)
    gap += hinge_gaps(problem.tables, rows, problem.data, problem.xi)
    scale = max(max(1.0, value_range(V, problem.mass)), problem.gap_unit)
    if not (gap / scale < answer.record[0] / answer.record[1]):
        return gap / scale if np.isfinite(gap) else np.inf
    answer.record[0], answer.record[1] = gap, scale
    copy_out(E5, rows4, V, problem.xi, answer.q, answer.p, answer.V, answer.xi)
    return gap / scale


@inner
def finish(lower, upper, shift, units, p, V, xi):
    """Undo the shift of c and the units of the hinges; the last step's kernel, which nothing uses, is a centre."""
    H, S, A, _ = p.shape
    total = 0.0
    for h in range(H - 1, -1, -1):
        total += shift[h]
        for s in range(S):
            V[h, s] += total
    for j in range(xi.size):
        xi[j] /= units[j]
    for s in range(S):
        for a in range(A):
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
            for a in range(A):
                for t in range(S):
                    p[h, s, a, t] = min(max(p[h, s, a, t], lower[h, s, a, t]), upper[h, s, a, t])
