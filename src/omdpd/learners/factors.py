"""Which settings of a learner a fair comparison may tune, and around which value: `factors` of its class.

Six roles, at most one setting each:

    reward width        how far a reward estimate may be off, or how strongly an unvisited pair attracts
    transition width    the same for the kernel: the scale of a box, or of a bonus
    cost pessimism      a margin on an estimated cost, for methods that have one
    step                one step size, or what takes its place: a growth rate, a penalty, a tightening of the dual
    kernel pessimism    a margin on a cost for a kernel that may be off, where it is set apart
    exploration         what keeps estimates from exploding or policies from freezing: a floor of importance weights, a
                        temperature

A setting's default is the value that is multiplied; where the default is zero or unset, `base` is.  Of several factors
of one role the first is taken that a preset has.  A learner without `factors` (a plugin's) is tuned in those of its
settings that have a usual name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from omdpd.problem.arrays import named

Role = Literal["reward width", "transition width", "cost pessimism", "step", "kernel pessimism", "exploration"]
ROLES: tuple[Role, ...] = get_args(Role)
# The margin that is tried around where a method has the place for one and a default of zero.
PESSIMISM = 0.02


@dataclass(frozen=True)
class Factor:
    """A setting that may be tuned: its role, its name, and what is multiplied where the default is no number."""

    role: Role
    setting: str
    base: float | None = None

    def __post_init__(self) -> None:
        named(dict.fromkeys(ROLES), self.role, "role of a factor")


def reward_width(setting: str = "reward_scale") -> Factor:
    """How far a reward estimate may be off."""
    return Factor("reward width", setting)


def kernel_width() -> Factor:
    """How far the kernel may be off."""
    return Factor("transition width", "transition_scale")


def margin(setting: str, base: float | None = None) -> Factor:
    """A margin on an estimated cost."""
    return Factor("cost pessimism", setting, base)


def step(setting: str, base: float | None = None) -> Factor:
    """A step size, or what takes its place."""
    return Factor("step", setting, base)


def exploration(setting: str) -> Factor:
    """A floor of importance weights, or a temperature."""
    return Factor("exploration", setting, 1.0)


WIDTHS = (reward_width(), kernel_width())
USUAL = (*WIDTHS, margin("cost_scale", PESSIMISM), margin("kappa", PESSIMISM), step("step_scale"))


def factors_of(learner: object, settings: Mapping[str, Any]) -> tuple[Factor, ...]:
    """What may be tuned of a learner with these settings: of its `factors`, one of each role that is a setting.

    A setting that is None has nothing to multiply, unless its factor has a base.

    >>> [factor.setting for factor in factors_of(object(), {"kappa": 0.1, "memory": 3})]
    ['kappa']
    """
    found: dict[Role, Factor] = {}
    for factor in getattr(learner, "factors", USUAL):
        if factor.setting in settings and (settings[factor.setting] is not None or factor.base is not None):
            found.setdefault(factor.role, factor)
    return tuple(found.values())
