"""What all named specs share."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from omdpd.arrays import InvalidInputError

# No size or count of a spec is sensibly larger.
MOST_INTEGER = 10**9


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """A named value; equal specs are equal experiments."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidInputError(f"{name} is {value}, but must be a finite number")
            if isinstance(value, int) and abs(value) > MOST_INTEGER:
                raise InvalidInputError(f"{name} is {value}, larger than {MOST_INTEGER}")

    @property
    def name(self) -> str:
        """The tag under which it is written."""
        return str(type(self).__struct_config__.tag)

    @property
    def label(self) -> str:
        """The name with the settings that are not the defaults: what tables and figures show.

        >>> from omdpd.specs.learners import CautiousSpec
        >>> CautiousSpec().label, CautiousSpec(kappa=0.05).label
        ('ProximalOMDPD.cautious', 'ProximalOMDPD.cautious(kappa=0.05)')
        """
        fields = msgspec.structs.fields(type(self))
        set_ = {f.encode_name: getattr(self, f.name) for f in fields if getattr(self, f.name) != f.default}
        return self.name + (f"({', '.join(f'{key}={value}' for key, value in set_.items())})" if set_ else "")


def named(table: dict[str, Any], name: str, kind: str) -> Any:
    """Look a name up, or say which names there are."""
    if name not in table:
        raise InvalidInputError(f"there is no {kind} {name!r}; there are {', '.join(table)}")
    return table[name]
