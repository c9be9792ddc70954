"""The beliefs of the standard learner: shared estimates, a bonus on the Lagrangian, a margin in standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.confidence import Estimate
from omdpd.beliefs.counts import Counts
from omdpd.beliefs.exploration import bonus
from omdpd.beliefs.margins import Caution, standard_error
from omdpd.beliefs.revealed import TableMemory
from omdpd.beliefs.sharing import Evidence, SharedBeliefs, SharedKernel, shared_beliefs
from omdpd.problem.arrays import Floats, check_settings
from omdpd.problem.records import quick
from omdpd.problem.setting import Setting
from omdpd.solvers.compiled.standard import lift_tables
from omdpd.solvers.regions import Kernel

# A revealed table is known exactly, and so is most of what a plan costs under it: the same dial buys more there.
REVEALED = 1.5


@quick
@dataclass(frozen=True, eq=False)
class Prices:
    """What the last plan would pay for a little more of each cost: `each` (J,) of `tables` (J, H, S, A)."""

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

    def beliefs(self, setting: Setting, counts: Counts, evidence: Evidence) -> SharedBeliefs:
        """The shared estimates."""
        return shared_beliefs(setting, counts, evidence, self.stationary)

    def estimate(
        self, setting: Setting, counts: Counts, beliefs: SharedBeliefs, prices: Prices, caution: Caution
    ) -> Estimate[Kernel]:
        """r~ with its bonus, the costs lifted by their margins, and p~; what counts as violation has no margin."""
        extra = bonus(beliefs, counts.visits, prices.each, prices.tables)
        cost = np.zeros((setting.n_constraints, *setting.shape))
        lifted = cost
        if beliefs.costs:
            cost = np.array([observed.mean for observed in beliefs.costs])
            lifted = cost + self._lifts(setting, beliefs, caution)[:, None, None, None]
        reward = beliefs.reward.mean + self.exploration * extra
        return Estimate(reward, lifted, cost, np.zeros(setting.shape), Kernel(beliefs.kernel))

    def revealed_lift(
        self, setting: Setting, beliefs: SharedBeliefs, caution: Caution, memory: tuple[TableMemory, ...], table: Floats
    ) -> float:
        """What every entry of a revealed table is raised by; nothing where tables never repeat."""
        if caution.plan is None or self.z == 0.0 or caution.futile(memory):
            return 0.0
        error = standard_error(beliefs, caution.plan, table)
        return REVEALED * self.z * caution.share * error / setting.horizon

    def lifted(
        self,
        setting: Setting,
        shared: SharedKernel,
        caution: Caution,
        memory: tuple[TableMemory, ...],
        tables: Floats,
    ) -> Floats:
        """Revealed tables (n, H, S, A), each raised by its `revealed_lift`."""
        if caution.plan is None or self.z == 0.0 or caution.futile(memory):
            return tables
        factor = REVEALED * self.z * caution.share / setting.horizon
        lifted = np.empty(tables.shape)
        lift_tables(tables, caution.plan, shared.kernel, shared.own, shared.common, factor, lifted)
        return lifted

    def _lifts(self, setting: Setting, beliefs: SharedBeliefs, caution: Caution) -> Floats:
        """What every entry of each estimated cost is raised by: z standard errors of the plan's cost, over H."""
        if caution.plan is None or self.z == 0.0:
            return np.zeros(setting.n_constraints)
        errors = [standard_error(beliefs, caution.plan, observed.mean, observed) for observed in beliefs.costs]
        return self.z * caution.share * np.array(errors) / setting.horizon
