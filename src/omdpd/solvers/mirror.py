"""One mirror step over a region of occupancies, with its certificate; and the step-size rule of the paper.

    argmin_{q in Q}  eta ( <loss, q> + sum_j w_j [d_j.q]^+ ) + D(q, reference)

    D = 1/2 |q - reference|^2,   or   D = sum q ln(q / reference) - q + reference      (Kullback-Leibler, per step)

Every step carries a duality gap that was computed without cancellation from an exactly feasible q, so its answer needs
no trust: D(q, q*) <= gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from omdpd.problem.arrays import Floats, inner
from omdpd.problem.records import fast_init
from omdpd.solvers.compiled.box_step.solve import solve_box
from omdpd.solvers.compiled.box_step.storage import BLAS_STATES
from omdpd.solvers.compiled.flow import flow_residual
from omdpd.solvers.compiled.kernel_step.solve import STEP_TOLERANCE, solve_step
from omdpd.solvers.compiled.newton.certificate import add_solve
from omdpd.solvers.graph import Graph
from omdpd.solvers.regions import Box, Kernel, Region
from omdpd.solvers.threads import one_thread

# Weights of the hinges that stand for hard constraints: where they start, and where they end.
LIGHTEST, HEAVIEST = 10.0, 1e4


class Status(IntEnum):
    """How a step ended: to tolerance, with a certified gap that is still small, or not."""

    SOLVED = 0
    ALMOST = 1
    FAILED = 2


STATUSES = tuple(Status)


class Divergence(IntEnum):
    """What keeps a step near its reference.  KL needs a reference that is positive everywhere: see `smoothed`."""

    EUCLIDEAN = 0
    KL = 1


@fast_init
@dataclass(frozen=True, eq=False)
class Hinges:
    """Penalties w_j [d_j.q]^+: `tables` (m, H, S, A), `weights` (m,).

    `start` (m,) are multipliers of an earlier, similar step, from which the solver starts; the answer is the same.
    """

    tables: Floats
    weights: Floats
    start: Floats | None = None

    @staticmethod
    def none(shape: tuple[int, ...]) -> Hinges:
        """No penalty at all."""
        return Hinges(np.zeros((0, *shape)), np.zeros(0))

    def value(self, occupancy: Floats) -> float:
        """sum_j w_j [d_j.q]^+."""
        return float(self.weights @ np.maximum(self.arguments(occupancy), 0.0))

    def arguments(self, occupancy: Floats) -> Floats:
        """d_j.q, ``(m,)``."""
        return inner(self.tables, occupancy)


@fast_init
@dataclass(frozen=True, eq=False)
class Step:
    """The answer of a mirror step.

    `occupancy` (H,S,A) is the forward pass of a policy under `transition`, a kernel of the region, so it is feasible to
    rounding; `gap` bounds its distance to the optimum of the objective above, `scale` is what `gap` is measured
    against; `residual` is the flow's; `multipliers` (m,) are the hinges' in [0, eta w_j]; `values` (H,S) the flow's.
    """

    occupancy: Floats
    transition: Floats
    values: Floats
    multipliers: Floats
    gap: float
    scale: float
    residual: float
    iterations: int
    status: Status

    @property
    def relative_gap(self) -> float:
        """gap / max(1, range of V, 1e-5 sum_j W_j H max|d_j|)."""
        return self.gap / self.scale


def mirror_step(
    region: Region,
    initial: Floats,
    reference: Floats,
    loss: Floats,
    eta: float,
    hinges: Hinges,
    divergence: Divergence = Divergence.EUCLIDEAN,
) -> Step:
    """Solve one step; never raises on numerics: see the status.

    On a `Graph` vectors are over its rows, and its own `initial` holds: see `graph_step`.
    """
    if isinstance(region, Graph):
        from omdpd.solvers.graph_step import graph_step  # it needs the types of this module

        return graph_step(region, reference, loss, eta, hinges, divergence=divergence)
    kl = divergence is Divergence.KL
    if len(initial) < BLAS_STATES:
        return _solved(region, initial, reference, loss, eta, hinges, kl)
    with one_thread():
        return _solved(region, initial, reference, loss, eta, hinges, kl)


def _solved(
    region: Box | Kernel, initial: Floats, reference: Floats, loss: Floats, eta: float, hinges: Hinges, kl: bool
) -> Step:
    """The step by the solver of its region."""
    d, w = hinges.tables, hinges.weights
    if isinstance(region, Kernel) and not kl:
        p, start = region.transition, hinges.start
        q, V, xi = np.empty(reference.shape), np.empty(reference.shape[:2]), np.empty(len(w))
        gap, scale, iterations, status, residual = solve_step(
            reference, loss, eta, p, initial, np.ascontiguousarray(d), w, STEP_TOLERANCE, start is not None,
            w if start is None else start, q, V, xi,
        )  # fmt: skip
    else:
        c = (np.log(reference) if kl else reference) - eta * loss
        # A box of one kernel is how that of Kullback and Leibler is solved.
        lower, upper = (region.lower, region.upper) if isinstance(region, Box) else (region.transition,) * 2
        q, p, V, xi, gap, scale, iterations, status = solve_box(
            c, reference, lower, upper, initial, d, eta * w, kl, STEP_TOLERANCE
        )
        residual = flow_residual(q, p, initial)
    return Step(q, p, V, xi, gap, scale, residual, iterations, STATUSES[status])


@dataclass(frozen=True, eq=False)
class Projection:
    """A step under constraints: the step, the hinge weight it took, and whether the constraints hold exactly."""

    step: Step
    weight: float
    exact: bool


def constrained_step(
    region: Region, initial: Floats, reference: Floats, loss: Floats, eta: float, tables: Floats, weight: float
) -> Projection:
    """argmin_{q in Q, d_j.q <= 0}  eta <loss, q> + KL(q, reference), by hinges that are heavy enough to be exact.

    A hinge whose multiplier stays below its weight W enforces its constraint as if it were hard.  W starts at `weight`
    (what an earlier, similar step took) and grows to `HEAVIEST`; if that is not enough, no point of the region meets
    the constraints (or only at an extreme price), and the step is the one that nearly violates least.
    """
    W = min(max(weight, LIGHTEST), HEAVIEST)
    while True:
        hinges = Hinges(tables, np.full(len(tables), W / eta))
        step = mirror_step(region, initial, reference, loss, eta, hinges, Divergence.KL)
        most = float(step.multipliers.max()) if len(tables) else 0.0
        exact = most < 0.99 * W and step.status is not Status.FAILED
        if exact or W >= HEAVIEST:
            return Projection(step, min(max(2.0 * most, LIGHTEST), HEAVIEST) if exact else W, exact)
        W = min(10.0 * W, HEAVIEST)


def smoothed(occupancy: Floats, share: float) -> Floats:
    """(1 - g) q + g / (SA): positive everywhere, so that D(., q) <= H ln(SA / g) for Kullback-Leibler.

    >>> smoothed(np.array([[[1.0, 0.0]]]), 0.5)
    array([[[0.75, 0.25]]])
    """
    _, S, A = occupancy.shape
    return (1.0 - share) * occupancy + share / (S * A)


@fast_init
@dataclass(frozen=True)
class SolveLog:
    """What a run says of its solves: how many, how many failed, the worst certificate."""

    solves: int = 0
    failures: int = 0
    iterations: int = 0
    max_gap: float = 0.0
    max_residual: float = 0.0

    def after(self, step: Step) -> SolveLog:
        """The log with one more step."""
        log = np.array([self.solves, self.failures, self.iterations, self.max_gap, self.max_residual])
        add_solve(log, float(step.gap), float(step.scale), step.iterations, int(step.status), float(step.residual))
        return SolveLog.of(log)

    @staticmethod
    def of(log: Floats) -> SolveLog:
        """The log that five numbers are."""
        solves, failures, iterations, max_gap, max_residual = log.tolist()
        return SolveLog(int(solves), int(failures), int(iterations), max_gap, max_residual)


def step_size(diameter: float, variation: float, variation_before: float) -> float:
    """eta_k = sqrt(C) min(1 / (sqrt(E_{k-1}) + sqrt(E_{k-2})), 1), with E the summed squared gradient differences.

    >>> step_size(4.0, 0.0, 0.0), step_size(4.0, 4.0, 4.0)
    (2.0, 0.5)
    """
    roots = np.sqrt(variation) + np.sqrt(variation_before)
    return float(np.sqrt(diameter) * (1.0 / roots if roots > 1.0 else 1.0))
