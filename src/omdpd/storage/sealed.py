"""Files that name the run they belong to and carry their own checksum: a changed bit, or another run's file, is seen.

The checksum is that of the file's bytes with zeros in its own place.  In JSON it is the first entry; in TOML it stands
in a comment in the first line.  Files of format 2 (version 0.1) have none: they are read as they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from omdpd.storage.atomic import MAX_JSON_BYTES, RecordError, json_bytes, read_bounded, record_of

T = TypeVar("T")

# The layout of a run folder: what is written, and what can still be read.  Up to 3 its tables were Parquet files.
FORMAT, READABLE = 4, (2, 3, 4)
# From this format on every file bears its checksum; only commit.json changed since.
SEALED = 3
ZEROS = "0" * 64
JSON_SEAL = re.compile(rb'\{\s*"sha256": "([0-9a-f]{64})"')
TOML_SEAL = re.compile(rb"# run (\S*) sha256 ([0-9a-f]{64})\n")
MAX_TOML_BYTES = 2**20
# TOML's whole numbers have 64 bits; its reader in Python takes hexadecimal ones that cannot even be printed.
MAX_WHOLE = 2**63


def sealed_json(run: str, content: Mapping[str, Any], compact: bool = False, layout: int = SEALED) -> bytes:
    """A record as JSON with its run, the format (`layout`) and a checksum."""
    # A record that names its run itself keeps its order, so that it comes back as it was written.
    named = {"run": run} if run and "run" not in content else {}
    marks = {"sha256": ZEROS, "format": layout} | named
    text = json_bytes(marks | dict(content), compact)
    return text.replace(ZEROS.encode(), hashlib.sha256(text).hexdigest().encode(), 1)


def sealed_toml(run: str, toml: str) -> bytes:
    """TOML with its run and a checksum in the first line."""
    text = f"# run {run} sha256 {ZEROS}\n{toml}".encode()
    return text.replace(ZEROS.encode(), hashlib.sha256(text).hexdigest().encode(), 1)


def read_sealed(file: Path, run: str = "") -> dict[str, Any] | None:
    """A record that is what was written, and this run's if one is given; None if there is no such file."""
    if not os.path.lexists(file):
        return None
    text = read_bounded(file, MAX_JSON_BYTES)
    content = record_of(file, text)
    seal = JSON_SEAL.match(text)
    if seal is not None:
        _check_sum(file, text, seal, 1)
    elif content.get("format", 2) != 2 or "sha256" in content:
        raise RecordError(f"{file} is damaged: its checksum is missing")
    content.pop("sha256", None)
    _check_format(file, content.get("format", 2))
    _check_run(file, content.get("run", run if seal is None else ""), run)
    return content


def read_toml(file: Path, run: str = "") -> tuple[dict[str, Any], bool]:
    """The content of a small TOML file that is what was written, and whether it has a checksum."""
    text, sealed = read_sealed_text(file, run)
    return toml_of_text(file, text), sealed


def read_sealed_text(file: Path, run: str = "") -> tuple[bytes, bool]:
    """The text of a small TOML file that is what was written, and whether it has a checksum."""
    text = read_bounded(file, MAX_TOML_BYTES)
    seal = TOML_SEAL.match(text)
    if seal is not None:
        _check_sum(file, text, seal, 2)
        _check_run(file, seal[1].decode("ascii", "replace"), run)
    elif text.startswith(b"#"):
        raise RecordError(f"{file} is damaged: its checksum is missing")
    return text, seal is not None


def converted(content: Any, kind: type[T], file: Path) -> T:
    """A record of a file as what it must be."""
    try:
        return msgspec.convert(content, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise RecordError(f"{file} is damaged: {str(error)[:300]}") from None


def toml_of_text(file: Path, text: bytes) -> dict[str, Any]:
    """The TOML that a file's text spells; the file is named where it spells none."""
    try:
        content = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file} is damaged: it does not hold TOML ({error})") from None
    waiting: list[Any] = [content]
    for item in waiting:  # which grows meanwhile
        if isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item
        elif isinstance(item, int) and not -MAX_WHOLE <= item < MAX_WHOLE:
            raise RecordError(f"{file} is damaged: a whole number in it has more than 64 bits")
    return content


def _check_sum(file: Path, text: bytes, seal: re.Match[bytes], group: int) -> None:
    start, stop = seal.span(group)
    if hashlib.sha256(text[:start] + ZEROS.encode() + text[stop:]).hexdigest().encode() != seal[group]:
        raise RecordError(f"{file} is damaged: its checksum is not the one that was written")


def _check_format(file: Path, found: Any) -> None:
    if found not in READABLE or isinstance(found, bool):
        raise RecordError(
            f"{file} has format {found!r}, but this version reads the formats {', '.join(map(str, READABLE))}: use "
            "the version that wrote it, or move the folder away to run it anew"
        )


def _check_run(file: Path, found: Any, run: str) -> None:
    if run and found != run:
        raise RecordError(f"{file} belongs to the run {str(found)[:80]!r}, not to {run!r}")
