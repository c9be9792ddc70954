"""The settings of the standard learner's beliefs, and what a plan would pay."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.records import quick
from omdpd.problem.setting import Setting


@quick
@dataclass(frozen=True, eq=False)
class Prices:
    """What the last plan would pay for a little more of each cost: `each` (J,) of `tables` (J, ...)."""

    each: Floats
    tables: Floats


@dataclass(frozen=True)
class SharingEstimator:
    """p~, r~ and d~ shared between steps as far as the past supports it; `z` standard errors of safety on cost.

    `exploration` multiplies the bonus; `stationary` pools the steps without asking the past.
    """

    z: float = 1.0
    exploration: float = 1.0
    stationary: bool = False

    covers_truth = False

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=("z", "exploration"))

    def check(self, setting: Setting) -> None:
        """Any setting will do."""
