"""Every constant of a learner can be set in a file: some setting reaches each field of what its factories build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from omdpd.learners import LEARNERS
from omdpd.learners.settings import GIVEN, settings_of

# A few values of every kind that settings take; some pair of them differs from any default.
TRIALS: tuple[Any, ...] = (True, False, 0.25, 0.75, 3, 5, 2.5, "uniform", "least-cost", "kl", "graph", None)


def leaves(thing: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every plain value inside a learner, by the type that holds it."""
    for field in fields(thing) if is_dataclass(thing) else ():
        if GIVEN in field.metadata:  # Python or a run fills it
            continue
        value = getattr(thing, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            yield from leaves(value, f"{type(value).__name__}.")
        else:
            yield f"{path}{field.name}", value


def reached(factory: Callable[..., Any]) -> set[str]:
    """The fields that change with some setting, alone or beside a switch that is turned."""
    parameters = settings_of(factory)
    switches = [{}, *({name: True} for name, p in parameters.items() if p.annotation in ("bool", bool))]
    found: set[str] = set()
    for switch in switches:
        base = dict(leaves(factory(**switch)))
        for name in parameters.keys() - switch.keys():
            for value in TRIALS:
                try:
                    changed = dict(leaves(factory(**switch, **{name: value})))
                except Exception:
                    continue
                found |= {path for path, was in base.items() if path in changed and changed[path] is not was}
    return found


# These look at losses, never at the estimated reward.
IDLE = {("CVOPS", "BoxEstimator.reward_scale"), ("WCOPS", "BoxEstimator.reward_scale")}
# References have no constants: they are handed the truth.
CLASSES = sorted({type(factory()).__name__ for factory in LEARNERS.values()} - {"Informed", "Oracle"})


@pytest.mark.parametrize("name", CLASSES)
def test_every_constant_is_a_setting(name: str) -> None:
    factories = [factory for factory in LEARNERS.values() if type(factory()).__name__ == name]
    built = [dict(leaves(factory())) for factory in factories]
    wanted = {path for found in built for path in found}
    by_name = {path for path in wanted if len({repr(found.get(path)) for found in built}) > 1}
    missing = wanted - by_name - set().union(*(reached(factory) for factory in factories))
    assert {(name, path) for path in missing} <= IDLE
