"""How far from its budget a plan should stay: a number of standard errors of its cost (`rows.cost_variance`)."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.beliefs import rules
from omdpd.beliefs.memory import TableMemory
from omdpd.problem.arrays import Floats
from omdpd.problem.records import fast_init


@fast_init
@dataclass(frozen=True, eq=False)
class Caution:
    """What a margin depends on besides the beliefs.

    `plan` is the occupancy whose cost is asked about (None before the first episode: no margin then); `share` of the
    margin is asked for, less than one while no plan has room for all of it, and less than zero (the benefit of the
    doubt) while none meets the tables as they are; `novelty` is how far revealed tables have been from the remembered
    ones.
    """

    plan: Floats | None = None
    share: float = 1.0
    novelty: float = 0.0

    def after_plan(self, plan: Floats, excess: float, horizon: int, revealed: bool) -> Caution:
        """Less of the margin if the new plan exceeds a lifted row by `excess`, else more, up to all of it."""
        share = rules.margin_share(self.share, rules.is_exceeded(excess, horizon), revealed)
        return Caution(plan, share, self.novelty)

    def after_tables(self, memory: tuple[TableMemory, ...], tables: Floats) -> Caution:
        """The novelty after tables (I, ...) were revealed; `memory` is the one before."""
        found = [kept.distance(table) for kept, table in zip(memory, tables, strict=True) if kept.tables]
        if not found:
            return self
        return Caution(self.plan, self.share, rules.novelty_after(self.novelty, max(found)))

    def margin_is_useless(self, memory: tuple[TableMemory, ...]) -> bool:
        """Whether tables come that no memory holds: a margin on old ones then protects from nothing."""
        return rules.margin_is_useless(any(kept.overflowed for kept in memory), self.novelty)
