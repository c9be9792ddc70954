"""A carry gives every episode its budget from what its period has left: later ones may spend what is saved.

    budget_j = clip( (P b - spent - reserved) / (episodes left in the period),  b - most,  b + most ),   at least 0

P episodes are a period with P b to spend; open episodes reserve their budgets.  **Guarantee**: if every episode costs
at most its budget in expectation, and the lower clip is never reached, a period costs at most P b in expectation (each
budget is at most an equal share of what is left).  **No guarantee** where a lower clip is reached: then more was
overspent than the rest of the period may give up.  A learner follows budgets that move with delay: keep `most` small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omdpd.play.books import RECENT, Books
from omdpd.problem.arrays import Floats, InvalidInputError, numbers, positive_integer


@dataclass(frozen=True, eq=False)
class Carry:
    """Carry what was not spent over to later episodes of a period, within `most` of the budget either way.

    >>> from omdpd.play.books import Books
    >>> Carry(period=30, most=2.0).budget(np.array([10.0]), Books())
    array([10.])
    """

    period: int
    most: npt.ArrayLike

    def __post_init__(self) -> None:
        positive_integer("period", self.period)
        if self.period > RECENT:
            raise InvalidInputError(f"period is {self.period}, but at most {RECENT} episodes are remembered")
        if (np.asarray(numbers("most", self.most)) < 0.0).any():
            raise InvalidInputError(f"most is {self.most!r}, but must not be negative")

    def budget(self, base: Floats, books: Books) -> Floats:
        """The budget of the episode that begins next, (I,)."""
        done = books.totals.ended % self.period
        spent = sum((np.sum(each.costs, axis=0) for each in books.recent[len(books.recent) - done :]), 0.0 * base)
        waiting = list(books.open.values())[: max(self.period - done - 1, 0)]
        reserved = sum((np.asarray(base if each.budget is None else each.budget) for each in waiting), 0.0 * base)
        left = (self.period * base - spent - reserved) / (self.period - done - len(waiting))
        most = np.broadcast_to(np.asarray(self.most, dtype=np.float64), base.shape)
        return np.asarray(np.maximum(np.clip(left, base - most, base + most), 0.0), dtype=np.float64)
