"""Names for people, and the other cost tables of a problem."""

from __future__ import annotations

from dataclasses import dataclass

from omdpd.problem.arrays import Floats, InvalidInputError


@dataclass(frozen=True)
class Labels:
    """Names for people: of states, actions and constraints, and the rows of a map whose cells are the states.

    Empty where nothing was given; a map's cell (i, j) is state ``i * width + j``.
    """

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()

    def check(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        """Refuse a list of the wrong length."""
        cells = ("map", "".join(self.layout), n_states), ("constraint", self.constraints, n_constraints)
        for kind, names, wanted in (("state", self.states, n_states), ("action", self.actions, n_actions), *cells):
            if (given := len(names)) not in (0, wanted):
                raise InvalidInputError(f"there are {given} {kind} labels, but {wanted} of that kind")


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Cost tables (n, I, H, S, A), budgets taken off, among which a natural adversary of the world may pick."""

    names: tuple[str, ...]
    tables: Floats

    @property
    def rows(self) -> Floats:
        """All tables of all scenarios, (n I, H, S, A)."""
        return self.tables.reshape(-1, *self.tables.shape[2:])
