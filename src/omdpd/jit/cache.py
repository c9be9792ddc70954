"""Where compiled code is kept: once per user and version, whichever environment asks for it.

    <cache>/kernels/<fingerprint of these sources>-numba<version>/

Numba would keep machine code beside the sources, so that every environment and every copy compiles anew; and it notices
when a function's own file changed, but not when a function that it calls did.  So our functions have a cache of their
own (`function_cache`): the fingerprint changes with any of these sources, and depends on their content, not on where
they lie or when they were unpacked.  What of ours has not been used for a long time is removed.

What came with a wheel is not compiled at all: see `shipped`.

``OMDPD_CACHE_DIR`` names another place than the user's own cache folder.  Numba's files are pickles, so nobody else may
be able to change the place (`own_folder`); where that cannot be had nothing is kept, and whoever compiles is told.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numba
from platformdirs import user_cache_path

from omdpd.jit.own_folder import make_own

PACKAGE = Path(__file__).parents[1]
# Where compiled functions stand, and what they read when they are compiled.
KERNELS = (
    "jit",
    "solvers/compiled",
    "beliefs",
    "learners/standard",
    "learners/policy_steps.py",
    "natures/streams.py",
    "play/compiled",
)
# Machine code of other versions is removed when it has not been used for so many seconds (sixty days).
KEPT_FOR = 60 * 24 * 3600.0
# How our folders are named, and the file in them that says whose they are; nothing else is ever removed.  The first
# line is what backups look for to leave a folder out.
OURS = re.compile(r"[0-9a-f]{20}-numba[0-9][0-9A-Za-z.+]*(-svml)?")
MARK, MARKED = "CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n# Machine code that omdpd compiled.\n"


class CacheFolder(NamedTuple):
    """The folder of this version's machine code; None where nothing is kept, and why."""

    folder: Path | None
    why: str


def cache_folder() -> Path:
    """The folder of everything that is kept between runs of one user; it may be removed at any time."""
    return Path(os.path.abspath(os.environ.get("OMDPD_CACHE_DIR") or user_cache_path("omdpd", appauthor=False)))


@cache
def fingerprint(folder: Path = PACKAGE, places: tuple[str, ...] = KERNELS) -> str:
    """A hash of the names and contents of the sources in some places under a folder."""
    digest = hashlib.sha256()
    for file in sorted(file for place in places for file in _sources(folder / place)):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:20]


def _sources(place: Path) -> Iterable[Path]:
    return [place] if place.suffix == ".py" else place.rglob("*.py")


@cache
def kept() -> CacheFolder:
    """Where this version's machine code is kept; the folder is made if need be."""
    # Intel's vectors of exponentials, where Numba found them: code that calls them runs nowhere else.
    svml = "-svml" if getattr(numba.config, "USING_SVML", False) else ""
    folder = cache_folder() / "kernels" / f"{fingerprint()}-numba{numba.__version__}{svml}"
    try:
        make_own(folder)
        with suppress(FileExistsError), (folder / MARK).open("x") as file:
            file.write(MARKED)
        os.utime(folder)
        forget_unused(folder)
    except OSError as error:
        return CacheFolder(None, f"{error.filename}: {error.strerror}" if error.strerror else str(error))
    return CacheFolder(folder, "")


def kernel_folder() -> Path | None:
    """The folder of this version's machine code, or None."""
    return kept().folder


def where_kept() -> str:
    """Where compiled code is, as the end of a sentence."""
    place = kept()
    if place.folder is not None:
        return f"kept in {cache_folder()}"
    return f"kept nowhere: {place.why}; OMDPD_CACHE_DIR names another folder"


def forget_unused(folder: Path) -> None:
    """Remove our machine code beside a folder that has not been used for long."""
    for other in folder.parent.iterdir():
        with suppress(OSError, UnicodeDecodeError):
            old = time.time() - other.lstat().st_mtime > KEPT_FOR
            if old and other != folder and OURS.fullmatch(other.name) and (other / MARK).read_text() == MARKED:
                shutil.rmtree(other)
