"""Files that last: there whole or not at all, and read with a bound.

A file is written beside its name, synced and moved into place; then its folder is synced.  What a killed process left
beside a name (``.name.<random>.tmp``) never counts, and `sweep` removes it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from omdpd.problem.arrays import InvalidInputError

# No file of a run is larger; a larger one is refused unread.
MAX_FILE_BYTES = 2**31
# A manifest or a summary is small; a larger one is refused unread.
MAX_JSON_BYTES = 2**26
# A link in a file's place is not followed, and a pipe is not waited for.
READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# Whoever can write into the folder cannot make us write elsewhere: the file is new, and it is no link.
NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class RecordError(InvalidInputError):
    """A file of a run cannot be used; the message says which one and why."""


def write_atomically(file: Path, content: bytes) -> str:
    """Write a file so that it is there whole or not at all, even after a crash; return its checksum."""
    with replacing(file) as stream:
        stream.write(content)
    return hashlib.sha256(content).hexdigest()


def save_file(file: Path, content: bytes) -> Path:
    """Write a file that the user named, whole or not at all, and make its folder if it is missing."""
    make_folder(file.absolute().parent)
    write_atomically(file, content)
    return file


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A stream whose content takes the file's place, all at once, when the block ends well."""
    beside = file.with_name(f".{file.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(os.open(beside, NEW_FLAGS, 0o666), "wb") as stream:  # the umask takes its share
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, file)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.errno and str(error.filename or beside) == str(beside):
            # A full or read-only disk: the error names the file that the caller knows, not the one beside it.
            raise OSError(error.errno, error.strerror, str(file)) from None
        raise
    sync_folder(file.parent)


def rename(file: Path, name: str) -> None:
    """Give a file another name in its folder; a crash of the machine may give it back the old one."""
    os.replace(file, file.with_name(name))


def make_folder(folder: Path) -> None:
    """Make a folder and its parents so that they survive a crash of the machine."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was created, moved or removed in a folder survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_bounded(file: Path, most: int = MAX_FILE_BYTES, size: int | None = None, follow: bool = False) -> bytes:
    """The content of a plain file of at most `most` bytes (or of exactly `size`); links are followed only if asked.

    A user may name a link, so what a user names is followed; what a folder of results holds is not.
    """
    with opened_plain(file, follow) as stream:
        known = os.fstat(stream.fileno()).st_size
        if size is not None and known != size:
            raise RecordError(f"{file} is damaged: it holds {known} bytes, but {size} were committed")
        if known > most:
            raise RecordError(f"{file} is larger than {most} bytes, too large for what it should hold")
        # As much memory as the file asks for; a file that grows meanwhile is none of ours.
        content = stream.read(known + 1)
    if len(content) != known:
        raise RecordError(f"{file} changed while it was read")
    return content


def read_noted(file: Path, sha256: str, size: int | None = None) -> bytes:
    """The content of a file whose checksum was noted when it was written; refused if it is another."""
    content = read_bounded(file, size=size)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RecordError(f"{file} is damaged: its checksum is not the one that was written")
    return content


@contextmanager
def opened_plain(file: Path, follow: bool = False) -> Iterator[BufferedReader]:
    """A plain file to read; links are followed only if asked, and nothing else that has a name is opened."""
    flags = READ_FLAGS & ~getattr(os, "O_NOFOLLOW", 0) if follow else READ_FLAGS
    try:
        handle = os.open(file, flags)
    except FileNotFoundError:
        raise RecordError(f"{file} is missing") from None
    except ValueError:  # a NUL in it, or half a character
        raise RecordError(f"{str(file)!r} is no name of a file") from None
    except OSError as error:
        why = "it is a link, and links are not followed" if file.is_symlink() else error.strerror
        raise RecordError(f"{file} cannot be read: {why}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RecordError(f"{file} is not a plain file")
    with open(handle, "rb") as stream:
        yield stream


def stamp(file: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced or written to; None without one."""
    try:
        known = os.lstat(file)
    except OSError:
        return None
    return known.st_mtime_ns, known.st_ino, known.st_size


def read_json(file: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is no such file."""
    if not os.path.lexists(file):
        return None
    return record_of(file, read_bounded(file, MAX_JSON_BYTES))


def record_of(file: Path, text: bytes) -> dict[str, Any]:
    """The JSON object that a file's text spells; the file is named where it spells none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file} is damaged: it does not hold JSON ({error})") from None
    if not isinstance(content, dict):
        raise RecordError(f"{file} does not hold a record")
    return content


def json_bytes(content: object, compact: bool = False) -> bytes:
    """JSON as a file holds it, for people or (faster) for programs; a number that is not finite is refused."""
    return json.dumps(content, indent=None if compact else 1, allow_nan=False).encode()


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Rows as CSV; None is nothing.

    >>> csv_text([("a", "b"), (1.5, None)])
    'a,b\n1.5,\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def is_half_written(name: str) -> bool:
    """Whether a name is one that a file has before it is moved into place."""
    return name.startswith(".") and name.endswith(".tmp")


def sweep(folder: Path, known: Collection[str], made: Callable[[str], bool]) -> None:
    """Remove what a killed process left behind: half-written files, and files of ours that nothing names."""
    for file in folder.iterdir():
        if is_half_written(file.name) or (made(file.name) and file.name not in known):
            with suppress(OSError):
                file.unlink()
