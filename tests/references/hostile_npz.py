"""Problem files that lie, explode or hold nonsense, each made of a good one: what a stranger may send.

Every one of them must be refused with one sentence, within little memory and time; `build` gives its bytes.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

P = np.full((2, 2, 2), 0.5)
GOOD = {
    "transition": P,
    "reward": np.array([[0.0, 1.0], [0.5, 1.0]]),
    "cost": np.array([[0.0, 1.0], [0.0, 1.0]]),
    "budget": np.array(1.5),
    "horizon": np.array(3),
}


@dataclass(frozen=True)
class Hostile:
    """A file by name, and how its bytes are made."""

    name: str
    build: Callable[[], bytes]


def npz(**changes: object) -> bytes:
    """The good file with some arrays replaced, or left out where None is given."""
    stream = io.BytesIO()
    tables = {key: value for key, value in (GOOD | changes).items() if value is not None}
    np.savez(stream, **{key: np.asarray(value) for key, value in tables.items()})
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def raw_npy(shape: str, descr: str = "'<f8'", body: bytes = b"", version: int = 1, order: str = "False") -> bytes:
    """An array whose header says whatever it likes."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + body


def archive(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return stream.getvalue()


def members(**changes: bytes) -> dict[str, bytes]:
    """The members of the good file, some replaced."""
    whole = {f"{name}.npy": npy(np.asarray(array)) for name, array in GOOD.items()}
    return whole | {name.replace("__", "."): content for name, content in changes.items()}


def with_header(text: str | bytes) -> bytes:
    content = {name: body for name, body in members().items() if name not in ("horizon.npy", "budget.npy")}
    return archive(content | {"header.toml": text if isinstance(text, bytes) else text.encode()})


@cache
def bomb(shape: str, n_bytes: int) -> bytes:
    """An array of zeros that unpacks to many bytes and is packed into few."""
    stream, zeros = io.BytesIO(), b"\0" * 2**20
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, content in members().items():
            if name != "transition.npy":
                packed.writestr(name, content)
        with packed.open("transition.npy", "w", force_zip64=True) as member:
            member.write(raw_npy(shape))
            for _ in range(n_bytes // 2**20):
                member.write(zeros)
    return stream.getvalue()


def patched(old: bytes, place: int, new: bytes, signature: bytes, nth: int = 0) -> bytes:
    """Bytes at a place behind the nth occurrence of a signature, replaced."""
    at = -1
    for _ in range(nth + 1):
        at = old.index(signature, at + 1)
    return old[: at + place] + new + old[at + place + len(new) :]


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


def _zips() -> Iterator[Hostile]:
    """The archive itself lies."""
    good = npz()
    for nth in range(5):
        for field, place, new in (
            ("flag encrypted", 8, b"\x01\x00"), ("flag all", 8, b"\xff\xff"), ("method 99", 10, b"\x63\x00"),
            ("method bzip2", 10, b"\x0c\x00"), ("method lzma", 10, b"\x0e\x00"), ("method deflate", 10, b"\x08\x00"),
            ("checksum", 16, b"\0\0\0\1"), ("size 0", 24, b"\0\0\0\0"), ("size 4 GiB", 24, b"\xfe\xff\xff\xff"),
            ("packed size 0", 20, b"\0\0\0\0"), ("packed size 4 GiB", 20, b"\xfe\xff\xff\xff"),
            ("offset beyond", 42, b"\xfe\xff\xff\x7f"), ("offset 1", 42, b"\x01\0\0\0"),
            ("name length", 28, b"\xff\xff"), ("extra length", 30, b"\xff\xff"), ("comment length", 32, b"\xff\xff"),
            ("needs version 99", 6, b"\xff\x00"),
        ):  # fmt: skip
            yield Hostile(f"directory {nth} {field}", lambda p=place, n=new, k=nth: patched(good, p, n, CENTRAL, k))
    for field, place, new in (
        ("signature", 0, b"XX"), ("name length", 26, b"\xff\xff"), ("extra length", 28, b"\xff\xff"),
        ("name", 30, b"\xff\xfe"), ("flags", 6, b"\xff\xff"),
    ):  # fmt: skip
        yield Hostile(f"local {field}", lambda p=place, n=new: patched(good, p, n, LOCAL))
    for field, place, new in (
        ("count", 10, b"\xff\xff"), ("size of directory", 12, b"\xff\xff\xff\x7f"), ("size zip64", 12, b"\xff" * 4),
        ("offset", 16, b"\xff\xff\xff\x7f"), ("disk", 4, b"\x07\x00"), ("comment", 20, b"\xff\xff"),
    ):  # fmt: skip
        yield Hostile(f"end {field}", lambda p=place, n=new: patched(good, p, n, END))
    yield from (Hostile(f"cut at {n}", lambda n=n: good[:n]) for n in (0, 1, 3, 30, 100, 500, len(good) - 1))
    yield Hostile("only an end", lambda: END + b"\0" * 18)
    yield Hostile("text", lambda: b"hello")
    yield Hostile("zeros", lambda: b"\0" * 4096)
    yield Hostile("no members", lambda: archive({}))
    yield Hostile(
        "a zip64 locator", lambda: good[: good.index(END)] + b"PK\x06\x07" + b"\xff" * 16 + END + b"\xff" * 18
    )
    yield Hostile("lzma", lambda: archive(members(), zipfile.ZIP_LZMA))
    yield Hostile("bzip2", lambda: archive(members(), zipfile.ZIP_BZIP2))
    yield Hostile("many members", lambda: archive({f"{i}.npy": b"" for i in range(5000)}))
    yield Hostile("a long directory", lambda: archive({f"{'x' * 60_000}{i}": b"" for i in range(40)}))
    yield Hostile("a name with a path", lambda: archive(members(**{"../../transition__npy": npy(P)})))
    yield Hostile("a name with zeros", lambda: archive(members() | {"tran\x01sition.npy": npy(P)}))
    yield Hostile("a nested archive", lambda: archive(members() | {"transition.npy": npz()}))
    yield Hostile("twice", _twice)


def _twice() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for name, content in members().items():
            packed.writestr(name, content)
        info = zipfile.ZipInfo("reward.npY")
        packed.writestr(info, npy(np.zeros((2, 2))))
    return stream.getvalue().replace(b"reward.npY", b"reward.npy")


def _arrays() -> Iterator[Hostile]:
    """Arrays whose headers lie, or that hold what is no number."""
    shapes = (
        "(1000000000000,)", "(-1,)", "(2, 2, -2)", "(0, 10**18)", "(2, 2)", "(9,)", "(True, 2, 2)", "(2.0, 2, 2)",
        "'222'", "None", "((2, 2, 2),)", "(2,) * 3", "(1e3,)", "(" + "1, " * 70 + ")", "(2, 2, 2, 1000000000)",
        "(99999999999999999999999999,)", "(__import__('os').getpid(),)", "(" * 200 + ")" * 200, "{}", "[2, 2, 2]",
        "(" + "9" * 5000 + ",)", "()",
    )  # fmt: skip
    body = P.tobytes()
    for shape in shapes:
        whole = members(transition__npy=raw_npy(shape, body=body))
        yield Hostile(f"shape {shape[:30]}", lambda w=whole: archive(w))
    kinds = (
        "'|O'", "'<U2'", "'|S8'", "'<M8[s]'", "'<m8[s]'", "'<c16'", "'|V8'", "'<f16'", "[('a', '<f8')]", "'<f8,<f8'",
        "'(2,)<f4'", "'<U100000000'", "None", "7", "'x'", "''", "'|V0'", "[]", "['a']", "('<f8', (2,))", "{'a': 1}",
    )  # fmt: skip
    for kind in kinds:
        whole = members(transition__npy=raw_npy("(2, 2, 2)", kind, body))
        yield Hostile(f"kind {kind[:30]}", lambda w=whole: archive(w))
    for version in (0, 2, 3, 9, 255):
        yield Hostile(
            f"version {version}", lambda v=version: archive(members(transition__npy=raw_npy("(3,)", version=v)))
        )
    yield Hostile("a header of 4 GiB", lambda: archive(
        members(transition__npy=b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100)))  # fmt: skip
    yield Hostile("a long header", lambda: archive(members(transition__npy=raw_npy("(2, 2, 2)" + " " * 60_000))))
    yield Hostile("order", lambda: archive(members(transition__npy=raw_npy("(2, 2, 2)", body=body, order="'x'"))))
    yield Hostile("no magic", lambda: archive(members(transition__npy=b"hello")))
    yield Hostile("empty", lambda: archive(members(transition__npy=b"")))
    yield Hostile("too long", lambda: archive(members(transition__npy=npy(P) + b"x")))
    yield Hostile("too short", lambda: archive(members(transition__npy=npy(P)[:-1])))
    yield Hostile("pickled", lambda: npz(transition=np.array([{"x": 1}], dtype=object)))
    packed = archive(members(), zipfile.ZIP_DEFLATED)
    yield Hostile("packed badly", lambda: packed.replace(zlib.compress(npy(P))[2:-4], b"\xff" * 30, 1)[:-3])
    yield Hostile("packed and cut", lambda: patched(packed, 60, b"\xff" * 20, LOCAL))


def _bombs() -> Iterator[Hostile]:
    """Little that claims to be much."""
    yield Hostile("bomb 600 MiB", lambda: bomb("(1, 8960, 1, 8777)", 600 * 2**20))
    yield Hostile("bomb that lies small", lambda: bomb("(2, 2, 2)", 2**28))
    yield Hostile("bomb 200 MiB", lambda: bomb("(26214400,)", 200 * 2**20))
    yield Hostile("bomb of bytes", lambda: bomb("(2, 2, 2)", 300 * 2**20))
    for name, shape in (("reward", (2**24, 2)), ("cost", (2**24, 1))):
        yield Hostile(f"large {name}", lambda n=name, s=shape: npz(**{n: np.broadcast_to(np.int8(0), s)}))


def _horizons() -> Iterator[Hostile]:
    """Horizons that no problem has."""
    values: tuple[object, ...] = (
        0, -1, 2.5, np.nan, np.inf, -np.inf, 1e300, 10**9, 2**40, -(2**40), [1, 2], [], [[3]] * 2, "3", True,
        np.datetime64("2020"), 3 + 0j, 10**7,
    )  # fmt: skip
    for value in values:
        yield Hostile(f"horizon {value!r}", lambda v=value: npz(horizon=v))
    yield Hostile("no horizon", lambda: npz(horizon=None))
    yield Hostile("horizon of objects", lambda: npz(horizon=np.array([None], dtype=object)))
    for text in ("nan", "inf", "-1", "0", "1.5", "10" * 200, "99999999999", '"3"', "[3]", "true", "{ a = 1 }"):
        yield Hostile(f"header horizon {text[:20]}", lambda t=text: with_header(f"horizon = {t}"))


def _tables() -> Iterator[Hostile]:
    """Tables of the wrong shape or with wrong entries."""
    for name in ("transition", "reward", "cost"):
        for value in (
            0.0, [], [[]], [0.5], [[np.nan] * 2] * 2, [[np.inf] * 2] * 2, [[-1e308, 1e308]] * 2,
            np.zeros((2,) * 6), np.zeros((0, 2, 2)), np.zeros((2, 2), complex), np.zeros((2, 2), "M8[s]"),
            np.array([["1", "0"]] * 2), np.array([[b"1", b"0"]] * 2), np.zeros((3, 5)), np.zeros((1, 1, 1, 1)),
        ):  # fmt: skip
            if np.shape(value) == (0, 2, 2) and name != "transition":
                continue
            yield Hostile(f"{name} {str(value)[:25]!r} {np.shape(value)}", lambda n=name, v=value: npz(**{n: v}))
        yield Hostile(f"no {name}", lambda n=name: npz(**{n: None}))
    for name in ("budget", "initial"):
        for value in ([1.0] * 7, np.nan, -np.inf, [[1.0]], "1", 1e308, [], [-1.0, 2.0], np.array(1j)):
            yield Hostile(f"{name} {value!r}", lambda n=name, v=value: npz(**{n: v}))
    for value in (0.0, [], np.zeros((1, 1, 3, 2, 2)), np.full((1, 1, 3, 2, 2), np.nan), np.zeros((1, 9, 3, 2, 2))):
        yield Hostile(f"scenarios {np.shape(value)}", lambda v=value: npz(scenarios=v))
    yield Hostile("many constraints", lambda: npz(cost=np.zeros((400, 2, 2)), horizon=100_000))
    yield Hostile("extra", lambda: npz(extra=1.0))
    yield Hostile("members that are no arrays", lambda: archive(members() | {"setup.py": b"raise SystemExit"}))


def _headers() -> Iterator[Hostile]:
    """Headers that are no TOML, or say what no header says."""
    deep = "x = " + "[" * 100_000
    texts: tuple[str | bytes, ...] = (
        "horizon", "horizon = ", "= 3", "[a]\nb = 1", "[[states]]\na = 1", deep, "a." * 5000 + "b = 1", b"\xff\xfe",
        "\0", "x" * 2_000_000, "horizon = 4\nhorizon = 5", "format = 2\nhorizon = 3", 'format = "1"\nhorizon = 3',
        "horizon = 3\nbudget = [nan]", "horizon = 3\nbudget = [-inf]", f"horizon = 3\nbudget = [{'9' * 400}]",
        "horizon = 3\nbudget = [1e308]", "horizon = 3\nbudget = [true]", "horizon = 3\nbudget = [[1.0]]",
        "horizon = 3\nbudget = []", "horizon = 3\nbudget = [1.0, 2.0, 3.0]", "horizon = 3\nbudget = [2020-01-01]",
        "horizon = 3\ncost_scale = [nan]", "horizon = 3\ncost_scale = [inf]", "horizon = 3\ncost_scale = [0.0]",
        f"horizon = 3\ncost_scale = [{'9' * 400}]", "horizon = 3\ncost_scale = [-1]", "horizon = 3\ncost_scale = []",
        "horizon = 3\nreward_range = [nan, 1.0]", "horizon = 3\nreward_range = [inf, inf]",
        "horizon = 3\nreward_range = [2.0, 1.0]", "horizon = 3\nreward_range = []",
        f"horizon = 3\nreward_range = [0, {'9' * 400}]", 'horizon = 3\nname = "\\u001b[2J"', "horizon = 3\nname = 1",
        f'horizon = 3\nname = "{"x" * 5000}"', 'horizon = 3\nname = "a\\nb"', 'horizon = 3\nstates = ["a"]',
        'horizon = 3\nstates = ["a", 1]', 'horizon = 3\nactions = ["a", "\\u0007"]', "horizon = 3\nlayout = [1]",
        'horizon = 3\nlayout = ["abc"]', 'horizon = 3\nconstraints = ["a", "b"]',
        'horizon = 3\nscenarios = ["a"]\nx = 1',
        "horizon = 3\nrescale = 1", "horizon = 3\nrescale = []", 'horizon = 3\n"../x" = 1',
        "horizon = 3\n__class__ = 1",
    )  # fmt: skip
    for i, text in enumerate(texts):
        yield Hostile(f"header {i} {str(text)[:25]!r}", lambda t=text: with_header(t))


def hostile_files() -> list[Hostile]:
    """All of them, in a fixed order."""
    return [*_zips(), *_arrays(), *_bombs(), *_horizons(), *_tables(), *_headers()]
