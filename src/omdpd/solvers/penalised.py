"""The inner problem of an augmented Lagrangian over a confidence polytope, with its duality gap.

    maximise  reward.q - sum_i 1/(2 eta) ( [ lam_i + eta d_i.q ]^+ )^2     over  q in Q(box)

Its dual, min_{y >= 0} max_q (reward - y.d).q + sum_i (y_i^2/2 - lam_i y_i)/eta, has one variable per constraint, and
the inner maximum is one optimistic backward pass.  One constraint is solved exactly by bracketing; several by adding
vertices to a small quadratic program until the gap closes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.vertices import best_vertex, penalised_by_vertices
from omdpd.solvers.small_program import small_program

# Vertices that are mixed before a solve ends with the gap it has; a handful is the rule.
MAX_VERTICES = 200
# The accepted gap, relative to the size of the objective.
ACCURACY = 1e-9


@dataclass(frozen=True, eq=False)
class Penalised:
    """The maximiser, its prices y_i = [lam_i + eta d_i.q]^+, a certified gap and what the gap is measured against."""

    occupancy: Floats
    prices: Floats
    gap: float
    scale: float
    vertices: int

    @property
    def relative_gap(self) -> float:
        """gap / scale."""
        return self.gap / self.scale


def penalised_plan(
    lower: Floats, upper: Floats, initial: Floats, reward: Floats, tables: Floats, lam: Floats, eta: float
) -> Penalised:
    """Solve the problem above for tables (I, H, S, A) and multipliers (I,)."""
    H = len(reward)
    if len(tables) == 1:
        q, y, gap, n = penalised_by_vertices(lower, upper, initial, reward, tables[0], float(lam[0]), eta, MAX_VERTICES)
        return Penalised(q, np.array([y]), gap, _scale(H, np.array([y]), eta), n)
    return _by_columns(lower, upper, initial, reward, tables, lam, eta)


def _scale(H: int, y: Floats, eta: float) -> float:
    """max(1, H (1 + sum y), y^2 / eta): the size of the terms of the objective."""
    return max(1.0, H * (1.0 + float(y.sum())), float(y @ y) / eta)


def _by_columns(
    lower: Floats, upper: Floats, initial: Floats, reward: Floats, tables: Floats, lam: Floats, eta: float
) -> Penalised:
    """Column generation: the quadratic program over the mixtures of the vertices found so far, by its dual."""
    flat = tables.reshape(len(tables), -1)
    best, first = None, np.zeros(reward.shape)
    best_vertex(lower, upper, initial, reward, first)
    vertices = [first.ravel()]
    while best is None or (best.relative_gap > ACCURACY and len(vertices) < MAX_VERTICES):
        columns = np.array(vertices)
        y, shares = _master(columns @ reward.ravel(), columns @ flat.T, lam, eta)
        q = shares @ columns
        new = np.zeros(reward.shape)
        height = best_vertex(lower, upper, initial, reward - np.tensordot(y, tables, axes=1), new)
        reached = np.maximum(lam + eta * (flat @ q), 0.0)
        primal = float(reward.ravel() @ q) - 0.5 * float(reached @ reached) / eta
        gap = max(height + float(y @ (0.5 * y - lam)) / eta - primal, 0.0)
        found = Penalised(q.reshape(reward.shape), y, gap, _scale(len(reward), y, eta), len(vertices))
        best = found if best is None or found.relative_gap < best.relative_gap else best
        vertices.append(new.ravel())
    return best


def _master(values: Floats, costs: Floats, lam: Floats, eta: float) -> tuple[Floats, Floats]:
    """min_{y >= 0, z} z + sum_i (y_i^2/2 - lam_i y_i)/eta, z >= values_v - y.costs_v: y and the vertices' shares."""
    n, m = costs.shape
    p, c = np.r_[np.full(m, 1.0 / eta), 0.0], np.r_[-lam / eta, 1.0]
    G = np.block([[-costs, -np.ones((n, 1))], [-np.eye(m), np.zeros((m, 1))]])
    inside = lam + 1.0
    start = np.r_[inside, (values - costs @ inside).max() + 1.0]
    x, multipliers = small_program(p, c, G, np.r_[-values, np.zeros(m)], start)
    return np.maximum(x[:m], 0.0), multipliers[:n] / multipliers[:n].sum()
