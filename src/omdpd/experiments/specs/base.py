"""What all named specs share."""

from __future__ import annotations

import math

import msgspec

from omdpd.problem.arrays import InvalidInputError

# No size or count of a spec is sensibly larger.
MOST_INTEGER = 10**9
# A transition kernel H x S x A x S of more entries (half a gigabyte) is refused before anything is allocated for it.
MOST_ENTRIES = 2**26
# Fields that count something, and so are at least one; a horizon of 0 stands for a map's own.
COUNTS = (
    "n_states", "n_actions", "n_constraints", "n_levels", "n_jobs", "n_places", "capacity", "branching", "size",
    "period",
)  # fmt: skip
# Fields that a number of states grows with; where actions are not counted they may be as many (the shop's orders).
STATES = ("n_states", "n_levels", "n_jobs", "n_places", "capacity")


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """A named value; equal specs are equal experiments."""

    def __post_init__(self) -> None:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        for name, value in fields.items():
            for number in value if isinstance(value, tuple) else (value,):
                _refuse_number(name, number)
        n_states = max([2, *(fields[name] + 1 for name in STATES if name in fields)])
        n_cells = sum(len(row) for row in fields.get("rows", ()) if isinstance(row, str))
        n_actions = fields.get("n_actions", n_states if "capacity" in fields else 1)
        entries = max(fields.get("horizon", 1), 1) * max(n_states, n_cells) ** 2 * n_actions
        if entries > MOST_ENTRIES:
            raise InvalidInputError(
                f"its horizon, states and actions make about {entries:.1e} transition probabilities, "
                f"more than {MOST_ENTRIES}"
            )

    @property
    def name(self) -> str:
        """The tag under which it is written."""
        return str(type(self).__struct_config__.tag)

    @property
    def label(self) -> str:
        """The name with the settings that are not the defaults: what tables and figures show.

        >>> from omdpd.experiments.specs.learners import CautiousSpec
        >>> CautiousSpec().label, CautiousSpec(kappa=0.05).label
        ('ProximalOMDPD.cautious', 'ProximalOMDPD.cautious(kappa=0.05)')
        """
        fields = msgspec.structs.fields(type(self))
        set_ = {f.encode_name: getattr(self, f.name) for f in fields if getattr(self, f.name) != f.default}
        return self.name + (f"({', '.join(f'{key}={value}' for key, value in set_.items())})" if set_ else "")


def _refuse_number(name: str, value: object) -> None:
    """Refuse a number that no setting of this name can be."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{name} is {value}, but must be a finite number")
    if isinstance(value, int) and abs(value) > MOST_INTEGER:
        raise InvalidInputError(f"{name} is {value}, but must be between -{MOST_INTEGER} and {MOST_INTEGER}")
    if isinstance(value, int) and ((value < 1 and name in COUNTS) or (value < 0 and name == "horizon")):
        raise InvalidInputError(f"{name} is {value}, but must be at least 1")
