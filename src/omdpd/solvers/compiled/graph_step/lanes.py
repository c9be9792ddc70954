"""Four Newton systems at once: a sweep carries the flow step and columns of the hinges, one lane each.

A sweep over a sparse graph waits for indices and for scattered loads of V; with the lanes of a state side by side each
is paid once for four.  Lanes are written out, so that they stay in registers and become one vector instruction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays
from omdpd.solvers.compiled.graph_step.active import MAX_GRADIENTS, ROUNDED_RESIDUAL, Active, Gradients
from omdpd.solvers.compiled.graph_step.hinges import Marks, count_free
from omdpd.solvers.compiled.graph_step.problem import GraphProblem

LANES = 4
# A column is not asked for more than this part of |d_j|^2 in the metric of w: rounding of the curvature it is held to.
MIN_COLUMN = 1e-13


class Lanes(NamedTuple):
    """As `Gradients`, (N, 4), empty where there is no multiplier; and the columns X (N, m) that they find."""

    F: Floats
    v: Floats
    X: Floats


@rule
def empty_lanes(N: int, m: int) -> Lanes:
    """Uninitialised."""
    two = np.empty((2, N if m > 0 else 0, LANES))
    return Lanes(two[0], two[1], np.empty((N, m)))


@rule
def solve_flow_and_columns(
    problem: GraphProblem,
    active: Active,
    choices: int,
    free: Marks,
    cg: Gradients,
    lanes: Lanes,
    tol: float,
    column: float,
) -> int:
    """cg.v := M^-1 b for the flow step, whose F is in cg.F, and X[:, k] := M^-1 G^T (w d_j), j the k-th free.

    Returns the iterations of conjugate gradients, each of which serves up to four systems.
    """
    n, n_free = 0, count_free(free)
    which, weight = np.empty(LANES, np.int64), np.empty(LANES)
    for first in range(-1, n_free, LANES):
        which[:] = -1
        k = 0
        for j in range(free.size):
            if free[j]:
                if first <= k < first + LANES:
                    which[k - first] = j
                k += 1
        load_columns(problem, active, which, lanes.F, weight)
        if first < 0:
            for i in range(cg.F.size):
                lanes.F[i, 0] = cg.F[i]
        n += solve_lanes(problem.g, active, choices, lanes, weight, tol, column)
        for b in range(LANES):
            if first + b < 0:
                for i in range(cg.v.size):
                    cg.v[i] = lanes.v[i, b]
            elif first + b < n_free:
                for i in range(cg.v.size):
                    lanes.X[i, first + b] = lanes.v[i, b]
    return n


@rule
def solve_lanes(
    g: Arrays, active: Active, choices: int, lanes: Lanes, weight: Floats, tol: float, column: float
) -> int:
    """v := M^-1 b in every lane, as `solve_newton`; iterations of the slowest lane.

    `weight` is d.(w d) of a column, 0 of another system.  A column x is a means to know what is left of that beyond
    M, the curvature T = d.(w d) - x.M x of its multiplier, so its error in M is held to a part `column` of T.
    """
    z, rest, along, image = np.zeros((4, choices, LANES))
    size, start, found, curvature = np.zeros(LANES), np.empty(LANES), np.zeros(LANES), np.full(LANES, np.inf)
    F, v = lanes.F, lanes.v
    v[:] = F
    backward_lanes(g, active, v, rest)
    sizes_in_metric(active, F, start)
    for b in range(LANES):
        for k in range(choices):
            size[b] += rest[k, b] * rest[k, b]
    n = 0
    along[:] = rest
    while n < MAX_GRADIENTS:
        busy = False
        for b in range(LANES):
            if weight[b] > 0.0:
                left = size[b] > max(column * (weight[b] - start[b] + found[b]), MIN_COLUMN * weight[b])
            else:
                left = size[b] > ROUNDED_RESIDUAL * start[b] and size[b] * (curvature[b] - 1.0) > tol * tol * start[b]
            busy = busy or left
            if not left:
                along[:, b] = 0.0
        if not busy:
            break
        n += 1
        forward_lanes(g, active, along, v)
        backward_lanes(g, active, v, image)
        descend_lanes(z, rest, along, image, size, found, curvature)
    if n > 0:
        forward_lanes(g, active, z, v)
        for i in range(v.shape[0]):
            for b in range(LANES):
                v[i, b] = F[i, b] - v[i, b]
        backward_lanes(g, active, v, image)
    return n


@rule
def descend_lanes(
    z: Floats, rest: Floats, along: Floats, image: Floats, size: Floats, found: Floats, curvature: Floats
) -> None:
    """One step of conjugate gradients in place in every lane whose direction is not zero; image lacks the identity.

    `found` grows by what the step adds to A^T r.z.
    """
    for b in range(LANES):
        norm, bend, left = 0.0, 0.0, 0.0
        for k in range(z.shape[0]):
            norm += along[k, b] * along[k, b]
            bend += along[k, b] * image[k, b]
        if norm > 0.0:
            curvature[b] = (bend + norm) / norm
            length = size[b] / (bend + norm)
            found[b] += length * size[b]
            for k in range(z.shape[0]):
                z[k, b] += length * along[k, b]
                rest[k, b] -= length * (image[k, b] + along[k, b])
                left += rest[k, b] * rest[k, b]
            for k in range(z.shape[0]):
                along[k, b] = rest[k, b] + (left / size[b]) * along[k, b]
            size[b] = left


@rule
def load_columns(
    problem: GraphProblem, active: Active, which: npt.NDArray[np.int64], F: Floats, weight: Floats
) -> None:
    """F[:, b] := G_pi^-T G^T (w d_j) with j = which[b], and weight[b] := d_j.(w d_j); zero where that is negative."""
    g, d = problem.g, problem.d
    F[:] = 0.0
    weight[:] = 0.0
    spread = np.empty(LANES)
    low, high = 0, LANES
    while low < LANES and which[low] < 0:
        low += 1
    while high > low and which[high - 1] < 0:
        high -= 1
    for h in range(g.layers.size - 1):
        spread[:] = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            for k in range(active.first[i], active.first[i + 1]):
                r = active.row[k]
                for b in range(low, high):
                    flow = g.copies[r] * d[r, which[b]]
                    F[i, b] += flow
                    weight[b] += flow * d[r, which[b]]
            for k in range(active.first[i], active.first[i + 1]):
                r = active.row[k]
                for b in range(low, high):
                    flow = active.share[k] * F[i, b] - g.copies[r] * d[r, which[b]]
                    spread[b] += active.spread[k] * flow
                    for e in range(active.entries[k], active.entries[k + 1]):
                        F[active.successors[e], b] += flow * active.probabilities[e]
        if h + 2 < g.layers.size:
            for b in range(low, high):
                if spread[b] != 0.0:
                    for i in range(g.layers[h + 1], g.layers[h + 2]):
                        F[i, b] += spread[b] / g.S * g.members[i]


@rule
def sizes_in_metric(active: Active, F: Floats, out: Floats) -> None:
    """out[b] := |r|^2 of every lane, as `size_in_metric`."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for i in range(F.shape[0]):
        inverse = active.inverse[i]
        t0 += inverse * F[i, 0] * F[i, 0]
        t1 += inverse * F[i, 1] * F[i, 1]
        t2 += inverse * F[i, 2] * F[i, 2]
        t3 += inverse * F[i, 3] * F[i, 3]
    out[0], out[1], out[2], out[3] = t0, t1, t2, t3


@rule
def forward_lanes(g: Arrays, active: Active, z: Floats, F: Floats) -> None:
    """F := G_pi^-T B z in four lanes, as `forward`."""
    F[:] = 0.0
    c = 0
    for h in range(g.layers.size - 1):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            start, end = active.first[i], active.first[i + 1]
            a0, a1, a2, a3 = F[i, 0], F[i, 1], F[i, 2], F[i, 3]
            chooses = end > start + 1
            if not chooses and a0 == 0.0 and a1 == 0.0 and a2 == 0.0 and a3 == 0.0:
                continue
            if chooses:
                for k in range(start, end):
                    root, n = active.root[k], c + k - start
                    a0 -= root * z[n, 0]
                    a1 -= root * z[n, 1]
                    a2 -= root * z[n, 2]
                    a3 -= root * z[n, 3]
            for k in range(start, end):
                share, uniform = active.share[k], active.spread[k]
                z0, z1, z2, z3 = share * a0, share * a1, share * a2, share * a3
                if chooses:
                    root, n = active.root[k], c + k - start
                    z0 += root * z[n, 0]
                    z1 += root * z[n, 1]
                    z2 += root * z[n, 2]
                    z3 += root * z[n, 3]
                s0 += uniform * z0
                s1 += uniform * z1
                s2 += uniform * z2
                s3 += uniform * z3
                for e in range(active.entries[k], active.entries[k + 1]):
                    chance, t = active.probabilities[e], active.successors[e]
                    F[t, 0] += chance * z0
                    F[t, 1] += chance * z1
                    F[t, 2] += chance * z2
                    F[t, 3] += chance * z3
            if chooses:
                c += end - start
        if h + 2 < g.layers.size and (s0 != 0.0 or s1 != 0.0 or s2 != 0.0 or s3 != 0.0):
            for i in range(g.layers[h + 1], g.layers[h + 2]):
                chance = g.members[i] / g.S
                F[i, 0] += chance * s0
                F[i, 1] += chance * s1
                F[i, 2] += chance * s2
                F[i, 3] += chance * s3


@rule
def backward_lanes(g: Arrays, active: Active, F: Floats, out: Floats) -> None:
    """F := v in place and out := B^T v in four lanes, as `backward`."""
    c = out.shape[0]
    for h in range(g.layers.size - 2, -1, -1):
        m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
        if h + 2 < g.layers.size:
            for i in range(g.layers[h + 1], g.layers[h + 2]):
                chance = g.members[i] / g.S
                m0 += chance * F[i, 0]
                m1 += chance * F[i, 1]
                m2 += chance * F[i, 2]
                m3 += chance * F[i, 3]
        for i in range(g.layers[h + 1] - 1, g.layers[h] - 1, -1):
            start, end = active.first[i], active.first[i + 1]
            b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
            chooses = end > start + 1
            if chooses:
                c -= end - start
            for k in range(start, end):
                chance, share = active.spread[k], active.share[k]
                z0, z1, z2, z3 = chance * m0, chance * m1, chance * m2, chance * m3
                for e in range(active.entries[k], active.entries[k + 1]):
                    chance, t = active.probabilities[e], active.successors[e]
                    z0 += chance * F[t, 0]
                    z1 += chance * F[t, 1]
                    z2 += chance * F[t, 2]
                    z3 += chance * F[t, 3]
                if chooses:
                    n = c + k - start
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = z0, z1, z2, z3
                b0 += share * z0
                b1 += share * z1
                b2 += share * z2
                b3 += share * z3
            if chooses:
                for k in range(start, end):
                    root, n = active.root[k], c + k - start
                    out[n, 0] = root * (out[n, 0] - b0)
                    out[n, 1] = root * (out[n, 1] - b1)
                    out[n, 2] = root * (out[n, 2] - b2)
                    out[n, 3] = root * (out[n, 3] - b3)
            inverse = active.inverse[i]
            F[i, 0] = F[i, 0] * inverse + b0
            F[i, 1] = F[i, 1] * inverse + b1
            F[i, 2] = F[i, 2] * inverse + b2
            F[i, 3] = F[i, 3] * inverse + b3
