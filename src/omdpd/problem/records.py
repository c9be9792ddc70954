"""Frozen dataclasses that are quick to build: an episode makes twenty of them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")

# Metadata of a field that is not stored while it is None: what was stored, or named by a hash, before there was such a
# field stays as it was.
WHERE_SET = {"where_set": True}


def fast_init(cls: type[T]) -> type[T]:
    """Give a frozen dataclass a constructor that writes its fields straight away.

    The one that `dataclass` makes asks for leave field by field, which takes twice to three times as long.  What is
    built is the same: frozen, with the same fields and defaults.

    >>> from dataclasses import dataclass
    >>> @fast_init
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(y=2.0, x=1.0) == Point(1.0, 2.0)
    (Point(x=1.0, y=0.0), True)
    """
    own: Any = fields(cls)  # type: ignore[arg-type]  # a dataclass, or this raises
    if hasattr(cls, "__post_init__") or any(field.default_factory is not MISSING for field in own):
        raise TypeError(f"{cls.__name__} does more than write its fields when it is built")
    defaults = {field.name: field.default for field in own if field.default is not MISSING}
    parameters = [f"{field.name}=defaults[{field.name!r}]" if field.name in defaults else field.name for field in own]
    lines = [f"def __init__(self, {', '.join(parameters)}):", "    kept = self.__dict__"]
    lines += [f"    kept[{field.name!r}] = {field.name}" for field in own]
    scope: dict[str, Any] = {"defaults": defaults}
    exec("\n".join(lines), scope)  # as `dataclass` itself does it
    cls.__init__ = wraps(cls.__init__)(scope["__init__"])  # type: ignore[method-assign]
    return cls
