"""Names for people, and the other cost tables of a problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omdpd.problem.arrays import Floats, InvalidInputError

# How the name of a constraint begins that is a chance.
CHANCE = "chance of "


@dataclass(frozen=True)
class Labels:
    """Names for people: of states, actions and constraints, and the rows of a map whose cells are the states.

    Empty where nothing was given; a map's cell (i, j) is state ``i * width + j``.
    """

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()

    def counted(self, n_states: int = 0, n_actions: int = 0, n_constraints: int = 0) -> Labels:
        """The same, with numbers for names where none were given.

        >>> Labels(actions=("stay", "go")).counted(2, 2)
        Labels(states=('state 0', 'state 1'), actions=('stay', 'go'), constraints=(), layout=())
        """
        kinds = ("state", self.states, n_states), ("action", self.actions, n_actions)
        each = (*kinds, ("constraint", self.constraints, n_constraints))
        states, actions, constraints = (given or tuple(f"{kind} {i}" for i in range(n)) for kind, given, n in each)
        return Labels(states, actions, constraints, self.layout)

    def place(self, constraint: int | str, n_constraints: int) -> int:
        """The place of a constraint, by its name or its place; another is refused."""
        names = self.counted(n_constraints=n_constraints).constraints
        if isinstance(constraint, str) and constraint in names:
            return names.index(constraint)
        if np.asarray(constraint).dtype.kind not in "iu" or constraint not in range(n_constraints):
            raise InvalidInputError(f"there is no constraint {constraint!r}; there are {', '.join(names)}")
        return int(constraint)

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
