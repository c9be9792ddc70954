"""The one reader of npz files: problem files, states of runs, sessions.  Nothing is unpacked before it is known to fit.

An npz file is a zip archive of arrays, and both have headers that may lie.  So the archive's directory is bounded
first, then every member's size, then every array's header is read and held against its member's size; only then is an
array read, and never more of it than its header promised.  Nothing here unpickles.
"""

from __future__ import annotations

import functools
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import RecordError

Arrays = dict[str, np.ndarray[Any, Any]]

# The directory of an archive of a few thousand arrays; a longer one is refused before it is read.
MAX_DIRECTORY_BYTES = 2**20
# The end of a zip archive: 22 bytes and a comment of at most 65535.
END_SIGNATURE, END_SIZE, LOCATOR_SIGNATURE, LOCATOR_SIZE = b"PK\x05\x06", 22, b"PK\x06\x07", 20
# The header of an array of plain numbers is a line; NumPy reads none that is longer than this.
MAX_HEADER_BYTES = 10_000
# A prefix and the version of the format.
MARK_SIZE = len(np.lib.format.MAGIC_PREFIX) + 2
# A flag of zip: the member is encrypted.
ENCRYPTED = 0x1
# Arrays are read in pieces of this many bytes, so that a lie about a size is seen early.
PIECE = 2**20
# Everything that zipfile, zlib and NumPy raise over files that lie.
DAMAGE = (
    ValueError, TypeError, OSError, EOFError, KeyError, IndexError, OverflowError, MemoryError, RuntimeError,
    NotImplementedError, SyntaxError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error,
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a file may unpack to: bytes in all, bytes if anything in it is compressed (0: nothing may be), members."""

    n_bytes: int
    compressed_bytes: int = 0
    members: int = 4096


@dataclass(frozen=True)
class Header:
    """What an array's header promises, and where its numbers begin."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def size(self) -> int:
        """How many entries."""
        return math.prod(self.shape)


class Npz:
    """An open archive whose sizes are known to fit: headers by name, then arrays one at a time."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members = {member.filename: member for member in archive.infolist()}
        self.headers: Mapping[str, Header] = {
            name.removesuffix(".npy"): self._header(name) for name in self._members if name.endswith(".npy")
        }
        self.others = tuple(name for name in self._members if not name.endswith(".npy"))

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """An array, exactly as large as its header promised."""
        header = self.headers[name]
        flat = np.empty(header.size, header.dtype)
        room = flat.view(np.uint8).data
        with self._archive.open(self._members[f"{name}.npy"]) as stream:
            stream.read(header.start)
            for place in range(0, len(room), PIECE):
                wanted = min(PIECE, len(room) - place)
                piece = stream.read(wanted)
                if len(piece) < wanted:
                    raise ValueError(f"{name} ends before its last number")
                room[place : place + wanted] = piece
            if stream.read(1):  # reading to the end also checks the member's checksum
                raise ValueError(f"{name} is longer than its header promises")
        return flat.reshape(header.shape, order="F" if header.fortran_order else "C")

    def content(self, name: str, most: int) -> bytes:
        """A member that is no array, of at most `most` bytes."""
        if self._members[name].file_size > most:
            raise ValueError(f"{name} is larger than {most} bytes")
        return self._archive.read(name)

    def _header(self, name: str) -> Header:
        with self._archive.open(self._members[name]) as stream:
            mark = stream.read(MARK_SIZE)
            if len(mark) < MARK_SIZE or not mark.startswith(np.lib.format.MAGIC_PREFIX):
                raise ValueError(f"{name} does not begin as an array does")
            version = (mark[-2], mark[-1])
            if version not in ((1, 0), (2, 0)):
                raise ValueError(
                    f"{name} is in version {version[0]}.{version[1]} of its format, which is never written"
                )
            size = stream.read(2 * version[0])
            length = int.from_bytes(size, "little")
            if length > MAX_HEADER_BYTES:
                raise ValueError(f"{name} has a header of {length} bytes")
            shape, fortran_order, kind = _promise(version, size + stream.read(length))
            start = len(mark) + len(size) + length
        if kind.hasobject:
            raise ValueError(f"{name} holds pickled objects, which are never unpacked")
        if kind.names is not None or kind.subdtype is not None or kind.itemsize == 0:
            raise ValueError(f"{name} holds {kind}, which is no plain number")
        if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != self._members[name].file_size - start:
            raise ValueError(f"{name} does not have the size that its header promises")
        return Header(shape, fortran_order, kind, start)


@contextmanager
def opened_npz(stream: BinaryIO, name: str, limits: Limits) -> Iterator[Npz]:
    """An archive whose directory, members and headers fit within the limits; what is wrong is told with its name."""
    try:
        _bound_directory(stream)
        with zipfile.ZipFile(stream) as archive:
            _bound_members(archive, limits)
            yield Npz(archive)
    except (RecordError, InvalidInputError):
        raise
    except DAMAGE as error:
        raise RecordError(f"{name} is not an .npz file of plain arrays: {_one_line(error)}") from None


def npz_of_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Arrays as the content of an npz file, without pickled objects and not compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # numpy.savez refuses some names, such as "file"
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return buffer.getvalue()


def arrays_of_npz(content: bytes, name: str) -> Arrays:
    """The arrays of a file of ours, which is not compressed: what it unpacks to is never larger than itself."""
    with opened_npz(io.BytesIO(content), name, Limits(len(content))) as npz:
        if npz.others:
            raise RecordError(f"{name} is damaged: it holds {npz.others[0]!r}, which is no array")
        return {array: npz.array(array) for array in npz.headers}


@functools.lru_cache(256)  # columns of one table have equal headers
def _promise(version: tuple[int, int], header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type in the header of an array, read by NumPy."""
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(io.BytesIO(header))


def _bound_directory(stream: BinaryIO) -> None:
    """Refuse an archive with a longer directory than any of ours, before it is read into memory."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - END_SIZE - 65535 - LOCATOR_SIZE, 0))
    tail = stream.read()
    plain = tail[-END_SIZE:].startswith(END_SIGNATURE) and tail.endswith(b"\0\0")
    place = len(tail) - END_SIZE if plain else tail.rfind(END_SIGNATURE)
    if place < 0 or len(tail) < place + END_SIZE:
        raise ValueError("it is no zip archive")
    located = tail[max(place - LOCATOR_SIZE, 0) : place].startswith(LOCATOR_SIGNATURE)
    if located or struct.unpack_from("<L", tail, place + 12)[0] > MAX_DIRECTORY_BYTES:
        raise ValueError("the directory of its archive is larger than that of any file of arrays")
    stream.seek(0)


def _bound_members(archive: zipfile.ZipFile, limits: Limits) -> None:
    """Refuse members that are encrypted, packed in other ways, named twice, too many or too large in all."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two of its members have one name")
    if any(member.flag_bits & ENCRYPTED for member in members):
        raise ValueError("it is encrypted")
    packed = [member.compress_type for member in members if member.compress_type != zipfile.ZIP_STORED]
    if any(kind != zipfile.ZIP_DEFLATED for kind in packed):
        raise ValueError("it is compressed in a way that NumPy does not use")
    if packed and not limits.compressed_bytes:
        raise ValueError("it is compressed, which no file of a run is")
    if any(m.compress_type == zipfile.ZIP_STORED and m.compress_size != m.file_size for m in members):
        raise ValueError("a member that is not compressed claims two sizes")
    most = limits.compressed_bytes if packed else limits.n_bytes
    total = sum(member.file_size for member in members)
    if total > most or len(members) > limits.members:
        hint = "; write it with numpy.savez, which does not compress" if packed else ""
        raise ValueError(f"it claims to unpack to {len(members)} members of {total} bytes, but {most} may be{hint}")


def _one_line(error: BaseException) -> str:
    """An error's message as a part of a sentence."""
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
