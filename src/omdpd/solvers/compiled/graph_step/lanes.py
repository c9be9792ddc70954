"""Four Newton systems at once: a sweep carries the flow step and columns of the hinges, one lane each.

A sweep over a sparse graph waits for indices and for scattered loads of V; with the lanes of a state side by side each
is paid once for four.  Lanes are written out, so that they stay in registers and become one vector instruction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays
from omdpd.solvers.compiled.graph_step.active import Active, Gradients
from omdpd.solvers.compiled.graph_step.hinges import Marks
from omdpd.solvers.compiled.graph_step.problem import Problem
from omdpd.solvers.compiled.options import INNER, SUMS

LANES = 4


class Lanes(NamedTuple):
    """As `Gradients`, (N, 4) and (R, 4); empty where there is no multiplier."""

    u: Floats
    v: Floats
    rest: Floats
    along: Floats
    image: Floats
    f: Floats
    deviation: Floats


@njit(**INNER)
def room_for_lanes(N: int, R: int, m: int) -> Lanes:
    """Uninitialised."""
    if m == 0:
        N = R = 0
    six = np.empty((6, N, LANES))
    return Lanes(six[0], six[1], six[2], six[3], six[4], six[5], np.empty((R, LANES)))


@njit(**INNER)
def solve_flow_and_columns(
    problem: Problem, active: Active, extra: int, free: Marks, n_free: int, cg: Gradients, lanes: Lanes, X: Floats,
    tol: float, limit: int,
) -> int:  # fmt: skip
    """cg.v := M^-1 b for the flow step, whose L^-1 b is in cg.rest, and X[:, k] := M^-1 G^T (w d_j), j the k-th free.

    Returns the iterations of conjugate gradients, each of which serves up to four systems.
    """
    n = 0
    which = np.empty(LANES, np.int64)
    for first in range(-1, n_free, LANES):
        which[:] = -1
        k = 0
        for j in range(free.size):
            if free[j]:
                if first <= k < first + LANES:
                    which[k - first] = j
                k += 1
        load_columns(problem, active, which, lanes.f, lanes.rest)
        if first < 0:
            for i in range(cg.rest.size):
                lanes.rest[i, 0] = cg.rest[i]
        n += solve_lanes(problem.g, active, extra, lanes, tol, limit)
        for b in range(LANES):
            if first + b < 0:
                for i in range(cg.v.size):
                    cg.v[i] = lanes.v[i, b]
            elif first + b < n_free:
                for i in range(cg.v.size):
                    X[i, first + b] = lanes.v[i, b]
    return n


@njit(**INNER)
def solve_lanes(g: Arrays, active: Active, extra: int, lanes: Lanes, tol: float, limit: int) -> int:
    """v := M^-1 b in every lane, as `solve_newton`; iterations of the slowest lane."""
    u, rest, along, image = lanes.u, lanes.rest, lanes.along, lanes.image
    size, wanted, factor = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    n, busy = 0, False
    if extra == 0:
        u[:] = rest
    else:
        u[:] = 0.0
        along[:] = rest
        products(rest, rest, size)
        for b in range(LANES):
            wanted[b] = tol * tol * size[b]
            busy = busy or size[b] > wanted[b]
    while busy and n < limit:
        n += 1
        backward_lanes(g, active, along, lanes.v, lanes.deviation)
        forward_lanes(g, active, along, lanes.deviation, lanes.f, image)
        products(along, image, factor)
        # A lane that is there already stays where it is.
        for b in range(LANES):
            factor[b] = size[b] / factor[b] if size[b] > wanted[b] else 0.0
        add_scaled(u, along, factor, 1.0)
        add_scaled(rest, image, factor, -1.0)
        for b in range(LANES):
            factor[b] = size[b]
        products(rest, rest, size)
        busy = False
        for b in range(LANES):
            factor[b] = size[b] / factor[b] if size[b] > wanted[b] else 0.0
            busy = busy or size[b] > wanted[b]
        turn(along, rest, factor)
    backward_lanes(g, active, u, lanes.v, lanes.deviation)
    return n


@njit(**SUMS)
def load_columns(problem: Problem, active: Active, which: npt.NDArray[np.int64], f: Floats, rest: Floats) -> None:
    """rest[:, b] := L^-1 G^T (w d_j) with j = which[b], zero where that is negative; f is scratch."""
    g, d = problem.g, problem.d
    for b in range(LANES):
        j = which[b]
        f[:, b] = 0.0
        for h in range(g.layers.size - 1):
            spread = 0.0
            for i in range(g.layers[h], g.layers[h + 1]):
                have = f[i, b]
                if j >= 0:
                    for k in range(active.first[i], active.first[i + 1]):
                        have += g.copies[active.row[k]] * d[active.row[k], j]
                rest[i, b] = have * active.root[i]
                if j >= 0:
                    for k in range(active.first[i], active.first[i + 1]):
                        flow = active.share[k] * have - g.copies[active.row[k]] * d[active.row[k], j]
                        spread += active.spread[k] * flow
                        for e in range(active.entries[k], active.entries[k + 1]):
                            f[active.successors[e], b] += flow * active.probabilities[e]
            if h + 2 < g.layers.size and spread != 0.0:
                for i in range(g.layers[h + 1], g.layers[h + 2]):
                    f[i, b] += spread / g.S * g.members[i]


@njit(**SUMS)
def backward_lanes(g: Arrays, active: Active, u: Floats, v: Floats, deviation: Floats) -> None:
    """v := L^-T u, and p_a.v' - p_bar.v' for every active row, in four lanes."""
    for h in range(g.layers.size - 2, -1, -1):
        m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
        if h + 2 < g.layers.size:
            for i in range(g.layers[h + 1], g.layers[h + 2]):
                chance = g.members[i] / g.S
                m0 += chance * v[i, 0]
                m1 += chance * v[i, 1]
                m2 += chance * v[i, 2]
                m3 += chance * v[i, 3]
        for i in range(g.layers[h], g.layers[h + 1]):
            b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
            for k in range(active.first[i], active.first[i + 1]):
                chance = active.spread[k]
                z0, z1, z2, z3 = chance * m0, chance * m1, chance * m2, chance * m3
                for e in range(active.entries[k], active.entries[k + 1]):
                    chance, t = active.probabilities[e], active.successors[e]
                    z0 += chance * v[t, 0]
                    z1 += chance * v[t, 1]
                    z2 += chance * v[t, 2]
                    z3 += chance * v[t, 3]
                deviation[k, 0] = z0
                deviation[k, 1] = z1
                deviation[k, 2] = z2
                deviation[k, 3] = z3
                share = active.share[k]
                b0 += share * z0
                b1 += share * z1
                b2 += share * z2
                b3 += share * z3
            for k in range(active.first[i], active.first[i + 1]):
                deviation[k, 0] -= b0
                deviation[k, 1] -= b1
                deviation[k, 2] -= b2
                deviation[k, 3] -= b3
            root = active.root[i]
            v[i, 0] = u[i, 0] * root + b0
            v[i, 1] = u[i, 1] * root + b1
            v[i, 2] = u[i, 2] * root + b2
            v[i, 3] = u[i, 3] * root + b3


@njit(**SUMS)
def forward_lanes(g: Arrays, active: Active, u: Floats, deviation: Floats, f: Floats, out: Floats) -> None:
    """out := u + L^-1 C v, with the deviations of v = L^-T u, in four lanes; f is scratch."""
    f[:] = 0.0
    for h in range(g.layers.size - 1):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            root, total = active.root[i], active.total[i]
            a0, a1, a2, a3 = f[i, 0], f[i, 1], f[i, 2], f[i, 3]
            out[i, 0] = u[i, 0] + a0 * root
            out[i, 1] = u[i, 1] + a1 * root
            out[i, 2] = u[i, 2] + a2 * root
            out[i, 3] = u[i, 3] + a3 * root
            for k in range(active.first[i], active.first[i + 1]):
                share, uniform = active.share[k], active.spread[k]
                z0 = share * (a0 + total * deviation[k, 0])
                z1 = share * (a1 + total * deviation[k, 1])
                z2 = share * (a2 + total * deviation[k, 2])
                z3 = share * (a3 + total * deviation[k, 3])
                s0 += uniform * z0
                s1 += uniform * z1
                s2 += uniform * z2
                s3 += uniform * z3
                for e in range(active.entries[k], active.entries[k + 1]):
                    chance, t = active.probabilities[e], active.successors[e]
                    f[t, 0] += chance * z0
                    f[t, 1] += chance * z1
                    f[t, 2] += chance * z2
                    f[t, 3] += chance * z3
        if h + 2 < g.layers.size:
            for i in range(g.layers[h + 1], g.layers[h + 2]):
                chance = g.members[i] / g.S
                f[i, 0] += chance * s0
                f[i, 1] += chance * s1
                f[i, 2] += chance * s2
                f[i, 3] += chance * s3


@njit(**SUMS)
def products(one: Floats, two: Floats, out: Floats) -> None:
    """out[b] := one[:, b].two[:, b]."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for i in range(one.shape[0]):
        t0 += one[i, 0] * two[i, 0]
        t1 += one[i, 1] * two[i, 1]
        t2 += one[i, 2] * two[i, 2]
        t3 += one[i, 3] * two[i, 3]
    out[0], out[1], out[2], out[3] = t0, t1, t2, t3


@njit(**SUMS)
def add_scaled(target: Floats, source: Floats, factor: Floats, sign: float) -> None:
    """target[:, b] += sign factor[b] source[:, b]."""
    t0, t1, t2, t3 = sign * factor[0], sign * factor[1], sign * factor[2], sign * factor[3]
    for i in range(target.shape[0]):
        target[i, 0] += t0 * source[i, 0]
        target[i, 1] += t1 * source[i, 1]
        target[i, 2] += t2 * source[i, 2]
        target[i, 3] += t3 * source[i, 3]


@njit(**SUMS)
def turn(along: Floats, rest: Floats, factor: Floats) -> None:
    """along[:, b] := rest[:, b] + factor[b] along[:, b]."""
    t0, t1, t2, t3 = factor[0], factor[1], factor[2], factor[3]
    for i in range(along.shape[0]):
        along[i, 0] = rest[i, 0] + t0 * along[i, 0]
        along[i, 1] = rest[i, 1] + t1 * along[i, 1]
        along[i, 2] = rest[i, 2] + t2 * along[i, 2]
        along[i, 3] = rest[i, 3] + t3 * along[i, 3]
