"""Environments whose published table, first law or map is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.strange_inputs import Case
from benchmarks.strange_inputs.environments import ERRORS, VALUES, Env, Lazy, Shy, raises
from omdpd.gym import from_gymnasium

GOOD = [(1.0, 0, 0.5, False)]


def cases(folder: Path) -> Iterator[Case]:
    """A table with one entry replaced at every depth, and what stands beside it."""
    for i, value in enumerate(VALUES):
        for place in range(4):
            outcome = [*GOOD[0]]
            outcome[place] = value
            yield Case(f"P[1][0][0][{place}] is {i}", lambda o=outcome: _import({0: [tuple(o)], 1: GOOD}))
        yield Case(f"P[1][0][0] is {i}", lambda v=value: _import({0: [v], 1: GOOD}))
        yield Case(f"P[1][0] is {i}", lambda v=value: _import({0: v, 1: GOOD}))
        yield Case(f"P[1] is {i}", lambda v=value: _import(v))
        yield Case(f"P is {i}", lambda v=value: from_gymnasium(Env(P=v), 3, lambda s, a, t: 0.0, 1.0))
        for name in ("initial", "reward_range", "horizon", "cost", "budget"):
            if not (name == "horizon" and value is True):
                yield Case(f"{name} is {i}", lambda n=name, v=value: _import(None, **{n: v}))
        yield Case(f"cost gives {i}", lambda v=value: _import(None, cost=lambda s, a, t: v))
        yield Case(f"desc is {i}", lambda v=value: _import(None, env={"desc": v}))
        yield Case(f"initial_state_distrib is {i}", lambda v=value: _import(None, env={"initial_state_distrib": v}))
        yield Case(
            f"reset gives {i}", lambda v=value: _import(None, env={"when": -1, "place": "observation", "what": v})
        )
    for error in ERRORS:
        yield Case(f"cost raises {type(error).__name__}", lambda e=error: _import(None, cost=raises(e)))
        yield Case(f"reset raises {type(error).__name__}", lambda e=error: _import(None, env={"reset": raises(e)}))
    for i, table in enumerate(
        ({5: {}}, {0: {}, 2: {}}, {0: {1: GOOD}}, {"0": {}}, [[GOOD]], np.zeros((2, 2)), Shy(), Lazy())
    ):
        yield Case(f"a table {i}", lambda t=table: from_gymnasium(Env(P=t), 3, np.zeros((2, 2)), 1.0))
    desc = np.array([[b"\xff", b"S"]])
    yield Case("a map of other bytes", lambda: _import(None, env={"desc": desc}))


def _import(actions: Any, env: dict[str, Any] | None = None, **settings: Any) -> None:
    """`from_gymnasium` of two states, the second with these actions."""
    good = {0: GOOD, 1: [(0.5, 0, 0.0, False), (0.5, 1, 1.0, True)]}
    table = {0: good, 1: good if actions is None else actions}
    given = {"horizon": 3, "cost": lambda s, a, t: float(t), "budget": 1.0} | settings
    from_gymnasium(Env(P=table, **(env or {})), **given)
