"""The table of columns: what a judged episode and a whole run say, each in one line; and the rows of a run.

Everything that stores, checks, converts or shows such a number takes its name, type, unit and words from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints, overload


@dataclass(frozen=True)
class Column:
    """What a column of rows, or a number of a run's summary, is.

    Attributes
    ----------
    meaning
        What it says, for the documentation, and for the page if it is drawn there.
    kind
        Its type.
    unit
        What it is in; such a number is multiplied to be shown in the user's units.
    since
        The format from which on it is stored; `before` is what an older run has instead.
    filled
        Whether every run has one: otherwise it may be None.
    title
        The title of its mean over seeds on the page, where such a column is drawn.
    head, digits
        Its header in tables of summaries, and its decimals there; without a header it is in none.
    narrow
        Whether it is shown where there is little room.
    """

    meaning: str
    kind: Literal["whole", "number", "numbers", "limits", "range", "truth", "text"] = "number"
    unit: Literal["", "rewards", "costs"] = ""
    since: int = 2
    before: Any = None
    filled: bool = False
    title: str = ""
    head: str = ""
    digits: int = 0
    narrow: bool = False


Maybe = float | None
_SETS = (
    "its set of kernels holds the true one and its tables are optimistic; never so for a learner that plans in one "
    "empirical kernel"
)
_LOSS = "What a policy can lose per episode, at most"
_EVENT = "every estimate within the theorem's width so far, and both sums of visits below their bounds"


class Row(NamedTuple):
    """One episode, judged, with the sums so far, in the units that the learner sees."""

    episode: Annotated[int, Column("the episode, from 1", "whole", filled=True)]
    value: Annotated[float, Column("true value of its policy", unit="rewards", filled=True)]
    excess: Annotated[tuple[float, ...], Column("true cost - budget, by constraint", "numbers", "costs", filled=True)]
    value_sum: Annotated[float, Column("sum of values", unit="rewards", filled=True)]
    violation_sum: Annotated[float, Column("strong violation: sum of max_i [excess]^+", unit="costs", filled=True)]
    step_size: Annotated[Maybe, Column("the learner's step size")]
    weight: Annotated[Maybe, Column("the largest weight that it gives a constraint")]
    certified_regret: Annotated[
        Maybe, Column("bound on regret, as believed", unit="rewards", title="Certified regret bound")
    ]
    certified_violation: Annotated[
        Maybe, Column("bound on violation, as believed", unit="costs", title="Certified violation bound")
    ]
    good_event: Annotated[bool | None, Column(_EVENT, "truth", title="Share of seeds on the paper's good event")]
    metrics: tuple[float, ...]
    optimism: Annotated[
        bool | None, Column(_SETS, "truth", since=3, title="Share of seeds whose belief covers the truth")
    ] = None
    planned_value_sum: Annotated[Maybe, Column("what plans promised: sum of values", unit="rewards", since=3)] = None
    planned_violation_sum: Annotated[Maybe, Column("what plans promised: violation", unit="costs", since=3)] = None
    loss_bound: Annotated[
        Maybe, Column("what its next policy can lose at most, as the data see it", unit="rewards", since=4, title=_LOSS)
    ] = None


# The columns of rows in their order; metrics of the user's own come after them.
COLUMNS: dict[str, Column] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Row, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
# The columns of rows by the format that they began with; in the first, `good_event` was what is called `optimism` now.
COLUMNS_OF = {
    since: tuple(name for name, column in COLUMNS.items() if column.since <= since)
    for since in sorted({column.since for column in COLUMNS.values()})
}
# Columns that reading adds; a metric cannot have such a name either.
LABELS = ("run", "world", "nature", "learner", "seed", "regret")


def begun_with(stored: Sequence[str]) -> tuple[str, ...]:
    """Our columns among those that rows have, by the format that they began with; all of today's if by none."""
    for names in reversed(COLUMNS_OF.values()):
        if tuple(stored[: len(names)]) == names:
            return names
    return tuple(COLUMNS)


def _text(meaning: str) -> Column:
    return Column(meaning, "text", filled=True)


def _count(meaning: str, **more: Any) -> Column:
    return Column(meaning, "whole", filled=True, **more)


# What tables, figures and pages take from the summary of a run; the others are for whoever reads it.
SUMMARY: dict[str, Column] = {
    "world": _text("the world, with its settings"),
    "nature": _text("the nature"),
    "learner": _text("the learner"),
    "run": _text("the run's id"),
    "seed": _count("the seed"),
    "episodes": _count("episodes K"),
    "regret": Column(
        "K times the comparator's value - sum of values", unit="rewards", head="regret", digits=1, narrow=True
    ),
    "violation": Column("strong violation", unit="costs", filled=True, head="violation", digits=1, narrow=True),
    "weak_violation": Column("max_i [sum of excess]^+", unit="costs", filled=True, head="weak", digits=1, narrow=True),
    "lagrangian_regret": Column("regret against the Lagrangian's best", unit="rewards", head="Lagrangian", digits=1),
    "regret_exponent": Column("growth of regret as a power of K", head="exp r", digits=2, narrow=True),
    "violation_exponent": Column("growth of violation as a power of K", head="exp v", digits=2, narrow=True),
    "failures": _count("solves that missed their accuracy", head="fail"),
    "solves": _count("mirror steps and programs"),
    "max_gap": Column("the largest relative duality gap", filled=True),
    "seconds": Column("time that it took", filled=True, head="s/run", digits=1, narrow=True),
    "comparator_value": Column("value of the best policy that is safe in every episode"),
    "comparator_exists": Column("whether there is one", "truth", since=3, before=True, filled=True),
    "iterations": _count("iterations of all solves", since=3, before=0),
    "infeasible": _count("episodes in which no policy seemed safe", since=3, before=0),
    "saturations": _count("episodes with the penalty at its cap", since=3, before=0),
    "regret_positive": Column("sum of the positive parts of regret", unit="rewards", since=3),
    "late_violation": Column("mean violation in the last tenth", unit="costs", since=3),
    "early_episode": Column("where growth starts to be measured", "whole", since=3),
    "early_regret": Column("regret there", unit="rewards", since=3),
    "early_violation": Column("violation there", unit="costs", since=3),
    "budget": Column("the user's budgets; null: no limit", "limits", since=3, before=(), filled=True),
    "cost_scale": Column("what a cost of 1 is to the user", "numbers", since=3, before=(), filled=True),
    "reward_range": Column("what 0 and 1 are to the user", "range", since=3, before=(0.0, 1.0), filled=True),
}


def regret_curve(best: float | None, episodes: Any, value_sum: Any) -> Any:
    """k V* - sum_k V_k: regret after `episodes` whose values have this sum; None without a comparator of value V*."""
    return None if best is None else episodes * best - value_sum


class Rows(Sequence[Row]):
    """Rows kept as columns, one for every field; a row is made when it is asked for."""

    def __init__(self) -> None:
        self._columns: tuple[list[Any], ...] = tuple([] for _ in Row._fields)

    @staticmethod
    def of(**columns: list[Any]) -> Rows:
        """Rows that come as columns, one for every field."""
        made = Rows()
        made._columns = tuple(columns[name] for name in Row._fields)
        return made

    def extend(self, rows: Sequence[Row]) -> None:
        """Some more rows."""
        columns = rows._columns if isinstance(rows, Rows) else list(zip(*rows, strict=True))
        for column, more in zip(self._columns, columns, strict=True) if rows else ():
            column.extend(more)

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        return Row(*(column[place] for column in self._columns))

    def column(self, name: str) -> list[Any]:
        """All entries of a field, in order."""
        return self._columns[Row._fields.index(name)]
