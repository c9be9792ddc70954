"""Layered graphs for tests: of a dense kernel, with every class told apart, and their mirror step as a general QP."""

from __future__ import annotations

import numpy as np
import piqp
from scipy import sparse

from omdpd.solvers.graph import Graph


def graph_of(layers, rows, laws, copies, members, initial, n_states, spread=()):
    """A graph from lists: rows per state, and a law (dict of state numbers) per row, with its uniform share."""
    entries = np.cumsum([0, *map(len, laws)])
    successors = [t for law in laws for t in law]
    chances = [p for law in laws for p in law.values()]
    integers = [np.array(np.cumsum([0, *counts]), dtype=np.int64) for counts in (layers, rows)]
    return Graph(
        *integers, entries.astype(np.int64), np.array(successors, dtype=np.int64), np.array(chances, dtype=float),
        np.array(members, dtype=float), np.array(copies, dtype=float), np.array(initial, dtype=float), n_states,
        np.array(spread, dtype=float),
    )  # fmt: skip


def plain_graph(p, mu):
    """The graph of a dense kernel (H, S, A, S): every state and action apart."""
    H, S, A = p.shape[:3]
    laws = [
        {(h + 1) * S + t: x for t, x in enumerate(p[h, s, a]) if x > 0} if h + 1 < H else {}
        for h, s, a in np.ndindex(H, S, A)
    ]
    return graph_of([S] * H, [A] * (H * S), laws, np.ones(H * S * A), np.ones(H * S), mu, S)


def layer_of_states(graph):
    """The layer of every state."""
    return np.repeat(np.arange(graph.horizon), np.diff(graph.layers))


def told_apart(graph):
    """The same graph with one state per member and one row per copy; and the row of `graph` behind each of its rows."""
    members = graph.members.astype(int)
    first = np.cumsum([0, *members])
    rows, laws, behind = [], [], []
    for i, n in enumerate(members):
        for _ in range(n):
            before = len(laws)
            for r in range(graph.rows[i], graph.rows[i + 1]):
                law = {}
                for e in range(graph.entries[r], graph.entries[r + 1]):
                    t = graph.successors[e]
                    law |= {first[t] + k: graph.probabilities[e] / members[t] for k in range(members[t])}
                actions = round(graph.copies[r] / n)
                laws += [law] * actions
                behind += [r] * actions
            rows.append(len(laws) - before)
    layers = [members[low:high].sum() for low, high in zip(graph.layers, graph.layers[1:], strict=False)]
    initial = np.repeat(graph.initial / members[: len(graph.initial)], members[: len(graph.initial)])
    ones, spread = np.ones(len(laws)), graph.spread[behind]
    apart = graph_of(layers, rows, laws, ones, np.ones(sum(members)), initial, graph.n_states, spread)
    return apart, np.array(behind)


def flow_matrix(graph):
    """The matrix of the flow equations in q (per true pair), one row per state."""
    N, R = len(graph.members), graph.n_rows
    state = np.repeat(np.arange(N), np.diff(graph.rows))
    layer = layer_of_states(graph)
    matrix = np.zeros((N, R))
    for r in range(R):
        matrix[state[r], r] += graph.copies[r]
        low, high = graph.entries[r : r + 2]
        np.add.at(matrix[:, r], graph.successors[low:high], -graph.copies[r] * graph.probabilities[low:high])
        following = layer == layer[state[r]] + 1
        matrix[following, r] -= graph.copies[r] * graph.spread[r] * graph.members[following] / graph.n_states
    return matrix


def general_step_on_graph(graph, c, d, W, accuracy=1e-11):
    """(q, objective) of the mirror step by a general QP solver; raises if that does not converge."""
    R, m, copies = graph.n_rows, len(W), graph.copies
    A = sparse.csc_matrix(np.hstack([flow_matrix(graph), np.zeros((len(graph.members), m))]))
    b = np.r_[graph.initial, np.zeros(A.shape[0] - len(graph.initial))]
    G = sparse.csc_matrix(np.hstack([d * copies, -np.eye(m)]).reshape(m, R + m))
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = accuracy
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = accuracy
    P = sparse.diags(np.r_[copies, np.zeros(m)]).tocsc()
    free, zero = np.full(m, -np.inf), np.zeros(R + m)
    solver.setup(
        P, np.r_[-copies * c, W], A, b, G if m else None, free if m else None, np.zeros(m) if m else None, zero
    )
    status = solver.solve()
    if "SOLVED" not in str(status):
        raise RuntimeError(str(status))
    q = np.array(solver.result.x[:R])
    return q, 0.5 * float(copies @ (q - c) ** 2) + float(W @ np.maximum(d @ (copies * q), 0.0))
