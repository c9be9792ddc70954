"""Settings said beside an experiment's file: ``key=value`` instead of another file.

    episodes=500                 a key of the experiment itself
    learners.z=[0.0, 1.0]        a setting of its only learner (a list is a grid, as in the file)
    worlds[1].n_states=10        a setting of its second world

A value is what TOML would take after the equals sign; a word that is none (``record=all``) is a string.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from omdpd.experiments.spec import KINDS
from omdpd.problem.arrays import InvalidInputError, shortened, shown
from omdpd.problem.strangers import said

KEY = re.compile(r"(?:(?P<kind>\w+)(?:\[(?P<place>\d+)\])?\.)?(?P<key>\w+)", re.ASCII)
# The place of an entry has fewer digits than this.
MAX_DIGITS = 10


def overridden(content: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Decoded TOML of an experiment with some settings replaced; what they mean is checked where the file's are.

    >>> overridden({"episodes": 10, "worlds": [{"name": "grid"}]}, ["episodes=20", "worlds.horizon=9"])
    {'episodes': 20, 'worlds': [{'name': 'grid', 'horizon': 9}]}
    """
    changed = dict(content)
    for text in overrides:
        key, equals, value = text.partition("=")
        match = KEY.fullmatch(key.strip())
        if not equals or match is None or not text.isprintable():
            raise InvalidInputError(
                f"--set {shown(text)}: write one key=value in one line, as in episodes=100 or learners[0].z=1.0"
            )
        kind, place, name = match["kind"], match["place"], match["key"]
        if kind is None:
            changed[_not_a_kind(name)] = _value(value)
        else:
            changed[kind] = _in_entry(changed, shortened(key.strip()), kind, place, {name: _value(value)})
    return changed


def _in_entry(content: Mapping[str, Any], key: str, kind: str, place: str | None, setting: dict[str, Any]) -> list[Any]:
    """The entries of a kind, one of them with a setting more."""
    if kind not in KINDS:
        raise InvalidInputError(f"--set {key}: there is no {kind!r} in an experiment; there are {', '.join(KINDS)}")
    entries = content.get(kind)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"--set {key}: the experiment has no [[{kind}]] tables to set it in")
    if place is None and len(entries) > 1:
        last = f"{kind}[{len(entries) - 1}]"
        raise InvalidInputError(
            f"--set {key}: the experiment has {len(entries)} {kind}; say which, from {kind}[0] to {last}"
        )
    i = int(place or 0) if len(place or "") < MAX_DIGITS else len(entries)
    if i >= len(entries):
        raise InvalidInputError(f"--set {key}: the experiment has {len(entries)} {kind}, counted from 0")
    return [entry | setting if j == i else entry for j, entry in enumerate(entries)]


def _not_a_kind(name: str) -> str:
    if name in KINDS:
        raise InvalidInputError(
            f"--set {name}: whole tables are not set here; set their keys, as in {name}[0].name=..."
        )
    return name


def _value(text: str) -> Any:
    """A TOML value, or the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
    except (ValueError, RecursionError) as error:  # a number of too many digits, too many brackets
        raise InvalidInputError(f"--set: the value {shown(text)} cannot be read: {said(error)}") from None
