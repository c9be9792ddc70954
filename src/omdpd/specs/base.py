"""What all named specs share."""

from __future__ import annotations

from typing import Any

import msgspec

from omdpd.arrays import InvalidInputError


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """A named value; equal specs are equal experiments."""

    @property
    def name(self) -> str:
        """The tag under which it is written."""
        return str(type(self).__struct_config__.tag)


def named(table: dict[str, Any], name: str, kind: str) -> Any:
    """Look a name up, or say which names there are."""
    if name not in table:
        raise InvalidInputError(f"there is no {kind} {name!r}; there are {', '.join(table)}")
    return table[name]
