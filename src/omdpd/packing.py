"""A learner's state as plain data and back: arrays by name, and a tree of everything else.  No pickle.

A tree is JSON: numbers, strings, None, lists (for tuples), ``{"array": name}`` and
``{"class": name, "fields": {...}}``.  Only classes of a given table can come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from omdpd.arrays import InvalidInputError

Tree = Any  # JSON


def pack(value: Any) -> tuple[Tree, dict[str, np.ndarray[Any, Any]]]:
    """The tree of `value` and its arrays.

    >>> tree, arrays = pack((1, np.zeros(2)))
    >>> tree, list(arrays)
    ([1, {'array': 'a0'}], ['a0'])
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    return _pack(value, arrays), arrays


def unpack(tree: Tree, arrays: Mapping[str, np.ndarray[Any, Any]], classes: Mapping[str, type]) -> Any:
    """The value that was packed; refuses anything that is not in `classes`."""
    if isinstance(tree, list):
        return tuple(unpack(item, arrays, classes) for item in tree)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        name = tree["array"]
        if name not in arrays:
            raise InvalidInputError(f"the stored state has no array {name!r}")
        return arrays[name]
    cls = classes.get(tree.get("class", ""))
    if cls is None:
        raise InvalidInputError(f"the stored state names {tree.get('class')!r}, which is not a known class")
    wanted = {f.name for f in fields(cls)}
    stored = tree["fields"]
    if set(stored) != wanted:
        raise InvalidInputError(f"the stored {cls.__name__} does not have the fields of this version")
    # Not through its constructor: what was stored is taken as it is, to the last bit, and not worked out again.
    value: Any = object.__new__(cls)
    for key, item in stored.items():
        object.__setattr__(value, key, unpack(item, arrays, classes))
    return value


def class_name(cls: type) -> str:
    """The name under which a class is stored: its module's last part and its own."""
    return f"{cls.__module__.rsplit('.', 1)[-1]}.{cls.__qualname__}"


def _pack(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Tree:
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, tuple | list):
        return [_pack(item, arrays) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: _pack(getattr(value, f.name), arrays) for f in fields(value)}
        return {"class": class_name(type(value)), "fields": content}
    raise TypeError(f"a state cannot hold a {type(value).__name__}")
