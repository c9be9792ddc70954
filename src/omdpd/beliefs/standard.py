"""The settings of the standard learner's beliefs, and what a plan would pay."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.records import fast_init
from omdpd.problem.setting import Setting


@fast_init
@dataclass(frozen=True, eq=False)
class Prices:
    """What the last plan would pay for a little more of each cost: `each` (J,) of `tables` (J, ...)."""

    each: Floats
    tables: Floats


@dataclass(frozen=True)
class SharingEstimator:
    """p~, r~ and d~ shared between steps as far as the past supports it; `z` standard errors of safety on cost.

    `exploration` multiplies the bonus; `stationary` pools the steps without asking the past; `persistence` scales what
    the bonus of a row that is seldom visited grows by (0: the bonus of version 0.2, with which a row may be left for
    good); with `z_growth` z grows as time passes, with `z_spending` it falls (`rules.errors_for`).
    """

    z: float = 1.0
    exploration: float = 1.0
    stationary: bool = False
    persistence: float = 0.0
    z_growth: float = 0.0
    z_spending: float = 0.0

    covers_truth = False

    def __post_init__(self) -> None:
        check_settings(self, nonnegative=("z", "exploration", "persistence", "z_growth", "z_spending"))

    @property
    def z_power(self) -> float:
        """The power with which z changes as time passes."""
        return self.z_growth - self.z_spending

    def check(self, setting: Setting) -> None:
        """Any setting will do."""
