"""Random mirror steps on layered graphs, most of them degenerate: what `fuzz.py --region graph` draws and checks.

Layers of different sizes, classes of many members, rows of many actions, laws that are empty, deterministic, sparse or
lead to a class; masses of zero; and the references, steps and hinges of `fuzz.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.fuzz import HINGES, draw_hinges, draw_initial
from benchmarks.solvers.graph_flows import occupancy_of_shares, shares_of_occupancy
from omdpd.solvers.compiled.graph_flow import flow_residual
from omdpd.solvers.compiled.graph_step.solve import GraphSolution, solve_graph
from omdpd.solvers.graph import Graph
from omdpd.solvers.graph_step import arrays_of

LAWS = ("mixed", "uniform", "deterministic", "sparse", "narrow")


class GraphProblem(NamedTuple):
    """One mirror step on a graph; vectors over rows; `label` says how it was drawn."""

    graph: Graph
    c: np.ndarray
    reference: np.ndarray
    d: np.ndarray
    W: np.ndarray
    start: np.ndarray
    label: dict


def draw_on_graph(seed: int) -> GraphProblem:
    """Problem number `seed`."""
    rng = np.random.default_rng([seed, 2])
    S, A, H = (int(n) for n in (rng.integers(1, 13), rng.integers(1, 5), rng.integers(1, 7)))
    laws = str(rng.choice(LAWS))
    classes = [draw_classes(rng, S) for _ in range(H)]
    graph = draw_graph(rng, classes, A, laws, draw_initial(rng, len(classes[0])))
    reference, kind = draw_reference(rng, graph)
    eta = float(10.0 ** rng.uniform(-8, 8)) if rng.random() < 0.3 else float(10.0 ** rng.uniform(-3, 1))
    loss = rng.uniform(-1, 1, graph.n_rows) * (rng.random() > 0.05)
    hinges = str(rng.choice(HINGES))
    flow = graph.copies * reference
    d, W = draw_hinges(rng, hinges, flow.reshape(1, -1, 1), eta)
    d = d.reshape(len(W), graph.n_rows)
    if hinges == "kink":
        d -= (d @ flow)[:, None] / flow.sum()
    start = W * rng.random(len(W)) if rng.random() < 0.5 else np.zeros(len(W))
    label = {"S": S, "A": A, "H": H, "laws": laws, "reference": kind, "eta": eta, "hinges": hinges, "m": len(W)}
    return GraphProblem(graph, reference - eta * loss, reference, d, W, start, label)


def draw_classes(rng: np.random.Generator, S: int) -> np.ndarray:
    """How many members the classes of a layer have: all one, one lump and singles, or anything."""
    kind = rng.integers(0, 3)
    if kind == 0:
        return np.ones(S)
    if kind == 1:
        alone = int(rng.integers(0, S))
        return np.r_[np.ones(alone), S - alone]
    cuts = np.sort(rng.choice(np.arange(1, S), int(rng.integers(0, S)), replace=False)) if S > 1 else np.zeros(0, int)
    return np.diff(np.r_[0, cuts, S]).astype(float)


def draw_graph(rng: np.random.Generator, classes: list[np.ndarray], A: int, laws: str, initial: np.ndarray) -> Graph:
    """A graph with these classes per layer; its actions are grouped into rows at random."""
    H, S = len(classes), int(classes[0].sum())
    layers = np.cumsum([0, *map(len, classes)])
    rows, entries, successors, probabilities, copies, spread = [0], [0], [], [], [], []
    for h, layer in enumerate(classes):
        for members in layer:
            for actions in draw_classes(rng, A):
                copies.append(members * actions)
                law = draw_row(rng, len(classes[h + 1]), laws) if h + 1 < H else np.zeros(0)
                found = np.flatnonzero(law)
                spread.append(1.0 if len(found) == 0 else float(rng.random() * (rng.random() < 0.3)))
                successors += list(layers[h + 1] + found)
                probabilities += list((1.0 - spread[-1]) * law[found])
                entries.append(len(successors))
            rows.append(len(copies))
    integers = (np.array(a, dtype=np.int64) for a in (layers, rows, entries, successors))
    members, uniform = np.concatenate(classes), np.array(spread)
    return Graph(*integers, np.array(probabilities), members, np.array(copies), initial, S, uniform)


def draw_row(rng: np.random.Generator, n: int, laws: str) -> np.ndarray:
    """A law over the n classes of the next layer; empty where it is uniform."""
    kind = str(rng.choice(LAWS[1:])) if laws == "mixed" else laws
    if kind == "uniform":
        return np.zeros(0)
    if kind == "deterministic":
        return np.eye(n)[rng.integers(0, n)]
    law = rng.dirichlet(np.full(n, 0.5 if kind == "sparse" else 0.05)) * (rng.random(n) < 0.6)
    law[0] += law.sum() < 1e-12
    return law / law.sum()


def draw_reference(rng: np.random.Generator, graph: Graph) -> tuple[np.ndarray, str]:
    """References: of a random or a deterministic policy, or no occupancy at all."""
    kind = str(rng.choice(["interior", "boundary", "arbitrary"]))
    if kind == "arbitrary":
        return rng.dirichlet(np.full(graph.n_rows, 0.3)) * graph.horizon / graph.copies, kind
    weights = rng.dirichlet(np.full(graph.n_rows, 1.0))
    if kind == "boundary":
        weights = np.zeros(graph.n_rows)
        weights[[rng.integers(low, high) for low, high in zip(graph.rows, graph.rows[1:], strict=False)]] = 1.0
    arrays = arrays_of(graph)
    return occupancy_of_shares(arrays, shares_of_occupancy(arrays, weights / graph.copies)), kind


def run_on_graph(problem: GraphProblem, tol: float) -> GraphSolution:
    """Solve it."""
    return solve_graph(arrays_of(problem.graph), problem.c, problem.reference, problem.d, problem.W, tol, problem.start)


def objective_on_graph(problem: GraphProblem, q: np.ndarray) -> float:
    """The step's objective (in extended precision: W may be large)."""
    q, copies = q.astype(np.longdouble), problem.graph.copies
    distance = 0.5 * np.sum(copies * (q - problem.c) ** 2)
    return distance + problem.W @ np.maximum((problem.d * (copies * q)).sum(1), 0)


def gap_on_graph(problem: GraphProblem, q: np.ndarray, V: np.ndarray, xi: np.ndarray) -> float:
    """The duality gap of a point, written down once more, in extended precision."""
    graph, copies = problem.graph, problem.graph.copies
    q, V, xi = (each.astype(np.longdouble) for each in (q, V, xi))
    ahead = np.zeros(graph.n_rows, dtype=np.longdouble)
    state = np.repeat(np.arange(len(graph.members)), np.diff(graph.rows))
    layer = np.searchsorted(graph.layers, state, side="right") - 1
    for r in range(graph.n_rows):
        low, high = graph.entries[r : r + 2]
        ahead[r] = graph.probabilities[low:high] @ V[graph.successors[low:high]]
        if layer[r] + 1 < graph.horizon:
            following = slice(graph.layers[layer[r] + 1], graph.layers[layer[r] + 2])
            ahead[r] += graph.spread[r] * (graph.members[following] @ V[following]) / graph.n_states
    y = problem.c - xi @ problem.d - V[state] + ahead
    u = (problem.d * (copies * q)).sum(1)
    rows = copies * (0.5 * (q - np.maximum(y, 0)) ** 2 + q * np.maximum(-y, 0))
    return float(rows.sum() + np.sum(np.where(u > 0, (problem.W - xi) * u, -xi * u)))


def check_on_graph(problem: GraphProblem, found: GraphSolution, tol: float) -> list[str]:
    """What is wrong with a solution beyond what its status admits."""
    if not all(np.isfinite(x).all() for x in (found.q, found.V, found.xi, np.array([found.gap, found.scale]))):
        return ["not finite"]
    wrong = []
    arrays, eps = arrays_of(problem.graph), np.finfo(float).eps
    if flow_residual(arrays, found.q) > 1e-13:
        wrong.append("flow")
    if (found.xi < 0).any() or (found.xi > problem.W * (1 + 4 * eps)).any():
        wrong.append("multipliers outside their box")
    rounding = 1e-13 * (1 + abs(float(objective_on_graph(problem, found.q)))) + eps * found.scale
    if found.gap < 0 or gap_on_graph(problem, found.q, found.V, found.xi) > found.gap * (1 + 1e-6) + 100 * rounding:
        wrong.append("gap")
    rival = occupancy_of_shares(arrays, shares_of_occupancy(arrays, np.ones(problem.graph.n_rows)))
    rounding = 1e-13 * (1 + abs(float(objective_on_graph(problem, rival)))) + eps * found.scale
    if float(objective_on_graph(problem, found.q) - objective_on_graph(problem, rival)) > found.gap + rounding:
        wrong.append("a known point is better")
    relative = found.gap / found.scale
    if found.status != (0 if relative <= tol else 1 if relative <= 100 * tol else 2):
        wrong.append("status")
    return wrong
