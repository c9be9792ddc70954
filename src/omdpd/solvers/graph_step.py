"""One mirror step over the flows of a layered graph, with its certificate.

    argmin_Q  eta ( <loss, Q> + sum_j w_j [d_j.Q]^+ ) + sum_r copies_r / 2 (q_r - reference_r)^2,   Q = copies q,

which is the Euclidean step over the true states and actions that the graph stands for, if nothing tells the members of
a class apart.  Importing this module compiles nothing; the first step does.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError
from omdpd.solvers.compiled.graph_flow import Arrays, flow_residual
from omdpd.solvers.compiled.graph_step.solve import solve_graph
from omdpd.solvers.graph import Graph
from omdpd.solvers.mirror import Divergence, Hinges, Status, Step

# The relative gap at which a step on a graph stops: |q - q*| <= 1.4e-4 times the root of its scale.
GRAPH_TOLERANCE = 1e-8


def graph_step(
    graph: Graph,
    reference: Floats,
    loss: Floats,
    eta: float,
    hinges: Hinges,
    tolerance: float = GRAPH_TOLERANCE,
    divergence: Divergence = Divergence.EUCLIDEAN,
) -> Step:
    """Solve one step; `reference` and `loss` (R,) and `hinges.tables` (m, R) hold one number per true pair.

    The step's occupancy is (R,), its values (N,), its transition the probabilities of the graph's entries.
    """
    if divergence is not Divergence.EUCLIDEAN:
        raise InvalidInputError("divergence is KL, but a step on a layered graph is Euclidean: use a Kernel for KL")
    arrays, W = arrays_of(graph), eta * hinges.weights
    start = np.zeros(len(W)) if hinges.start is None else np.minimum(hinges.start, W)
    found = solve_graph(arrays, reference - eta * loss, reference, hinges.tables, W, tolerance, start)
    return Step(
        found.q, graph.probabilities, found.V, found.xi, found.gap, found.scale, flow_residual(arrays, found.q),
        found.steps, Status(found.status),
    )  # fmt: skip


def arrays_of(graph: Graph) -> Arrays:
    """The graph as compiled functions take it."""
    return Arrays(
        graph.layers, graph.rows, graph.entries, graph.successors, graph.probabilities, graph.members, graph.copies,
        graph.initial, float(graph.n_states), graph.spread,
    )  # fmt: skip
