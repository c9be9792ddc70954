"""Mirror steps on layered graphs, from a small learning loop, and as general programs with sparse matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.solvers.general import QuadraticProgram
from benchmarks.solvers.graph_flows import occupancy_of_shares, shares_of_occupancy
from benchmarks.solvers.sparse_worlds import Layout, SparseWorld, known, seen
from omdpd.solvers.graph import Graph
from omdpd.solvers.graph_step import arrays_of, graph_step
from omdpd.solvers.mirror import Hinges, Step

# The loop's estimates: log of the number of tables, optimism in rewards, margin in costs; its hinge weight.
LOG, OPTIMISM, MARGIN, WEIGHT = 20.0, 0.1, 0.02, 20.0
# What binding tables cost per step under the policy that they are centred at, and what others save.
SHORTAGE, ROOM = 0.1, 0.5
# How often the loop estimates anew while it plays.
BLOCKS = 8


class SparseProblem(NamedTuple):
    """The arguments of one step on a graph; the multipliers of the step before are in `hinges.start`."""

    graph: Graph
    reference: np.ndarray
    loss: np.ndarray
    eta: float
    hinges: Hinges

    def solve(self, tolerance: float = 1e-8) -> Step:
        """The step as a learner takes it."""
        return graph_step(self.graph, self.reference, self.loss, self.eta, self.hinges, tolerance)


def of_known_kernel(world: SparseWorld, seed: int, n_hinges: int = 1, binding: int = 0) -> SparseProblem:
    """The fourth of four steps under the world's kernel, with rewards that change a little between them.

    The hinge is the world's own, or there are random ones of which so many bind.
    """
    rng, graph = np.random.default_rng(seed), known(world).graph
    reward, cost = np.tile(world.reward, world.H), np.tile(world.cost, world.H)
    arrays = arrays_of(graph)
    q = occupancy_of_shares(arrays, shares_of_occupancy(arrays, np.ones(graph.n_rows)))
    tables = random_tables(rng, graph, q, n_hinges, binding) if binding else cost[None]
    weights, start = np.full(n_hinges, WEIGHT), None
    for _ in range(4):
        loss = -reward + rng.uniform(-0.05, 0.05, graph.n_rows)
        problem = SparseProblem(graph, q, loss, float(world.H), Hinges(tables, weights, start))
        step = problem.solve()
        q, start = step.occupancy, step.multipliers
    return problem


def random_tables(rng: np.random.Generator, graph: Graph, q: np.ndarray, m: int, binding: int) -> np.ndarray:
    """Random tables, of which the first `binding` cost a little under q and the others save more than they can cost."""
    tables = rng.uniform(-1.0, 1.0, (m, graph.n_rows))
    wanted = np.where(np.arange(m) < binding, SHORTAGE, -ROOM)
    return tables + (wanted - tables @ (graph.copies * q) / graph.horizon)[:, None]


def of_loop(world: SparseWorld, episodes: int, pooled: bool, seed: int) -> SparseProblem:
    """The first step after the last block of a loop that plays in blocks, estimates anew and takes two steps."""
    rng = np.random.default_rng(seed)
    counts: list[dict[int, dict[int, float]]] = [{} for _ in range(world.H)]
    visits: dict[tuple[int, int], float] = {}
    layout = seen(world, counts, pooled)
    arrays = arrays_of(layout.graph)
    q = occupancy_of_shares(arrays, shares_of_occupancy(arrays, np.ones(layout.graph.n_rows)))
    start: np.ndarray | None = None
    for _ in range(BLOCKS):
        for _ in range(episodes // BLOCKS):
            roll_out(world, layout, q, rng, counts, visits, pooled)
        before, layout = layout, seen(world, counts, pooled)
        q = q[inherited(world, before, layout)]
        reward, cost = estimates(world, layout, visits, pooled)
        hinges = Hinges(cost[None], np.array([WEIGHT]), start)
        problem = SparseProblem(layout.graph, q, -reward, float(world.H), hinges)
        step = problem.solve()
        step = problem._replace(reference=step.occupancy).solve()
        q, start = step.occupancy, step.multipliers
    return problem


def roll_out(world, layout, q, rng, counts, visits, pooled) -> None:
    """Play one episode of the policy of q, and count it."""
    s = int(rng.choice(world.S, p=world.mu))
    for h in range(world.H):
        rows = layout.rows[h].get(s, [layout.lump[h]] * world.A)
        weights = np.maximum(q[rows], 0.0)
        total = weights.sum()
        a = int(rng.choice(world.A, p=weights / total if total > 1e-9 else None))
        k = s * world.A + a
        visits[(0 if pooled else h, k)] = visits.get((0 if pooled else h, k), 0.0) + 1.0
        law = world.laws[k]
        into = counts[h].setdefault(k, {})
        s = int(rng.choice(list(law), p=list(law.values())))
        if h + 1 < world.H:
            into[s] = into.get(s, 0.0) + 1.0


def inherited(world: SparseWorld, before: Layout, after: Layout) -> np.ndarray:
    """For every row of the new graph, the row of the old one that its true pairs were in."""
    parent = np.empty(after.graph.n_rows, dtype=np.int64)
    for h in range(world.H):
        parent[after.lump[h] : after.lump[h] + 1] = before.lump[h] if len(after.rows[h]) < world.S else -1
    for h in range(world.H):
        for s, rows in after.rows[h].items():
            parent[rows] = before.rows[h].get(s, [before.lump[h]] * world.A)
    return parent


def estimates(world: SparseWorld, layout: Layout, visits, pooled: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rewards with a bonus and costs with a margin, per row; an unseen row is worth everything and costs nothing."""
    reward = np.full(layout.graph.n_rows, 2.0 + OPTIMISM * np.sqrt(LOG))
    cost = np.zeros(layout.graph.n_rows)
    for h in range(world.H):
        for s, rows in layout.rows[h].items():
            for a, r in enumerate(rows):
                k = s * world.A + a
                n = visits.get((0 if pooled else h, k), 0.0)
                if n > 0.0:
                    width = np.sqrt(LOG / n)
                    reward[r] = world.reward[k] + OPTIMISM * width + 1.0 / n
                    cost[r] = np.clip(world.cost[k] * n / (n + 2.0) + MARGIN * width, -1.0, 1.0)
    return reward, cost


def general_program(problem: SparseProblem) -> QuadraticProgram:
    """The step over x = sqrt(copies) q, one variable per layer for what spreads uniformly, and one per hinge."""
    graph, m = problem.graph, len(problem.hinges.weights)
    N, R, H = len(graph.members), graph.n_rows, graph.horizon
    root = np.sqrt(graph.copies)
    state = np.repeat(np.arange(N), np.diff(graph.rows))
    layer = np.repeat(np.arange(H), np.diff(graph.layers))
    row_of_entry = np.repeat(np.arange(R), np.diff(graph.entries))
    spread = np.where(layer[state] + 1 < H, graph.spread, 0.0)
    later = np.flatnonzero(layer > 0)
    leaving = sparse.csc_matrix((root, (state, np.arange(R))), (N, R))
    arriving = sparse.csc_matrix((root[row_of_entry] * graph.probabilities, (graph.successors, row_of_entry)), (N, R))
    uniform = sparse.csc_matrix((graph.members[later] / graph.n_states, (later, layer[later] - 1)), (N, H - 1))
    used = np.flatnonzero(spread)
    gathered = sparse.csc_matrix((root[used] * spread[used], (layer[state[used]], used)), (H - 1, R))
    none = sparse.csc_matrix((N + H - 1, m))
    A = sparse.hstack(
        [sparse.vstack([leaving - arriving, gathered]), sparse.vstack([-uniform, -sparse.identity(H - 1)]), none]
    )
    b = np.r_[graph.initial, np.zeros(A.shape[0] - len(graph.initial))]
    P = sparse.diags(np.r_[np.ones(R), np.zeros(H - 1 + m)]).tocsc()
    c = root * (problem.reference - problem.eta * problem.loss)
    cost = np.r_[-c, np.zeros(H - 1), problem.eta * problem.hinges.weights]
    tables = sparse.csc_matrix(problem.hinges.tables * root)
    G = sparse.hstack([tables, sparse.csc_matrix((m, H - 1)), -sparse.identity(m)]).tocsc()
    return QuadraticProgram(P, cost, A.tocsc(), b, G, R)
