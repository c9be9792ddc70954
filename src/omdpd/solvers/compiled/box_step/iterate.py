"""One iteration of Mehrotra's predictor-corrector method on the mirror step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omdpd.jit.decorators import glue, inline, inner
from omdpd.jit.pointers import assume_distinct
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.box_step import slots as slot
from omdpd.solvers.compiled.box_step.hinges import (
    advance_hinges,
    aim_hinges,
    border,
    dots,
    move_hinges,
    price,
    response,
    schur,
    solve_border,
)
from omdpd.solvers.compiled.box_step.newton import couple, factor_large, factor_small, gram_large, gram_small, solve
from omdpd.solvers.compiled.box_step.rows import (
    advance,
    balance,
    corrector_terms,
    directions,
    moved_terms,
    outflow_terms,
    predictor_terms,
    spread,
    weigh,
)
from omdpd.solvers.compiled.box_step.steps import affine_moves, multiplier_moves
from omdpd.solvers.compiled.box_step.storage import BLAS_STATES, Storage, extent

# A proximal term on the entries, relative to the range of V: without it rounding in V is magnified by 1e10.
PROXIMAL = 1e-8
# Mehrotra's centring, the cube of the part of the complementarity that the predictor leaves, is at least this.
MIN_CENTRING = 1e-8
# The step goes this part of the way to the boundary: from 0.99 while the complementarity is large to nearly all of it.
NEAR_BOUNDARY, AT_BOUNDARY, APPROACH = 0.99, 1.0 - 1e-5, 0.1
# No decrease at all leaves the step whole.
NO_DECREASE = 1e-300


class System(NamedTuple):
    """The Newton system: V (H, S), its moves, M and its factors (H, S, S), scratch (S, S) and (S,)."""

    V: Floats
    dV: Floats
    correction: Floats
    M: Floats
    off: Floats
    K: Floats
    G: Floats
    square: Floats
    line: Floats


class Border(NamedTuple):
    """The hinges that presolve kept: their slots, tables d, X = M^{-1} B, P, the Schur matrix and its factor.

    `dq` (`dq3`: by step) and `along` are a reply to a move and its products with the tables; `dxi` is the move of the
    prices; the last two are zeros.
    """

    hinge: Floats
    tables: Floats
    tables4: Floats
    X: Floats
    P: Floats
    P4: Floats
    dq: Floats
    dq3: Floats
    full: Floats
    factor: Floats
    along: Floats
    dxi: Floats
    no_price: Floats
    no_right: Floats


class Store(NamedTuple):
    """Everything an iteration reads and writes; see `slots`.  Borrowed, see `pointers.borrow`."""

    at: Storage
    system: System
    border: Border
    mu: Floats
    A: int
    kl: bool


@inline
def stationarity(E, rows, b, extent, kl, ahead, priced, residual, curvature):
    """Curvature of every row and minus its residual, multipliers of the slacks left out of the latter.

    Euclid: c - V_s + tau - q.  KL: c - V_s + tau - log q; adding - sum(l w* - u z*) + nu makes it delta, and the row's
    answer to a change dy of its exponent is q e^(delta + dy).  Where q must grow, log q is linearised: curvature 1/q.
    Where it must shrink, the secant of the answer between dy = 0 and dy = -delta takes its place: curvature
    delta / (e^delta - 1) / q.  Then q stays positive at dy = 0, and yet a state that has to keep its mass moves V by
    all of delta, be it in the thousands; a tangent at either end does only one of the two.  A fixed entry has neither
    w* nor z*: its multiplier is the one that makes V - tau vanish, and enters the sum in their place.  V: own value and
    `ahead`.
    """
    assume_distinct()
    S, N = extent
    if not kl:
        for n in range(N):
            q, nu = rows[slot.OCCUPANCY, b, n], rows[slot.NU, b, n]
            residual[n] = rows[slot.C, b, n] + (rows[slot.TAU, b, n] - rows[slot.OWN_VALUE, b, n]) - q
            curvature[n] = 1.0 + nu / q if nu > 0.0 else 1.0
        return
    for n in range(N):
        priced[n] = -rows[slot.NU, b, n]
    for t in range(S):
        for n in range(N):
            low, wide = E[slot.LOWER, b, t, n], E[slot.WIDTH, b, t, n]
            free = low * E[slot.LOW_MULTIPLIER, b, t, n] - (low + wide) * E[slot.HIGH_MULTIPLIER, b, t, n]
            priced[n] += free if wide > 0.0 else low * (rows[slot.TAU, b, n] - ahead[t, n])
    for n in range(N):
        if rows[slot.LIVE, b, n] > 0.0:
            q = rows[slot.OCCUPANCY, b, n]
            residual[n] = rows[slot.C, b, n] + (rows[slot.TAU, b, n] - rows[slot.OWN_VALUE, b, n]) - np.log(q)
            delta = residual[n] - priced[n]
            slope = 1.0 if delta >= 0.0 else delta / np.expm1(delta)
            curvature[n] = (slope + rows[slot.NU, b, n]) / q


@glue
def build(store, reg, min_curvature):
    """Factor the Newton matrix of the current point, border included; dV is the predictor's right-hand side."""
    E, E5, rows, rows4, spare, spare4 = store.at
    newton, hinges, A = store.system, store.border, store.A
    nb, small = E.shape[1], newton.M.shape[1] < BLAS_STATES
    for b in range(nb + 1):
        # The last block has no entries: it is lent those of the block before, which it leaves alone.
        e, size = min(b, nb - 1), extent(E5, b)
        spread(newton.V, b, rows4[slot.OWN_VALUE, b], E5[slot.FORCE, e])
        stationarity(
            E, rows, b, size, store.kl, ahead=E[slot.FORCE, e], priced=rows[slot.SCRATCH_1, b],
            residual=rows[slot.RESIDUAL, b], curvature=rows[slot.CURVATURE, b],
        )  # fmt: skip
        weigh(
            E, rows, b, size, reg, d=E[slot.NEWTON_WEIGHT, e], f=E[slot.PSEUDO_KERNEL, e],
            theta=rows[slot.SCRATCH_1, b], kappa=rows[slot.SCRATCH_2, b], omega=rows[slot.SCRATCH_3, b],
            inverse_theta=rows[slot.INVERSE_THETA, b], ratio=rows[slot.KAPPA_BY_THETA, b],
            inverse_gamma=rows[slot.INVERSE_GAMMA, b], by_gamma=spare[0], by_theta=spare[1],
        )  # fmt: skip
        if b < nb:
            if small:
                gram_small(E5, b, spare4[0], spare4[1], newton.M)
            else:
                gram_large(E, b, spare[0], spare[1], newton.M, newton.square)
        couple(E5, rows4, b, spare4[0], A, newton.M, newton.off)
        border(spare4[0], rows4, hinges.tables4, b, A, hinges.X)
        predictor_terms(
            E, rows, b, size, force=E[slot.FORCE, e], pull=rows[slot.SCRATCH_1, b], level=rows[slot.SCRATCH_2, b],
            right=rows[slot.RIGHT, b], tau_offset=rows[slot.TAU_OFFSET, b],
        )  # fmt: skip
        outflow_terms(E, rows, b, size, x=spare[0], dq=rows[slot.FLOW_MOVE, b])
        balance(spare4[0], rows4, b, A, store.mu, newton.dV)
    if small:
        factor_small(newton.M, newton.off, newton.K, newton.G, min_curvature)
    else:
        factor_large(newton.M, newton.off, newton.K, newton.G, newton.square, min_curvature)
    if hinges.dxi.size > 0:
        for j in range(hinges.dxi.size):
            solve(newton.K, newton.G, hinges.X[j], newton.line)
            response(E5, rows4, hinges.tables4[j], A, hinges.X[j], hinges.P4[j])
        schur(hinges.tables, hinges.P, rows, hinges.hinge, hinges.full, hinges.factor)


@inner
def add_prices(right, tables, sign, change):
    """right += sign sum_j change_j d_j."""
    for j in range(change.size):
        for b in range(right.shape[0]):
            for n in range(right.shape[1]):
                right[b, n] += sign * change[j] * tables[j, b, n]


@glue
def solve_values(store):
    """dV and dxi from the right-hand sides in dV and the rows; the rows' then holds the change of prices too."""
    at, newton, hinges = store.at, store.system, store.border
    solve(newton.K, newton.G, newton.dV, newton.line)
    if hinges.dxi.size > 0:
        response(at.E5, at.rows4, at.rows4[slot.RIGHT], store.A, newton.dV, hinges.dq3)
        dots(hinges.tables, hinges.dq, hinges.dxi)
        solve_border(hinges.factor, hinges.dxi, hinges.hinge[slot.BORDER_RIGHT], hinges.X, newton.dV)
        add_prices(at.rows[slot.RIGHT], hinges.tables, -1.0, hinges.dxi)


@glue
def set_directions(store, b, e, size):
    """dq, dtau and dw of a block from dV."""
    E, rows = store.at.E, store.at.rows
    spread(store.system.dV, b, store.at.rows4[slot.OWN_VALUE, b], store.at.spare4[1])
    directions(
        E, rows, b, size, ahead=store.at.spare[1], pull=rows[slot.SCRATCH_1, b], level=rows[slot.SCRATCH_2, b],
        dw=E[slot.LOW_SLACK_MOVE, e], dq=rows[slot.OCCUPANCY_MOVE, b], dtau=rows[slot.TAU_MOVE, b],
    )  # fmt: skip


@glue
def refine(store):
    """Measure how far the moved flow is from balance and add the Newton step that removes it to dV and dxi."""
    at, newton, hinges = store.at, store.system, store.border
    for b in range(at.rows.shape[1]):
        e, size = min(b, at.E.shape[1] - 1), extent(at.E5, b)
        set_directions(store, b, e, size)
        moved_terms(at.E, at.rows, b, size, x=at.spare[0], dq=at.rows[slot.FLOW_MOVE, b])
        balance(at.spare4[0], at.rows4, b, store.A, store.mu, newton.correction)
    solve(newton.K, newton.G, newton.correction, newton.line)
    add_scaled(newton.dV, 1.0, newton.correction)
    if hinges.dxi.size > 0:
        response(at.E5, at.rows4, hinges.no_right, store.A, newton.correction, hinges.dq3)
        dots(hinges.tables, hinges.dq, hinges.along)
        solve_border(hinges.factor, hinges.along, hinges.no_price, hinges.X, newton.dV)
        add_prices(at.rows[slot.RIGHT], hinges.tables, -1.0, hinges.along)
        for j in range(hinges.dxi.size):
            hinges.dxi[j] += hinges.along[j]


@glue
def iterate(store, value_scale, complementarity, barrier_weight, refined, only_centre):
    """Predictor, corrector, step; returns the step length (zero: it broke down) and the new complementarity.

    Everything that can be done with one block is done before the next one is touched.
    """
    E, E5, rows, rows4, spare, spare4 = store.at
    hinges, dV = store.border, store.system.dV
    hinged, blocks, last = hinges.dxi.size > 0, rows.shape[1], E.shape[1] - 1
    build(store, PROXIMAL * value_scale, 1.0 / value_scale)
    aim_hinges(hinges.hinge, 0.0, 0.0)
    solve_values(store)
    limit, second = 0.0, 0.0
    for b in range(blocks):
        e, size = min(b, last), extent(E5, b)
        set_directions(store, b, e, size)
        by_q, most, products = rows[slot.OCCUPANCY_RATIO, b], rows[slot.SCRATCH_2, b], rows[slot.SCRATCH_3, b]
        reach, total = affine_moves(E, rows, b, size, by_q, most, products)
        limit = max(limit, reach)
        second += total
    if hinged:
        dots(hinges.tables, rows[slot.OCCUPANCY_MOVE], hinges.along)
        reach, total = move_hinges(hinges.hinge, hinges.dxi, hinges.along)
        limit = max(limit, reach)
        second += total
    step = min(1.0, 1.0 / limit)
    reached = (1.0 - step) * complementarity + step * step * second
    sigma = min(max((max(reached, 0.0) / complementarity) ** 3, MIN_CENTRING), 1.0)
    second = 0.0 if only_centre else 1.0
    target = (1.0 if only_centre else sigma) * complementarity / barrier_weight

    if hinged:
        add_prices(rows[slot.RIGHT], hinges.tables, 1.0, hinges.dxi)
        aim_hinges(hinges.hinge, target, second)
    for b in range(blocks):
        e, size = min(b, last), extent(E5, b)
        corrector_terms(
            E, rows, b, size, target, second, low_correction=E[slot.LOW_CORRECTION, e],
            high_correction=E[slot.HIGH_CORRECTION, e], force=E[slot.FORCE, e],
            nu_correction=rows[slot.NU_CORRECTION, b], pull=rows[slot.SCRATCH_2, b], level=rows[slot.SCRATCH_3, b],
            right=rows[slot.RIGHT, b], tau_offset=rows[slot.TAU_OFFSET, b],
        )  # fmt: skip
        outflow_terms(E, rows, b, size, x=spare[0], dq=rows[slot.FLOW_MOVE, b])
        balance(spare4[0], rows4, b, store.A, store.mu, dV)
    solve_values(store)
    if refined:
        refine(store)
    limit = NO_DECREASE
    for b in range(blocks):
        e, size = min(b, last), extent(E5, b)
        set_directions(store, b, e, size)
        low, high = E[slot.LOW_MULTIPLIER_MOVE, e], E[slot.HIGH_MULTIPLIER_MOVE, e]
        nu, most = rows[slot.NU_MOVE, b], rows[slot.SCRATCH_2, b]
        limit = max(limit, multiplier_moves(E, rows, b, size, low, high, nu, most))
    if hinged:
        dots(hinges.tables, rows[slot.OCCUPANCY_MOVE], hinges.along)
        limit = max(limit, move_hinges(hinges.hinge, hinges.dxi, hinges.along)[0])
    towards = min(max(1.0 - APPROACH * complementarity / value_scale, NEAR_BOUNDARY), AT_BOUNDARY)
    step = min(1.0, towards / limit)
    if not np.isfinite(reached + dV.sum()):
        return 0.0, complementarity
    return step, move(store, step)


@glue
def move(store, step):
    """Take the step; returns the new complementarity."""
    E, rows, hinges = store.at.E, store.at.rows, store.border
    total = 0.0
    for b in range(rows.shape[1]):
        e = min(b, E.shape[1] - 1)
        total += advance(
            E, rows, b, extent(store.at.E5, b), step, q=rows[slot.OCCUPANCY, b], tau=rows[slot.TAU, b],
            nu=rows[slot.NU, b], residual=rows[slot.SUM_RESIDUAL, b], products=rows[slot.SCRATCH_2, b],
            low_slack=E[slot.LOW_SLACK, e], high_slack=E[slot.HIGH_SLACK, e], low_multiplier=E[slot.LOW_MULTIPLIER, e],
            high_multiplier=E[slot.HIGH_MULTIPLIER, e], low_inverse=E[slot.LOW_INVERSE, e],
            high_inverse=E[slot.HIGH_INVERSE, e],
        )  # fmt: skip
    add_scaled(store.system.V, step, store.system.dV)
    if hinges.dxi.size > 0:
        total += advance_hinges(hinges.hinge, step)
        dots(hinges.tables, rows[slot.OCCUPANCY], hinges.hinge[slot.VALUE])
        price(hinges.tables, hinges.hinge[slot.XI], rows[slot.BASE_C], rows[slot.C])
    return total


@inner
def add_scaled(x, scale, y):
    """x += scale y."""
    for h in range(x.shape[0]):
        for s in range(x.shape[1]):
            x[h, s] += scale * y[h, s]
