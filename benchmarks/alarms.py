"""How soon the alarms of a session ring, and how often they do without reason: `python benchmarks/alarms.py`.

Costs are drawn from gamma laws, whose spread is a share of the budget; worlds at random, each row with three next
states.  A world that changes becomes another one at random.
"""

import numpy as np

from omdpd.play.alarms import RINGS, Watch

STREAMS, MOST = 60, 20_000
EXCESSES, SPREADS = (0.1, 0.3, 1.0), (0.25, 0.5, 1.0)
SIZES = ((4, 4), (20, 9), (20, 30))
QUIET, BEFORE, AFTER = 10_000, 100, 400


def until_it_rings(excess: float, spread: float, seed: int) -> int:
    """Episodes until overspending rings; a budget of 1."""
    rng, watch = np.random.default_rng((20, seed)), Watch()
    shape = spread**-2
    for k in range(MOST):
        watch.spent(rng.gamma(shape, (1.0 + excess) / shape, 1) - 1.0, np.ones(1))
        if watch.over[0].odds > RINGS:
            return k + 1
    return MOST


def laws_of(rng: np.random.Generator, n_states: int) -> np.ndarray:
    """Cumulated laws (S, 2, S)."""
    laws = rng.random((n_states, 2, n_states))
    laws = np.where(laws < np.sort(laws, axis=2)[..., -3:-2], 0.0, rng.random(laws.shape))
    return np.cumsum(laws / laws.sum(axis=2, keepdims=True), axis=2)


def walk(rng: np.random.Generator, laws: np.ndarray, horizon: int) -> tuple[list[int], list[int]]:
    """States and actions of an episode."""
    states, actions = [int(rng.integers(len(laws)))], [int(a) for a in rng.integers(2, size=horizon)]
    for a, u in zip(actions, rng.random(horizon), strict=True):
        states.append(min(int(np.searchsorted(laws[states[-1], a], u)), len(laws) - 1))
    return states[:-1], actions


def drift(horizon: int, n_states: int, by_step: bool) -> str:
    """Episodes until a change rings, and rings without one."""
    delays, rings = [], 0
    for seed in range(10):
        rng, watch = np.random.default_rng((21, seed)), Watch(by_step=by_step)
        laws, other = laws_of(rng, n_states), laws_of(rng, n_states)
        for _ in range(BEFORE):
            watch.moved(*walk(rng, laws, horizon))
        first = AFTER
        for k in range(AFTER):
            watch.moved(*walk(rng, other, horizon))
            if watch.world.odds > RINGS:
                first = k + 1
                break
        delays.append(first)
    for seed in range(10):
        rng, watch = np.random.default_rng((22, seed)), Watch(by_step=by_step)
        laws = laws_of(rng, n_states)
        for _ in range(QUIET // 10):
            watch.moved(*walk(rng, laws, horizon))
            if watch.world.odds > RINGS:
                rings += 1
                watch.world.wealth = []
    return f"a change rings after {np.median(delays):.0f} episodes; {rings} rings in {QUIET} episodes without one"


if __name__ == "__main__":
    for excess in EXCESSES:
        medians = [np.median([until_it_rings(excess, spread, seed) for seed in range(STREAMS)]) for spread in SPREADS]
        print(f"{100 * excess:.0f} % over its budget:", ", ".join(f"{x:.0f}" for x in medians), "episodes", flush=True)
    for horizon, n_states in SIZES:
        for by_step in (False, True):
            kind = "by step" if by_step else "pooled"
            print(f"{horizon} steps, {n_states} states, {kind}: {drift(horizon, n_states, by_step)}", flush=True)
