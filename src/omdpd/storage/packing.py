"""A learner's state as plain data and back: arrays by name, and a tree of everything else.  No pickle.

A tree is JSON: numbers, strings, None, lists (for tuples), ``{"number": name}`` of what JSON has no number for (NaN and
the infinities), ``{"array": name}`` and ``{"class": name, "fields": {...}}``.  Only classes of a given table can come
back.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.records import WHERE_SET as WHERE_SET

Tree = Any  # JSON
# What a tree holds as it is.
PLAIN = (bool, int, float, str, NoneType, np.ndarray, np.generic)
# What may be given for an array (a union; from NumPy 2.5 on its name); what is kept is the array that was made of it.
ARRAY_LIKE = (npt.ArrayLike, *get_args(npt.ArrayLike))


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
    if "number" in tree:
        return float(tree["number"])
    # Up to 0.1 a class was stored with the name of its module in front.
    cls = classes.get(str(tree.get("class", "")).rpartition(".")[2])
    if cls is None:
        raise InvalidInputError(f"the stored state names {tree.get('class')!r}, which is not a known class")
    wanted = {f.name: f.default for f in fields(cls)}
    # A field that a later version works out again is listed as retired, and passed over.
    stored = {key: item for key, item in tree["fields"].items() if key not in getattr(cls, "retired", ())}
    absent = wanted.keys() - stored.keys()
    # A field that a later version added is None by default: it was not kept then.
    if not stored.keys() <= wanted.keys() or any(wanted[name] is not None for name in absent):
        raise InvalidInputError(f"the stored {cls.__name__} does not have the fields of this version")
    # Not through its constructor: what was stored is taken as it is, to the last bit, and not worked out again.
    value: Any = object.__new__(cls)
    for key, item in stored.items():
        object.__setattr__(value, key, unpack(item, arrays, classes))
    for key in absent:
        object.__setattr__(value, key, None)
    return value


# Arrays of so few numbers (budgets, scales) are said whole.
FEW = 12


def in_words(tree: Tree, arrays: Mapping[str, np.ndarray[Any, Any]], name: str) -> dict[str, str]:
    """Every entry of a packed value in words, by its name; a long array by its shape and a checksum.

    >>> in_words(*pack((1, np.zeros(2), np.zeros(50))), "it")
    {'it[0]': '1', 'it[1]': '[0.0, 0.0]', 'it[2]': 'an array of shape (50,) (7a12e56136)'}
    """
    if isinstance(tree, list):
        inner = [(f"{name}[{i}]", item) for i, item in enumerate(tree)]
    elif isinstance(tree, dict) and "class" in tree:
        inner = [(name, tree["class"]), *((f"{name}.{key}", item) for key, item in tree["fields"].items())]
    elif isinstance(tree, dict) and "array" in tree:
        array = arrays[tree["array"]]
        if array.size <= FEW:
            return {name: str(array.tolist())}
        return {name: f"an array of shape {array.shape} ({hashlib.sha256(array.tobytes()).hexdigest()[:10]})"}
    else:
        plain = tree["number"] if isinstance(tree, dict) else tree
        return {name: plain if isinstance(plain, str) else repr(plain)}
    return {key: text for part, item in inner for key, text in in_words(item, arrays, part).items()}


def classes_of(hint: Any, where: str) -> dict[str, type]:
    """The dataclasses that a value of this type may hold, by name: what may come back from a file, and nothing else.

    Fields are followed through unions, tuples and further dataclasses.  A type that could not be stored (or whose value
    would come back as something else) is refused; `where` names it in the sentence.

    >>> from omdpd.beliefs.counts import Counts
    >>> list(classes_of(Counts | None, "the state"))
    ['Counts']
    """
    found: dict[str, type] = {}
    _collect(hint, where, found)
    return found


def _collect(hint: Any, where: str, found: dict[str, type]) -> None:
    if isinstance(hint, TypeVar):
        hint = hint.__bound__
    if hint not in ARRAY_LIKE:
        hint = _named_type(hint)
    origin = get_origin(hint) or hint
    if origin in (Union, UnionType, tuple):
        for part in get_args(hint):
            _collect(part, where, found)
    elif isinstance(origin, type) and is_dataclass(origin):
        seen = origin.__name__ in found
        if found.setdefault(origin.__name__, origin) is not origin:
            raise InvalidInputError(f"{where} holds two classes named {origin.__name__}: a file cannot tell them apart")
        if not seen:
            hints = hints_of(origin, where)
            for each in fields(origin):
                _collect(hints[each.name], f"{where}.{each.name}", found)
    elif not _plain(hint, origin):
        raise InvalidInputError(
            f"{where} is of type {getattr(hint, '__name__', hint)}, which cannot be stored; what can: numbers, "
            "strings, arrays, tuples, and dataclasses of them"
        )


def _named_type(hint: Any) -> Any:
    """What a name made by ``type Name = ...`` stands for; NumPy's `NDArray` is one from 2.5 on."""
    while hasattr(named := get_origin(hint) or hint, "__value__"):
        hint = named.__value__
    return hint


def _plain(hint: Any, origin: Any) -> bool:
    """Whether values of this type are stored as they are."""
    if origin is Literal or hint in (None, Ellipsis, *ARRAY_LIKE):
        return True
    return isinstance(origin, type) and issubclass(origin, PLAIN)


def hints_of(owner: Any, where: str) -> dict[str, Any]:
    """The type hints of a dataclass or a function, or the sentence that says which of them cannot be found."""
    try:
        return get_type_hints(owner)
    except (NameError, TypeError) as error:
        raise InvalidInputError(f"the type hints of {where} cannot be read: {error}") from None


def _pack(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Tree:
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject or value.dtype.names is not None:
            raise TypeError(f"a state cannot hold an array of {value.dtype}")
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
        return float(value) if math.isfinite(value) else {"number": json.dumps(float(value))}
    if isinstance(value, tuple | list):
        return [_pack(item, arrays) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in fields(value) if "where_set" not in f.metadata or getattr(value, f.name) is not None]
        # A learner whose settings were stored in another shape keeps that shape.
        own = (
            value.packed_fields() if hasattr(value, "packed_fields") else {name: getattr(value, name) for name in kept}
        )
        content = {name: _pack(item, arrays) for name, item in own.items()}
        return {"class": type(value).__name__, "fields": content}
    raise TypeError(f"a state cannot hold a {type(value).__name__}")
