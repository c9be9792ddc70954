"""Newton's matrix on a layered graph, in the metric of the active policy.

A row is active where its slack is positive; a state without such a row gets its best one.  With weights w = copies on
active rows, N_i their sum at state i, pi = w / N and G_pi = I - P_pi (which one sweep inverts), Newton's matrix is

    M = G^T diag(w) G = L L^T + B B^T,   L = G_pi^T N^(1/2),   column a of B = w_a^(1/2) (p_a - p_bar)

with p_bar the mean of p_a under pi.  Only rows of states with several active ones have a column: the *choices*.  There
are few of them, since solutions are nearly deterministic, so the system is solved for what it does to the choices,

    M^-1 b = L^-T (r - A z),   (I + A^T A) z = A^T r,   A = L^-1 B,   r = L^-1 b:

conjugate gradients on vectors over choices, of which an iteration is one forward and one backward sweep over the active
rows.  No eigenvalue is below one.  A sweep keeps F = N^(1/2) (L^-1 b), the flow that a state receives, and turns it
into v = L^-T N^(-1/2) F in place.  The laws of active rows are copied side by side: every sweep reads them in this
order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omdpd.jit.decorators import rule
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.graph_flow import Arrays, expectation, mean_of_layer, send, spread_over_layer

Short = npt.NDArray[np.int32]

# A squared residual of the choices below this part of |r|^2 is rounding.
ROUNDED_RESIDUAL = 1e-30
# Iterations of conjugate gradients per solve; only rounding or a hopeless direction asks for more.
MAX_GRADIENTS = 2000


class Active(NamedTuple):
    """The active rows k of every state (`first`), which rows they are, pi, w^(1/2) and their laws; 1 / N of states."""

    first: Short
    row: Short
    share: Floats
    root: Floats
    spread: Floats
    entries: Short
    successors: Short
    probabilities: Floats
    inverse: Floats


@rule
def empty_active(g: Arrays) -> Active:
    """Uninitialised arrays in which every row may be active."""
    N, R, E = g.members.size, g.copies.size, g.successors.size
    return Active(
        first=np.empty(N + 1, np.int32),
        row=np.empty(R, np.int32),
        share=np.empty(R),
        root=np.empty(R),
        spread=np.empty(R),
        entries=np.empty(R + 1, np.int32),
        successors=np.empty(E, np.int32),
        probabilities=np.empty(E),
        inverse=np.empty(N),
    )


@rule
def select_active(g: Arrays, y: Floats, active: Active) -> int:
    """Fill `active` for the slack y; how many choices there are."""
    N = g.members.size
    count, n_entries, choices = 0, 0, 0
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
        active.inverse[i] = 1.0 / total
        start = active.first[i]
        for k in range(start, count):
            weight = g.copies[active.row[k]]
            active.share[k], active.root[k] = weight / total, np.sqrt(weight)
        if count > start + 1:
            choices += count - start
    active.first[N] = count
    active.entries[count] = n_entries
    return choices


@rule
def flow_residual_in_metric(g: Arrays, active: Active, y: Floats, F: Floats) -> None:
    """F := G_pi^-T (mu - G^T (w y)).

    Residual and inverse in one sweep: a row passes on its own flow w y and its share of what its state lacks.
    """
    F[:] = 0.0
    for i in range(g.mu.size):
        F[i] = g.mu[i]
    for h in range(g.layers.size - 1):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            lack = F[i]
            for k in range(active.first[i], active.first[i + 1]):
                r = active.row[k]
                lack -= g.copies[r] * y[r]
            F[i] = lack
            for k in range(active.first[i], active.first[i + 1]):
                r = active.row[k]
                flow = g.copies[r] * y[r] + active.share[k] * lack
                spread += send(active, k, flow, F)
        spread_over_layer(g, spread, F, h + 1)


@rule
def size_in_metric(active: Active, F: Floats) -> float:
    """|r|^2 = sum_i F_i^2 / N_i."""
    total = 0.0
    for i in range(F.size):
        total += active.inverse[i] * F[i] * F[i]
    return total


@rule
def forward(g: Arrays, active: Active, z: Floats, F: Floats) -> None:
    """F := G_pi^-T B z: every choice sends its w^(1/2) z along p_a - p_bar."""
    F[:] = 0.0
    c = 0
    for h in range(g.layers.size - 1):
        spread = 0.0
        for i in range(g.layers[h], g.layers[h + 1]):
            start, end = active.first[i], active.first[i + 1]
            arrived, chooses = F[i], end > start + 1
            if not chooses and arrived == 0.0:
                continue
            if chooses:
                for k in range(start, end):
                    arrived -= active.root[k] * z[c + k - start]
            for k in range(start, end):
                flow = active.share[k] * arrived
                if chooses:
                    flow += active.root[k] * z[c + k - start]
                spread += send(active, k, flow, F)
            if chooses:
                c += end - start
        spread_over_layer(g, spread, F, h + 1)


@rule
def backward(g: Arrays, active: Active, F: Floats, out: Floats) -> None:
    """F := v, which is F_i / N_i + p_bar.v', in place; out := B^T v."""
    c = out.size
    for h in range(g.layers.size - 2, -1, -1):
        mean = mean_of_layer(g, F, h + 1)
        for i in range(g.layers[h + 1] - 1, g.layers[h] - 1, -1):
            start, end = active.first[i], active.first[i + 1]
            chooses, bar = end > start + 1, 0.0
            if chooses:
                c -= end - start
            for k in range(start, end):
                ahead = expectation(active, k, mean, F)
                if chooses:
                    out[c + k - start] = ahead
                bar += active.share[k] * ahead
            if chooses:
                for k in range(start, end):
                    out[c + k - start] = active.root[k] * (out[c + k - start] - bar)
            F[i] = F[i] * active.inverse[i] + bar


@rule
def dot(a: Floats, b: Floats) -> float:
    """a.b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


class Gradients(NamedTuple):
    """Of one Newton system: F of its right-hand side, and its solution."""

    F: Floats
    v: Floats


@rule
def empty_gradients(N: int) -> Gradients:
    """Uninitialised."""
    two = np.empty((2, N))
    return Gradients(two[0], two[1])


@rule
def solve_newton(g: Arrays, active: Active, choices: int, cg: Gradients, tol: float) -> int:
    """v := M^-1 b for F = G_pi^-T b, to a relative residual `tol` in the metric of L; the number of iterations.

    What a residual `rest` of the choices leaves of b is A rest.  Its size is |rest|^2 times about the curvature of the
    last iteration, less one.
    """
    F, v = cg.F, cg.v
    z, rest, along, image = np.zeros(choices), np.empty(choices), np.empty(choices), np.empty(choices)
    v[:] = F
    backward(g, active, v, rest)
    along[:] = rest
    start, size, curvature, n = size_in_metric(active, F), dot(rest, rest), np.inf, 0
    while size > ROUNDED_RESIDUAL * start and size * (curvature - 1.0) > tol * tol * start and n < MAX_GRADIENTS:
        n += 1
        forward(g, active, along, v)
        backward(g, active, v, image)
        for k in range(choices):
            image[k] += along[k]
        bend = dot(along, image)
        curvature = bend / dot(along, along)
        size = descend(z, rest, along, image, size, bend)
    if n > 0:
        forward(g, active, z, v)
        for i in range(v.size):
            v[i] = F[i] - v[i]
        backward(g, active, v, image)
    return n


@rule
def descend(z: Floats, rest: Floats, along: Floats, image: Floats, size: float, bend: float) -> float:
    """One step of conjugate gradients in place, whose curvature along.image is `bend`; the new squared residual."""
    length, left = size / bend, 0.0
    for i in range(z.size):
        z[i] += length * along[i]
        rest[i] -= length * image[i]
        left += rest[i] * rest[i]
    for i in range(z.size):
        along[i] = rest[i] + (left / size) * along[i]
    return left
