"""Names for people, and the other cost tables of a problem."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.problem.arrays import Floats


@dataclass(frozen=True)
class Labels:
    """Names for people: of states, actions and constraints, and the rows of a map whose cells are the states.

    Empty where nothing was given; a map's cell (i, j) is state ``i * width + j``.
    """

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Cost tables (n, I, H, S, A), budgets taken off, among which a natural adversary of the world may pick."""

    names: tuple[str, ...]
    tables: Floats

    @property
    def rows(self) -> Floats:
        """All tables of all scenarios, (n I, H, S, A)."""
        return self.tables.reshape(-1, *self.tables.shape[2:])
