"""Machine code that came with the package, so that a first use compiles nothing.

    jit/machine_code/<Python>-numba<version>-<processor>/about.json, and Numba's own files beside it

`tools/build_wheel.py` compiles for a processor that nearly all machines include (x86-64-v3) and puts the files into the
wheel; a source distribution or a checkout has none.  The user's process keeps its own target: machine code for a
lesser processor runs on a greater one, so an entry is merely looked up under the name of the processor that it was made
for.  What is not there is compiled for this very processor, with the shipped functions that it calls linked into it.

Nothing is used unless sources, Python, Numba, LLVM and operating system are those it was made with, the processor
has every feature, every file is whole, and nobody told Numba to compile otherwise; whatever does not fit is compiled as
if nothing had come along.  What was shipped goes before what the user's cache holds, so that shipped functions are the
same ones whatever was compiled elsewhere.  ``OMDPD_SHIPPED=0`` does without.

Numba's files are pickles.  These lie in the installed package and are only read; whoever could change them could
change the package's Python files as well, so they are to be trusted as far as those are.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm
import msgspec
import numba

from omdpd.jit.cache import PACKAGE, fingerprint

FOLDER = PACKAGE / "jit" / "machine_code"
# How Numba compiles unless it is told otherwise.  Who asks for checked indices, for another target or for code to be
# debugged shall get it.
USUAL = {
    "CPU_NAME": None, "CPU_FEATURES": None, "ENABLE_AVX": True, "OPT": 3, "LOOP_VECTORIZE": 1, "SLP_VECTORIZE": 0,
    "BOUNDSCHECK": None, "DEBUGINFO_DEFAULT": 0, "USING_SVML": False,
}  # fmt: skip


class About(msgspec.Struct, frozen=True):
    """What machine code was made with and for, and the SHA-256 of each of its files."""

    facts: dict[str, str]
    processor: str
    features: str
    files: dict[str, str]


class Code(NamedTuple):
    """Machine code that runs here."""

    folder: Path
    about: About

    def magic_tuple(self) -> tuple[str, str, str]:
        """The target as Numba names it in the keys of its index."""
        return self.about.facts["system"], self.about.processor, self.about.features

    def whole(self, name: str) -> bool:
        """Whether there are files of a function, and all of them are as they were made."""
        named = {file: sha for file, sha in self.about.files.items() if file.startswith(f"{name}.")}
        return bool(named) and all(sha256(self.folder / file) == sha for file, sha in named.items())


def facts() -> dict[str, str]:
    """What machine code depends on besides the processor."""
    return {
        "sources": fingerprint(),
        "python": f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "system": llvm.get_process_triple(),
    }


def sha256(file: Path) -> str:
    """The hash of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def shipped_code(folder: Path = FOLDER) -> Code | None:
    """The machine code that came along and runs here, if there is any."""
    if os.environ.get("OMDPD_SHIPPED") == "0" or not _usual():
        return None
    for file in sorted(folder.glob("*/about.json")):
        with suppress(OSError, msgspec.MsgspecError):
            about = msgspec.json.decode(file.read_bytes(), type=About)
            if about.facts == facts() and _has(about.features):
                return Code(file.parent, about)
    return None


def _usual() -> bool:
    level = getattr(numba.config, "OPT", None)
    if getattr(level, "is_opt_max", False):  # which equals 3, and is more
        return False
    return all(getattr(numba.config, name, usual) == usual for name, usual in USUAL.items())


def _has(features: str) -> bool:
    """Whether this processor has all of "+one,+another"."""
    try:
        here = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this processor
        return False
    return all(here.get(feature.removeprefix("+")) for feature in features.split(","))
