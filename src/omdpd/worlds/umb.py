"""Models that others wrote, in the exchange format UMB of Storm and PRISM: a tar of plain little-endian arrays.

| member | what it is |
|---|---|
| ``index.json`` | names of reward models, and what numbers are kept as |
| ``state-to-choices.bin``, ``choice-to-branches.bin`` | where a state's choices and a choice's branches begin |
| ``branch-to-target.bin``, ``branch-to-probability.bin`` | where a branch leads, and how likely it is |
| ``state-is-initial.bin`` | one bit per state |
| ``annotations/rewards/NAME/{states,choices,branches}/values.bin`` | what a reward model gives |
| ``annotations/aps/NAME/states/values.bin`` | one bit per state: a label that it has |
| ``valuations/states/valuations.bin`` | the variables of a state, packed bit by bit |

States of one model have different numbers of choices: the actions beyond them are not allowed.  A file says neither
which rewards are costs nor for how long one plays; whoever reads it does.  What is no Markov decision process in
discrete time with numbers of double precision is refused.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omdpd.problem.arrays import Floats, Integers, InvalidInputError, positive_integer, shortened, shown
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.laws import laws_of_entries
from omdpd.problem.machine_memory import refuse_beyond_memory
from omdpd.problem.tables import ASKED_FOR, Budget
from omdpd.storage.atomic import opened_plain
from omdpd.worlds.files import LIMITS, check_digest

# What a file may have, and its members together once they are unpacked: as much as other files with a problem.
MAX_BYTES = LIMITS.n_bytes
# How many members there may be, and how much tar itself may take to describe them (names may be of any length).
MAX_MEMBERS, MAX_TAR_BYTES = 2000, 2**22
MAX_INDEX_BYTES = 2**24
# How packed files begin, and who unpacks them.
PACKINGS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ": lzma.open, b"BZh": bz2.open}
DAMAGES = (tarfile.TarError, EOFError, OSError, ValueError, RecursionError, zlib.error, lzma.LZMAError)
ADVICE = "lump states together, or give the model fewer choices"
REWARDS = "annotations/rewards/"
# States of larger models are numbers.
MAX_NAMES = 2**17


@dataclass(frozen=True, eq=False)
class UMBModel:
    """What a file holds, choices written as actions: laws by branch, and every reward model as a table (S, A).

    `allowed` (S, A) says which choices exist; `rows` (E,) is the pair s A + a of a branch.  `names` are made of the
    variables and labels of the states, where there are any.
    """

    rows: Integers
    targets: Integers
    probabilities: Floats
    initial: Floats
    rewards: dict[str, Floats]
    allowed: npt.NDArray[np.bool_]
    names: tuple[str, ...] = ()


def read_umb(file: str | Path) -> UMBModel:
    """Read a model, or say in one sentence what is wrong with the file."""
    parts = _members(Path(file))
    system, rewards = _index(file, parts)
    _check_said(file, system, {"time": ("discrete",), "#players": (1, 0), "#observations": (0,)})
    for described, key in ((system, "branch-probability-type"), *((each, "type") for each in rewards.values())):
        _check_said(file, described, {key: ("double", {"type": "double"}, {"type": "double", "size": 64})})
    choices = _pointers(file, parts, ("state-to-choices.bin", "state-to-choice.bin"), None)
    S, n = len(choices) - 1, np.diff(choices)
    if S < 1 or n.min() < 1:
        raise InvalidInputError(f"{file}: state {int(n.argmin()) if S else 0} has no choice")
    branches = _pointers(file, parts, ("choice-to-branches.bin", "choice-to-branch.bin"), int(choices[-1]) + 1)
    targets = _array(file, parts, "branch-to-target.bin", "<u8", int(branches[-1]))
    if targets.size and targets.max() >= S:
        raise InvalidInputError(f"{file}: a branch leads to state {targets.max()}, but there are {S} states")
    chances = _array(file, parts, "branch-to-probability.bin", "<f8", int(branches[-1]))
    bits = _array(file, parts, "state-is-initial.bin", "u1", None)
    first = np.unpackbits(bits, bitorder="little")[:S].astype(np.float64)
    if len(first) < S or not first.any():
        raise InvalidInputError(f"{file}: no state is marked as initial")
    A = int(n.max())
    sizes = {"states": S, "choices": int(choices[-1]), "branches": len(targets)}
    _check_said(file, system, {f"#{kind}": (size,) for kind, size in sizes.items()})
    refuse_beyond_memory(f"{file}: {S} states with {A} choices", 8.0 * S * A * (len(rewards) + 1), ADVICE)
    owner = np.repeat(np.arange(S), n)
    pair = owner * A + np.arange(len(owner)) - choices[owner]
    choice = np.repeat(np.arange(len(owner)), np.diff(branches))
    tables: dict[str, Floats] = {}
    for key, described in rewards.items():
        values, name = _reward(file, parts, key, sizes), str(described.get("alias") or key)
        if name in tables:
            raise InvalidInputError(f"{file} has two reward models of the name {shown(name)}")
        given = values["choices"] + values["states"][owner]
        given += np.bincount(choice, chances * values["branches"], minlength=len(owner))
        tables[name] = np.zeros(S * A)
        tables[name][pair] = given
    rows = pair[choice]
    shaped = {name: table.reshape(S, A) for name, table in tables.items()}
    names = _names(json.loads(parts["index.json"]), parts, S)
    return UMBModel(rows, targets, chances, first / first.sum(), shaped, np.arange(A) < n[:, None], names)


def umb_problem(
    path: str, reward: str, costs: Sequence[str], budget: Budget = ASKED_FOR, horizon: int = 1, sha256: str = ""
) -> CMDP:
    """A model that others wrote, in a .umb file: which of its rewards is to be earned and which are costs.

    A name with a minus before it is taken negatively (so that at least 5 gems is ``costs=["-gems"]``, ``budget=[-5]``).
    """
    horizon = positive_integer("horizon", horizon)
    check_digest(path, sha256)
    model = read_umb(path)
    S, A = model.allowed.shape
    earned, spent = _named(path, model, reward), np.array([_named(path, model, name) for name in costs])
    # The mask takes the law of an allowed action for one that is not: what stands there before counts for nothing.
    missing, branches = np.flatnonzero(~model.allowed), np.bincount(model.rows, minlength=S * A)
    n_numbers = float(S * A) * (len(costs) + 8) + 6.0 * float(len(model.rows) + branches[missing // A * A].sum())
    refuse_beyond_memory(f"{path}: {S} states with {A} choices", 8.0 * n_numbers, ADVICE)
    rows, targets = np.r_[model.rows, missing], np.r_[model.targets.astype(np.int64), missing // A]
    laws = laws_of_entries(rows, targets, np.r_[model.probabilities, np.ones(len(missing))], (horizon, S, A))
    low, high = float(earned.min()), float(earned.max())
    cmdp = CMDP.from_arrays(
        laws, earned, spent.reshape(len(costs), S, A), budget, model.initial,
        reward_range=(low, high if high > low else low + 1.0), allowed=model.allowed,
    )  # fmt: skip
    return cmdp.labelled(Path(path).stem, Labels(model.names, constraints=tuple(costs)))


def umb_file(
    path: str, reward: str, costs: tuple[str, ...], budget: tuple[float, ...], horizon: int, sha256: str = ""
) -> CMDP:
    """A model that others wrote, in a .umb file, with the names of its reward and its costs; inf: no limit."""
    return umb_problem(path, reward, costs, [None if b == np.inf else b for b in budget], horizon, sha256)


def _named(file: str, model: UMBModel, name: str) -> Floats:
    sign, key = (-1.0, name[1:]) if name.startswith("-") and name not in model.rewards else (1.0, name)
    if key not in model.rewards:
        held = ", ".join(model.rewards) or "none"
        raise InvalidInputError(f"{file} has no reward model {shortened(key, 80)!r}; there are {held}")
    return sign * model.rewards[key]


class _Bounded:
    """Unpacks a tar piece by piece, and says so when it goes on for longer than its members do."""

    def __init__(self, stream: Any) -> None:
        if os.fstat(stream.fileno()).st_size > MAX_BYTES + MAX_TAR_BYTES:
            raise InvalidInputError(f"it holds more than {MAX_BYTES} bytes")
        opened = (opened(stream) for begins, opened in PACKINGS.items() if stream.peek(8).startswith(begins))
        self.stream, self.left = next(opened, stream), MAX_TAR_BYTES

    def read(self, size: int) -> bytes:
        found = bytes(self.stream.read(min(size, self.left + 1)))
        self.left -= len(found)
        if self.left < 0:
            raise InvalidInputError(f"it takes more than {MAX_TAR_BYTES} bytes to describe its members")
        return found


def _members(file: Path) -> dict[str, bytes]:
    """The plain files of a tar, by name; nothing is written to disk, and sizes are looked at before contents."""
    parts: dict[str, bytes] = {}
    total = 0
    with opened_plain(file, follow=True) as stream:
        try:
            bounded: Any = _Bounded(stream)
            archive = tarfile.open(fileobj=bounded, mode="r|")  # noqa: SIM115 - it holds nothing but the stream
            for count, member in enumerate(archive, 1):
                held = member.size if member.isreg() else 0
                most, total = MAX_INDEX_BYTES if member.name.endswith("index.json") else MAX_BYTES, total + held
                if max(count, len(archive.pax_headers)) > MAX_MEMBERS or total > MAX_BYTES or not 0 <= held <= most:
                    raise InvalidInputError(f"it holds more than {most} bytes or {MAX_MEMBERS} members")
                bounded.left += held + -held % tarfile.BLOCKSIZE
                if member.isreg() and not member.issparse() and member.name.endswith((".bin", "index.json")):
                    content = archive.extractfile(member)
                    parts[member.name.removeprefix("./")] = b"" if content is None else content.read()
        except DAMAGES as error:
            raise InvalidInputError(f"{file} is no UMB file: {shortened(str(error))}") from None
    return parts


def _index(file: str | Path, parts: dict[str, bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What index.json says of the system and of its reward models."""
    try:
        index = json.loads(parts["index.json"])
        rewards = index.get("annotations", {}).get("rewards", {})
        system = index.get("transition-system", {})
        if not all(isinstance(each, dict) for each in (system, rewards, *rewards.values())):
            raise ValueError("its system or its reward models are no objects")
    except KeyError:
        raise InvalidInputError(f"{file} is no UMB file: it has no index.json") from None
    except (ValueError, AttributeError, RecursionError) as error:
        raise InvalidInputError(f"{file}: its index.json cannot be read ({shortened(str(error))})") from None
    return system, rewards


def _check_said(file: str | Path, described: Mapping[str, Any], read: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse a model that says something else of itself than what is read; it need not say anything."""
    for key, values in read.items():
        if key in described and described[key] not in values:
            raise InvalidInputError(f"{file}: {key} is {shown(described[key])}, but only {shown(values[0])} is read")


def _array(file: str | Path, parts: dict[str, bytes], name: str, kind: str, length: int | None) -> Any:
    """The numbers of one member; as many as there must be."""
    if name not in parts:
        raise InvalidInputError(f"{file} has no {name}")
    size = np.dtype(kind).itemsize
    if len(parts[name]) % size or (length is not None and len(parts[name]) != size * length):
        raise InvalidInputError(f"{file}: {name} has {len(parts[name])} bytes, but needs {length} numbers of {size}")
    found = np.frombuffer(parts[name], dtype=kind)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise InvalidInputError(f"{file}: {name} holds a number that is not finite")
    return found


def _pointers(file: str | Path, parts: dict[str, bytes], names: tuple[str, str], length: int | None) -> Integers:
    """Where the parts of each thing begin: from 0 on, never less than before."""
    name = next((name for name in names if name in parts), names[0])
    found = _array(file, parts, name, "<u8", length)
    if not found.size or found[0] != 0 or found.max() > MAX_BYTES or np.any(found[1:] < found[:-1]):
        raise InvalidInputError(f"{file}: {name} must begin with 0 and ascend")
    return np.asarray(found.astype(np.int64))


def _reward(file: str | Path, parts: dict[str, bytes], key: str, sizes: dict[str, int]) -> dict[str, Floats]:
    """The values of one reward model for states, choices and branches; zeros where it has none."""
    found = {}
    for kind, size in sizes.items():
        name = f"{REWARDS}{key}/{kind}/values.bin"
        found[kind] = _array(file, parts, name, "<f8", size) if name in parts else np.zeros(size)
    return found


def _names(index: Mapping[str, Any], parts: dict[str, bytes], n_states: int) -> tuple[str, ...]:
    """Name every state by its variables and labels; return no names where these are missing or unreadable.

    They are for people alone: what this reader does not know (variables of several classes, texts) is no error.
    """
    if n_states > MAX_NAMES:
        return ()
    try:
        columns = _variables(index, parts, n_states)
        for key, described in index.get("annotations", {}).get("aps", {}).items():
            bits = np.frombuffer(parts[f"annotations/aps/{key}/states/values.bin"], np.uint8)
            held = np.unpackbits(bits, bitorder="little")[:n_states].tolist()
            name = str(described.get("alias") or key)
            columns.append([name if has else "" for has in held])
        told = [column for column in columns if len(set(column)) > 1]  # what all states have says nothing
        names = tuple(", ".join(dict.fromkeys(filter(None, each))) for each in zip(*told, strict=True))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
        return ()
    counted = tuple(name or f"state {s}" for s, name in enumerate(names))
    return counted if len(counted) == n_states and all(name.isprintable() for name in counted) else ()


def _variables(index: Mapping[str, Any], parts: dict[str, bytes], n_states: int) -> list[list[str]]:
    """``x=3`` for every variable and state."""
    classes = index.get("valuations", {}).get("states", {}).get("classes", [])
    if len(classes) != 1:
        return []
    packed = np.frombuffer(parts["valuations/states/valuations.bin"], np.uint8).reshape(n_states, -1)
    bits, columns, at = np.unpackbits(packed, axis=1, bitorder="little").astype(np.int64), [], 0
    for each in classes[0]["variables"]:
        kind = each.get("type", {"type": "padding", "size": each.get("padding")})
        size = int(kind.get("size", 1 if kind["type"] == "bool" else 64))
        at += bool(each.get("is-optional"))
        there = bits[:, at - 1] if each.get("is-optional") else np.ones(n_states, np.int64)
        value = bits[:, at : at + size] @ (2 ** np.arange(size))
        at += size
        if kind["type"] == "int" and size < 64:  # of 64 bits the last is the sign already
            value -= bits[:, at - 1] * 2**size
        if kind["type"] == "bool":
            columns.append(
                [each["name"] if v and t else "" for v, t in zip(value.tolist(), there.tolist(), strict=True)]
            )
        elif kind["type"] in ("int", "uint") and size <= 64:
            value += int(each.get("offset", 0))
            shown_as = zip(value.tolist(), there.tolist(), strict=True)
            columns.append([f"{each['name']}={v}" if t else "" for v, t in shown_as])
    return columns
