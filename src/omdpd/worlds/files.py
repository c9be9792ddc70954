"""A problem on disk: one ``.npz`` file (plain arrays, no pickle) that may hold a header in TOML.

| member | what it is |
|---|---|
| ``transition.npy`` | (S, A, S) with a horizon, or (H, S, A, S) |
| ``reward.npy`` | (S, A) or (H, S, A), in [0, 1] |
| ``cost.npy`` | (S, A), (I, S, A), (H, S, A) or (I, H, S, A) |
| ``initial.npy``, ``budget.npy``, ``horizon.npy`` | optional |
| ``scenarios.npy`` | optional, (n, I, H, S, A), budgets taken off |
| ``header.toml`` | optional: name, horizon, budget, rescale, labels of states, actions, constraints, a map |

A file that ``numpy.savez`` wrote is such a file.
"""

from __future__ import annotations

import hashlib
import io
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from omdpd.problem.arrays import Floats, InvalidInputError, as_table, positive_integer, within
from omdpd.problem.cmdp import CMDP, Labels, Scenarios
from omdpd.storage.atomic import make_folder, write_atomically

FORMAT = 1
HEADER = "header.toml"
REQUIRED = ("transition", "reward", "cost")
OPTIONAL = ("initial", "budget", "scenarios")
# What a header may say, and the type of it.
HEADER_KEYS: dict[str, type] = {
    "format": int, "name": str, "horizon": int, "budget": list, "rescale": bool, "cost_scale": list,
    "reward_range": list, "states": list, "actions": list, "constraints": list, "layout": list, "scenarios": list,
}  # fmt: skip
NUMBER_LISTS = ("budget", "cost_scale", "reward_range")
# A member may unpack to this many bytes at most: 2 GiB, beyond which no learner here could use the problem.
MOST_BYTES = 2**31
# Every member carries this date, so that the same problem gives the same file.
DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a file holds: its header and its arrays by name."""

    header: Mapping[str, Any]
    arrays: Mapping[str, Floats]


def save_problem(cmdp: CMDP, file: str | Path) -> Path:
    """Keep a problem in one ``.npz`` file with a TOML header; `load_problem` gives back the same numbers."""
    p = cmdp.transition
    header: dict[str, object] = {
        "name": cmdp.name, "horizon": cmdp.shape[0], "reward_range": list(cmdp.reward_range),
        "cost_scale": cmdp.cost_scale.tolist(), "budget": cmdp.budget.tolist(),
    }  # fmt: skip
    for key in ("states", "actions", "constraints", "layout"):
        if getattr(cmdp.labels, key):
            header[key] = list(getattr(cmdp.labels, key))
    arrays = {
        "transition": p[0] if p.strides[0] == 0 else p,
        "initial": cmdp.initial, "reward": cmdp.reward, "cost": cmdp.cost,
    }  # fmt: skip
    if cmdp.scenarios is not None:
        header["scenarios"] = list(cmdp.scenarios.names)
        arrays["scenarios"] = cmdp.scenarios.tables
    return write_problem(Path(file), ProblemFile(header, arrays))


def load_problem(file: str | Path) -> CMDP:
    """Read a problem that `save_problem` wrote, or one kept with ``numpy.savez``; say what is wrong with it.

    Arrays: transition, reward, cost, and optionally initial and budget, shaped as for `CMDP.from_arrays`.
    """
    stored = read_problem(Path(file))
    header, arrays = stored.header, stored.arrays
    scale = np.asarray(header["cost_scale"], dtype=np.float64) if "cost_scale" in header else None
    cmdp = CMDP.from_arrays(
        arrays["transition"], arrays["reward"], arrays["cost"],
        budget=arrays.get("budget", header.get("budget", 0.0)), initial=arrays.get("initial"),
        horizon=header.get("horizon"), rescale=bool(header.get("rescale", False)),
    )  # fmt: skip
    cmdp = _exactly(cmdp, arrays)
    if scale is not None:
        if scale.shape != cmdp.budget.shape or not np.all(scale > 0.0):
            raise InvalidInputError(f"{file}: cost_scale must be one positive number per constraint")
        cmdp = replace(cmdp, cost_scale=scale * cmdp.cost_scale)
    low, high = header.get("reward_range", (0.0, 1.0))
    lists = {key: tuple(header.get(key, ())) for key in ("states", "actions", "constraints", "layout")}
    cmdp = replace(cmdp, reward_range=(float(low), float(high)))
    cmdp = cmdp.labelled(str(header.get("name", Path(file).stem)), Labels(**lists))
    return cmdp if "scenarios" not in arrays else _with_stored(cmdp, header.get("scenarios", ()), arrays["scenarios"])


def problem_file(path: str, sha256: str = "") -> CMDP:
    """A problem of your own in an .npz file; its content is what counts, not where it lies."""
    if sha256 and file_digest(path) != sha256:
        raise InvalidInputError(f"{path} has another content than the experiment was written for (checksum)")
    return load_problem(path)


def file_digest(path: str | Path) -> str:
    """The checksum by which a problem file is known."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidInputError(f"the problem file {path} cannot be read here: {error.strerror}") from None


def write_problem(file: Path, problem: ProblemFile) -> Path:
    """Write the file whole or not at all; its name must end in ``.npz``."""
    if file.suffix != ".npz":
        raise InvalidInputError(f"{file} should end in .npz")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        header = tomli_w.dumps({"format": FORMAT, **problem.header})
        archive.writestr(_member(HEADER), header)
        for name, array in problem.arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_member(f"{name}.npy"), content.getvalue())
    make_folder(file.parent)
    write_atomically(file, buffer.getvalue())
    return file


def read_problem(file: Path) -> ProblemFile:
    """Read a file, or say in one sentence what is wrong with it."""
    try:
        with zipfile.ZipFile(file) as archive:
            header = _header(file, archive)
            arrays = _arrays(file, archive)
    except (zipfile.BadZipFile, EOFError) as error:
        raise InvalidInputError(f"{file} is not an .npz file: {error}") from None
    if "horizon" in arrays:
        given = arrays.pop("horizon")
        header.setdefault("horizon", given.item() if given.size == 1 else given.tolist())
    if "horizon" in header:
        whole = header["horizon"]
        header["horizon"] = positive_integer("horizon", int(whole) if whole == int(whole) else whole)
    missing = [name for name in REQUIRED if name not in arrays]
    if missing:
        raise InvalidInputError(f"{file} has no array {missing[0]!r}; it needs {', '.join(REQUIRED)}")
    return ProblemFile(header, arrays)


def _arrays(file: Path, archive: zipfile.ZipFile) -> dict[str, Floats]:
    """Every array of the archive, none of them larger than it may be."""
    arrays: dict[str, Floats] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if member.filename == HEADER:
            continue
        if name not in (*REQUIRED, *OPTIONAL, "horizon"):
            known = ", ".join((*REQUIRED, *OPTIONAL, "horizon"))
            raise InvalidInputError(f"{file} holds {member.filename!r}, which is none of {known}")
        if member.file_size > MOST_BYTES:
            raise InvalidInputError(f"{file}: {name} unpacks to {member.file_size / 2**30:.1f} GiB, more than 2 GiB")
        try:
            content = np.lib.format.read_array(io.BytesIO(archive.read(member)), allow_pickle=False)
        except ValueError as error:
            raise InvalidInputError(f"{file}: {name} cannot be read: {error}") from None
        if content.dtype.kind not in "fiub":
            raise InvalidInputError(f"{file}: {name} holds {content.dtype}, not numbers")
        arrays[name] = content.astype(np.float64)
    return arrays


def _header(file: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """The header, with only known keys of the right types."""
    if HEADER not in archive.namelist():
        return {}
    try:
        header = tomllib.loads(archive.read(HEADER).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file}: its header is not TOML: {error}") from None
    for key, value in header.items():
        wanted = HEADER_KEYS.get(key)
        if wanted is None:
            raise InvalidInputError(
                f"{file}: its header has the key {key!r}, which is none of {', '.join(HEADER_KEYS)}"
            )
        if type(value) is not wanted:
            raise InvalidInputError(f"{file}: {key} in its header is {value!r}, but must be a {wanted.__name__}")
        entry: tuple[type, ...] = (int, float) if key in NUMBER_LISTS else (str,)
        if isinstance(value, list) and not all(type(item) in entry for item in value):
            raise InvalidInputError(f"{file}: {key} in its header must be a list of {entry[-1].__name__}")
    if header.get("format", FORMAT) != FORMAT:
        raise InvalidInputError(f"{file} has format {header['format']}, but this version reads format {FORMAT}")
    if len(header.get("reward_range", (0, 1))) != 2:
        raise InvalidInputError(f"{file}: reward_range in its header must be two numbers")
    return header


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _exactly(cmdp: CMDP, arrays: Mapping[str, Floats]) -> CMDP:
    """Laws as they were stored, where scaling their rows to one changed no more than the last digit."""
    p, mu = arrays["transition"], arrays.get("initial", cmdp.initial)
    same = p.shape == cmdp.transition.shape and np.allclose(p, cmdp.transition, rtol=0.0, atol=1e-15)
    kept = np.array(p, dtype=np.float64, order="C") if same else cmdp.transition
    start = np.array(mu, dtype=np.float64)
    start = start if np.allclose(start, cmdp.initial, rtol=0.0, atol=1e-15) else cmdp.initial
    return replace(cmdp, transition=kept, initial=start)


def _with_stored(cmdp: CMDP, names: object, tables: Floats) -> CMDP:
    """Scenarios as a file keeps them: budgets taken off, one name each."""
    axes = ["scenario", "constraint", "step", "state", "action"]
    checked = as_table("scenarios", tables, axes, [None, cmdp.n_constraints, *cmdp.shape])
    within("scenarios", checked, -1.0, 1.0, axes)
    if not isinstance(names, list | tuple) or len(names) != len(checked):
        raise InvalidInputError(f"there are {len(checked)} scenarios, so the header needs as many names")
    return replace(cmdp, scenarios=Scenarios(tuple(str(name) for name in names), checked))
