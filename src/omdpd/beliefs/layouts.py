"""The graph of what was visited: what nothing tells apart is one state, or one row, of it.

What is lumped, and why nothing is lost.  A step minimises a strictly convex function over the flows of the believed
kernel.  Let sigma permute some states of one layer (or some actions of one state), and let the beliefs not tell them
apart: the same r~, d~ and law for each, the same chance to come into each, the same reference.  Then sigma maps the
problem to itself and its minimiser to a minimiser; there is only one, so it gives them all the same numbers, and one
number with its `copies` stands for them.  By induction the reference is such a minimiser too: the first one is uniform,
and what stands apart once stays apart, so that classes only split, each part with its parent's number (`inherited`).

* Costs met on the way, counts by step: the states that layer h + 1 was never seen in have no counts at any action, and
  nothing observed leads to them (who is seen to come is seen to act), so they are one state, with one row; so are the
  unseen actions of a state one row.  Permutations of single layers will do: laws point at states that stand apart, or
  are uniform.
* Pooled counts: the same, with "seen" meaning seen at any step.
* Counts shared between steps: a row seen at another step is not like one that was never seen, so again "seen" means
  seen at any step; and since a margin adds the errors of one pair over all steps, a permutation has to act on all
  layers at once.  Layer 0 tells states apart by the mass that they start with: those that have some stand apart in
  every layer.
* Revealed cost tables tell every row apart: the graph is plain, and only its unseen laws are short.

Layer 0 has the states in which an episode may start, each for itself, and (unless plain) no others: no flow is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.drift import row_drift
from omdpd.beliefs.row_layout import law_at, parents, row_policy, skeleton, successor_lists
from omdpd.beliefs.visits import Seen, Visits
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.setting import Setting
from omdpd.solvers.graph import Graph


@dataclass(frozen=True, eq=False)
class Layout:
    """A graph before its laws: its index arrays (see `Graph`), and where its rows and entries come from.

    `steps` (R,) are the rows' layers, `visited` (R,) their places in what was seen (-1 for none), `source` (E,) the
    entries' places in what followed.
    """

    seen: Seen
    layers: Integers
    rows: Integers
    entries: Integers
    successors: Integers
    members: Floats
    copies: Floats
    initial: Floats
    states: Integers
    actions: Integers
    steps: Integers
    visited: Integers
    source: Integers

    @staticmethod
    def of(setting: Setting, visits: Visits) -> Layout:
        """The layout for what was visited: see the module's docstring for what stands apart."""
        _, S, A = setting.shape
        seen, start = visits.seen(), np.flatnonzero(setting.mu)
        kept = start if visits.order == "pair" else start[:0]
        steps, layers, rows, states, actions, visited, members, copies = skeleton(
            seen.pairs, seen.first, seen.last, start, kept, setting.feedback == "full", S, A
        )
        entries, successors, source = successor_lists(layers, rows, states, visited, seen.ends, seen.following, S)
        initial = setting.mu[states[: layers[1]]]
        return Layout(
            seen, layers, rows, entries, successors, members, copies, initial, states, actions, steps, visited, source
        )

    def graph(self, probabilities: Floats, spread: Floats, n_states: int) -> Graph:
        """The graph with the probabilities (E,) of its entries and the uniform share (R,) of its laws."""
        return Graph(
            self.layers, self.rows, self.entries, self.successors, probabilities, self.members, self.copies,
            self.initial, n_states, spread, self.states, self.actions,
        )  # fmt: skip

    def parents(self, old: Graph) -> Integers:
        """The row of an older graph that each row was a part of, (R,)."""
        return parents(self.layers, self.rows, self.states, self.actions, old.layers, old.rows, old.states, old.actions)

    def values(self, seen: Floats, otherwise: float) -> Floats:
        """Numbers (..., n) of what was seen, by row (..., R); `otherwise` where nothing was."""
        padded = np.concatenate([seen, np.full((*seen.shape[:-1], 1), otherwise)], axis=-1)
        return padded[..., self.visited]


@dataclass(frozen=True, eq=False)
class RowPolicy:
    """The policy of an occupancy by rows, asked one state at a time."""

    graph: Graph
    occupancy: Floats
    n_actions: int

    def at(self, step: int, state: int) -> Floats:
        """The law (A,) over actions; uniform where nothing tells the actions apart."""
        g, q, A = self.graph, self.occupancy, self.n_actions
        return law_at(g.layers, g.rows, g.states, g.actions, g.copies, q, A, step, state)

    def table(self) -> Floats:
        """The whole policy, (H, S, A)."""
        g, q, A = self.graph, self.occupancy, self.n_actions
        return row_policy(g.layers, g.rows, g.states, g.actions, g.copies, q, g.n_states, A)


def inherited(values: Floats, parent: Integers | None) -> Floats:
    """Numbers (..., R) by the rows of an older graph for the parts of them; as they are where there is no graph."""
    return values if parent is None else values[..., parent]


def rows_of_tables(graph: Graph, n_actions: int) -> Integers:
    """The row that stands for every pair (h, s, a), in their order; any row where an episode cannot start."""
    H, S, A = graph.horizon, graph.n_states, n_actions
    each, every = np.arange(S), np.arange(H * S + 1)
    return parents(
        every[::S].copy(), every * A, np.tile(each, H), np.tile(np.arange(A), H * S),
        graph.layers, graph.rows, graph.states, graph.actions,
    )  # fmt: skip


def laws_of_rows(graph: Graph) -> Floats:
    """The law of every row over the true states, (R, S)."""
    laws = np.repeat(graph.spread[:, None] / graph.n_states, graph.n_states, axis=1)
    of_row = np.repeat(np.arange(graph.n_rows), np.diff(graph.entries))
    np.add.at(laws, (of_row, graph.states[graph.successors]), graph.probabilities)
    return laws


def uniform_rows(setting: Setting, graph: Graph) -> Floats:
    """The occupancy of the uniform policy under the uniform kernel, by row and per true pair."""
    _, S, A = setting.shape
    q = np.full(graph.n_rows, 1.0 / (S * A))
    first = graph.layers[1]
    q[: graph.rows[first]] = np.repeat(graph.initial, np.diff(graph.rows[: first + 1])) / A
    return q


def row_move(before: Graph, after: Graph, parent: Integers) -> float:
    """A bound on how far, in L1, any policy's occupancy moves from one believed kernel to the next."""
    return float(
        row_drift(
            after.layers, after.rows, after.entries, after.successors, after.probabilities, after.spread, after.states,
            parent, before.entries, before.successors, before.probabilities, before.spread, before.states,
            after.n_states,
        )
    )  # fmt: skip
