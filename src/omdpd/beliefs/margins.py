"""How far from its budget a plan should stay: a number of standard errors of its cost.

    se^2 = sum_hsa q^2 (Var_p(C_{h+1}) own_p + v_d own_d) + sum_sa (sum_h q sqrt(Var_p(C_{h+1}) common_p))^2
                                                          + sum_sa (sum_h q sqrt(v_d common_d))^2

is the variance of d.q for the plan's occupancy q, to first order: C is the plan's cost-to-go, v_d the noise of one
observed cost, own and common what `sharing` says of a row.  A revealed table has no noise: only the kernel is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.beliefs.revealed import TableMemory
from omdpd.beliefs.sharing import SharedBeliefs, SharedTable
from omdpd.problem.arrays import Floats, Integers
from omdpd.problem.records import quick
from omdpd.solvers.compiled.flow import policy_of_occupancy
from omdpd.solvers.compiled.lookahead import kernel_variance, noise_variance
from omdpd.solvers.compiled.memory import nearest
from omdpd.solvers.compiled.products import largest

# A margin under which no plan exists falls by this factor per episode, and otherwise grows back by that one.
FALL, GROWTH, LEAST = 0.8, 1.1, 0.05
# Where tables are revealed and no plan meets them even so, the belief itself is wrong: it falls on by this much per
# episode, down to as many standard errors below the estimate as it would be above, and comes back half as fast.
DESCENT, LOWEST = 0.05, -1.0
# A lifted row that is exceeded by more than this share of H is not held.
EXCEEDED = 1e-6
# Tables that differ from all remembered ones by this share of their size, on average, never repeat.
NOVEL, FORGET = 0.25, 0.125


@quick
@dataclass(frozen=True, eq=False)
class Caution:
    """What a margin depends on besides the beliefs.

    `plan` (H,S,A) is the occupancy whose cost is asked about (None before the first episode: no margin then); `share`
    of the margin is asked for, less than one while no plan has room for all of it, and less than zero (the benefit of
    the doubt) while none meets the tables as they are; `novelty` is how far revealed tables have been from the
    remembered ones.
    """

    plan: Floats | None = None
    share: float = 1.0
    novelty: float = 0.0

    def after_plan(self, plan: Floats, excess: float, horizon: int, revealed: bool) -> Caution:
        """Less of the margin if the new plan exceeds a lifted row by `excess`, else more, up to all of it."""
        share = self._less(revealed) if excess > EXCEEDED * horizon else self._more()
        return Caution(plan, share, self.novelty)

    def _less(self, revealed: bool) -> float:
        if self.share > LEAST or not revealed:
            return max(FALL * self.share, LEAST)
        return max(self.share - DESCENT, LOWEST)

    def _more(self) -> float:
        if self.share < LEAST:
            return self.share + DESCENT / 2.0
        return min(GROWTH * self.share, 1.0)

    def inherited(self, parent: Integers | None) -> Caution:
        """The same with the plan by the rows of a newer graph, of which `parent` were those before; None for tables."""
        if parent is None or self.plan is None:
            return self
        return Caution(self.plan[parent], self.share, self.novelty)

    def after_tables(self, memory: tuple[TableMemory, ...], tables: Floats) -> Caution:
        """The novelty after tables (I,H,S,A) were revealed; `memory` is the one before."""
        found = [distance(kept, table) for kept, table in zip(memory, tables, strict=True) if kept.tables]
        if not found:
            return self
        return Caution(self.plan, self.share, (1.0 - FORGET) * self.novelty + FORGET * max(found))

    def futile(self, memory: tuple[TableMemory, ...]) -> bool:
        """Whether tables come that no memory holds: a margin on old ones then protects from nothing."""
        return self.overflowed(memory) and self.novelty > NOVEL

    @staticmethod
    def overflowed(memory: tuple[TableMemory, ...]) -> bool:
        """Whether more tables came than a memory holds."""
        return any(kept.capacity is not None and kept.n_labels > max(kept.capacity, 1) for kept in memory)


def standard_error(beliefs: SharedBeliefs, plan: Floats, table: Floats, observed: SharedTable | None = None) -> float:
    """The standard error of table.q for q = `plan`; with `observed` the table itself was estimated too."""
    policy = policy_of_occupancy(plan)
    variance = kernel_variance(plan, policy, beliefs.kernel, table, beliefs.own, beliefs.common)
    if observed is not None:
        variance += noise_variance(plan, observed.noise, observed.own, observed.common)
    return float(np.sqrt(variance))


def distance(memory: TableMemory, table: Floats) -> float:
    """min_j |d - d_j|_max / |d|_max over the remembered tables; 0 for the zero table."""
    size = largest(table)
    return nearest(memory.stack, table) / size if size > 0.0 else 0.0
