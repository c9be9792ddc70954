"""A problem on disk: one ``.npz`` file (plain arrays, no pickle) that may hold a header in TOML.

| member | what it is |
|---|---|
| ``transition.npy`` | (S, A, S) with a horizon, or (H, S, A, S); or instead of it these three: |
| ``pointers.npy`` | (S A + 1) with a horizon, or (H S A + 1): where the entries of row (h S + s) A + a begin |
| ``successors.npy``, ``probabilities.npy`` | the next states of all rows, one after the other, and how likely each is |
| ``reward.npy`` | (S, A) or (H, S, A) |
| ``cost.npy`` | (S, A), (I, S, A), (H, S, A) or (I, H, S, A) |
| ``initial.npy``, ``budget.npy`` (inf: no limit), ``horizon.npy`` | optional |
| ``reward_range.npy`` | optional: the least and the largest reward; to learn, rewards outside [0, 1] need it |
| ``allowed.npy`` | optional, (S, A) or (H, S, A): which actions are allowed, 0 or 1 |
| ``scenarios.npy`` | optional, (n, I, H, S, A), budgets taken off |
| ``header.toml`` | optional: name, horizon or discount (1: averages), budget, rescale, labels, a map |

A file that ``numpy.savez`` wrote is such a file.
"""

from __future__ import annotations

import errno
import hashlib
import io
import math
import os
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from omdpd.problem.arrays import (
    MAX_MAGNITUDE,
    Floats,
    InvalidInputError,
    as_range,
    as_table,
    one_step,
    over_steps,
    positive_integer,
    shortened,
    shown,
    within,
)
from omdpd.problem.cmdp import CMDP, Labels, Scenarios
from omdpd.problem.laws import DenseLaws, Laws, SparseLaws, laws_of_entries, laws_of_table
from omdpd.problem.tables import ASKED_FOR
from omdpd.storage.atomic import RecordError, opened_plain, save_file
from omdpd.storage.npz import Limits, Npz, opened_npz

FORMAT = 1
HEADER = "header.toml"
REQUIRED = ("transition", "reward", "cost")
# What may stand for the transition: laws as lists.
LISTS = ("pointers", "successors", "probabilities")
OPTIONAL = ("initial", "budget", "reward_range", "scenarios", "allowed")
# What a header may say, and the type of it.
HEADER_KEYS: dict[str, type] = {
    "format": int, "name": str, "horizon": int, "discount": float, "budget": list, "rescale": bool, "cost_scale": list,
    "reward_range": list, "states": list, "actions": list, "constraints": list, "layout": list, "scenarios": list,
}  # fmt: skip
NUMBER_LISTS = ("budget", "cost_scale", "reward_range")
# The numbers of a file: as many as the largest kernel that an experiment may name, half a gigabyte.  A compressed file
# is held to half of that, because it takes so little room to claim so much.
MAX_NUMBERS = 2**26
LIMITS = Limits(n_bytes=8 * MAX_NUMBERS + 2**20, compressed_bytes=4 * MAX_NUMBERS + 2**20, members=16)
# Rewards and costs are repeated over the steps; more entries than this (128 MB, copied a few times) are refused.
MAX_REPEATED = 2**24
# Laws that are lists are written out as a table, which any program can read, up to this many numbers of it.
MAX_TABLE = 2**20
MAX_HEADER_BYTES = 2**20
# No name is sensibly longer; a row of a map may be.
MAX_LABEL = 1000
# Every member carries this date, so that the same problem gives the same file.
DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a file holds: its header and its arrays by name."""

    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray[Any, Any]]


def save_problem(cmdp: CMDP, file: str | Path) -> Path:
    """Keep a problem in one ``.npz`` file with a TOML header; `load_problem` gives back the same numbers."""
    header: dict[str, object] = {
        "name": cmdp.name, "horizon": cmdp.shape[0], "reward_range": list(cmdp.reward_range),
        "cost_scale": cmdp.cost_scale.tolist(), "budget": np.where(cmdp.unlimited, np.inf, cmdp.budget).tolist(),
    }  # fmt: skip
    if cmdp.discount is not None:
        del header["horizon"]
        header["discount"] = float(cmdp.discount)
    for key in ("states", "actions", "constraints", "layout"):
        if getattr(cmdp.labels, key):
            header[key] = list(getattr(cmdp.labels, key))
    reward, cost = one_step(cmdp.reward, 0), one_step(cmdp.cost, 1)
    once = len(reward) < cmdp.shape[0] and cost.shape[1] < cmdp.shape[0]
    arrays = {
        **_stored(cmdp.laws), "initial": cmdp.initial,
        "reward": reward[0] if once else cmdp.reward, "cost": cost[:, 0] if once else cmdp.cost,
    }  # fmt: skip
    if cmdp.mask is not None:
        arrays["allowed"] = (cmdp.mask.allowed[0] if len(cmdp.mask.allowed) == 1 else cmdp.mask.allowed).astype(np.int8)
    if cmdp.scenarios is not None:
        header["scenarios"] = list(cmdp.scenarios.names)
        arrays["scenarios"] = one_step(cmdp.scenarios.tables, 2)
    return write_problem(Path(file), ProblemFile(header, arrays))


def load_problem(file: str | Path) -> CMDP:
    """Read a problem that `save_problem` wrote, or one kept with ``numpy.savez``; say what is wrong with it.

    Arrays: transition, reward, cost, budget (unless its header has it), and optionally initial, shaped as for
    `CMDP.from_arrays`.
    """
    stored = read_problem(Path(file))
    header, arrays = stored.header, stored.arrays
    scale = np.asarray(header["cost_scale"], dtype=np.float64) if "cost_scale" in header else None
    laws = arrays["transition"] if "transition" in arrays else _listed(file, header, arrays)
    given = (0.0, 1.0) if "reward_range" in header else None
    cmdp = CMDP.from_arrays(
        laws, arrays["reward"], arrays["cost"],
        budget=_limits(arrays.get("budget", header.get("budget"))), initial=arrays.get("initial"),
        horizon=header.get("horizon"), rescale=bool(header.get("rescale", True)),
        reward_range=arrays.get("reward_range", given), allowed=arrays.get("allowed"), **_without_end(header),
    )  # fmt: skip
    cmdp = _exactly(cmdp, arrays)
    if scale is not None:
        if scale.shape != cmdp.budget.shape or not np.all(scale > 0.0):
            raise InvalidInputError(f"{file}: cost_scale must be one positive number per constraint")
        cmdp = replace(cmdp, cost_scale=scale * cmdp.cost_scale)
    if "reward_range" in header and "reward_range" in arrays:
        raise InvalidInputError(f"{file} says its reward_range twice: in its header and as an array")
    low, high = as_range(f"{file}: reward_range", header.get("reward_range", cmdp.reward_range))
    lists = {key: tuple(header.get(key, ())) for key in ("states", "actions", "constraints", "layout")}
    cmdp = replace(cmdp, reward_range=(low, high))
    cmdp = cmdp.labelled(str(header.get("name", Path(file).stem)), Labels(**lists))
    return cmdp if "scenarios" not in arrays else _with_stored(cmdp, header.get("scenarios", ()), arrays["scenarios"])


def problem_file(path: str, sha256: str = "", *, budget: tuple[float, ...] | None = None) -> CMDP:
    """A problem of your own in an .npz file, by its content; `budget` is another than its own."""
    check_digest(path, sha256)
    return load_problem(path) if budget is None else load_problem(path).with_budget(list(budget))


def check_digest(path: str | Path, sha256: str) -> None:
    """Refuse a file with another content than an experiment was written for."""
    if sha256 and file_digest(path) != sha256:
        raise InvalidInputError(f"{path} has another content than the experiment was written for (checksum)")


def file_digest(path: str | Path) -> str:
    """The checksum by which a problem file is known."""
    try:
        with opened_plain(Path(path), follow=True) as stream:
            if os.fstat(stream.fileno()).st_size > LIMITS.n_bytes:
                raise RecordError(f"it is larger than {LIMITS.n_bytes} bytes")
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (RecordError, OSError) as error:
        name = shortened(str(path))
        raise InvalidInputError(f"the problem file {name} cannot be read here: {shortened(str(error))}") from None


def write_problem(file: Path, problem: ProblemFile) -> Path:
    """Write the file whole or not at all; its name must end in ``.npz``."""
    if file.suffix != ".npz":
        raise InvalidInputError(f"{file} should end in .npz")
    buffer = io.BytesIO()
    n_bytes = sum(array.nbytes for array in problem.arrays.values())
    packing = zipfile.ZIP_DEFLATED if n_bytes <= 4 * MAX_NUMBERS else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w") as archive:
        header = tomli_w.dumps({"format": FORMAT, **problem.header})
        archive.writestr(_member(HEADER, packing), header)
        for name, array in problem.arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_member(f"{name}.npy", packing), content.getvalue())
    return save_file(file, buffer.getvalue())


def read_problem(file: Path) -> ProblemFile:
    """Read a file, or say in one sentence what is wrong with it."""
    if not file.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(file))
    with opened_plain(file, follow=True) as stream, opened_npz(stream, str(file), LIMITS) as npz:
        header = _header(file, npz)
        _check_members(file, npz)
        if "horizon" in npz.headers:
            header.setdefault("horizon", _plain_number(npz.array("horizon")))
        if "horizon" in header:
            header["horizon"] = _horizon(file, header["horizon"])
        _check_sizes(file, npz, header.get("horizon"))
        arrays = {
            name: _as_numbers(npz.array(name), whole=name in LISTS[:2])
            for name in npz.headers if name != "horizon"
        }  # fmt: skip
    for name, array in arrays.items():
        held = array[array != np.inf] if name == "budget" else array
        if held.size and not max(float(held.max()), -float(held.min())) <= MAX_MAGNITUDE:
            raise InvalidInputError(f"{file}: {name} holds an entry that is not finite or beyond {MAX_MAGNITUDE:g}")
    return ProblemFile(header, arrays)


def _as_numbers(array: np.ndarray[Any, Any], whole: bool) -> np.ndarray[Any, Any]:
    """Convert to whole numbers or double precision; single precision stays, since its rows are held to fewer digits."""
    if array.dtype == np.float32 and not whole:
        return array
    return array.astype(np.int64 if whole else np.float64, copy=False)


def _check_members(file: Path, npz: Npz) -> None:
    """Refuse what no problem has, what is missing, and what holds no numbers."""
    known = (*REQUIRED, *LISTS, *OPTIONAL, "horizon")
    for name in (*npz.headers, *npz.others):
        if name not in (*known, HEADER):
            shown = f"{name}.npy" if name in npz.headers else name
            raise InvalidInputError(f"{file} holds {shown[:80]!r}, which is none of {', '.join(known)}")
    listed = any(name in npz.headers for name in LISTS)
    if listed and "transition" in npz.headers:
        raise InvalidInputError(f"{file} holds its laws twice: as the table transition and as lists")
    needed = (*LISTS, *REQUIRED[1:]) if listed else REQUIRED
    missing = [name for name in needed if name not in npz.headers]
    if missing:
        raise InvalidInputError(f"{file} has no array {missing[0]!r}; it needs {', '.join(needed)}")
    for name, header in npz.headers.items():
        if header.dtype.kind not in "fiub" or header.dtype.itemsize > 8:
            raise InvalidInputError(f"{file}: {name} holds {header.dtype}, not numbers")
        if name in LISTS and (len(header.shape) != 1 or (name != LISTS[2] and header.dtype.kind not in "iu")):
            raise InvalidInputError(f"{file}: {name} must be one row of {'' if name == LISTS[2] else 'whole '}numbers")


def _check_sizes(file: Path, npz: Npz, horizon: int | None) -> None:
    """Refuse tables that would be too large once they are repeated over the steps: from headers alone."""
    if sum(header.size for header in npz.headers.values()) > MAX_NUMBERS:
        raise InvalidInputError(f"{file} holds more than {MAX_NUMBERS} numbers")
    cost, by_step = npz.headers["cost"].shape, len(npz.headers["reward"].shape) == 3
    if "transition" in npz.headers:
        cells, by_step = math.prod(npz.headers["transition"].shape[:-1]), len(npz.headers["transition"].shape) == 4
    else:
        cells = npz.headers["reward"].size
    steps = 1 if horizon is None or by_step else horizon
    cells *= steps
    n_constraints = cost[0] if len(cost) in (3, 4) else 1
    others = max(header.size for name, header in npz.headers.items() if name not in ("transition", *LISTS))
    entries = max(cells * (1 + n_constraints), others * steps)
    if entries > MAX_REPEATED:
        raise InvalidInputError(
            f"{file}: its horizon, states, actions and constraints make tables of {entries:.1e} entries, "
            f"more than {MAX_REPEATED}"
        )


def _plain_number(array: np.ndarray[Any, Any]) -> object:
    return array.item() if array.size == 1 else array.tolist()


def _horizon(file: Path, value: object) -> int:
    """A whole number of steps, however it was spelt."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return positive_integer("horizon", value)
    except InvalidInputError:
        raise InvalidInputError(
            f"{file}: horizon is {shown(value)}, but must be a whole number of at least 1"
        ) from None


def _header(file: Path, npz: Npz) -> dict[str, Any]:
    """The header, with only known keys of the right types."""
    if HEADER not in npz.others:
        return {}
    try:
        header = tomllib.loads(npz.content(HEADER, MAX_HEADER_BYTES).decode())
    except RecursionError:
        raise InvalidInputError(f"{file}: its header is not TOML: it is nested too deeply") from None
    except ValueError as error:
        raise InvalidInputError(f"{file}: its header is not TOML: {error}") from None
    for key, value in header.items():
        wanted = HEADER_KEYS.get(key)
        if wanted is None:
            raise InvalidInputError(
                f"{file}: its header has the key {key[:80]!r}, which is none of {', '.join(HEADER_KEYS)}"
            )
        if type(value) is not wanted:
            raise InvalidInputError(f"{file}: {key} in its header is {shown(value)}, but must be a {wanted.__name__}")
        _check_entries(file, key, value if isinstance(value, list) else [value])
    if header.get("format", FORMAT) != FORMAT:
        raise InvalidInputError(f"{file} has format {shown(header['format'])}, but this version reads format {FORMAT}")
    if len(header.get("reward_range", (0, 1))) != 2:
        raise InvalidInputError(f"{file}: reward_range in its header must be two numbers")
    return header


def _check_entries(file: Path, key: str, values: Sequence[Any]) -> None:
    """Refuse numbers that no table holds, and text that a terminal would not show as it is."""
    if key in NUMBER_LISTS:
        if not all(type(item) in (int, float) for item in values):
            raise InvalidInputError(f"{file}: {key} in its header must be a list of float")
        if not all(abs(item) <= MAX_MAGNITUDE or (key == "budget" and item == np.inf) for item in values):
            raise InvalidInputError(f"{file}: {key} in its header must hold finite numbers up to {MAX_MAGNITUDE:g}")
    elif HEADER_KEYS[key] in (list, str):
        if not all(type(item) is str for item in values):
            raise InvalidInputError(f"{file}: {key} in its header must be a list of str")
        if not all(item.isprintable() and len(item) <= MAX_LABEL for item in values):
            raise InvalidInputError(
                f"{file}: {key} in its header must be printable text of at most {MAX_LABEL} characters"
            )


def _without_end(header: Mapping[str, Any]) -> dict[str, Any]:
    """The discount of a problem without an end; 1 stands for averages."""
    discount = header.get("discount")
    return {"criterion": "average"} if discount == 1.0 else {"discount": discount}


def _limits(budget: Any) -> Any:
    """Turn stored budgets into those of a problem: an infinite one is no limit, and missing ones are asked for."""
    if budget is None:
        return ASKED_FOR
    given = np.atleast_1d(np.asarray(budget))
    return given if given.ndim > 1 else [None if b == np.inf else b for b in given.tolist()]


def _member(name: str, packing: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, DATE)
    info.compress_type = packing
    return info


def _stored(laws: Laws) -> dict[str, np.ndarray[Any, Any]]:
    """Laws as a file keeps them: a table where that is small, else lists."""
    H, S, A = laws.shape
    if isinstance(laws, DenseLaws) or H * S * A * S <= MAX_TABLE:
        p = laws.expand()
        return {"transition": p[0] if p.strides[0] == 0 else p}
    return {name: getattr(laws, name) for name in LISTS}


def _listed(file: str | Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> SparseLaws:
    """Laws that a file keeps as lists, checked."""
    pointers, reward = arrays["pointers"], arrays["reward"]
    if "horizon" not in header and "discount" not in header:
        raise InvalidInputError(f"{file} keeps its laws as lists, so it needs a horizon or a discount")
    if reward.ndim not in (2, 3) or not reward.size:
        raise InvalidInputError(f"{file}: reward has shape {reward.shape}, but needs (S, A) or (H, S, A)")
    H, (S, A) = int(header.get("horizon", 1)), reward.shape[-2:]
    n = (len(pointers) - 1) // (S * A)
    if n not in (1, H) or len(pointers) != n * S * A + 1:
        wanted = f"{S * A + 1} or {H * S * A + 1}"
        raise InvalidInputError(f"{file}: pointers has {len(pointers)} entries, but there should be {wanted}")
    n_entries = len(arrays["successors"])
    if pointers[0] != 0 or pointers[-1] != n_entries or len(arrays["probabilities"]) != n_entries:
        raise InvalidInputError(f"{file}: pointers, successors and probabilities do not belong together")
    if np.any(np.diff(pointers) < 0):
        place = int(np.argmax(np.diff(pointers) < 0))
        raise InvalidInputError(f"{file}: pointers[{place + 1}] is less than the one before it")
    rows = np.repeat(np.arange(n * S * A), np.diff(pointers))
    return laws_of_entries(rows, arrays["successors"], arrays["probabilities"], (H, S, A), n)


def _exactly(cmdp: CMDP, arrays: Mapping[str, np.ndarray[Any, Any]]) -> CMDP:
    """Laws as they were stored, where scaling their rows to one changed no more than the last digit."""
    mu, laws = arrays.get("initial", cmdp.initial), cmdp.laws
    if "transition" in arrays:
        p = np.array(arrays["transition"], dtype=np.float64, order="C")
        p = p if p.ndim == 4 else p[None]
        read = laws.expand()[: len(p)]
        if np.allclose(p, read, rtol=0.0, atol=1e-15):
            laws = laws_of_table(p, laws.shape[0])
    elif isinstance(laws, SparseLaws) and _equal(laws.probabilities, arrays["probabilities"]):
        laws = replace(laws, probabilities=arrays["probabilities"])
    start = np.array(mu, dtype=np.float64)
    start = start if np.allclose(start, cmdp.initial, rtol=0.0, atol=1e-15) else cmdp.initial
    return replace(cmdp, laws=laws, initial=start)


def _equal(read: Floats, stored: np.ndarray[Any, Any]) -> bool:
    return read.shape == stored.shape and np.allclose(read, stored, rtol=0.0, atol=1e-15)


def _with_stored(cmdp: CMDP, names: object, tables: Floats) -> CMDP:
    """Scenarios as a file keeps them: budgets taken off, one name each."""
    axes, (H, S, A) = ["scenario", "constraint", "step", "state", "action"], cmdp.shape
    once = tables.ndim == 5 and tables.shape[2] == 1
    checked = as_table("scenarios", tables, axes, [None, cmdp.n_constraints, 1 if once else H, S, A])
    checked = checked if cmdp.mask is None else cmdp.mask.everywhere(checked)
    within("scenarios", checked, -1.0, 1.0, axes)
    if not isinstance(names, list | tuple) or len(names) != len(checked):
        raise InvalidInputError(f"there are {len(checked)} scenarios, so the header needs as many names")
    return replace(cmdp, scenarios=Scenarios(tuple(str(name) for name in names), over_steps(checked, H, 2)))
