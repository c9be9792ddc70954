"""A table of ways to spoil what the library reads: experiment files, run folders, sessions.

Every mutation takes something good and spoils one thing; the test says what the refusal must name.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GOOD = """\
episodes = 20
seeds = 1
first_seed = 0
record = "thinned"

[[worlds]]
name = "random_dirichlet"
n_states = 3
n_actions = 2
horizon = 3
binding = false

[[natures]]
name = "pool"
size = 2

[[learners]]
name = "ProximalOMDPD.cautious"
kappa = 0.02
"""


@dataclass(frozen=True)
class Spoilt:
    """An experiment file that must be refused, and a word that the refusal must hold."""

    name: str
    content: bytes
    word: str


def spoilt_experiments() -> list[Spoilt]:
    """Experiment files with one thing wrong each."""
    return [*_numbers(), *_keys(), *_types(), *_names(), *_sizes(), *_grids(), *_files()]


def _line(key: str, value: str) -> str:
    """The good file with one value replaced."""
    lines = GOOD.split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith(f"{key} ="))
    lines[place] = f"{key} = {value}"
    return "\n".join(lines)


def _spoil(key: str, value: str, word: str | None = None) -> Spoilt:
    return Spoilt(f"{key} = {value[:30]}", _line(key, value).encode(), key if word is None else word)


def _numbers() -> list[Spoilt]:
    """Numbers that no such setting can be."""
    whole = ("episodes", "seeds", "first_seed", "n_states", "n_actions", "horizon", "size")
    strange = ("nan", "inf", "-inf", "-1", "1.5", "1e400", str(10**18), str(-(10**18)), '"5"', "true", "1979-05-27")
    found = [_spoil(key, value) for key in whole for value in strange]
    found += [_spoil("kappa", value) for value in ("nan", "inf", "-inf", '"a"', "true")]
    found += [_spoil(key, "0") for key in ("episodes", "seeds", "n_states", "n_actions", "size")]
    return found


def _keys() -> list[Spoilt]:
    """Keys that are unknown, missing or written twice."""
    found = []
    for section in ("[[worlds]]", "[[natures]]", "[[learners]]"):
        for key in ("nstates", "Horizon", "__class__", "path", "build", "seed", "a.b", '"../x"', '""'):
            text = GOOD.replace(section, f"{section}\n{key} = 1")
            found.append(Spoilt(f"{section} {key}", text.encode(), key.split(".")[0].strip('"')))
    for key in ("episode", "world", "import", "executor", "__post_init__", '"$"'):
        found.append(Spoilt(f"top {key}", f"{key} = 1\n{GOOD}".encode(), key.strip('"')))
    for key in ("episodes", "seeds", "n_states", "kappa"):
        found.append(Spoilt(f"{key} twice", _line(key, f"1\n{key} = 2").encode(), "TOML"))
    for section in ("worlds", "natures", "learners"):
        start = GOOD.index(f"[[{section}]]")
        end = GOOD.find("[[", start + 2)
        found.append(Spoilt(f"no {section}", (GOOD[:start] + (GOOD[end:] if end > 0 else "")).encode(), section))
    found.append(Spoilt("no episodes", GOOD.replace("episodes = 20\n", "").encode(), "episodes"))
    return found


def _types() -> list[Spoilt]:
    """Values of the wrong kind."""
    values = ("[]", "{}", "{ a = 1 }", '"x"', "[[1]]", "12:00:00")
    keys = ("episodes", "n_states", "kappa", "size")
    found = [_spoil(key, value) for key in keys for value in values]
    found += [_spoil("binding", value) for value in ("1", '"yes"', "0.0")]
    found += [_spoil("record", value) for value in ('"every"', "1", "true", '""')]
    for section in ("worlds", "natures", "learners"):
        start = GOOD.index(f"[[{section}]]")
        for value in ("1", '"x"', "[]", "[1]", "{}", '{ name = "x" }', "true"):
            end = GOOD.find("[[", start + 2)
            rest = GOOD[:start] + (GOOD[end:] if end > 0 else "")
            found.append(Spoilt(f"{section} = {value}", f"{section} = {value}\n{rest}".encode(), section))
    return found


def _names() -> list[Spoilt]:
    """Names that are no names of ours, or try to be paths or code."""
    tricks = (
        "", " ", "nothing", "../../etc/passwd", "/etc/passwd", "..", "random_dirichlet/..", "os.system", "a\\\\b",
        "<script>alert(1)</script>", "random_dirichlet\\u0000", "omdpd.worlds.grid:make", "${HOME}", "x" * 5000,
    )  # fmt: skip
    found = []
    for old in ("random_dirichlet", "pool", "ProximalOMDPD.cautious"):
        found += [
            Spoilt(f"{old} as {trick[:20]}", GOOD.replace(f'"{old}"', f'"{trick}"').encode(), "name")
            for trick in tricks
        ]
        found += [Spoilt(f"{old} as {v}", GOOD.replace(f'"{old}"', v).encode(), "name") for v in ("5", "true", "{}")]
    return found


def _sizes() -> list[Spoilt]:
    """Sizes that would not fit into any memory."""
    worlds = (
        'name = "random_dirichlet"\nn_states = 1000000\nn_actions = 1000000\nhorizon = 1000000',
        'name = "random_dirichlet"\nn_states = 100000', 'name = "random_dirichlet"\nhorizon = 900000000',
        'name = "garnet"\nn_states = 100000000', 'name = "correlated"\nn_actions = 100000000',
        'name = "streaming"\nn_levels = 100000000', 'name = "inventory"\ncapacity = 5000',
        'name = "queue"\ncapacity = 100000000', 'name = "job_queue"\nn_jobs = 100000000',
        'name = "cyclic"\nn_places = 99999999',
        'name = "paradox"\nhorizon = 100000000',
        'name = "random_dirichlet"\nn_constraints = 100000000',
    )  # fmt: skip
    start, end = GOOD.index("[[worlds]]"), GOOD.index("[[natures]]")
    found = [
        Spoilt(f"huge {i}", (GOOD[:start] + f"[[worlds]]\n{world}\n\n" + GOOD[end:]).encode(), "transition probabil")
        for i, world in enumerate(worlds)
    ]
    found.append(_spoil("size", "900000000"))
    found.append(_spoil("seeds", "1000000", "runs"))
    return found


def _grids() -> list[Spoilt]:
    """Grids that are empty or explode."""
    many = "[" + ", ".join(str(i) for i in range(1, 400)) + "]"
    text = _line("n_states", many).replace("n_actions = 2", f"n_actions = {many}")
    return [
        Spoilt("an exploding grid", text.encode(), "settings"),
        _spoil("kappa", "[]"), _spoil("n_states", "[3, []]"), _spoil("n_states", "[3, -3]"),
        _spoil("kappa", "[0.1, nan]"), _spoil("n_states", '[3, "4"]'),
    ]  # fmt: skip


def _files() -> list[Spoilt]:
    """Files that are no TOML at all."""
    return [
        Spoilt("empty", b"", "worlds"),
        Spoilt("binary", bytes(range(256)), "TOML"),
        Spoilt("not UTF-8", b"episodes = 1 # \xff\xfe", "TOML"),
        Spoilt("zeros", b"\0" * 1000, "TOML"),
        Spoilt("JSON", b'{"episodes": 1}', "TOML"),
        Spoilt("YAML", b"episodes: 1\n!!python/object/apply:os.system ['true']\n", "TOML"),
        Spoilt("too large", b"#" * (2**20 + 1), "larger"),
        Spoilt("deep", b"x = " + b"[" * 100_000, "TOML"),
        Spoilt("a long number", b"episodes = " + b"9" * 10_000 + b"\n" + GOOD.encode(), "TOML"),
        *(Spoilt(f"cut at {n}", GOOD.encode()[:n], "") for n in (11, 40, 75, 100, 160, 200)),
    ]


# What follows spoils files in a folder: name, file, and a function of the folder.


def json_spoilers(file: str) -> dict[str, Any]:
    """Ways to damage any JSON file."""
    return {
        "empty": lambda c: b"",
        "cut": lambda c: c[: len(c) // 2],
        "zeros": lambda c: b"\0" * len(c),
        "list": lambda c: b"[1, 2]",
        "number": lambda c: b"1",
        "null": lambda c: b"null",
        "text": lambda c: b"hello",
        "not UTF-8": lambda c: b'{"a": "\xff"}',
        "deep": lambda c: b'{"a": ' + b"[" * 200_000,
        "garbage in front": lambda c: b"x" + c,
    }


def manifest_spoilers() -> dict[str, Any]:
    """Ways to make a manifest say something wrong while it stays JSON with a right checksum."""

    def changed(**values: Any) -> Any:
        return lambda c: sealed(json.loads(c) | values)

    def without(key: str) -> Any:
        return lambda c: sealed({k: v for k, v in json.loads(c).items() if k != key})

    def part(kind: str, **values: Any) -> Any:
        def spoil(c: bytes) -> bytes:
            content = json.loads(c)
            entry = content[kind] if kind == "state" else content[kind][0]
            entry.update(values)
            return sealed(content)

        return spoil

    keys = ("format", "run", "number", "episodes", "columns", "rows", "values", "state", "tree")
    paths = ("../../secret", "/etc/passwd", "..", "", "state-000001.npz\0", "rows-1.npz", "commit.json")
    return (
        {f"without {key}": without(key) for key in keys}
        | {f"{key} is text": changed(**{key: "x"}) for key in keys if key != "tree"}
        | {f"format {n}": changed(format=n) for n in (0, 1, 5, 999, -1, None, "2", True)}
        | {f"episodes {n}": changed(episodes=n) for n in (-1, 1.5, 10**30)}
        | {"another run": changed(run="0" * 20), "unsealed": lambda c: json.dumps(json.loads(c), indent=2).encode()}
        | {"unknown key": changed(extra=1), "number 0": changed(number=0), "tree is a number": changed(tree=1)}
        | {f"state at {path!r}": part("state", file=path) for path in paths}
        | {f"rows at {path!r}": part("rows", file=path) for path in paths[:3]}
        | {"wrong checksum": part("state", sha256="0" * 64), "wrong size": part("state", size=1)}
        | {"tree of an unknown class": changed(tree={"rng": {}, "progress": [{"class": "os.system", "fields": {}}]})}
    )


def npz_spoilers() -> dict[str, Any]:
    """Ways to damage an npz file; the manifest is made to agree with it, so that only its content speaks."""
    return {
        "empty": lambda c: b"",
        "cut": lambda c: c[: len(c) // 2],
        "last byte gone": lambda c: c[:-1],
        "no zip": lambda c: b"x" * 1000,
        "pickled": lambda c: _npz(a0=np.array([{"x": 1}], dtype=object)),
        "zip bomb": lambda c: _bomb(),
        "header larger than its data": lambda c: _zip({"a0.npy": _npy_header("(1000000000000,)")}),
        "negative shape": lambda c: _zip({"a0.npy": _npy_header("(-1,)")}),
        "header with code": lambda c: _zip({"a0.npy": _npy_header("(__import__('os').getpid(),)")}),
        "not an array": lambda c: _zip({"a0.npy": b"hello"}),
        "wrong version": lambda c: _zip({"a0.npy": b"\x93NUMPY\x09\x00" + b"\0" * 100}),
        "no arrays": lambda c: _zip({}),
        "bad checksum inside": lambda c: _changed(c, c.index(b"PK\x01\x02") - 1),  # the last byte of an array
    }


def parquet_spoilers() -> dict[str, Any]:
    """Ways to damage a Parquet file, the same."""
    return {
        "empty": lambda c: b"",
        "cut": lambda c: c[: len(c) // 2],
        "last byte gone": lambda c: c[:-1],
        "footer zeroed": lambda c: c[:-40] + b"\0" * 40,
        "text": lambda c: b"hello",
        "magic alone": lambda c: b"PAR1PAR1",
        "too many rows": lambda c: parquet_of(rows=1_000_000),
        "pages spoilt": lambda c: c[:20] + bytes(b ^ 0xFF for b in c[20:60]) + c[60:],
    }


def _changed(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=True, **arrays)
    return stream.getvalue()


def _zip(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


@cache
def _bomb() -> bytes:
    """Half a gigabyte of zeros in about two megabytes."""
    stream, zeros = io.BytesIO(), b"\0" * 2**20
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a0.npy", "w") as member,
    ):
        member.write(_npy_header("(67108864,)"))
        for _ in range(512):
            member.write(zeros)
    return stream.getvalue()


def _npy_header(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    padded = text + b" " * (118 - len(text) - 1) + b"\n" if len(text) < 117 else text + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


def parquet_of(rows: int) -> bytes:
    """A table of rows as earlier versions wrote it."""
    stream = io.BytesIO()
    columns = {"episode": np.arange(rows), "value": np.linspace(0.0, 1.0, rows)}
    pq.write_table(pa.table(columns), stream, compression="zstd", use_dictionary=False)
    return stream.getvalue()


def agree(folder: Any, kind: str) -> None:
    """Make the manifest of a run agree with a part that was spoilt: the checksum is right, the content is not."""
    file = folder / "commit.json"
    manifest = json.loads(file.read_bytes())
    entry = manifest[kind] if kind == "state" else manifest[kind][0]
    content = (folder / entry["file"]).read_bytes()
    entry.update(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    file.write_bytes(sealed(manifest))


def sealed(content: dict[str, Any]) -> bytes:
    """A record with a right checksum, whatever it says: as somebody writes it who knows how."""
    zeros = "0" * 64
    text = json.dumps({"sha256": zeros} | {k: v for k, v in content.items() if k != "sha256"}, indent=1).encode()
    return text.replace(zeros.encode(), hashlib.sha256(text).hexdigest().encode(), 1)


def digest(folder: Any) -> str:
    """A fingerprint of every file and link under a folder, except locks, which are empty."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.name == "lock" or path.is_dir():
            continue
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        found.update(str(path.relative_to(folder)).encode() + b"\0" + content)
    return found.hexdigest()


def flip(file, place=None):
    """Change one bit of a file, in its middle unless a place is given."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 1
    file.write_bytes(content)
