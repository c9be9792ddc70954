"""Sparse worlds for timings, and layered graphs of what a learner has seen of them.

Laws are lists of successors per state and action, the same at every step.  `known` is the graph of such a kernel, with
every state of every layer; `seen` the graph of counts, in which what was never visited is one class per layer and what
was never tried one row per state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from omdpd.solvers.graph import Graph

Law = dict[int, float]


class SparseWorld(NamedTuple):
    """H steps, S states, A actions; laws, rewards and costs (less the budget per step) by s A + a; the initial law."""

    name: str
    H: int
    S: int
    A: int
    laws: list[Law]
    reward: np.ndarray
    cost: np.ndarray
    mu: np.ndarray


class Layout(NamedTuple):
    """A graph, and where the rows of true states and actions are: of state s in layer h those of `rows[h][s]`.

    A state that is not listed in its layer is one of the class whose only row is `lump[h]`.
    """

    graph: Graph
    rows: list[dict[int, list[int]]]
    lump: list[int]


def grid(n: int, H: int, slip: float, seed: int, budget: float = 1.0) -> SparseWorld:
    """An n x n grid with a goal in the far corner and a seventh of the squares costly."""
    rng = np.random.default_rng(seed)
    S, goal = n * n, n * n - 1
    costly = rng.random(S) < 1.0 / 7.0
    costly[[0, goal]] = False
    laws: list[Law] = []
    for s in range(S):
        for a in range(4):
            law: Law = {s: 1.0} if s == goal else {}
            for turn, chance in ((0, 1.0 - slip), (1, slip / 2), (3, slip / 2)) if s != goal else ():
                i, j = s // n + (0, 1, 0, -1)[(a + turn) % 4], s % n + (-1, 0, 1, 0)[(a + turn) % 4]
                t = i * n + j if 0 <= i < n and 0 <= j < n else s
                law[t] = law.get(t, 0.0) + chance
            laws.append(law)
    left = 2.0 * (n - 1) - np.arange(S) // n - np.arange(S) % n
    reward = np.where(np.arange(S) == goal, 1.0, 0.2 * (1.0 - left / left.max()))
    mu = np.eye(S)[0]
    return SparseWorld(
        f"grid {n}x{n}, H {H}", H, S, 4, laws, np.repeat(reward, 4), np.repeat(costly - budget / H, 4), mu
    )


def queue(S: int, H: int, seed: int, budget: float = 12.0) -> SparseWorld:
    """Admission to a queue of up to S - 1 jobs, served at one of four speeds; speed costs."""
    arrivals = np.random.default_rng(seed).dirichlet(np.full(5, 5.0))
    laws: list[Law] = []
    for s in range(S):
        for a in range(4):
            law: Law = {}
            for k, chance in enumerate(arrivals):
                for done, likely in ((a, 0.3), (a + (a > 0), 0.7)):
                    t = min(max(s + k - done, 0), S - 1)
                    law[t] = law.get(t, 0.0) + float(chance * likely)
            laws.append(law)
    speed, length = np.tile(np.arange(4) / 3.0, S), np.repeat(np.arange(S), 4)
    mu = np.zeros(S)
    mu[:40] = 1.0 / 40.0
    reward = 1.0 - np.minimum(length, 60) / 60.0
    return SparseWorld(f"queue {S}, H {H}", H, S, 4, laws, reward, speed - budget / H, mu)


def taxi(H: int = 15, budget: float = 9.0) -> SparseWorld:
    """Gymnasium's Taxi with an absorbing end; driving costs."""
    import gymnasium

    env = gymnasium.make("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3").unwrapped
    S, A = 501, 6
    laws: list[Law] = [{S - 1: 1.0} for _ in range(S * A)]
    reward, cost = np.zeros(S * A), np.full(S * A, -budget / H)
    for s in range(S - 1):
        for a in range(A):
            ((_, t, gain, ends),) = env.P[s][a]
            laws[s * A + a] = {S - 1 if ends else int(t): 1.0}
            reward[s * A + a] = (gain + 10.0) / 30.0
            cost[s * A + a] += a < 4
    return SparseWorld(f"Taxi, H {H}", H, S, A, laws, reward, cost, np.r_[env.initial_state_distrib, 0.0])


def known(world: SparseWorld) -> Layout:
    """The graph of the world's own kernel, with nothing lumped."""
    everything = [{s: set(range(world.A)) for s in range(world.S)}] * world.H
    return layout_of(world, everything, lambda h, k: world.laws[k])


def seen(world: SparseWorld, counts: list[dict[int, Law]], pooled: bool) -> Layout:
    """The graph of counts: per step, how often each (s A + a) led where (to nothing at the last step)."""
    total: dict[int, Law] = {}
    for step in counts if pooled else []:
        for k, law in step.items():
            into = total.setdefault(k, {})
            for t, n in law.items():
                into[t] = into.get(t, 0.0) + n
    steps = [total] * world.H if pooled else counts
    tried: list[dict[int, set[int]]] = []
    for h, step in enumerate(steps):
        layer: dict[int, set[int]] = {int(s): set() for s in np.flatnonzero(world.mu)} if h == 0 else {}
        for k in step:
            layer.setdefault(k // world.A, set()).add(k % world.A)
        tried.append(layer)
    return layout_of(world, tried, lambda h, k: steps[h].get(k, {}))


def layout_of(world: SparseWorld, tried: list[dict[int, set[int]]], law_of: Callable[[int, int], Law]) -> Layout:
    """Lay out the states and actions that were tried per layer; the rest is lumped."""
    H, S, A = world.H, world.S, world.A
    numbers = [{s: i for i, s in enumerate(sorted(layer))} for layer in tried]
    sizes = [len(layer) + (len(layer) < S) for layer in tried]
    layers = np.cumsum([0, *sizes])
    rows, entries, successors, chances, copies, members = [0], [0], [], [], [], []
    where: list[dict[int, list[int]]] = [{} for _ in range(H)]
    lump = []
    for h in range(H):
        for s in sorted(tried[h]):
            untried = A - len(tried[h][s])
            of_actions = [len(copies) + len(tried[h][s])] * A
            for a in sorted(tried[h][s]):
                of_actions[a] = len(copies)
                law = law_of(h, s * A + a) if h + 1 < H else {}
                whole = sum(law.values())
                successors += [layers[h + 1] + numbers[h + 1][t] for t in law]
                chances += [n / whole for n in law.values()]
                entries.append(len(successors))
                copies.append(1.0)
            if untried:
                entries.append(len(successors))
                copies.append(float(untried))
            where[h][s] = of_actions
            members.append(1.0)
            rows.append(len(copies))
        lump.append(len(copies))
        if len(tried[h]) < S:
            members.append(float(S - len(tried[h])))
            entries.append(len(successors))
            copies.append(members[-1] * A)
            rows.append(len(copies))
    initial = np.zeros(layers[1])
    for s, i in numbers[0].items():
        initial[i] = world.mu[s]
    integers = (np.array(a, dtype=np.int64) for a in (layers, rows, entries, successors))
    graph = Graph(*integers, np.array(chances), np.array(members), np.array(copies), initial, S)
    return Layout(graph, where, lump)
