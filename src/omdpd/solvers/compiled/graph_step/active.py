"""Newton's matrix on a layered graph, in the metric of the active policy.

A row is active where its slack is positive; a state without such a row gets its best one.  With weights w = copies on
active rows, N_i their sum at state i, pi = w / N and G_pi = I - P_pi (which one sweep inverts), Newton's matrix is

    M = G^T diag(w) G = L L^T + C,   L = G_pi^T N^(1/2),   C = sum_i sum_a w_a (p_a - p_bar)(p_a - p_bar)^T >= 0

with p_bar the mean of p_a under pi.  So I + L^-1 C L^-T has no eigenvalue below one, and is the identity if every state
has one active row.  The laws of active rows are copied side by side, since every sweep reads them in this order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays, mean_of_layer, spread_over_layer
from omdpd.solvers.compiled.options import INNER, SUMS

Short = npt.NDArray[np.int32]


class Active(NamedTuple):
    """The active rows k of every state (`first`), which rows they are, pi, their laws; N^(-1/2) and N of the states."""

    first: Short
    row: Short
    share: Floats
    spread: Floats
    entries: Short
    successors: Short
    probabilities: Floats
    root: Floats
    total: Floats


@njit(**INNER)
def room_for_active(g: Arrays) -> Active:
    """Uninitialised arrays in which every row may be active."""
    N, R, E = g.members.size, g.copies.size, g.successors.size
    return Active(
        first=np.empty(N + 1, np.int32),
        row=np.empty(R, np.int32),
        share=np.empty(R),
        spread=np.empty(R),
        entries=np.empty(R + 1, np.int32),
        successors=np.empty(E, np.int32),
        probabilities=np.empty(E),
        root=np.empty(N),
        total=np.empty(N),
    )


@njit(**INNER)
def select_active(g: Arrays, y: Floats, active: Active) -> int:
    """Fill `active` for the slack y; how many rows there are beyond one per state."""
    N = g.members.size
    count, n_entries = 0, 0
    for i in range(N):
        active.first[i] = count
        best, total = g.rows[i], 0.0
        for r in range(g.rows[i], g.rows[i + 1]):
            if y[r] > y[best]:
                best = r
        for r in range(g.rows[i], g.rows[i + 1]):
            if y[r] > 0.0 or r == best:
                active.row[count], active.spread[count] = r, g.spread[r]
                active.entries[count] = n_entries
                total += g.copies[r]
                for e in range(g.entries[r], g.entries[r + 1]):
                    active.successors[n_entries] = g.successors[e]
                    active.probabilities[n_entries] = g.probabilities[e]
                    n_entries += 1
                count += 1
        active.total[i] = total
        active.root[i] = 1.0 / np.sqrt(total)
        for k in range(active.first[i], count):
            active.share[k] = g.copies[active.row[k]] / total
    active.first[N] = count
    active.entries[count] = n_entries
    return count - N


@njit(**SUMS)
def flow_residual_in_metric(g: Arrays, active: Active, y: Floats, f: Floats, out: Floats) -> None:
    """out := L^-1 (mu - G^T (w y)); f is scratch.

    Residual and inverse in one sweep: a row passes on its own flow w y and its share of what its state lacks.
    """
    f[:] = 0.0
    for i in range(g.mu.size):
        f[i] = g.mu[i]
    for h in range(g.layers.size - 1):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            lack = f[i]
            for k in range(active.first[i], active.first[i + 1]):
                r = active.row[k]
                lack -= g.copies[r] * y[r]
            out[i] = lack * active.root[i]
            for k in range(active.first[i], active.first[i + 1]):
                r = active.row[k]
                flow = g.copies[r] * y[r] + active.share[k] * lack
                spread += active.spread[k] * flow
                for e in range(active.entries[k], active.entries[k + 1]):
                    f[active.successors[e]] += flow * active.probabilities[e]
        spread_over_layer(g, spread, f, h + 1)


@njit(**SUMS)
def backward(g: Arrays, active: Active, u: Floats, v: Floats, deviation: Floats) -> None:
    """v := L^-T u, and p_a.v' - p_bar.v' for every active row."""
    for h in range(g.layers.size - 2, -1, -1):
        mean = mean_of_layer(g, v, h + 1)
        for i in range(g.layers[h], g.layers[h + 1]):
            start, end = active.first[i], active.first[i + 1]
            bar = 0.0
            for k in range(start, end):
                ahead = active.spread[k] * mean
                for e in range(active.entries[k], active.entries[k + 1]):
                    ahead += active.probabilities[e] * v[active.successors[e]]
                deviation[k] = ahead
                bar += active.share[k] * ahead
            for k in range(start, end):
                deviation[k] -= bar
            v[i] = u[i] * active.root[i] + bar


@njit(**SUMS)
def forward(g: Arrays, active: Active, u: Floats, deviation: Floats, f: Floats, out: Floats) -> None:
    """out := u + L^-1 C v, with the deviations of v = L^-T u; f is scratch."""
    f[:] = 0.0
    for h in range(g.layers.size - 1):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            start, end = active.first[i], active.first[i + 1]
            arrived, total = f[i], active.total[i]
            out[i] = u[i] + arrived * active.root[i]
            for k in range(start, end):
                flow = active.share[k] * (arrived + total * deviation[k])
                spread += active.spread[k] * flow
                for e in range(active.entries[k], active.entries[k + 1]):
                    f[active.successors[e]] += flow * active.probabilities[e]
        spread_over_layer(g, spread, f, h + 1)


@njit(**SUMS)
def dot(a: Floats, b: Floats) -> float:
    """a.b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


class Gradients(NamedTuple):
    """Vectors over states of the conjugate gradient method, and the deviations of active rows."""

    u: Floats
    v: Floats
    rest: Floats
    along: Floats
    image: Floats
    f: Floats
    deviation: Floats


@njit(**INNER)
def room_for_gradients(N: int, R: int) -> Gradients:
    """Uninitialised."""
    six = np.empty((6, N))
    return Gradients(six[0], six[1], six[2], six[3], six[4], six[5], np.empty(R))


@njit(**INNER)
def solve_newton(g: Arrays, active: Active, extra: int, cg: Gradients, tol: float, limit: int) -> int:
    """v := M^-1 b for `rest` = L^-1 b, to a relative residual `tol` in the metric of L; the number of iterations.

    Conjugate gradients on I + L^-1 C L^-T: an iteration is one backward and one forward sweep.  `rest` is overwritten.
    """
    u, rest, along, image = cg.u, cg.rest, cg.along, cg.image
    n = 0
    if extra == 0:
        u[:] = rest
    else:
        u[:] = 0.0
        along[:] = rest
        size = dot(rest, rest)
        wanted = tol * tol * size
        while size > wanted and n < limit:
            n += 1
            backward(g, active, along, cg.v, cg.deviation)
            forward(g, active, along, cg.deviation, cg.f, image)
            size = descend(u, rest, along, image, size)
    backward(g, active, u, cg.v, cg.deviation)
    return n


@njit(**SUMS)
def descend(u: Floats, rest: Floats, along: Floats, image: Floats, size: float) -> float:
    """One step of conjugate gradients in place; the new squared residual."""
    length = size / dot(along, image)
    left = 0.0
    for i in range(u.size):
        u[i] += length * along[i]
        rest[i] -= length * image[i]
        left += rest[i] * rest[i]
    for i in range(u.size):
        along[i] = rest[i] + (left / size) * along[i]
    return left
